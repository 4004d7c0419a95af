"""Limits of a web server on its clients."""

from __future__ import annotations

from dataclasses import dataclass

MAX_BODY_BYTES = 64 << 20
"""Upper bound of a request body in bytes, independent of settings."""
READ_AT_ONCE = 4
"""Maximum number of documents and updates that are parsed at the same time. Further documents and updates wait without
occupying a thread.
"""


@dataclass(frozen=True, slots=True)
class WebLimits:
    """Limits of a web server. If a request exceeds a limit, the server refuses the request and closes the connection.
    The status of the response is in parentheses.

    `max_connections`: concurrent connections. For a further connection, the server closes the connection that has been
    incomplete for longest. If no connection is incomplete, the server refuses the further connection (503).
    `header_s`: time in s within which a request's header must arrive (408).
    `body_s`: time in s after the header within which the request's body must arrive (408).
    `stalled_s`: time in s after which a client that does not read its response is disconnected.
    `max_header_bytes` (431), `max_body_bytes` (413): limits of one request.
    `max_held_body_bytes`: total size of the bodies of all requests in progress (503).
    """

    max_connections: int = 512
    header_s: float = 10.0
    body_s: float = 120.0
    stalled_s: float = 60.0
    max_header_bytes: int = 64 << 10
    max_body_bytes: int = MAX_BODY_BYTES
    max_held_body_bytes: int = 4 * MAX_BODY_BYTES
