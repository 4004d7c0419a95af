"""The coordinator's requests over HTTP. A standby instance forwards each request to the active instance, or responds
with status 503 if the active instance is unknown.

- PUT, GET, DELETE /streams/NAME: JSON with `iri` and settings. POST /streams: JSON with several declarations, by name
- PUT, GET, DELETE /queries/NAME: the query's text; ?base=, ?topic=, ?max_catch_up=, ?changes=, ?result_format=,
  ?replace=, ?report=, ?key=, ?parts=; ?wait= is the maximum time in seconds to wait for an engine to enrol the query
- GET /streams, /queries. POST /queries: JSON with several queries, by name, all or none; ?wait= as for one query
- POST, DELETE /queries/NAME/members: adds members of a query set, or removes members by their keys, in one transaction;
  lines of JSON, CSV or Arrow; ?key= is the name of a column that identifies a member, possibly several times
- GET /queries/NAME/members: lists members of a query set; ?limit=, ?after=, ?member=
- GET /engines: addresses for one-shot queries; also on standby
- GET /placement: engine and load of each bucket, store of each shard, and the reason of the last move of buckets
- POST /update: an update; ?base=, ?using-graph-uri=, ?using-named-graph-uri=. POST /data: an RDF document;
  ?graph=, ?base=. A client can repeat either request with the same `idempotency-key` header; the data are stored once
- POST, PUT, DELETE /rdf-graphs, /rdf-graphs/PATH: adds a document to a graph, or replaces or removes the graph (SPARQL
  1.1 Graph Store HTTP Protocol); idempotency-key
- GET /loads: parameters for the preparation of a load. POST /loads: the manifest of a prepared load
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from penstock.engine.intake.declaration import warnings_of
from penstock.engine.limits import Limits
from penstock.engine.oneshot.texts import Texts
from penstock.errors import ConflictError, DataError, NotYetError, QueryError, UnknownStreamError
from penstock.http.error_responses import body_of, errors_as_json, no_query
from penstock.http.forwarding import EngineTrust, Forwarding
from penstock.http.graph_store import GraphStore
from penstock.http.protocol_requests import ProtocolOperation, update_of
from penstock.http.web_limits import READ_AT_ONCE
from penstock.rdf.formats import Format
from penstock.replication.load_files import Manifest
from penstock.services.coordinator.insertion import Insertion
from penstock.services.coordinator.query_commands import can_be_refused
from penstock.services.coordinator.sets.member_requests import MemberRequests
from penstock.services.coordinator.topic_requests import (
    catch_up_of,
    declaration_of_json,
    declarations_of_json,
    option_of,
    options_of,
    queries_of_json,
)
from penstock.updates.effect_requests import EffectRequests

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Any

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from penstock.http.graph_store import Addition
    from penstock.replication.status_topic import Standing
    from penstock.services.coordinator.coordinator import Coordinator
    from penstock.wire import QueryRegistration, StreamDeclaration

T = TypeVar("T")
WAIT_S = 2.0
"""Default time in s that the response to a registration waits for an engine to enrol the query."""
ADAPTORS_WAIT_S = 20.0
"""Time in s after which a registration no longer waits for adaptors that still discard predicates of the query (ADR
45). A longer `?wait=` extends this time.
"""
DECISION_WAIT_S = 10.0
"""Time in s that the response to a registration waits for the query engines' decision whether a query with windows
without a range in time can begin in the past (ADR 107). A longer `?wait=` extends this time.
"""
EVALUATIONS = 10
"""Maximum number of evaluations of an update. An update is evaluated again if another change was stored meanwhile."""
_MAX_WAIT_S = 60.0
_MAX_NAME = 200
_LOOK_S = 0.02


def routes(
    coordinator: Coordinator,
    lock: AbstractContextManager[object],
    dictionaries: Sequence[str] = (),
    certificate: Path | None = None,
    engines_ca: Path | None = None,
) -> list[BaseRoute]:
    """Return the routes. `lock` is held during each request and during each step of the service, so that requests and
    steps do not overlap. `dictionaries`: addresses of the dictionary's instances. Clients need these addresses to
    prepare bulk loads. `certificate`: certificate chain of this instance, for HTTPS. `engines_ca`: CA of the
    certificates of query engines. The coordinator sends updates to query engines for evaluation.
    """
    handler = _Handler(coordinator, lock, dictionaries, certificate, engines_ca)
    forwarding = Forwarding(handler.other_active, certificate)

    def route(path: str, endpoint: Callable[[Request], Awaitable[Response]], *methods: str) -> Route:
        return Route(path, errors_as_json(forwarding.around(endpoint)), methods=[*methods])

    return [
        route("/streams", handler.streams, "GET"),
        route("/streams", handler.declare, "POST"),
        route("/streams/{name:path}", handler.stream, "PUT", "GET", "DELETE"),
        route("/queries", handler.queries, "GET"),
        route("/queries", handler.register_all, "POST"),
        route("/queries/{name:path}/members", handler.members, "GET", "POST", "DELETE"),
        route("/queries/{name:path}", handler.query, "PUT", "GET", "DELETE"),
        Route("/engines", errors_as_json(handler.engines)),
        route("/placement", handler.placement, "GET"),
        route("/update", handler.update, "POST"),
        route("/data", handler.data, "POST"),
        *GraphStore(add=handler.add, change=handler.change_graph).routes(forwarding.around),
        route("/loads", handler.loads, "GET", "POST"),
    ]


class _Handler:
    def __init__(
        self,
        coordinator: Coordinator,
        lock: AbstractContextManager[object],
        dictionaries: Sequence[str],
        certificate: Path | None,
        engines_ca: Path | None,
    ) -> None:
        self._coordinator = coordinator
        self._texts = Texts(Limits())
        self._lock = lock
        self._dictionaries = dictionaries
        self._reading = asyncio.Semaphore(READ_AT_ONCE)
        self._evaluating = asyncio.Lock()
        trust = EngineTrust(certificate, engines_ca)
        self._effects = EffectRequests(self._engines, trust)
        self.members = MemberRequests(self._do, trust, self._reading).handle

    async def _do(self, verb: Callable[[Coordinator], Any]) -> Any:
        def locked() -> Any:
            with self._lock:
                return verb(self._coordinator)

        return await run_in_threadpool(locked)

    async def other_active(self) -> str | None:
        """Return the URL of the active instance. None if this instance is active, or if the URL is unknown."""
        if self._coordinator.active:
            return None
        found: str | None = await self._do(lambda c: c.other_active)
        return found

    # ---- streams
    async def streams(self, _: Request) -> Response:
        found = await self._do(lambda c: c.streams)
        return JSONResponse({iri: _stream_document(record) for iri, record in found.items()})

    async def declare(self, request: Request) -> Response:
        requested = declarations_of_json(await body_of(request))
        made = await self._do(lambda c: c.declare_all(requested))
        return JSONResponse({record.name: _stream_document(record) for record in made})

    async def stream(self, request: Request) -> Response:
        name = request.path_params["name"]
        if request.method == "PUT":
            iri, settings = declaration_of_json(await body_of(request))
            made = _stream_document(await self._do(lambda c: c.declare(iri, name, **settings)))
            return JSONResponse(made | {"warnings": warnings_of(iri, settings)})
        known = (await self._do(lambda c: c.streams)).values()
        record = next((record for record in known if name in (record.name, record.iri)), None)
        if record is None:
            raise UnknownStreamError(f"there is no stream {name!r}")
        if request.method == "DELETE":
            await self._do(lambda c: c.drop(record.iri))
            return Response(status_code=204)
        return JSONResponse(_stream_document(record))

    # ---- queries
    async def queries(self, _: Request) -> Response:
        found = await self._do(lambda c: [(record, c.standing(name)) for name, record in c.queries.items()])
        return JSONResponse({record.name: _query_document(record, standing) for record, standing in found})

    async def register_all(self, request: Request) -> Response:
        requested, wait_s = queries_of_json(await body_of(request)), _seconds(request.query_params.get("wait"))
        made = await self._registered(lambda c: c.register_all(requested), max(wait_s, ADAPTORS_WAIT_S))
        await self._standing(made[-1].name, wait_s)
        found = await self._do(lambda c: [c.standing(record.name) for record in made])
        return JSONResponse({r.name: _query_document(r, standing) for r, standing in zip(made, found, strict=True)})

    async def query(self, request: Request) -> Response:
        name, asked = request.path_params["name"], request.query_params
        if request.method == "PUT":
            text, wait_s = (await body_of(request)).decode(), _seconds(asked.get("wait"))
            options, replace = options_of(asked, asked.getlist("key")), option_of("replace", asked.get("replace"))
            base, topic, most = asked.get("base"), asked.get("topic"), catch_up_of(asked.get("max_catch_up"))
            record = await self._registered(
                lambda c: c.register(name, text, base, topic, most, replace=replace, **options),
                max(wait_s, ADAPTORS_WAIT_S),
            )
            if can_be_refused(record):
                await self._check_accepted(record, max(wait_s, DECISION_WAIT_S))
            return JSONResponse(_query_document(record, await self._standing(name, wait_s)))
        if request.method == "DELETE":
            stopped = await self._do(lambda c: c.stop(name))
            return Response(status_code=204) if stopped else no_query(name)
        record = (await self._do(lambda c: c.queries)).get(name)
        return no_query(name) if record is None else JSONResponse(_query_document(record, await self._standing(name)))

    async def _registered(self, verb: Callable[[Coordinator], T], wait_s: float) -> T:
        """Register queries. Waits at most `wait_s` seconds for adaptors. After this time, raises NotYetError (status
        503), and no query is registered.
        """
        deadline = time.monotonic() + wait_s
        while True:
            try:
                made: T = await self._do(verb)
            except NotYetError:
                if time.monotonic() >= deadline:
                    raise
                await asyncio.sleep(_LOOK_S)
            else:
                return made

    async def _check_accepted(self, record: QueryRegistration, wait_s: float) -> None:
        """Wait at most `wait_s` seconds for the query engines' decision on a query. If they have refused the query,
        stops it and raises QueryError.
        """
        found = await self._standing(record.name, wait_s)
        if found is None or not found.refused or found.number != record.number:
            return

        def stop(coordinator: Coordinator) -> None:
            known = coordinator.queries.get(record.name)
            if known is not None and known.number == record.number:
                coordinator.stop(record.name)

        await self._do(stop)
        raise QueryError(found.error or "", 1, 1, "", record.text)

    async def _standing(self, name: str, wait_s: float = 0.0) -> Standing | None:
        """Return the status of a query. Waits at most `wait_s` seconds for an engine to enrol the query. Returns None
        if no engine has enrolled the query by then.
        """
        deadline = time.monotonic() + wait_s
        while True:
            found: Standing | None = await self._do(lambda c: c.standing(name))
            if found is not None or time.monotonic() >= deadline:
                return found
            await asyncio.sleep(_LOOK_S)

    async def _engines(self) -> list[str]:
        found: dict[str, str] = await self._do(lambda c: c.engines)
        return list(found.values())

    async def engines(self, _: Request) -> Response:
        """Return the addresses of live query engines, by instance. Standby instances return these addresses, too."""
        return JSONResponse(await self._do(lambda c: c.engines))

    async def placement(self, _: Request) -> Response:
        return JSONResponse(await self._do(lambda c: c.placement))

    # ---- stored data
    async def update(self, request: Request) -> Response:
        operation, name = await update_of(request), _request_name(request)
        insertion = await self._read(Insertion.of_operation, operation, self._texts)
        if insertion is not None:
            return JSONResponse({"triples": await self._do(lambda c: c.insert(insertion, name))})
        stored = await self._evaluated(operation, name, request)
        return stored if isinstance(stored, Response) else JSONResponse({"triples": stored[0]})

    async def _evaluated(
        self, operation: ProtocolOperation, name: str | None, request: Request
    ) -> tuple[int, int | None] | Response:
        """Let a query engine evaluate an update, and store the update's effect. If another change was stored meanwhile,
        repeat the evaluation. ConflictError after `EVALUATIONS` evaluations.

        Returns the number of triples in the effect, and the number of triples that the effect removes. The second
        number is None if an earlier request with the same name has already stored its effect. If an engine refuses the
        update, returns the engine's response.
        """
        async with self._evaluating:  # concurrent evaluations would be conflicts
            for attempt in range(EVALUATIONS):
                stored, last = await self._do(lambda c: c.stored(name))
                if stored is not None:
                    return stored, None
                effect = await self._effects.evaluate(operation, last, request.headers)
                if isinstance(effect, Response):
                    return effect
                insertion = Insertion.of_effect(effect)
                try:
                    stored = await self._do(partial(_insert, insertion=insertion, name=name))
                except ConflictError:
                    if attempt + 1 == EVALUATIONS:
                        raise
                else:
                    return stored, len(effect.removed[0])
        raise AssertionError

    async def data(self, request: Request) -> Response:
        body, asked, name = await body_of(request), request.query_params, _request_name(request)
        content_type = request.headers.get("content-type", "application/n-triples").partition(";")[0].strip()
        syntax = Format.named(content_type).value
        insertion = await self._read(Insertion.of_document, body, syntax, asked.get("graph"), asked.get("base"))
        triples = await self._do(lambda c: c.insert(insertion, name))
        return JSONResponse({"triples": triples, "terms": insertion.terms})

    async def add(self, addition: Addition, request: Request) -> None:
        """Add a document to a graph."""
        name, syntax = _request_name(request), addition.format.value
        given = addition.data, syntax, addition.graph, addition.base
        insertion = await self._read(Insertion.of_document, *given)
        await self._do(lambda c: c.insert(insertion, name))

    async def change_graph(self, text: str, request: Request) -> int | Response | None:
        """Replace or remove a graph. Returns the number of removed triples."""
        stored = await self._evaluated(ProtocolOperation("update", text), _request_name(request), request)
        return stored if isinstance(stored, Response) else stored[1]

    async def _read(self, reading: Callable[..., T], *what: object) -> T:
        """Parse data to store, without the lock. NotActiveError on standby."""
        await self._do(lambda c: c.streams)  # NotActiveError on standby
        async with self._reading:
            return await run_in_threadpool(reading, self._coordinator.terms, *what)

    async def loads(self, request: Request) -> Response:
        if request.method == "GET":
            shards = await self._do(lambda c: c.topics.shards)
            return JSONResponse({"shards": shards, "dictionaries": list(self._dictionaries)})
        manifest = Manifest.of_json(await body_of(request))
        return JSONResponse({"triples": await self._do(lambda c: c.load_files(manifest))})


def _insert(coordinator: Coordinator, insertion: Insertion, name: str | None) -> int:
    return coordinator.insert(insertion, name)


def _request_name(request: Request) -> str | None:
    """Return the idempotency key of a request, or None."""
    name: str | None = request.headers.get("idempotency-key")
    if name is not None and len(name) > _MAX_NAME:
        raise DataError(f"an idempotency-key of {len(name)} characters (at most {_MAX_NAME})")
    return name


def _seconds(text: str | None) -> float:
    try:
        found = WAIT_S if text is None else float(text)
    except ValueError as error:
        raise DataError(f"wait is no number of seconds: {text!r}") from error
    if not 0 <= found <= _MAX_WAIT_S:
        raise DataError(f"wait lies between 0 and {_MAX_WAIT_S:g} seconds, not {text}")
    return found


def _stream_document(record: StreamDeclaration) -> dict[str, Any]:
    """Return a declaration as JSON."""
    return asdict(record) | {"mapping": None if record.mapping is None else json.loads(record.mapping)}


def _query_document(record: QueryRegistration, standing: Standing | None) -> dict[str, Any]:
    """Return a registration as JSON. The key `point` has the registration point in ms, null until this point is known.
    The key `gaps` has the instants without an evaluation, because event time leapt over them. The key `error` has the
    reason why the results topic rejects answers, or why the query cannot begin in the past. In the second case,
    `refused` is true.
    """
    gaps = [] if standing is None else [asdict(gap) for gap in standing.gaps]
    point, error = (None, None) if standing is None else (standing.point_ms, standing.error)
    refused = standing is not None and standing.refused
    found = {"point": point, "enrolled": standing is not None, "gaps": gaps, "error": error, "refused": refused}
    return asdict(record) | found
