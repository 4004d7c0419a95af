"""The SPARQL 1.1 Graph Store HTTP Protocol at `/rdf-graphs`.

A request names a graph by `?graph=IRI` or `?default`. A request can also name a graph directly: the URL of a path below
`/rdf-graphs/` is the graph's IRI. A named graph exists as long as the graph has a triple (docs/semantics.md §1).
"""

from __future__ import annotations

from dataclasses import dataclass
from email.parser import BytesParser
from email.policy import HTTP
from typing import TYPE_CHECKING, Final, Protocol
from uuid import uuid4

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from penstock.core import _native as native
from penstock.engine.answers.answer_values import Triples
from penstock.errors import DataError
from penstock.http.error_responses import body_of, errors_as_json
from penstock.http.protocol_requests import FORM, ProtocolOperation, endpoint, media_type
from penstock.http.sparql import GRAPHS, preferred, response_of
from penstock.query.catalogue import STORED_GRAPH
from penstock.rdf.formats import Format
from penstock.rdf.parsing import parse
from penstock.rdf.terms import check_iri

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from starlette.requests import Request

    from penstock.http.sparql import Answer, Ask

    Endpoint = Callable[[Request], Awaitable[Response]]

PATH: Final = "/rdf-graphs"
_TRIPLES: Final = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
_ANY: Final = "ASK { ?s ?p ?o }"
_MULTIPART: Final = "multipart/form-data"
_NO_GRAPH: Final = "name a graph: ?graph=IRI, ?default, or a path below /rdf-graphs/"


@dataclass(frozen=True, slots=True)
class Addition:
    """A document to add to a graph. `graph`: the graph's IRI, or None for the default graph. `base`: the base of
    relative IRIs.
    """

    graph: str | None
    data: bytes
    format: Format
    base: str


class Add(Protocol):
    """Adds documents to graphs."""

    async def __call__(self, addition: Addition, request: Request, /) -> object:
        """Store a document as one snapshot. DataError if the document is invalid."""
        ...


class ChangeGraph(Protocol):
    """Executes the updates with which PUT replaces a graph and DELETE removes a graph."""

    async def __call__(self, text: str, request: Request, /) -> int | Response | None:
        """Execute an update as one snapshot. Returns the number of triples that the update removes, or None if this
        number is unknown. If the request is refused, returns the error response.
        """
        ...


class GraphStore:
    """The handlers of the protocol.

    `ask` answers queries. If `ask` is None, this service cannot read graphs. `add` stores documents, and `change`
    replaces and removes graphs. If `add` and `change` are None, this service cannot change graphs.
    """

    def __init__(self, ask: Ask | None = None, add: Add | None = None, change: ChangeGraph | None = None) -> None:
        self._ask, self._add, self._change = ask, add, change

    def routes(self, around: Callable[[Endpoint], Endpoint] = lambda endpoint: endpoint) -> list[Route]:
        """Return the routes. `around` wraps each endpoint."""
        found = []
        for path in (PATH, PATH + "/{path:path}"):
            if self._ask is not None:
                found.append(Route(path, errors_as_json(around(self._read)), methods=["GET"]))
            if self._add is not None:
                found.append(Route(path, errors_as_json(around(self._post)), methods=["POST"]))
            if self._change is not None:
                found.append(Route(path, errors_as_json(around(self._put)), methods=["PUT"]))
                found.append(Route(path, errors_as_json(around(self._delete)), methods=["DELETE"]))
        return found

    async def _read(self, request: Request) -> Response:
        graph = _graph_of(request)
        if graph == "":
            raise DataError(_NO_GRAPH)
        if request.method == "HEAD":
            media = preferred(request.headers.get("accept", "*/*"), list(GRAPHS))
            if graph is not None and not await self._has_triples(graph):
                return _not_found(graph)
            return Response(media_type=media, headers=dict(_VARY))
        answer = await self._asked(_TRIPLES, graph)
        if graph is not None and not answer:
            return _not_found(graph)
        return await run_in_threadpool(response_of, answer, request.headers.get("accept", "*/*"), _VARY)

    async def _post(self, request: Request) -> Response:
        graph = _graph_of(request)
        made = f"{endpoint(request).rstrip('/')}/{uuid4().hex}" if graph == "" else None
        graph = made or graph
        existed = made is None and await self._existed(graph)
        assert self._add is not None
        await self._add(await self._document(request, graph), request)
        return Response(status_code=204 if existed else 201, headers={} if made is None else {"location": made})

    async def _put(self, request: Request) -> Response:
        """Replace the triples of a graph, as one snapshot."""
        graph = _graph_of(request)
        if graph == "":
            raise DataError(_NO_GRAPH)
        existed = await self._existed(graph)
        document = await self._document(request, graph)
        triples = (await run_in_threadpool(_ntriples, [(document.data, document.format)], document.base)).decode()
        data = triples if graph is None else f"GRAPH <{graph}> {{\n{triples}}}"
        removed = await self._changed(f"{_clear(graph)} ;\nINSERT DATA {{\n{data}}}", request)
        if isinstance(removed, Response):
            return removed
        if self._ask is None:
            existed = graph is None or removed != 0
        return Response(status_code=204 if existed else 201)

    async def _delete(self, request: Request) -> Response:
        """Remove the triples of a graph."""
        graph = _graph_of(request)
        if graph == "":
            raise DataError(_NO_GRAPH)
        if graph is not None and self._ask is not None and not await self._has_triples(graph):
            return _not_found(graph)
        removed = await self._changed(_clear(graph), request)
        if isinstance(removed, Response):
            return removed
        return _not_found(graph) if graph is not None and removed == 0 else Response(status_code=204)

    async def _changed(self, text: str, request: Request) -> int | Response | None:
        assert self._change is not None
        return await self._change(text, request)

    async def _existed(self, graph: str | None) -> bool:
        """Return whether a graph exists. True if this service cannot read graphs."""
        return graph is None or self._ask is None or await self._has_triples(graph)

    async def _document(self, request: Request, graph: str | None) -> Addition:
        base = graph or endpoint(request)
        data, syntax = await body_of(request), media_type(request)
        if syntax == _MULTIPART:
            header = request.headers["content-type"]
            data, syntax = await run_in_threadpool(_joined, data, header, base), Format.N_TRIPLES.value
        return Addition(graph, data, _format(syntax), base)

    async def _has_triples(self, graph: str) -> bool:
        return bool(await self._asked(_ANY, graph))

    async def _asked(self, text: str, graph: str | None) -> Answer:
        assert self._ask is not None
        operation = ProtocolOperation("query", text, () if graph is None else (graph,))
        return await run_in_threadpool(self._ask, operation, "", None, None)


_VARY: Final = {"vary": "accept"}


def _clear(graph: str | None) -> str:
    return "CLEAR DEFAULT" if graph is None else f"CLEAR GRAPH <{graph}>"


def _graph_of(request: Request) -> str | None:
    """Return the IRI of the graph that a request names. None means the default graph, and "" means that the request
    names no graph. DataError if the request names several graphs, or if the IRI is invalid.
    """
    asked = request.query_params
    named, default = asked.getlist("graph"), "default" in asked
    direct = bool(request.path_params.get("path"))
    if len(named) + default + direct > 1:
        raise DataError(f"a request names one graph only: {_NO_GRAPH}")
    if direct:
        named = [endpoint(request)]
    if not named:
        return None if default else ""
    return None if named[0] == STORED_GRAPH else check_iri(named[0])


def _not_found(graph: str) -> Response:
    return JSONResponse({"error": "NotFound", "message": f"there is no graph <{graph}>"}, 404)


def _format(media: str) -> Format:
    """Return the format of a graph's document. The format is N-Triples if the request has no content type. The same
    applies to the content type of a form, because `curl -d` labels every body as a form.
    """
    found = Format.N_TRIPLES if media in ("", FORM) else Format.named(media)
    if found in (Format.N_QUADS, Format.TRIG):
        raise DataError(f"{found.media_type} has named graphs; POST /data stores such documents")
    return found


def _joined(body: bytes, content_type: str, base: str) -> bytes:
    """Return the documents in a multipart form as one N-Triples document. DataError if a part is invalid."""
    message = BytesParser(policy=HTTP).parsebytes(b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body)
    if not message.is_multipart():
        raise DataError(f"the body is no {_MULTIPART}")
    documents = []
    for number, part in enumerate(message.iter_parts()):
        data = part.get_payload(decode=True)
        declared = part.get_content_type() if "content-type" in part else Format.of_path(part.get_filename("")).value
        if not isinstance(data, bytes):
            raise DataError(f"part {number + 1} of the form has no document")
        documents.append((data, _format(declared)))
    return _ntriples(documents, base)


def _ntriples(documents: Iterable[tuple[bytes, Format]], base: str) -> bytes:
    """Return documents as one N-Triples document. DataError if a document is invalid or has named graphs."""
    dictionary = native.Dictionary()
    texts = []
    for data, syntax in documents:
        quads = parse(dictionary, data, syntax, base)
        if quads.graphs.any():
            raise DataError("the document of a graph has named graphs; POST /data stores such documents")
        columns = (quads.subjects, quads.predicates, quads.objects)
        texts.append(Triples(columns, len(quads.subjects), native.LocalTerms(dictionary)).to_ntriples())
    return "".join(texts).encode()
