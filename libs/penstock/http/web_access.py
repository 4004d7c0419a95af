"""Access control for browsers: checks of the Host and Origin headers of each request.

A page of another site can make a browser send requests to a service on this machine or network. Two checks prevent
this:

- `Host` must name this service. This check stops DNS rebinding, where another site's DNS name resolves to this machine.
- `Origin`, which browsers add to requests of pages, must be this service's own origin, or explicitly allowed.

Other clients send no `Origin`. These checks do not authenticate users; they only exclude pages of other sites.
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Receive, Scope, Send

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
ANY = "*"
_EVERYWHERE = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with, not listened on
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Access:
    """The hosts and origins that a service accepts. `hosts`: allowed names in the Host header; None allows every name.

    `origins`: origins (scheme://host[:port]) allowed in addition to the service's own; "*" allows every origin.
    `addresses`: whether every Host that is an IP address is allowed; DNS rebinding does not work with IP addresses.
    """

    hosts: frozenset[str] | None = LOCAL_HOSTS
    origins: frozenset[str] = frozenset()
    addresses: bool = False

    @classmethod
    def listening_on(cls, host: str, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> Access:
        """Return the hosts and origins that a service accepts. The service listens on the address `host`. The service
        accepts the local names, this address, `hosts` and `origins`.
        """
        everywhere = host in _EVERYWHERE
        own = {socket.gethostname(), socket.getfqdn()} if everywhere else {host}
        named = frozenset(name.lower().strip("[]") for name in (*LOCAL_HOSTS, *own, *hosts))
        return cls(None if ANY in named else named, _origins(origins), addresses=everywhere)

    @classmethod
    def inside(cls, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> Access:
        """Return the hosts and origins that a cluster service accepts: `hosts`, all IP addresses, and `origins`. If
        `hosts` is empty, every host name is allowed.
        """
        named = frozenset(name.lower().strip("[]") for name in hosts)
        return cls(named if named and ANY not in named else None, _origins(origins), addresses=True)

    def middleware(self) -> list[Middleware]:
        """Return an application's middleware: the checks, then CORS for the allowed origins."""
        checks = Middleware(AccessMiddleware, access=self)
        if not self.origins:
            return [checks]
        cors = Middleware(CORSMiddleware, allow_origins=sorted(self.origins), allow_methods=["*"], allow_headers=["*"])
        return [checks, cors]

    def refused(self, headers: Headers) -> str | None:
        """Return the reason why a request is refused, or None."""
        host = headers.get("host", "")
        if not self._host_allowed(_name_of(host)):
            return f"host {host!r} is not this service's ({_setting('HOST')})"
        origin = headers.get("origin")
        if origin is None or self._origin_allowed(origin.lower(), host.lower()):
            return None
        return f"pages of {origin} may not call this service ({_setting('ORIGIN')})"

    def _host_allowed(self, name: str) -> bool:
        return self.hosts is None or name in self.hosts or (self.addresses and _is_address(name))

    def _origin_allowed(self, origin: str, host: str) -> bool:
        if ANY in self.origins or origin in self.origins:
            return True
        scheme, _, authority = origin.partition("://")
        return bool(authority) and _with_port(authority, scheme) == _with_port(host, scheme)


class AccessMiddleware:
    """Responds with 403 to requests that `Access` refuses."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and pass an allowed request on to the application."""
        reason = self._access.refused(Headers(scope=scope)) if scope["type"] in ("http", "websocket") else None
        if reason is None:
            await self._app(scope, receive, send)
        else:
            await JSONResponse({"error": "Forbidden", "message": reason}, 403)(scope, receive, send)


def _setting(what: str) -> str:
    return f"allowed by --allow-{what.lower()}, or PENSTOCK_HTTP_ALLOW_{what}S of a cluster's service"


def _origins(given: Iterable[str]) -> frozenset[str]:
    return frozenset(origin.lower().rstrip("/") for origin in given)


def _name_of(host: str) -> str:
    """Return the host name in a Host header, without its port; empty if the header is malformed."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _with_port(authority: str, scheme: str) -> tuple[str, int | None]:
    """Return the host and port of an authority. If the authority has no port, the port is the scheme's default."""
    try:
        parts = urlsplit(f"//{authority}")
        return parts.hostname or "", parts.port or _DEFAULT_PORTS.get(scheme)
    except ValueError:
        return authority, None


def is_loopback(host: str) -> bool:
    """Return whether only processes of this machine can reach a server that listens on `host`."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
