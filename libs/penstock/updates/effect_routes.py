"""The HTTP route by which the coordinator asks a query engine to evaluate updates."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.routing import Route

from penstock.errors import DataError, UnavailableError
from penstock.http.error_responses import errors_as_json
from penstock.http.protocol_requests import update_of
from penstock.query.protocol_dataset import dataset_of
from penstock.updates.effects import MEDIA_TYPE

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from penstock.updates.evaluation import UpdateEvaluator

PATH: Final = "/update-effects"
_WAIT_S: Final = 10.0
_LOOK_S: Final = 0.005


def routes(evaluator: UpdateEvaluator) -> list[BaseRoute]:
    """Return the route PATH (POST). The request parameter `insertions` is the number of an insertion. The engine
    evaluates the update on a snapshot that contains this insertion. The other parameters and the body are the same as
    for `/update`.
    """

    async def effects(request: Request) -> Response:
        operation = await update_of(request)
        await _reach(evaluator, _number(request.query_params.get("insertions", "0")))
        dataset = dataset_of(operation.default_graphs, operation.named_graphs)
        effect = await run_in_threadpool(evaluator.evaluate, operation.text, operation.base, dataset)
        return Response(await run_in_threadpool(effect.to_bytes), media_type=MEDIA_TYPE)

    return [Route(PATH, errors_as_json(effects), methods=["POST"])]


async def _reach(evaluator: UpdateEvaluator, number: int) -> None:
    """Wait until the engine has applied an insertion. UnavailableError after `_WAIT_S`."""
    deadline = time.monotonic() + _WAIT_S
    while (reached := evaluator.insertions()) < number:
        if time.monotonic() >= deadline:
            raise UnavailableError(f"the engine has applied insertion {reached}, not yet {number}")
        await asyncio.sleep(_LOOK_S)


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise DataError(f"insertions is no integer: {text!r}") from error
