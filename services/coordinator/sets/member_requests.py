"""Requests over HTTP for the members of query sets. The coordinator writes records that add and remove members. The
query engine that evaluates the set lists the members, because the coordinator does not have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import httpx
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response

from penstock.errors import UnavailableError
from penstock.http.error_responses import body_of, no_set
from penstock.http.forwarding import passed_on, target_of
from penstock.http.member_rows import check_key, rows_of
from penstock.http.protocol_requests import media_type

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

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
        """Ask the query engine of the set. UnavailableError if there is no engine, or if it does not respond or does
        not evaluate the set yet.
        """
        name = request.path_params["name"]
        record, base = await self._do(lambda c: (c.queries.get(name), c.engine_of(name)))
        if record is None or record.report is None:
            return no_set(name)
        if base is None:
            raise UnavailableError(f"no query engine has the members of query set {name}")
        headers = {each: request.headers[each] for each in _SENT if each in request.headers}
        url, context = httpx.URL(base).copy_with(raw_path=target_of(request)), self._trust.context(base)
        try:
            async with httpx.AsyncClient(verify=context, timeout=_TIMEOUT, trust_env=False) as client:
                found = await client.get(url, headers=headers)
        except (httpx.TransportError, OSError) as error:
            raise UnavailableError(f"the query engine of query set {name} cannot be reached: {error!r}") from error
        if found.status_code == httpx.codes.NOT_FOUND:
            raise UnavailableError(f"{base} does not evaluate query set {name} yet")
        return passed_on(found)
