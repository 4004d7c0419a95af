"""Requests over HTTP for the members of query sets. The coordinator writes records that add and remove members. The
query engine that evaluates the set lists the members, because the coordinator does not have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import httpx
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from penstock.errors import DataError, UnavailableError
from penstock.http.error_responses import body_of, no_set
from penstock.http.forwarding import passed_on
from penstock.http.member_pages import page_request
from penstock.http.member_rows import check_key, rows_of
from penstock.http.protocol_requests import media_type

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.requests import Request

    from penstock.http.forwarding import EngineTrust
    from penstock.ingest.outgoing_members import MemberRecords
    from penstock.log import Record

    Do = Callable[[Callable[[Any], Any]], Awaitable[Any]]

_SENT: Final = ("authorization", "cookie")
_TIMEOUT: Final = httpx.Timeout(20.0, connect=2.0)


class MemberRequests:
    """Handles the requests. `do`: calls a function with the coordinator, under the coordinator's lock. `trust`: see
    `EngineTrust`. `reading`: held while rows are read.
    """

    def __init__(self, do: Do, trust: EngineTrust, reading: asyncio.Semaphore) -> None:
        self._do, self._trust, self._reading = do, trust, reading

    async def handle(self, request: Request) -> Response:
        """GET lists members. POST adds members, and DELETE removes members. The status of the response to a change is
        202, because the query engine reads the records later. The records are then durable.
        """
        if request.method in ("GET", "HEAD"):
            return await self._listed(request)
        name, removes = request.path_params["name"], request.method == "DELETE"
        key = request.query_params.getlist("key")
        found: MemberRecords | None = await self._do(lambda c: c.member_records(name, key))
        if found is None:
            return no_set(name)
        check_key(name, found.key, key)
        body, content_type = await body_of(request), media_type(request)

        def read() -> list[Record]:
            rows = rows_of(body, content_type, found.key if removes else found.columns)
            return list(found.removed(rows) if removes else found.added(rows))

        async with self._reading:
            records = await run_in_threadpool(read)
        if records:
            await self._do(lambda c: c.write_members(records))
        return JSONResponse({"rows": len(records)}, 202)

    async def _listed(self, request: Request) -> Response:
        """Ask the query engine of the set, or the engines of its parts. UnavailableError if an engine is not live, does
        not respond, or does not evaluate the set yet.
        """
        name = request.path_params["name"]
        record, engines = await self._do(lambda c: (c.queries.get(name), c.engines_of(name)))
        if record is None or record.report is None:
            return no_set(name)
        headers = {each: request.headers[each] for each in _SENT if each in request.headers}
        found: list[tuple[int, str]] = []
        for bucket, base in engines.items():
            if base is None:
                raise UnavailableError(f"no query engine has the members of query set {name}")
            found.append((bucket, f"{base}/queries/{quote(name, safe='')}/members"))
        context = self._trust.context(*(url for _, url in found))
        async with httpx.AsyncClient(verify=context, timeout=_TIMEOUT, headers=headers, trust_env=False) as client:
            if len(found) == 1:
                return passed_on(await _get(client, name, found[0][1], dict(request.query_params)))
            return await _joined(client, name, found, request.query_params)


async def _joined(
    client: httpx.AsyncClient, name: str, buckets: Sequence[tuple[int, str]], given: Mapping[str, str]
) -> Response:
    """Return a page of the members of all buckets of a set. The members are in the order of the buckets. `after` and
    `next` begin with the number of a bucket. `buckets`: the number of each bucket and the URL of its members.
    """
    asked, (first, _, after) = page_request(given, str), given.get("after", "").partition(":")
    if asked.after is not None and first not in {str(bucket) for bucket, _ in buckets}:
        raise DataError(f"after is no `next` of a page: {asked.after[:40]!r}")
    begun, following, left = asked.after is None, None, asked.limit
    joined: dict[str, Any] = {"count": 0, "members": [], "next": None}
    for bucket, url in buckets:
        continued = not begun and first == str(bucket)
        begun |= continued
        parameters = {"bucket": str(bucket), "limit": str(left if begun and following is None else 0)}
        parameters |= {"after": after} if continued else {}
        parameters |= {"member": given["member"]} if "member" in given else {}
        response = await _get(client, name, url, parameters)
        if not response.is_success:
            return passed_on(response)
        page = response.json()
        joined["count"] += page["count"]
        if begun and following is None:
            joined["members"] += page["members"]
            left -= len(page["members"])
            following = None if page["next"] is None else f"{bucket}:{page['next']}"
    return JSONResponse(joined | {"next": following})


async def _get(client: httpx.AsyncClient, name: str, url: str, asked: Mapping[str, str]) -> httpx.Response:
    try:
        found = await client.get(url, params=asked)
    except (httpx.TransportError, OSError) as error:
        raise UnavailableError(f"the query engine of query set {name} cannot be reached: {error!r}") from error
    if found.status_code == httpx.codes.NOT_FOUND:
        raise UnavailableError(f"{url} does not evaluate query set {name} yet")
    return found
