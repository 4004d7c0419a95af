"""A web server in a separate thread, used by the services and `penstock serve`."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import TYPE_CHECKING, cast

import uvicorn
from starlette.responses import JSONResponse

from penstock.errors import StorageError
from penstock.http.bounded_protocol import Connections
from penstock.http.security.certificates import Renewal
from penstock.http.web_limits import WebLimits

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from penstock.http.security.certificates import Certificates

_START_S = 10.0
_FINISH_S = 3.0  # for responses in progress; longer responses are cut
_STOP_S = 5.0
_log = logging.getLogger(__name__)


class WebServer:
    """A web server in a separate thread. `port` is the actual port. `connections` has the limits, and the state to
    which the limits apply.

    With `certificates`, the server uses HTTPS. Changed certificate files take effect for new connections.
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        port: int,
        limits: WebLimits | None = None,
        certificates: Certificates | None = None,
    ) -> None:
        context = None if certificates is None else certificates.context()
        self.connections = Connections(limits or WebLimits())
        config = uvicorn.Config(
            self._interruptible(app),
            host=host,
            port=port,
            http=cast("type[asyncio.Protocol]", self.connections.protocol),
            ws="none",
            log_config=None,
            lifespan="off",
            timeout_graceful_shutdown=int(_FINISH_S),
        )
        config.load()
        config.ssl = context
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, name="http", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + _START_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise StorageError(f"cannot serve HTTP on {host}:{port}")
            time.sleep(0.01)
        self.port: int = self._server.servers[0].sockets[0].getsockname()[1]
        self._renewal = None
        if certificates is not None and context is not None:
            self._renewal = Renewal(certificates, context, _log)

    def _interruptible(self, app: ASGIApp) -> ASGIApp:
        """Wrap the application. If a request is interrupted because the server stops, the client gets a 503 response,
        unless the response to the request has started.
        """

        async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
            started = False

            async def observed(message: Message) -> None:
                nonlocal started
                started = True
                await send(message)

            try:
                await app(scope, receive, observed)
            except asyncio.CancelledError:
                if started or not self._server.should_exit:
                    raise
                message = "the server stops; the request may have had an effect"
                content = {"error": "UnavailableError", "message": message}
                await JSONResponse(content, 503)(scope, receive, send)

        return wrapped

    def stop(self) -> None:
        """Finish the responses in progress and stop."""
        if self._renewal is not None:
            self._renewal.stop()
        self._server.should_exit = True
        self._thread.join(_STOP_S)
