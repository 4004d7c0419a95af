"""HTTP requests to a service of the cluster. The client tries the service's instances in turn until one responds."""

from __future__ import annotations

import json
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import httpx

from penstock.errors import (
    AccessError,
    ConflictError,
    DataError,
    LimitError,
    PenstockError,
    QueryError,
    QueryLimitError,
    UnknownStreamError,
)
from penstock.log import TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_TRIES, _PAUSE_S, _RESPONSE_S = 60, 0.25, 70.0
_LOOK_S = 5.0  # timeout of `each_found`, per instance


class NotFoundError(PenstockError):
    """There is no query of the requested name."""


_ERRORS: dict[str, type[PenstockError]] = {
    "ConflictError": ConflictError,
    "DataError": DataError,
    "LimitError": LimitError,
    "NotFound": NotFoundError,
    "UnknownStreamError": UnknownStreamError,
}
_REFUSED = (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN, httpx.codes.TOO_MANY_REQUESTS)
_LOST = (httpx.codes.BAD_GATEWAY, httpx.codes.GATEWAY_TIMEOUT)  # a proxy or a standby instance lost the response
_QUERY_ERRORS: dict[str, type[QueryError]] = {"QueryError": QueryError, "QueryLimitError": QueryLimitError}


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of a client.

    `token`: bearer token, or a function that returns the token. The function is called before the first request, and
    again after a service has refused the token. None: requests have no token. `ca`: file of the CA (PEM) that signed
    the services' certificates. None: the system's CAs.
    """

    token: str | Callable[[], str] | None = field(default=None, repr=False)
    ca: str | None = None


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """An HTTP request. `accept`: accepted media types of the response.

    `name`: an idempotency key, for requests that are not idempotent by themselves. The service recognises a repeated
    request by this key.
    """

    method: str
    path: str
    body: bytes | None = None
    content_type: str = "text/plain"
    accept: str = "*/*"
    name: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the request."""
        headers = {"content-type": self.content_type, "accept": self.accept}
        return headers if self.name is None else headers | {"idempotency-key": self.name}


class ServiceClient:
    """Sends requests to services. Methods can be called from any thread.

    The client keeps no idle connections, because a request would fail on a connection that the service has just closed.
    """

    def __init__(self, credentials: Credentials | None = None) -> None:
        given = credentials or Credentials()
        self._source = given.token if callable(given.token) else None
        self._token = given.token if isinstance(given.token, str) else None
        try:
            context = True if given.ca is None else ssl.create_default_context(cafile=given.ca)
        except OSError as error:
            raise DataError(f"the CA file {given.ca} cannot be used: {error}") from error
        limits = httpx.Limits(max_keepalive_connections=0)
        self._http = httpx.Client(follow_redirects=True, limits=limits, verify=context)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, bases: Callable[[], Sequence[str]], request: ServiceRequest, wait_s: float = 0.0) -> bytes:
        """Send a request until an instance responds, and return the body of the successful response. Each attempt calls
        `bases` for the current base URLs.

        `wait_s`: additional seconds that the client waits for the response, after the default timeout. The request must
        be idempotent or have an idempotency key (`name`), because each attempt repeats the request. Raises the error
        that an error response describes, for example AccessError. TransientError after 60 failed attempts. An attempt
        fails if it gets no response, or a response with status 502, 503 or 504. If each attempt fails at once, the 60
        attempts take about 15 s.
        """
        failed, lost = "no URL is known", False
        for attempt in range(_TRIES):
            known = bases()
            if known:
                try:
                    response = self._once(known[attempt % len(known)], request, _RESPONSE_S + wait_s)
                except httpx.TransportError as error:
                    # If the connection could not be opened, the service did not get the request. After any other
                    # failure, the request may have taken effect.
                    failed, lost = str(error), lost or not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                else:
                    if response.is_success:
                        return response.content
                    if lost and request.method == "DELETE" and response.status_code == httpx.codes.NOT_FOUND:
                        return b""  # an earlier attempt has deleted it, but the response was lost
                    lost = lost or response.status_code in _LOST
                    if response.status_code not in (httpx.codes.SERVICE_UNAVAILABLE, *_LOST):
                        raise error_of(response.content, response.status_code)
                    failed = response.text
            time.sleep(_PAUSE_S)
        raise TransientError(f"{request.method} {request.path}: {failed}")

    def each_found(self, bases: Sequence[str], request: ServiceRequest) -> Iterator[bytes]:
        """Send a request to each instance in turn, once, and yield the bodies of the successful responses."""
        for base in bases:
            with suppress(httpx.TransportError):
                response = self._once(base, request, _LOOK_S)
                if response.is_success:
                    yield response.content

    def _once(self, base: str, request: ServiceRequest, timeout_s: float) -> httpx.Response:
        token = self._token
        if token is None and self._source is not None:
            token = self._token = self._source()
        response = self._with_token(token, base, request, timeout_s)
        if response.status_code == httpx.codes.UNAUTHORIZED and self._source is not None:
            if self._token == token:  # another thread has not renewed it yet
                self._token = self._source()
            if self._token != token:  # the refused request had no effect, so it can be repeated
                response = self._with_token(self._token, base, request, timeout_s)
        return response

    def _with_token(self, token: str | None, base: str, request: ServiceRequest, timeout_s: float) -> httpx.Response:
        url = base + request.path
        headers = request.headers if token is None else request.headers | {"authorization": f"Bearer {token}"}
        try:
            return self._http.request(request.method, url, content=request.body, headers=headers, timeout=timeout_s)
        except httpx.UnsupportedProtocol as error:
            raise DataError(f"not an HTTP URL: {url}") from error


def urls(by_comma: str) -> list[str]:
    """Return the base URLs in a comma-separated list."""
    return [part.strip().rstrip("/") for part in by_comma.split(",") if part.strip()]


def with_query(path: str, **parameters: object) -> str:
    """Return the path with a query string. Parameters with the value None are omitted. A list gives one parameter per
    item.
    """
    given = {name: value for name, value in parameters.items() if value is not None and value != []}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path


def error_of(body: bytes, status: int) -> PenstockError:
    """Return the error that an error response describes (penstock.http.error_responses)."""
    try:
        found = json.loads(body)
        name, message = found["error"], found["message"]
    except (ValueError, KeyError, TypeError):
        return PenstockError(f"HTTP {status}: {body[:200]!r}")
    if status in _REFUSED:
        return AccessError(message)
    if (kind := _QUERY_ERRORS.get(name)) is not None:
        return kind(message, int(found["line"]), int(found["column"]), found.get("construct", ""))
    return _ERRORS.get(name, PenstockError)(message)
