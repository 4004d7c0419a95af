"""The HTTP API of an embedded engine, served by `penstock serve` (docs/operations.md).

- /sparql: the SPARQL 1.1 Protocol
- /rdf-graphs, /rdf-graphs/PATH: the SPARQL 1.1 Graph Store HTTP Protocol
- GET /streams, /queries
- PUT, GET, DELETE /streams/IRI: JSON settings
- POST /streams/IRI/events: one event (RDF or RDF Patch, ?timestamp=), or one message if the stream has a mapping. The
  body can also be one JSON object per line, {"timestamp": ms, "data": RDF or message} (application/x-ndjson, ?format=)
- POST /streams/IRI/advance (?timestamp=, ?skip=true)
- POST /streams/IRI/late: return the new late events; POST /dead-letters: return the new rejected events
- PUT, GET, DELETE /queries/NAME: the text of a query (?base=, ?changes=, ?replace=) or of a query set (?base=,
  ?report=, ?key=)
- POST, DELETE /queries/NAME/members: adds members of a query set, or removes members by their keys (lines of JSON,
  CSV, Arrow). GET: lists members (?limit=, ?after=, ?member=)
- GET /queries/NAME/steps: the latest steps of a query set as an Arrow stream (?after=, ?part=)
- GET /queries/NAME/results: server-sent events of a query (?after=) or of a query set (?after=, ?member=)
- GET /results: server-sent events of all queries
- GET /explain (?query=)
- POST /update (?base=, ?using-graph-uri=, ?using-named-graph-uri=)
- POST /data: an RDF document (?graph=, ?base=)
- GET /stats, /metrics, /health/live
- /: a page for users

IRIs and names in paths are percent-encoded.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import asdict
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from penstock.engine.intake.declaration import check_settings, warnings_of
from penstock.errors import DataError, UnknownStreamError
from penstock.event_time.time_units import unit_warning
from penstock.http import sparql
from penstock.http.engine_metrics import registry_of
from penstock.http.error_responses import body_of, errors_as_json, no_query
from penstock.http.graph_store import GraphStore
from penstock.http.live import Feeds, all_events, events
from penstock.http.protocol_requests import FORM, ProtocolOperation, endpoint, media_type, update_of
from penstock.http.query_sets import QuerySets, document
from penstock.http.security.authentication import authentication
from penstock.http.web_access import Access
from penstock.http.web_limits import READ_AT_ONCE
from penstock.json_text import parse_json
from penstock.mapping.stream_mapping import mapped_format
from penstock.rdf.formats import Format
from penstock.rdf.patches import PATCH, event_format

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.requests import Request

    from penstock.engine import Engine, Query
    from penstock.engine.intake.declaration import Declaration
    from penstock.engine.intake.rejected_events import DeadLetter, LateEvent
    from penstock.http.graph_store import Addition
    from penstock.http.security.identities import Identities
    from penstock.mapping.stream_mapping import StreamMapping

T = TypeVar("T")
_LINES = "application/x-ndjson"


def application(
    engine: Engine, access: Access | None = None, feeds: Feeds | None = None, identities: Identities | None = None
) -> Starlette:
    """Return the ASGI application. Without `feeds`, the application makes feeds of all of the engine's queries.

    `access`: the browser requests that are allowed. None allows requests to local host names. `feeds`: the feeds of the
    engine's queries. The caller closes the feeds to end the live streams before the server stops. `identities`: checks
    the tokens of requests. If `identities` is None, requests are not authenticated.
    """
    middleware = [*(access or Access()).middleware(), *authentication(identities)]
    handler = _Handler(engine, Feeds.of(engine) if feeds is None else feeds)
    return Starlette(routes=handler.routes(), middleware=middleware)


class _Handler:
    def __init__(self, engine: Engine, feeds: Feeds) -> None:
        self._engine = engine
        self._feeds = feeds
        self._sets = QuerySets(engine, feeds)
        self._registry = registry_of(engine)
        self._reading = asyncio.Semaphore(READ_AT_ONCE)

    def routes(self) -> list[Any]:
        """Return all routes. Longer paths come first, because names can contain slashes."""

        def route(path: str, endpoint: Callable[[Request], Awaitable[Response]], *methods: str) -> Route:
            return Route(path, errors_as_json(endpoint), methods=methods or ("GET",))

        return [
            route("/", self.page),
            *sparql.routes(self._ask, self._engine.limits, self._change),
            *GraphStore(self._ask, self._add, self._change_graph).routes(),
            route("/streams", self.streams),
            route("/streams/{iri:path}/events", self.events, "POST"),
            route("/streams/{iri:path}/advance", self.advance, "POST"),
            route("/streams/{iri:path}/late", self.late, "POST"),
            route("/streams/{iri:path}", self.stream, "PUT", "GET", "DELETE"),
            route("/dead-letters", self.dead_letters, "POST"),
            route("/queries", self.queries),
            route("/results", self.all_results),
            route("/queries/{name:path}/results", self.results),
            route("/queries/{name:path}/members", self._sets.members, "GET", "POST", "DELETE"),
            route("/queries/{name:path}/steps", self._sets.steps),
            route("/queries/{name:path}", self.query, "PUT", "GET", "DELETE"),
            route("/explain", self.explain),
            route("/update", self.update, "POST"),
            route("/data", self.data, "POST"),
            route("/stats", self.stats),
            route("/metrics", self.metrics),
            route("/health/live", self.live),
        ]

    # ---- streams
    async def streams(self, _: Request) -> Response:
        found = await run_in_threadpool(lambda: self._engine.streams)
        return JSONResponse({iri: _stream_document(declaration) for iri, declaration in found.items()})

    async def stream(self, request: Request) -> Response:
        iri = request.path_params["iri"]
        settings: dict[str, Any] = {}
        if request.method == "PUT":
            settings = await _settings(request)
            await run_in_threadpool(self._declare, iri, settings)
        if request.method == "DELETE":
            await run_in_threadpool(self._engine.drop_stream, iri)
            return Response(status_code=204)
        found = (await run_in_threadpool(lambda: self._engine.streams)).get(iri)
        if found is None:
            raise UnknownStreamError(f"unknown stream <{iri}>: declare it first")
        document = _stream_document(found) | (
            {"warnings": warnings_of(iri, settings)} if request.method == "PUT" else {}
        )
        return JSONResponse(document)

    def _declare(self, iri: str, settings: dict[str, Any]) -> None:
        if settings.get("iri", iri) != iri:
            raise DataError(f"the path and the body name different streams: <{iri}> in the path")
        settings = {name: value for name, value in settings.items() if name != "iri"}
        check_settings(settings)
        settings["timing"] = settings.get("timing") or ()  # the response contains the warning
        self._engine.declare_stream(iri, **settings)

    async def events(self, request: Request) -> Response:
        iri, asked = request.path_params["iri"], request.query_params
        content_type = _content_type(request)
        body = await body_of(request)
        mapping = await run_in_threadpool(self._mapping, iri)
        named = media_type(request) in ("", FORM)
        lines = content_type == _LINES and (mapping is None or mapping.format != "ndjson")
        chosen = None if lines else mapped_format(mapping, None if named else content_type)
        if chosen is not None:
            return await self._mapped(iri, body, asked.get("timestamp"), chosen)
        if lines:
            events = await run_in_threadpool(_event_lines, body)
            if (chosen := mapped_format(mapping, asked.get("format"))) is not None:
                report = await self._read("json", self._engine.push_events, iri, events, chosen)
                return JSONResponse({"messages": len(events), **asdict(report)}, 202)
            syntax = event_format(asked.get("format", "nt"))
            report = await self._read(syntax, self._engine.push_events, iri, events, syntax)
            hint = unit_warning(iri, (at for at, _ in events))
            return JSONResponse({"events": len(events), **asdict(report), **_warning(hint)}, 202)
        syntax, time_ms = event_format(content_type), _milliseconds(asked.get("timestamp"))
        report = await self._read(syntax, self._engine.push, iri, body, time_ms, syntax)
        return JSONResponse({"events": 1, **asdict(report), **_warning(unit_warning(iri, [time_ms]))}, 202)

    def _mapping(self, iri: str) -> StreamMapping | None:
        declared = self._engine.streams.get(iri)
        return None if declared is None else declared.compiled_mapping

    async def _mapped(self, iri: str, body: bytes, timestamp: str | None, chosen: str) -> Response:
        """Push a message to a stream with a mapping. A message can become several events."""
        time_ms = None if timestamp is None else _milliseconds(timestamp)
        report = await self._read("json", self._engine.push, iri, body, time_ms, chosen)
        return JSONResponse({"messages": 1, **asdict(report)}, 202)

    async def _read(self, syntax: str, verb: Callable[..., T], *what: Any) -> T:
        """Call `verb`, which parses documents, in a thread. The parsing of some formats can take seconds. At most
        READ_AT_ONCE calls for these formats run at a time, so that threads stay free for other requests.
        """
        if syntax == PATCH or Format.named(syntax).is_native:
            return await run_in_threadpool(verb, *what)
        async with self._reading:
            return await run_in_threadpool(verb, *what)

    async def advance(self, request: Request) -> Response:
        asked = request.query_params
        until, skip = _milliseconds(asked.get("timestamp")), asked.get("skip", "false") == "true"
        await run_in_threadpool(self._engine.advance, request.path_params["iri"], until, skip)
        return Response(status_code=204)

    async def late(self, request: Request) -> Response:
        taken = await run_in_threadpool(self._engine.late, request.path_params["iri"])
        return JSONResponse([_refused(event) | {"watermark": event.watermark} for event in taken])

    async def dead_letters(self, _: Request) -> Response:
        return JSONResponse([_refused(letter) for letter in await run_in_threadpool(self._engine.dead_letters)])

    # ---- queries
    async def queries(self, _: Request) -> Response:
        return JSONResponse(
            await run_in_threadpool(
                lambda: {n: _query_document(q) for n, q in self._engine.queries.items()} | self._sets.documents()
            )
        )

    async def query(self, request: Request) -> Response:
        name = request.path_params["name"]
        if request.method == "PUT":
            text, asked = (await body_of(request)).decode(), request.query_params
            base, of_set = asked.get("base"), "report" in asked or "key" in asked
            if of_set or await run_in_threadpool(self._sets.declares, text, base):
                given = name, text, base, asked.get("report", "change"), asked.getlist("key")
                return JSONResponse(await run_in_threadpool(self._sets.register, *given))
            changes, replace = (asked.get(option, "false") == "true" for option in ("changes", "replace"))
            return JSONResponse(
                await run_in_threadpool(self._register, name, text, base, changes=changes, replace=replace)
            )
        found = (await run_in_threadpool(lambda: self._engine.queries)).get(name)
        if found is None:
            return await self._set(request, name)
        if request.method == "DELETE":
            await run_in_threadpool(self._stop, found)
            return Response(status_code=204)
        return JSONResponse(_query_document(found))

    async def _set(self, request: Request, name: str) -> Response:
        found = await run_in_threadpool(self._sets.get, name)
        if found is None:
            return no_query(name)
        if request.method == "DELETE":
            await run_in_threadpool(self._sets.stop, found)
            return Response(status_code=204)
        return JSONResponse(await run_in_threadpool(document, found))

    def _register(self, name: str, text: str, base: str | None, *, changes: bool, replace: bool) -> dict[str, Any]:
        """Register a query, or replace its text. Repeating a request has no effect."""
        known = self._engine.queries.get(name)
        if known is not None and (known.text, known.base, known.changes) == (text, base, changes):
            return _query_document(known)
        query = self._engine.register(text, name=name, base=base, changes=changes, replace=replace)
        if query is not known:
            self._feeds.add(query)
        return _query_document(query)

    def _stop(self, query: Query) -> None:
        query.stop()
        self._feeds.end(query.name)

    async def results(self, request: Request) -> Response:
        feed = self._feeds.get(request.path_params["name"])
        if feed is None:
            return no_query(request.path_params["name"])
        last = request.query_params.get("after") or request.headers.get("last-event-id")
        after = None if last is None else _milliseconds(last)
        return _stream(events(feed, after, await run_in_threadpool(self._sets.member, request, feed)))

    async def all_results(self, _: Request) -> Response:
        return _stream(all_events(self._feeds))

    async def explain(self, request: Request) -> Response:
        text = request.query_params.get("query")
        if text is None:
            raise DataError("the parameter `query` is missing")
        return PlainTextResponse(await run_in_threadpool(self._engine.explain, text, request.query_params.get("base")))

    # ---- stored data
    async def update(self, request: Request) -> Response:
        operation = await update_of(request)
        await run_in_threadpool(self._change, operation, operation.base or endpoint(request))
        return Response(status_code=204)

    def _ask(
        self, operation: ProtocolOperation, base: str, timeout_s: float | None, memory_mb: int | None
    ) -> sparql.Answer:
        graphs = {"default_graphs": operation.default_graphs, "named_graphs": operation.named_graphs}
        return self._engine.query(operation.text, base, timeout_s, memory_mb, **graphs)

    def _change(self, operation: ProtocolOperation, base: str) -> None:
        graphs = {"default_graphs": operation.default_graphs, "named_graphs": operation.named_graphs}
        self._engine.update(operation.text, base, **graphs)

    async def _change_graph(self, text: str, _: Request) -> None:
        await run_in_threadpool(self._change, ProtocolOperation("update", text), "")

    async def data(self, request: Request) -> Response:
        body, asked = await body_of(request), request.query_params
        syntax = Format.named(_content_type(request)).value
        report = await self._read(syntax, self._engine.load, body, asked.get("graph"), syntax, asked.get("base"))
        return JSONResponse({"triples": report.triples, "terms": report.terms, "seconds": report.seconds})

    async def _add(self, addition: Addition, _: Request) -> None:
        syntax = addition.format.value
        await self._read(syntax, self._engine.load, addition.data, addition.graph, syntax, addition.base)

    # ---- the engine itself
    async def page(self, _: Request) -> Response:
        return HTMLResponse(files("penstock.http").joinpath("page.html").read_text(encoding="utf-8"))

    async def stats(self, _: Request) -> Response:
        return JSONResponse(await run_in_threadpool(self._engine.stats))

    async def metrics(self, _: Request) -> Response:
        return Response(await run_in_threadpool(generate_latest, self._registry), media_type=CONTENT_TYPE_LATEST)

    async def live(self, _: Request) -> Response:
        snapshot = (await run_in_threadpool(self._engine.stats))["snapshot"]  # fails if the engine is closed
        return JSONResponse({"alive": True, "snapshot": snapshot})


# ---- request parsing
def _content_type(request: Request) -> str:
    """Return the content type of an RDF body. If the request has no content type, the body is N-Triples. The same
    applies to the content type of a form, because `curl -d` labels every body as a form.
    """
    found = media_type(request)
    return "application/n-triples" if found in ("", FORM) else found


async def _settings(request: Request) -> dict[str, Any]:
    body = await body_of(request)
    found = parse_json(body or b"{}", "the settings of a stream")
    if not isinstance(found, dict):
        raise DataError("the settings of a stream must be a JSON object")
    return found


def _warning(text: str | None) -> dict[str, str]:
    return {} if text is None else {"warning": text}


def _milliseconds(text: str | None) -> int:
    try:
        return int(text or "")
    except ValueError as error:
        raise DataError(f"a time must be an integer of ms: ?timestamp={text or ''}") from error


def _event_lines(body: bytes) -> list[tuple[int, str]]:
    events = []
    for number, line in enumerate(body.split(b"\n"), start=1):
        if not line.strip():
            continue
        event = parse_json(line, f"line {number}")
        data = event.get("data") if isinstance(event, dict) else None
        if not isinstance(data, str) or "timestamp" not in event:
            raise DataError(f'line {number}: no {{"timestamp": ms, "data": RDF}}')
        events.append((event["timestamp"], data))
    return events


# ---- response building
def _stream_document(declaration: Declaration) -> dict[str, Any]:
    return {"iri": declaration.iri, **declaration.as_json()}


def _query_document(query: Query) -> dict[str, Any]:
    return {
        "name": query.name,
        "text": query.text,
        "base": query.base,
        "changes": query.changes,
        "point": query.registration_point,
        "warnings": list(query.warnings),
        "status": asdict(query.status()),
    }


def _refused(refused: LateEvent | DeadLetter) -> dict[str, Any]:
    fields = asdict(refused)
    return fields | {"reason": refused.reason, "data": base64.b64encode(refused.data).decode()}


def _stream(messages: AsyncIterator[bytes]) -> Response:
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(messages, media_type="text/event-stream", headers=headers)
