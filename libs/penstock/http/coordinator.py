"""The coordinator's verbs over HTTP; a standby answers 503.

PUT, GET, DELETE /streams/NAME (JSON: iri and settings) ·
PUT, GET, DELETE /queries/NAME (the query's text; ?base=, ?topic=) ·
GET /streams, /queries · POST /update (`INSERT DATA`; ?base=) · POST /data (an RDF document; ?graph=, ?base=).
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from penstock.errors import DataError
from penstock.http.errors import body_of, told
from penstock.rdf.formats import Format

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Lock
    from typing import Any

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from penstock.cluster.coordinator import Coordinator

_SETTINGS = {
    "batch_ms",
    "lateness_ms",
    "timing",
    "absorb_into",
    "retention_ms",
    "idle_timeout_ms",
    "max_ahead_ms",
    "slice_mb",
}


def routes(coordinator: Coordinator, lock: Lock) -> list[BaseRoute]:
    """Return the routes; `lock` keeps their verbs and the service's own steps apart."""
    handler = _Handler(coordinator, lock)
    return [
        Route("/streams", told(handler.streams)),
        Route("/streams/{name:path}", told(handler.stream), methods=["PUT", "GET", "DELETE"]),
        Route("/queries", told(handler.queries)),
        Route("/queries/{name:path}", told(handler.query), methods=["PUT", "GET", "DELETE"]),
        Route("/update", told(handler.update), methods=["POST"]),
        Route("/data", told(handler.data), methods=["POST"]),
    ]


class _Handler:
    def __init__(self, coordinator: Coordinator, lock: Lock) -> None:
        self._coordinator = coordinator
        self._lock = lock

    async def _do(self, verb: Callable[[Coordinator], Any]) -> Any:
        def locked() -> Any:
            with self._lock:
                return verb(self._coordinator)

        return await run_in_threadpool(locked)

    # ---- streams
    async def streams(self, _: Request) -> Response:
        found = await self._do(lambda c: c.streams)
        return JSONResponse({iri: asdict(record) for iri, record in found.items()})

    async def stream(self, request: Request) -> Response:
        name = request.path_params["name"]
        if request.method == "PUT":
            iri, settings = _declaration(await body_of(request))
            return JSONResponse(asdict(await self._do(lambda c: c.declare(iri, name, **settings))))
        known = (await self._do(lambda c: c.streams)).values()
        record = next((record for record in known if name in (record.name, record.iri)), None)
        if record is None:
            return _missing("stream", name)
        if request.method == "DELETE":
            await self._do(lambda c: c.drop(record.iri))
            return Response(status_code=204)
        return JSONResponse(asdict(record))

    # ---- queries
    async def queries(self, _: Request) -> Response:
        found = await self._do(lambda c: c.queries)
        return JSONResponse({name: asdict(record) for name, record in found.items()})

    async def query(self, request: Request) -> Response:
        name, asked = request.path_params["name"], request.query_params
        if request.method == "PUT":
            text = (await body_of(request)).decode()
            record = await self._do(lambda c: c.register(name, text, asked.get("base"), asked.get("topic")))
            return JSONResponse(asdict(record))
        if request.method == "DELETE":
            stopped = await self._do(lambda c: c.stop(name))
            return Response(status_code=204) if stopped else _missing("query", name)
        record = (await self._do(lambda c: c.queries)).get(name)
        return JSONResponse(asdict(record)) if record is not None else _missing("query", name)

    # ---- stored data
    async def update(self, request: Request) -> Response:
        text = (await body_of(request)).decode()
        return JSONResponse({"triples": await self._do(lambda c: c.update(text, request.query_params.get("base")))})

    async def data(self, request: Request) -> Response:
        body, asked = await body_of(request), request.query_params
        content_type = request.headers.get("content-type", "application/n-triples").partition(";")[0].strip()
        syntax = Format.named(content_type).value
        stored = await self._do(lambda c: c.load(body, syntax, asked.get("graph"), asked.get("base")))
        return JSONResponse({"triples": stored})


def _declaration(body: bytes) -> tuple[str, dict[str, Any]]:
    try:
        found = json.loads(body)
    except ValueError as error:
        raise DataError(f"the body is no JSON: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("iri"), str):
        raise DataError('the body must be a JSON object with "iri"')
    settings = {name: value for name, value in found.items() if name != "iri"}
    if unknown := settings.keys() - _SETTINGS:
        raise DataError(f"unknown settings {', '.join(sorted(unknown))}")
    return found["iri"], settings


def _missing(kind: str, name: str) -> Response:
    return JSONResponse({"error": "NotFound", "message": f"there is no {kind} {name!r}"}, 404)
