"""HTTP error responses, and request bodies of bounded size."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from penstock.errors import (
    AccessError,
    ConflictError,
    DataError,
    LimitError,
    NotActiveError,
    NotYetError,
    PenstockError,
    QueryError,
    StorageError,
    UnavailableError,
    UnknownStreamError,
)
from penstock.http.web_limits import MAX_BODY_BYTES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

_STATUSES: list[tuple[type[Exception], int]] = [
    (QueryError, 400),
    (AccessError, 403),
    (ConflictError, 409),
    (UnknownStreamError, 404),
    (NotActiveError, 503),
    (NotYetError, 503),
    (UnavailableError, 503),
    (StorageError, 503),
    (LimitError, 413),
    (DataError, 400),
    (UnicodeDecodeError, 400),
]


async def body_of(request: Request) -> bytes:
    """Return the request's body. LimitError if the body exceeds MAX_BODY_BYTES. The server additionally enforces
    `WebLimits`.
    """
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise LimitError(f"a body of more than {MAX_BODY_BYTES} bytes")
        parts.append(part)
    return b"".join(parts)


def errors_as_json(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Wrap an endpoint so that its errors become JSON responses with the class and the message of the error. The
    response to a QueryError also has the error's line, column and construct.
    """

    @wraps(endpoint)
    async def wrapped(request: Request) -> Response:
        try:
            return await endpoint(request)
        except (PenstockError, UnicodeDecodeError) as error:
            return _response(error)
        except ClientDisconnect:  # the body never arrived: the server refused it, or the client disconnected
            return Response(status_code=400)

    return wrapped


def no_query(name: str) -> Response:
    """Return the response to a request for a query that is not registered."""
    return JSONResponse({"error": "NotFound", "message": f"there is no query {name!r}"}, 404)


def no_set(name: str) -> Response:
    """Return the response to a request for a query set that is not registered."""
    return JSONResponse({"error": "NotFound", "message": f"there is no query set {name!r}"}, 404)


def status_of(error: type[Exception]) -> int:
    """Return the HTTP status for a class of error."""
    return next((code for cls, code in _STATUSES if issubclass(error, cls)), 500)


def _response(error: Exception) -> Response:
    """Return the JSON response. Its status shows whether the request is at fault and whether a retry can help."""
    status = status_of(type(error))
    content: dict[str, str | int] = {"error": type(error).__name__, "message": str(error)}
    if isinstance(error, QueryError):
        content |= {"message": error.message, "line": error.line, "column": error.column}
        content["construct"] = error.construct
    return JSONResponse(content, status)
