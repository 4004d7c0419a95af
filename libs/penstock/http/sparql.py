"""One-shot queries over HTTP: the query operation of the SPARQL 1.1 Protocol, with its result formats."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Route

from penstock.engine.answers import Solutions
from penstock.errors import DataError
from penstock.http.errors import body_of, told

if TYPE_CHECKING:
    import rdflib
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from penstock.cluster.query_engine import QueryEngine

_FORMATS = {
    "application/sparql-results+json": Solutions.to_json,
    "application/sparql-results+xml": Solutions.to_xml,
    "text/csv": Solutions.to_csv,
    "text/tab-separated-values": Solutions.to_tsv,
}


def routes(engine: QueryEngine) -> list[BaseRoute]:
    """Return the route /sparql."""

    async def sparql(request: Request) -> Response:
        text = await _query(request)
        answer = await run_in_threadpool(engine.one_shot.query, text, None, None, None)
        return _response(answer, request.headers.get("accept", "*/*"))

    return [Route("/sparql", told(sparql), methods=["GET", "POST"])]


async def _query(request: Request) -> str:
    """Return the query's text, in whichever of the protocol's three ways it came."""
    if request.method == "GET":
        asked = request.query_params.getlist("query")
    else:
        body = (await body_of(request)).decode()
        content_type = request.headers.get("content-type", "").partition(";")[0].strip()
        if content_type == "application/sparql-query":
            return body
        if content_type != "application/x-www-form-urlencoded":
            raise DataError(f"a query comes as a form or as application/sparql-query, not as {content_type!r}")
        asked = parse_qs(body).get("query", [])
    if len(asked) != 1:
        raise DataError("there must be exactly one parameter `query`")
    return asked[0]


def _response(answer: Solutions | bool | rdflib.Graph, accept: str) -> Response:
    wanted = [part.partition(";")[0].strip() for part in accept.split(",")]
    if isinstance(answer, bool):
        return Response(json.dumps({"head": {}, "boolean": answer}), media_type="application/sparql-results+json")
    if not isinstance(answer, Solutions):
        return Response(answer.serialize(format="nt"), media_type="application/n-triples")
    media = next((name for name in wanted if name in _FORMATS), "application/sparql-results+json")
    return Response(_FORMATS[media](answer), media_type=media)
