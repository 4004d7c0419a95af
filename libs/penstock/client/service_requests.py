"""HTTP requests to a service of the cluster: tries its instances in turn until one responds."""

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
    DataError,
    LimitError,
    PenstockError,
    QueryError,
    QueryLimitError,
    UnknownStreamError,
)
from penstock.log import TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_TRIES, _PAUSE_S, _RESPONSE_S = 60, 0.25, 70.0
_LOOK_S = 5.0  # for one try of one instance


class NotFoundError(PenstockError):
    """The service has nothing of the requested name."""


_ERRORS: dict[str, type[PenstockError]] = {
    "DataError": DataError,
    "LimitError": LimitError,
    "NotFound": NotFoundError,
    "UnknownStreamError": UnknownStreamError,
}
_REFUSED = (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN, httpx.codes.TOO_MANY_REQUESTS)
_QUERY_ERRORS: dict[str, type[QueryError]] = {"QueryError": QueryError, "QueryLimitError": QueryLimitError}


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a client presents to services. `token`: bearer token. `ca`: file of the CA (PEM) that signed the services'
    certificates; None: the system's CAs.
    """

    token: str | None = field(default=None, repr=False)
    ca: str | None = None


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """An HTTP request. `accept`: accepted media types of the response.

    `name`: idempotency key, by which the service recognises a retry of a request that is not idempotent by itself.
    """

    method: str
    path: str
    body: bytes | None = None
    content_type: str = "text/plain"
    accept: str = "*/*"
    name: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The request's headers."""
        headers = {"content-type": self.content_type, "accept": self.accept}
        return headers if self.name is None else headers | {"idempotency-key": self.name}


class ServiceClient:
    """Sends requests to services. It may be used from any thread.

    It keeps no idle connections: a request on a connection that the service has just closed would fail.
    """

    def __init__(self, credentials: Credentials | None = None) -> None:
        given = credentials or Credentials()
        headers = {} if given.token is None else {"authorization": f"Bearer {given.token}"}
        try:
            context = True if given.ca is None else ssl.create_default_context(cafile=given.ca)
        except OSError as error:
            raise DataError(f"the CA file {given.ca} cannot be used: {error}") from error
        limits = httpx.Limits(max_keepalive_connections=0)
        self._http = httpx.Client(follow_redirects=True, limits=limits, headers=headers, verify=context)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, bases: Callable[[], Sequence[str]], request: ServiceRequest, wait_s: float = 0.0) -> bytes:
        """Return the body of the first successful response. Every try calls `bases` for the current base URLs.

        `wait_s`: seconds that the response may take in addition to the default timeout. Each request is idempotent or
        carries an idempotency key (`name`), so retries are safe.
        TransientError if no instance responds within about 15 s of retries; an error response is raised as its error,
        AccessError among them.
        """
        failed, lost = "no URL is known", False
        for attempt in range(_TRIES):
            known = bases()
            if known:
                try:
                    response = self._once(known[attempt % len(known)], request, _RESPONSE_S + wait_s)
                except httpx.TransportError as error:
                    # A request whose connection failed did not reach the service. Another one may have taken effect.
                    failed, lost = str(error), lost or not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                else:
                    if response.is_success:
                        return response.content
                    if lost and request.method == "DELETE" and response.status_code == httpx.codes.NOT_FOUND:
                        return b""  # an earlier try deleted it, but its response was lost
                    if response.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                        raise error_of(response.content, response.status_code)
                    failed = response.text
            time.sleep(_PAUSE_S)
        raise TransientError(f"{request.method} {request.path}: {failed}")

    def first_found(self, bases: Sequence[str], request: ServiceRequest) -> bytes | None:
        """Return the body of the first successful response. Tries each instance once. None if no response is
        successful.
        """
        for base in bases:
            with suppress(httpx.TransportError):
                response = self._once(base, request, _LOOK_S)
                if response.is_success:
                    return response.content
        return None

    def _once(self, base: str, request: ServiceRequest, timeout_s: float) -> httpx.Response:
        url = base + request.path
        try:
            return self._http.request(
                request.method, url, content=request.body, headers=request.headers, timeout=timeout_s
            )
        except httpx.UnsupportedProtocol as error:
            raise DataError(f"not an HTTP URL: {url}") from error


def urls(by_comma: str) -> list[str]:
    """Return the base URLs in a comma-separated list."""
    return [part.strip().rstrip("/") for part in by_comma.split(",") if part.strip()]


def with_query(path: str, **parameters: object) -> str:
    """Return the path with a query string of the parameters that are not None."""
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


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
