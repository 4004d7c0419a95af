"""Measures the engine's executions inside the core, in wall time and in the thread's processor time."""

from __future__ import annotations

import statistics
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.core import _native as native
from penstock.engine.oneshot import one_shot as oneshot
from penstock.engine.standing import execution

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.engine.engine_core import EngineCore

_CLOCK_LOOKS = 1_001


@dataclass(slots=True)
class Executions:
    """Times of one plan's executions in µs, in order. `warm`: the wall time when the execution is repeated at once."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)

    def busy(self, clock_cost: float) -> list[float]:
        """Return the processor time of each execution in µs, without the cost of reading the clock. It is at most the
        wall time: any excess is a clock read with cold caches, for the wall time is measured inside.
        """
        return [min(wall, max(0.0, cpu - clock_cost)) for wall, cpu in zip(self.wall, self.cpu, strict=True)]


class _Listening:
    """The native module, with an `execute` that records the times of each plan."""

    def __init__(self, seen: dict[int, Executions], again: int) -> None:
        self._seen = seen
        self._again = again

    def __getattr__(self, name: str) -> Any:
        return getattr(native, name)

    def execute(self, plan: native.Plan, *arguments: Any, **options: Any) -> native.Result:
        """Execute as the engine asked, but without a profile: its clocks between operators would be measured too."""
        options["profile"] = None
        result = native.execute(plan, *arguments, **options, cpu_time=True)
        spent = self._seen[id(plan)]
        spent.wall.append(result.nanos / 1000)
        spent.cpu.append(result.cpu_nanos / 1000)
        if self._again:
            repeated = [native.execute(plan, *arguments, **options).nanos / 1000 for _ in range(self._again)]
            spent.warm.append(statistics.median(repeated))
        return result


@contextmanager
def core_times(again: int = 0) -> Iterator[dict[int, Executions]]:
    """Yield the times of all executions while the context lasts, by plan (in order of first use). Each execution is
    repeated `again` times, to measure it with warm caches.
    """
    seen: dict[int, Executions] = defaultdict(Executions)
    listening = _Listening(seen, again)
    modules: tuple[Any, ...] = (execution, oneshot)
    try:
        for module in modules:
            module.native = listening
        yield seen
    finally:
        for module in modules:
            module.native = native


def clock_cost_us(core: EngineCore) -> float:
    """Return how many µs the reading of the thread's clock adds to `cpu`: that of an empty execution, less its wall
    time.
    """
    plan = native.Plan({"slots": 1, "seed": [], "root": {"op": "seed", "id": 1}, "subplans": []})
    view = core.store.view()
    runs = (
        native.execute(plan, core.store.labels, core.dictionary, [view], cpu_time=True) for _ in range(_CLOCK_LOOKS)
    )
    return statistics.median((run.cpu_nanos - run.nanos) / 1000 for run in runs)
