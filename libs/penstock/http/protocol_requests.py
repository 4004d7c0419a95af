"""Requests of the SPARQL 1.1 Protocol. The module reads the text and graphs of an operation from any of the protocol's
encodings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qs

from penstock.errors import DataError
from penstock.http.error_responses import body_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request

    Kind = Literal["query", "update"]
    Parameters = Mapping[str, Sequence[str]]

FORM = "application/x-www-form-urlencoded"
_DIRECT: Mapping[str, Kind] = {"application/sparql-query": "query", "application/sparql-update": "update"}
_GRAPHS: Mapping[Kind, tuple[str, str]] = {
    "query": ("default-graph-uri", "named-graph-uri"),
    "update": ("using-graph-uri", "using-named-graph-uri"),
}


@dataclass(frozen=True, slots=True)
class ProtocolOperation:
    """A query or an update. `default_graphs`, `named_graphs`: the graphs that the request names, by IRI. `base`: the
    parameter `base`, which is not part of the protocol.
    """

    kind: Kind
    text: str
    default_graphs: tuple[str, ...] = ()
    named_graphs: tuple[str, ...] = ()
    base: str | None = None


async def operation_of(request: Request) -> ProtocolOperation:
    """Return the operation of a request to `/sparql` (§2.1, §2.2). DataError unless there is exactly one operation."""
    in_url = _url_parameters(request)
    if request.method == "GET":
        kind, text = _only(in_url, in_url)
        if kind == "update":
            raise DataError("an update requires POST")
        return _operation(kind, text, in_url)
    media = media_type(request)
    body = _text(await body_of(request), request)
    if media in _DIRECT:
        return _direct(_DIRECT[media], body, in_url)
    if media != FORM:
        raise DataError(f"an operation must be a form, application/sparql-query or -update, not {media!r}")
    form = parse_qs(body, keep_blank_values=True)
    return _of_form(form, in_url)


async def update_of(request: Request) -> ProtocolOperation:
    """Return the update of a POST to `/update`. The body is the text of the update, unless the body is a form with the
    field `update`. Any other form is also read as the text of an update, because `curl -d` labels every body as a form.
    """
    in_url = _url_parameters(request)
    body = _text(await body_of(request), request)
    if media_type(request) == FORM:
        form = parse_qs(body, keep_blank_values=True)
        if "update" in form:
            return _of_form(form, in_url)
    return _direct("update", body, in_url)


def media_type(request: Request) -> str:
    """Return the media type of a request's body, without parameters. Empty if the request has no media type."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def endpoint(request: Request) -> str:
    """Return the URL of a request without the URL's query part. This is the base of relative IRIs if nothing else gives
    a base (§2.1.6). The path has the same percent-encoding as in the request.
    """
    path: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    return f"{request.url.scheme}://{request.url.netloc}{path.partition(b'?')[0].decode('ascii', 'replace')}"


def _url_parameters(request: Request) -> Parameters:
    return {name: request.query_params.getlist(name) for name in request.query_params}


def _text(body: bytes, request: Request) -> str:
    for parameter in request.headers.get("content-type", "").split(";")[1:]:
        name, _, value = parameter.strip().partition("=")
        if name.lower() == "charset" and value.strip('"').lower() not in ("utf-8", "utf8", "us-ascii"):
            raise DataError(f"the text of an operation is UTF-8, not {value}")
    return body.decode()


def _direct(kind: Kind, text: str, in_url: Parameters) -> ProtocolOperation:
    for name in ("query", "update"):
        if name in in_url:
            raise DataError(f"the body is the {kind}: the parameter `{name}` is one operation too many")
    return _operation(kind, text, in_url)


def _of_form(form: Parameters, in_url: Parameters) -> ProtocolOperation:
    both = {name: [*in_url.get(name, ()), *form.get(name, ())] for name in {**in_url, **form}}
    kind, text = _only(both, form)
    return _operation(kind, text, both)


def _only(parameters: Parameters, of_update: Parameters) -> tuple[Kind, str]:
    """Return the kind and text of the only operation in `parameters`. `of_update`: the parameters in which an update is
    permitted. DataError if there is no operation or more than one, or if an update is not permitted.
    """
    kinds: tuple[Kind, ...] = ("query", "update")
    given = [(kind, text) for kind in kinds for text in parameters.get(kind, ())]
    if len(given) != 1 or ("update" in parameters and "update" not in of_update):
        raise DataError("there must be exactly one parameter `query`, or `update` in a form")
    return given[0]


def _operation(kind: Kind, text: str, parameters: Parameters) -> ProtocolOperation:
    for other, names in _GRAPHS.items():
        for name in names:
            if other != kind and name in parameters:
                raise DataError(f"`{name}` is a parameter of a{'n' * (other == 'update')} {other}, not of this {kind}")
    default, named = (tuple(parameters.get(name, ())) for name in _GRAPHS[kind])
    base = next(iter(parameters.get("base", ())), None)
    return ProtocolOperation(kind, text, default, named, base)
