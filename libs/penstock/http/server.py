"""An HTTP server in a thread of its own, beside a service's loop."""

from __future__ import annotations

import asyncio
import socket
from threading import Thread
from typing import TYPE_CHECKING

import uvicorn
from starlette.responses import JSONResponse

from penstock.cluster.coordinator import NotActiveError
from penstock.errors import DataError, LimitError, PenstockError, QueryError, UnknownStreamError
from penstock.log import TransientError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

MAX_BODY_BYTES = 64 << 20


class HttpServer:
    """Serves an application on a port (0 = any) until `close`."""

    def __init__(self, app: Starlette, host: str, port: int) -> None:
        self._socket = socket.create_server((host, port))
        self.port: int = self._socket.getsockname()[1]
        self._server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        self._thread = Thread(target=self._run, daemon=True, name="http")
        self._thread.start()

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    def close(self) -> None:
        """Finish what is being answered, and end."""
        self._server.should_exit = True
        self._thread.join(timeout=5)


async def body_of(request: Request) -> bytes:
    """Return the request's body; LimitError beyond a bound."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise LimitError(f"a body of more than {MAX_BODY_BYTES} bytes")
        parts.append(part)
    return b"".join(parts)


def error_response(_: Request, error: Exception) -> Response:
    """Return an error as JSON, with the status that says whose fault it is and whether trying again helps."""
    statuses: list[tuple[type[Exception], int]] = [
        (QueryError, 400),
        (UnknownStreamError, 404),
        (NotActiveError, 503),
        (TransientError, 503),
        (LimitError, 413),
        (DataError, 400),
        (UnicodeDecodeError, 400),
    ]
    status = next((code for cls, code in statuses if isinstance(error, cls)), 500)
    content = {"error": type(error).__name__, "message": str(error)}
    if isinstance(error, QueryError):
        content |= {"line": str(error.line), "column": str(error.column)}
    return JSONResponse(content, status)


HANDLERS = {PenstockError: error_response, UnicodeDecodeError: error_response}
