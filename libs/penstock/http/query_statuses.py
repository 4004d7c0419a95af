"""The route of a query engine for the status of a standing query. The status contains the streams for which the query
waits.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse
from starlette.routing import Route

from penstock.http.error_responses import errors_as_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from penstock.engine.standing.query_status import QueryStatus


def routes(status: Callable[[str], QueryStatus | None]) -> list[BaseRoute]:
    """Return the route /queries/NAME/status. `status` runs in worker threads. `status` returns None if this engine does
    not evaluate the query.
    """

    async def found(request: Request) -> Response:
        name = request.path_params["name"]
        reply = await run_in_threadpool(status, name)
        if reply is None:
            return JSONResponse({"error": "NotFound", "message": f"this engine evaluates no query {name!r}"}, 404)
        return JSONResponse(asdict(reply))

    return [Route("/queries/{name:path}/status", errors_as_json(found))]
