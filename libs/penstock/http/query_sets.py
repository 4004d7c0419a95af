"""Query sets over HTTP: registration, members, steps, and the answers of some members as server-sent events."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal, cast

import pyarrow as pa
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from penstock.errors import DataError, PenstockError
from penstock.http.error_responses import body_of, no_set
from penstock.http.member_pages import page_document, page_request
from penstock.http.member_rows import ARROW, check_key, rows_of
from penstock.http.protocol_requests import media_type
from penstock.json_text import parse_json
from penstock.query.parser import declared_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

    from penstock.engine import Engine, QuerySet, Step
    from penstock.engine.sets.member_excerpt import MemberPage
    from penstock.http.live import Feed, Feeds

_MAY_DECLARE = re.compile(r"\bREGISTER\b[^{]*\(", re.IGNORECASE)
_PARTS: dict[str, Callable[[Step], pa.Table]] = {
    "answers": lambda step: step.to_arrow(),
    "members": lambda step: step.members,
    "added": lambda step: step.added,
    "removed": lambda step: step.removed,
}


class QuerySets:
    """The requests for the query sets of an engine."""

    def __init__(self, engine: Engine, feeds: Feeds) -> None:
        self._engine = engine
        self._feeds = feeds

    def documents(self) -> dict[str, dict[str, Any]]:
        """Return the description of each set, by name."""
        return {name: document(found) for name, found in self._engine.query_sets.items()}

    def declares(self, text: str, base: str | None) -> bool:
        """Return whether a text declares parameters. A text with parameters is the text of a query set. QueryError if
        the text is invalid and possibly declares parameters.
        """
        return bool(_MAY_DECLARE.search(text) and declared_parameters(text, base, self._engine.limits))

    def get(self, name: str) -> QuerySet | None:
        """Return the set with this name, or None."""
        return self._engine.query_sets.get(name)

    def register(self, name: str, text: str, base: str | None, report: str, key: list[str]) -> dict[str, Any]:
        """Register a set. Repeating a request has no effect."""
        known = self.get(name)
        same = known is not None and (known.text, known.base, known.report) == (text, base, report)
        if known is not None and same and (not key or tuple(key) == known.key):
            return document(known)
        given = cast("Literal['every', 'nonempty', 'change']", report)
        made = self._engine.register_set(text, report=given, key=key or None, name=name, base=base)
        self._feeds.add(made)
        return document(made)

    def stop(self, found: QuerySet) -> None:
        """Stop a set, and end its live results."""
        found.stop()
        self._feeds.end(found.name)

    # ---- requests
    async def members(self, request: Request) -> Response:
        """GET: list members. POST: add the rows of the body as members. DELETE: remove the members whose keys are the
        rows of the body.
        """
        name = request.path_params["name"]
        found = await run_in_threadpool(self.get, name)
        if found is None:
            return no_set(name)
        if request.method in ("GET", "HEAD"):
            return JSONResponse(page_document(await run_in_threadpool(_page, found, request.query_params)))
        removes = request.method == "DELETE"
        check_key(name, found.key, request.query_params.getlist("key"))
        body, content_type = await body_of(request), media_type(request)
        rows = await run_in_threadpool(rows_of, body, content_type, found.key if removes else found.columns)
        if removes:
            return JSONResponse({"removed": await run_in_threadpool(found.remove, rows)})
        return JSONResponse(asdict(await run_in_threadpool(found.add, rows)))

    async def steps(self, request: Request) -> Response:
        """Return the retained steps after an instant as one Arrow stream."""
        name, asked = request.path_params["name"], request.query_params
        feed = self._feeds.get(name)
        if feed is None or not feed.of_set:
            return no_set(name)
        part = _PARTS.get(asked.get("part", "answers"))
        if part is None:
            raise DataError(f"?part is one of {', '.join(_PARTS)}, not {asked['part']}")
        try:
            after = None if (given := asked.get("after")) is None else int(given)
        except ValueError as error:
            raise DataError(f"a time must be an integer of ms: ?after={asked['after']}") from error
        content = await run_in_threadpool(_stream_of, feed, after, part)
        return Response(status_code=204) if content is None else Response(content, media_type=ARROW)

    def member(self, request: Request, feed: Feed) -> object:
        """Return the member key in a request for the answers of one member of a set. None if the feed belongs to a
        query. DataError if the feed belongs to a set and the request has no key.
        """
        if not feed.of_set:
            return None
        found, text = self.get(request.path_params["name"]), request.query_params.get("member")
        if found is None or text is None:
            raise DataError("the live results of a query set are those of one member: name its key, ?member=")
        return member_key(found, text)


def document(found: QuerySet) -> dict[str, Any]:
    """Return the description of a set."""
    return {
        "name": found.name,
        "text": found.text,
        "base": found.base,
        "report": found.report,
        "columns": list(found.columns),
        "key": list(found.key),
        "members": len(found),
        "warnings": list(found.warnings),
        "status": asdict(found.status()),
    }


def member_key(found: QuerySet, text: str) -> Any:
    """Return the member key that a request parameter contains. If the key is one text column, the key is `text` itself.
    Otherwise, `text` must be a JSON value, or a JSON array if the key has several columns. DataError if `text` is
    neither.
    """
    single = len(found.key) == 1
    if single and text in found:
        return text
    try:
        value = parse_json(text.encode(), "?member")
    except DataError:
        if single:
            return text  # no member has this key yet
        raise
    return tuple(value) if isinstance(value, list) else value


def _page(found: QuerySet, asked: Mapping[str, str]) -> MemberPage:
    page = page_request(asked, lambda text: member_key(found, text))
    return found.list_members(page.limit, page.after, page.key)


def _stream_of(feed: Feed, after: int | None, part: Callable[[Step], pa.Table]) -> bytes | None:
    """Return the retained steps as an Arrow stream. None if there are no such steps."""
    steps = cast("list[Step]", feed.since(feed.position(after))[0])
    tables = []
    for step in steps:
        table = part(step)
        tables.append(table.add_column(0, "time", pa.array([step.time] * table.num_rows, pa.int64())))
    if not tables:
        return None
    try:
        whole = pa.concat_tables(tables)
    except pa.ArrowInvalid as error:
        raise PenstockError(f"steps with different columns: {error}") from error
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, whole.schema) as writer:
        writer.write_table(whole)
    return bytes(sink.getvalue())
