"""Limits of a web server on its clients."""

from __future__ import annotations

from dataclasses import dataclass

MAX_BODY_BYTES = 64 << 20
"""Upper bound of a request body in bytes, independent of settings."""
READ_AT_ONCE = 4
"""Maximum number of documents and updates that are parsed at the same time. Further ones wait without occupying a
thread.
"""


@dataclass(frozen=True, slots=True)
class WebLimits:
    """Limits of a web server. A request that exceeds one is refused and its connection closed.

    `max_connections`: concurrent connections. A further one closes the connection that has been incomplete for longest;
    if no connection is incomplete, the further one is refused (503).
    `header_s`, `body_s`: seconds until a request's header, then its body, must have arrived (408).
    `stalled_s`: seconds after which a client that does not read its response is disconnected.
    `max_header_bytes` (431), `max_body_bytes` (413): limits of one request.
    `max_held_body_bytes`: total body bytes of the requests in progress (503).
    """

    max_connections: int = 512
    header_s: float = 10.0
    body_s: float = 120.0
    stalled_s: float = 60.0
    max_header_bytes: int = 64 << 10
    max_body_bytes: int = MAX_BODY_BYTES
    max_held_body_bytes: int = 4 * MAX_BODY_BYTES
