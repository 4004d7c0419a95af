"""Requests of the coordinator to query engines for the evaluation of updates."""

from __future__ import annotations

import asyncio
import time
from itertools import count
from typing import TYPE_CHECKING, Final

import httpx

from penstock.errors import UnavailableError
from penstock.http.forwarding import EngineTrust, passed_on
from penstock.updates.effect_routes import PATH
from penstock.updates.effects import Effect

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from starlette.responses import Response

    from penstock.http.protocol_requests import ProtocolOperation

_SENT: Final = ("authorization", "cookie")
_RESPONSE_S: Final = 130.0  # the time limit of two patterns
_CONNECT_S: Final = 2.0
_TRY_S: Final = 20.0
_ABSENT_S: Final = 3.0  # six intervals of heartbeats, so that a coordinator that starts hears the live engines
_PAUSE_S: Final = 0.1


class EffectRequests:
    """Asks one of the live query engines to evaluate an update. `engines`: returns the base URLs of the live engines.
    `trust`: see `EngineTrust`.
    """

    def __init__(self, engines: Callable[[], Awaitable[Sequence[str]]], trust: EngineTrust | None = None) -> None:
        self._engines, self._trust = engines, trust or EngineTrust()
        self._turns = count()

    async def evaluate(
        self, operation: ProtocolOperation, insertions: int, headers: Mapping[str, str]
    ) -> Effect | Response:
        """Return the effect of an update on a snapshot that contains insertion number `insertions`. If an engine
        refuses the update, return the engine's response. `headers`: the headers of the client's request, with the
        client's token. The engine checks this token.

        UnavailableError if no engine evaluates or refuses the update within about 20 s, or if no engine is live for 3
        s.
        """
        parameters: dict[str, str | list[str]] = {
            "insertions": str(insertions),
            "using-graph-uri": list(operation.default_graphs),
            "using-named-graph-uri": list(operation.named_graphs),
        }
        if operation.base is not None:
            parameters["base"] = operation.base
        sent = {"content-type": "application/sparql-update"}
        sent |= {name: headers[name] for name in _SENT if name in headers}
        timeout = httpx.Timeout(_RESPONSE_S, connect=_CONNECT_S)
        began = live = time.monotonic()  # `live`: when an engine was last live
        reason = "there is no query engine"
        context = self._trust.context(*await self._engines())
        async with httpx.AsyncClient(verify=context, timeout=timeout, trust_env=False) as client:
            while True:
                engines = await self._engines()
                if engines:
                    url = engines[next(self._turns) % len(engines)] + PATH
                    try:
                        found = await client.post(url, params=parameters, content=operation.text, headers=sent)
                    except (httpx.TransportError, OSError) as error:
                        reason = f"{url}: {error!r}"
                    else:
                        if found.is_success:
                            return Effect.of_bytes(found.content)
                        if found.status_code < httpx.codes.INTERNAL_SERVER_ERROR:
                            return passed_on(found)
                        reason = f"{url}: {found.text[:200]}"
                    live = time.monotonic()
                elif time.monotonic() >= live + _ABSENT_S:
                    raise UnavailableError("no query engine is live, and only a query engine can evaluate this update")
                if time.monotonic() >= began + _TRY_S:
                    raise UnavailableError(f"no query engine has evaluated the update: {reason}")
                await asyncio.sleep(_PAUSE_S)
