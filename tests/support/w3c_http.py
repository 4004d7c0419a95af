"""The W3C suites for the SPARQL 1.1 Protocol and the Graph Store HTTP Protocol: their requests, sent to a server."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import rdflib
from rdflib.collection import Collection
from rdflib.compare import isomorphic
from rdflib.namespace import RDF, RDFS, Namespace

import penstock
from penstock.http.embedded import application
from penstock.http.web_server import WebServer
from support import shared

if TYPE_CHECKING:
    from collections.abc import Iterator

HT, CNT = Namespace("http://www.w3.org/2011/http#"), Namespace("http://www.w3.org/2011/content#")
MF = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
UT = Namespace("http://www.w3.org/2009/sparql/tests/test-update#")
STATUSES = {"Created": "201", "OK": "200", "NoContent": "204", "NotFound": "404", "BadRequest": "400"}
STATUSES |= {f"StatusCode{n}xx": str(n) for n in range(2, 6)}
FORMATS = {
    "boolean": ("application/sparql-results+json", "application/sparql-results+xml"),
    "tabular": ("application/sparql-results+json", "application/sparql-results+xml", "text/csv"),
    "RDF": ("application/n-triples", "text/turtle", "application/rdf+xml"),
}


@dataclass(frozen=True)
class Step:
    """One request, and the response expected."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes | None
    statuses: tuple[str, ...]
    boolean: bool | None
    format: str | None
    expected_headers: dict[str, str]
    expected_body: str | None


@dataclass(frozen=True)
class Exchange:
    """A test: requests in order. `graphs`: N-Triples files to load first, each with the IRI of its graph."""

    name: str
    steps: tuple[Step, ...]
    graphs: tuple[tuple[str, str], ...] = ()


@functools.cache
def exchanges(manifest: str) -> tuple[Exchange, ...]:
    """Return the tests of a manifest, in its order."""
    path = shared.need(f"suites/w3c-http/{manifest}")
    graph = rdflib.Graph().parse(path, format="turtle", publicID=path.as_uri())
    listed = [entry for entries in graph.objects(None, MF.entries) for entry in Collection(graph, entries)]
    return tuple(_exchange(graph, entry) for entry in listed)


def _exchange(graph: rdflib.Graph, entry: Any) -> Exchange:
    action = graph.value(entry, MF.action)
    steps = tuple(_step(graph, request) for request in Collection(graph, graph.value(action, HT.requests)))
    data = [
        (str(graph.value(d, UT.graph)), str(graph.value(d, RDFS.label))) for d in graph.objects(entry, UT.graphData)
    ]
    return Exchange(str(entry).rpartition("#")[2], steps, tuple(data))


def _step(graph: rdflib.Graph, request: Any) -> Step:
    response = graph.value(request, HT.resp)
    boolean, kind = graph.value(response, MF.expectedBoolean), graph.value(response, MF.expectedFormat)
    body = _body(graph, request)
    expected = _body(graph, response)
    return Step(
        str(graph.value(request, HT.methodName)),
        str(graph.value(request, HT.absolutePath)),
        _headers(graph, request),
        body,
        tuple(STATUSES[str(s).rpartition("#")[2]] for s in graph.objects(response, MF.expectedStatus)),
        None if boolean is None else bool(boolean.toPython()),
        None if kind is None else str(kind),
        _headers(graph, response),
        None if expected is None else expected.decode(),
    )


def _headers(graph: rdflib.Graph, message: Any) -> dict[str, str]:
    listed = graph.value(message, HT.headers)
    fields = [] if listed is None else Collection(graph, listed)
    return {str(graph.value(f, HT.fieldName)): str(graph.value(f, HT.fieldValue)) for f in fields}


def _body(graph: rdflib.Graph, message: Any) -> bytes | None:
    content = graph.value(message, HT.body)
    if content is None:
        return None
    assert graph.value(content, RDF.type) == CNT.ContentAsText
    return str(graph.value(content, CNT.chars)).encode(str(graph.value(content, CNT.characterEncoding) or "UTF-8"))


@contextmanager
def serving() -> Iterator[tuple[penstock.Engine, str]]:
    """Yield a new engine, and the URL of the server that `penstock serve` runs for an engine."""
    with penstock.Engine() as engine:
        server = WebServer(application(engine), "127.0.0.1", 0)
        try:
            yield engine, f"http://127.0.0.1:{server.port}"
        finally:
            server.stop()


def run(exchange: Exchange, url: str, paths: dict[str, str]) -> httpx.Response | None:
    """Send the requests of a test. Returns the first response that is not as expected, or None. `paths`: the server's
    path for each prefix of paths in the manifest.
    """
    location = ""
    for step in exchange.steps:
        begin = next(b for b in sorted(paths, key=len, reverse=True) if step.path.startswith(b))
        target = url + paths[begin] + step.path[len(begin) :].replace("$LOCATION$", location)
        response = httpx.request(step.method, target, headers=step.headers, content=step.body, timeout=30)
        location = response.headers.get("location", location)
        if not _as_expected(step, response):
            return response
    return None


def _as_expected(step: Step, response: httpx.Response) -> bool:
    if step.statuses and not any(str(response.status_code).startswith(status) for status in step.statuses):
        return False
    media = response.headers.get("content-type", "").partition(";")[0]
    if step.format is not None and media not in FORMATS[step.format]:
        return False
    if step.boolean is not None and response.json()["boolean"] is not step.boolean:
        return False
    expected_media = step.expected_headers.get("content-type", media).partition(";")[0]
    if expected_media not in (media, "*/*"):
        return False
    if step.expected_body is None:
        return True
    # the body has the media type of the expected header; documents may have relative IRIs
    expected = rdflib.Graph().parse(data=step.expected_body, format="turtle", publicID="http://www.example/gsp")
    found = rdflib.Graph().parse(data=response.text, format="turtle", publicID="http://www.example/gsp")
    return isomorphic(expected, found)
