"""Limits on what a web server accepts from clients."""

from __future__ import annotations

from dataclasses import dataclass

MAX_BODY_BYTES = 64 << 20
"""Largest body of a request, whatever the settings say."""


@dataclass(frozen=True, slots=True)
class WebLimits:
    """Limits of one web server. A request beyond one of them is refused, and its connection closed.

    `max_connections`: open at a time. A further one closes the connection that has waited longest for its request to
    arrive; where every request has arrived, the further one is refused (503).
    `header_s`, `body_s`: seconds until a request's header, then its body, must have arrived (408).
    `stalled_s`: seconds after which a client that reads nothing of its answer is cut off.
    `max_header_bytes` (431), `max_body_bytes` (413): of one request.
    `max_held_body_bytes`: of the bodies of all requests that are being read or answered (503).
    """

    max_connections: int = 512
    header_s: float = 10.0
    body_s: float = 120.0
    stalled_s: float = 60.0
    max_header_bytes: int = 64 << 10
    max_body_bytes: int = MAX_BODY_BYTES
    max_held_body_bytes: int = 4 * MAX_BODY_BYTES
