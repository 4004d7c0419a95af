"""HTTP routes of a service: /health/live, /health/ready, /metrics, and the service's own routes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from penstock.runtime.health import Health
    from penstock.runtime.metrics import Metrics


def application(
    health: Health,
    metrics: Metrics,
    observe: Callable[[], None],
    routes: Sequence[BaseRoute] = (),
    middleware: Sequence[Middleware] = (),
) -> Starlette:
    """Return the ASGI application. Checks are allowed to block, because starlette runs these synchronous functions in
    threads.
    """

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
    return Starlette(routes=[*own, *routes], middleware=[*middleware])
