"""The list of a query set's members over HTTP: `GET /queries/NAME/members`, with ?limit=, ?after= and ?member=."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse
from starlette.routing import Route

from penstock.engine.sets.member_excerpt import LISTED, PageRequest
from penstock.errors import DataError
from penstock.http.error_responses import errors_as_json, no_set

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from penstock.engine.sets.member_excerpt import MemberPage


def page_request(asked: Mapping[str, str], key: Callable[[str], object]) -> PageRequest:
    """Return the page that a request asks for. `key`: converts the text of ?member= to the key of a member. DataError
    if ?limit= or ?after= is invalid.
    """
    limit, member = asked.get("limit"), asked.get("member")
    try:
        most = LISTED if limit is None else int(limit)
    except ValueError as error:
        raise DataError(f"limit is no whole number: {limit!r:.40}") from error
    return PageRequest(most, asked.get("after"), None if member is None else key(member))


def page_document(page: MemberPage) -> dict[str, Any]:
    """Return a page as JSON."""
    members = [{"member": each.key, "row": each.row} for each in page.members]
    return {"count": page.count, "members": members, "next": page.next}


def routes(find: Callable[[str, Mapping[str, str]], MemberPage | None]) -> list[BaseRoute]:
    """Return the route of a query engine. `find` runs in worker threads; its arguments are the name of the set and the
    parameters of the request. `find` returns None if this engine does not evaluate the set.
    """

    async def found(request: Request) -> Response:
        name = request.path_params["name"]
        page = await run_in_threadpool(find, name, request.query_params)
        return no_set(name) if page is None else JSONResponse(page_document(page))

    return [Route("/queries/{name:path}/members", errors_as_json(found))]
