"""Requests of a coordinator to other services: to the active instance, if this instance is on standby, and to query
engines.
"""

from __future__ import annotations

import ssl
from functools import wraps
from typing import TYPE_CHECKING, Final

import httpx
from starlette.responses import JSONResponse, Response

from penstock.errors import NotActiveError
from penstock.http.error_responses import body_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from starlette.requests import Request

    Endpoint = Callable[[Request], Awaitable[Response]]

_MARK: Final = "penstock-forwarded"
"""Header of a forwarded request. An instance does not forward a request that already has this header."""
_SENT: Final = ("accept", "authorization", "content-type", "cookie", "host", "idempotency-key")
_RETURNED: Final = ("content-type", "location", "retry-after", "www-authenticate")
_RESPONSE_S: Final = 140.0  # longer than any response of a service takes
_CONNECT_S: Final = 5.0


class Forwarding:
    """Forwards requests to the active instance. The function `active` returns the base URL of this instance. If
    `active` returns None, requests are not forwarded.

    `certificate`: the certificate chain of this instance, for HTTPS. The active instance must have the same
    certificate.
    """

    def __init__(self, active: Callable[[], Awaitable[str | None]], certificate: Path | None = None) -> None:
        self._active, self._certificate = active, certificate

    def around(self, endpoint: Endpoint) -> Endpoint:
        """Wrap an endpoint. NotActiveError if the active instance cannot be reached. Status 502 if the active
        instance's response is lost; the request has then possibly taken effect.
        """

        @wraps(endpoint)
        async def wrapped(request: Request) -> Response:
            base = None if _MARK in request.headers else await self._active()
            return await endpoint(request) if base is None else await self._send(base, request)

        return wrapped

    async def _send(self, base: str, request: Request) -> Response:
        url = httpx.URL(base).copy_with(raw_path=_target(request))
        headers = {name: request.headers[name] for name in _SENT if name in request.headers} | {_MARK: "1"}
        body = await body_of(request)
        timeout = httpx.Timeout(_RESPONSE_S, connect=_CONNECT_S)
        try:
            async with httpx.AsyncClient(verify=self._trust(), timeout=timeout, trust_env=False) as client:
                found = await client.request(request.method, url, content=body, headers=headers)
        except (httpx.ConnectError, httpx.ConnectTimeout, OSError) as error:
            raise NotActiveError(f"the active instance at {base} cannot be reached: {error!r}") from error
        except httpx.TransportError as error:
            return JSONResponse({"error": "BadGateway", "message": f"no response from {base}: {error!r}"}, 502)
        return passed_on(found)

    def _trust(self) -> ssl.SSLContext:
        return exactly(self._certificate)


class EngineTrust:
    """The TLS contexts for requests to query engines.

    `ca` is the CA of the engines' certificates. If only `certificate` is set, each engine must present the certificate
    of this instance, or a certificate whose issuer is in the file `certificate`. If neither is set, a CA of the system
    must have signed the engines' certificates.
    """

    def __init__(self, certificate: Path | None = None, ca: Path | None = None) -> None:
        self._certificate, self._ca = certificate, ca
        self._system: ssl.SSLContext | None = None

    def context(self, *urls: str) -> ssl.SSLContext:
        """Return the TLS context for requests to engines with these URLs."""
        secure = any(url.startswith("https:") for url in urls)
        if not secure or (self._ca is None and self._certificate is not None):
            return exactly(self._certificate)
        if self._ca is not None:
            return ssl.create_default_context(cafile=self._ca)
        if self._system is None:
            self._system = ssl.create_default_context()  # reads a file with all CAs, which takes long
        return self._system


def exactly(certificate: Path | None) -> ssl.SSLContext:
    """Return the TLS context of a client that accepts only servers with the given certificate. If `certificate` is
    None, the client accepts no server.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.check_hostname = False  # the other instance has another name, but the same certificate
    made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if certificate is not None:
        made.load_verify_locations(certificate)
    return made


def passed_on(found: httpx.Response) -> Response:
    """Return the response of another service as a response to the client."""
    returned = {name: found.headers[name] for name in _RETURNED if name in found.headers}
    return Response(found.content, found.status_code, returned)


def _target(request: Request) -> bytes:
    """Return the path and query string of a request as the client sent them."""
    path: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    query: bytes = request.scope["query_string"]
    return path.partition(b"?")[0] + (b"?" + query if query else b"")
