"""Requests of the coordinator to query engines for the evaluation of updates."""

from __future__ import annotations

import asyncio
import ssl
import time
from itertools import count
from typing import TYPE_CHECKING, Final

import httpx
from starlette.responses import Response

from penstock.errors import UnavailableError
from penstock.http.forwarding import exactly
from penstock.updates.effect_routes import PATH
from penstock.updates.effects import Effect

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from penstock.http.protocol_requests import ProtocolOperation

_SENT: Final = ("authorization", "cookie")
_RESPONSE_S: Final = 130.0  # the time limit of two patterns
_CONNECT_S: Final = 2.0
_TRY_S: Final = 20.0
_ABSENT_S: Final = 3.0  # six intervals of heartbeats, so that a coordinator that starts hears the live engines
_PAUSE_S: Final = 0.1


class EffectRequests:
    """Asks one of the live query engines to evaluate an update. `engines`: returns the base URLs of the live engines.

    For HTTPS, `ca` is the CA of the engines' certificates. If only `certificate` is set, each engine must present the
    certificate of this instance, or a certificate whose issuer is in the file `certificate`. If neither is set, a CA of
    the system must have signed the engines' certificates.
    """

    def __init__(
        self,
        engines: Callable[[], Awaitable[Sequence[str]]],
        certificate: Path | None = None,
        ca: Path | None = None,
    ) -> None:
        self._engines, self._certificate, self._ca = engines, certificate, ca
        self._turns = count()
        self._system: ssl.SSLContext | None = None

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
        secure = any(url.startswith("https:") for url in await self._engines())
        async with httpx.AsyncClient(verify=self._trust(secure=secure), timeout=timeout, trust_env=False) as client:
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
                            return _passed_on(found)
                        reason = f"{url}: {found.text[:200]}"
                    live = time.monotonic()
                elif time.monotonic() >= live + _ABSENT_S:
                    raise UnavailableError("no query engine is live, and only a query engine can evaluate this update")
                if time.monotonic() >= began + _TRY_S:
                    raise UnavailableError(f"no query engine has evaluated the update: {reason}")
                await asyncio.sleep(_PAUSE_S)

    def _trust(self, *, secure: bool) -> ssl.SSLContext:
        if not secure or (self._ca is None and self._certificate is not None):
            return exactly(self._certificate)
        if self._ca is not None:
            return ssl.create_default_context(cafile=self._ca)
        if self._system is None:
            self._system = ssl.create_default_context()  # reads a file with all CAs, which takes long
        return self._system


def _passed_on(found: httpx.Response) -> Response:
    names = ("content-type", "retry-after", "www-authenticate")
    headers = {name: found.headers[name] for name in names if name in found.headers}
    return Response(found.content, found.status_code, headers)
