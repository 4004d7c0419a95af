"""The SPARQL 1.1 Protocol: queries with content negotiation, and updates if the endpoint supports updates."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Protocol, TypeAlias

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from penstock.engine.answers.answer_values import Solutions
from penstock.engine.answers.result_formats import boolean_json, boolean_xml
from penstock.errors import DataError
from penstock.http.error_responses import errors_as_json
from penstock.http.protocol_requests import endpoint, operation_of
from penstock.http.security.authentication import need
from penstock.http.security.roles import Role
from penstock.query.protocol_dataset import dataset_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import rdflib
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from penstock.engine.answers.answer_values import TextFormat
    from penstock.engine.limits import Limits
    from penstock.engine.oneshot.one_shot import OneShot
    from penstock.http.protocol_requests import ProtocolOperation

    Answer: TypeAlias = Solutions | bool | rdflib.Graph

_JSON, _XML = "application/sparql-results+json", "application/sparql-results+xml"
_PART_BYTES = 1 << 18  # size of the parts of a large answer
_SOLUTIONS: dict[str, TextFormat] = {
    _JSON: "json",
    _XML: "xml",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/json": "json",
}
_BOOLEANS = {_JSON: boolean_json, _XML: boolean_xml, "application/json": boolean_json}
GRAPHS = {
    "application/n-triples": "nt",
    "text/turtle": "turtle",
    "application/ld+json": "json-ld",
    "application/rdf+xml": "xml",
}
"""Media types of RDF graphs, with rdflib's names of the formats."""


class Ask(Protocol):
    """A one-shot query interface (`Engine.query`)."""

    def __call__(
        self, operation: ProtocolOperation, base: str, timeout_s: float | None, memory_mb: int | None
    ) -> Answer:
        """Return the answer over the latest snapshot. LimitError if the query exceeds the given time or memory."""
        ...


class Change(Protocol):
    """An update interface (`Engine.update`)."""

    def __call__(self, operation: ProtocolOperation, base: str) -> object:
        """Execute an update as one snapshot."""
        ...


def asking(one_shot: OneShot) -> Ask:
    """Return an `Ask` that calls the method `query` of `one_shot`."""

    def ask(operation: ProtocolOperation, base: str, timeout_s: float | None, memory_mb: int | None) -> Answer:
        dataset = dataset_of(operation.default_graphs, operation.named_graphs)
        return one_shot.query(operation.text, base, timeout_s, memory_mb, dataset)

    return ask


def routes(ask: Ask, limits: Limits, update: Change | None = None) -> list[BaseRoute]:
    """Return the route /sparql. `ask` and `update` run in worker threads. The base of relative IRIs is the parameter
    `base`, or else the URL of the endpoint.

    In addition to the protocol's parameters, a query can have `base`, `timeout_s` and `memory_mb`. If `timeout_s` or
    `memory_mb` exceeds the value in `limits`, the value in `limits` applies.
    """

    async def sparql(request: Request) -> Response:
        operation = await operation_of(request)
        base = operation.base or endpoint(request)
        if operation.kind == "update":
            if update is None:
                raise DataError("this endpoint does not accept updates")
            need(request.scope, Role.WRITE)
            await run_in_threadpool(update, operation, base)
            return Response(status_code=204)
        asked = request.query_params
        timeout_s = _least("timeout_s", asked.get("timeout_s"), limits.query_timeout_s)
        memory_mb = _least("memory_mb", asked.get("memory_mb"), limits.evaluation_memory_mb)
        answer = await run_in_threadpool(ask, operation, base, timeout_s, int(memory_mb))
        return await run_in_threadpool(response_of, answer, request.headers.get("accept", "*/*"))

    return [Route("/sparql", errors_as_json(sparql), methods=["GET", "POST"])]


def _least(name: str, text: str | None, limit: float) -> float:
    """Return the client's limit for its query, or the service's limit if the service's limit is lower."""
    try:
        asked = limit if text is None else float(text)
    except ValueError as error:
        raise DataError(f"{name} is not a number: {text!r}") from error
    if text is not None and not asked > 0:
        raise DataError(f"{name} must be more than 0, not {text}")
    return min(asked, limit) if limit else asked  # 0 = no limit


def response_of(answer: Answer, accept: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer in the format that a client prefers."""
    content: str | bytes
    given = None if headers is None else dict(headers)
    if isinstance(answer, bool):
        media = preferred(accept, list(_BOOLEANS))
        content = _BOOLEANS[media](answer)
    elif isinstance(answer, Solutions):
        media = preferred(accept, list(_SOLUTIONS))
        parts = answer.parts(_SOLUTIONS[media], _PART_BYTES)
        content = next(parts)
        if len(content) >= _PART_BYTES:  # the text of a large answer never exists as a whole
            return StreamingResponse(chain([content], parts), media_type=media, headers=given)
    else:
        media = preferred(accept, list(GRAPHS))
        content = answer.serialize(format=GRAPHS[media])
    return Response(content, media_type=media, headers=given)


def preferred(accept: str, offered: Sequence[str]) -> str:
    """Return the offered media type that a client prefers. If the client accepts none of the offered types, return the
    first offered type, as RFC 9110 §12.5.1 allows.
    """
    accepted = []
    for part in accept.split(","):
        media, *parameters = (piece.strip().lower() for piece in part.split(";"))
        quality = next((p[2:] for p in parameters if p.startswith("q=")), "1")
        try:
            accepted.append((media, float(quality)))
        except ValueError:
            continue
    for media, weight in sorted(accepted, key=lambda entry: -entry[1]):
        if weight <= 0:
            continue
        for name in offered:
            if media in (name, "*/*", name.partition("/")[0] + "/*"):
                return name
    return offered[0]
