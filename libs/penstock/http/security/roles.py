"""The roles, and the role that a request needs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum

OPEN_PATHS = frozenset({"/", "/login", "/health/live", "/health/ready"})
"""Paths that need no token: health checks, and the page and the form with which users log in."""
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_READ_BY_POST = frozenset({"/sparql"})  # the body can be a query
_CHANGING = frozenset({"POST", "PUT", "DELETE"})
_WRITING = frozenset({"/update", "/update-effects", "/data"})
_GRAPH = re.compile(r"/rdf-graphs(/.*)?", re.DOTALL)
_EVENTS = re.compile(r"/streams/.+/(events|advance|late|dead-letters)|/dead-letters", re.DOTALL)


class Role(IntEnum):
    """The actions that a token allows. Each role includes all lower roles."""

    READ = 1
    """Query, follow results, see declarations and metrics."""
    WRITE = 2
    """Push events, advance streams, fetch rejected events, change the stored graph."""
    ADMIN = 3
    """Declare and drop streams, register and stop queries, load in bulk."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The owner of a token.

    `rate`: maximum number of requests per second; None means unlimited. `max_body_bytes`: maximum size of a request's
    body; None means the service's limit. `expires_s`: Unix time in seconds from which on the token is not valid; None
    means no end.
    """

    name: str
    role: Role
    rate: float | None = None
    max_body_bytes: int | None = None
    expires_s: float | None = field(default=None, compare=False)


def role_of(method: str, path: str) -> Role | None:
    """Return the role that a request needs. None if the request needs no token. A change needs ADMIN if its path
    matches none of the constants of this module.
    """
    if path in OPEN_PATHS:
        return None
    if method in _READING or path in _READ_BY_POST:
        return Role.READ
    if method == "POST" and (path in _WRITING or _EVENTS.fullmatch(path)):
        return Role.WRITE
    if method in _CHANGING and _GRAPH.fullmatch(path):
        return Role.WRITE
    return Role.ADMIN
