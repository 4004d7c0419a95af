"""HTTP of a service: /health/live, /health/ready, /metrics, and what the service adds."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from penstock.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from penstock.runtime.health import Health
    from penstock.runtime.metrics import Metrics

_START_S = 10.0
_STOP_S = 5.0


def application(
    health: Health, metrics: Metrics, observe: Callable[[], None], routes: Sequence[BaseRoute] = ()
) -> Starlette:
    """Return the ASGI application. Checks may block: starlette runs these plain functions in threads."""

    def live(_: Request) -> Response:
        reason = health.alive()
        return JSONResponse({"alive": reason is None, "reason": reason}, 200 if reason is None else 503)

    def ready(_: Request) -> Response:
        wrong = health.ready()
        return JSONResponse({"ready": not wrong, "wrong": wrong}, 503 if wrong else 200)

    def metrics_page(_: Request) -> Response:
        observe()
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    own = [Route("/health/live", live), Route("/health/ready", ready), Route("/metrics", metrics_page)]
    return Starlette(routes=[*own, *routes])


class WebServer:
    """The server, in a thread of its own. `port` is the one it got."""

    def __init__(self, app: Starlette, host: str, port: int) -> None:
        config = uvicorn.Config(app, host=host, port=port, log_config=None, lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, name="http", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + _START_S
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise StorageError(f"cannot serve HTTP on {host}:{port}")
            time.sleep(0.01)
        self.port: int = self._server.servers[0].sockets[0].getsockname()[1]

    def stop(self) -> None:
        """Finish what is being answered, and end."""
        self._server.should_exit = True
        self._thread.join(_STOP_S)
