"""Listens to the engine's executions: how long each took inside the core."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from penstock.engine import evaluate, oneshot
from penstock.store import _native as native

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Listening:
    """The native module with an `execute` that notes times by plan."""

    def __init__(self, times: dict[int, list[float]]) -> None:
        self._times = times

    def __getattr__(self, name: str) -> Any:
        return getattr(native, name)

    def execute(self, plan: native.Plan, *arguments: Any, **options: Any) -> native.Result:
        """Execute, and note the time in µs."""
        result = native.execute(plan, *arguments, **options)
        self._times[id(plan)].append(result.nanos / 1000)
        return result


@contextmanager
def core_times() -> Iterator[dict[int, list[float]]]:
    """Times in µs inside the core of every execution while the context lasts, by plan (in order of first use)."""
    times: dict[int, list[float]] = defaultdict(list)
    listening = _Listening(times)
    modules: tuple[Any, ...] = (evaluate, oneshot)
    try:
        for module in modules:
            module.native = listening
        yield times
    finally:
        for module in modules:
            module.native = native
