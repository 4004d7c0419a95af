"""Measures the work of each bucket of a query engine. The coordinator uses this measure to balance engines (ADR 97)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from penstock.engine.standing.groups import Group
    from penstock.log.clock import Clock

PERIOD_MS = 10_000
"""Time in ms over which a load is measured."""


class LoadMeter:
    """The loads of the buckets that an engine holds. `timer`: a function that returns a time in ns. Work is the
    difference between two such times.

    Evaluations and the encoding of results are work, including the time that an evaluation waits for stores. The engine
    does one thing at a time. The sum of all loads is therefore at most 1,000,000 µs of work per second.
    """

    def __init__(self, clock: Clock, timer: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock, self._timer = clock, timer
        self.period_ms = PERIOD_MS
        self._began = 0
        self._evaluated: dict[Group, int] = {}  # ns
        self._spent: dict[int, int] = {}  # ns, in the current period
        self._start_ms = clock.now_ms()
        self._present: frozenset[int] = frozenset()  # buckets that were held when the current period began
        self._loads: dict[int, int] = {}

    def begin(self) -> None:
        """Begin to measure."""
        self._began = self._timer()

    def evaluated(self, group: Group) -> None:
        """Record the work since `begin` as work for a group."""
        self._evaluated[group] = self._evaluated.get(group, 0) + self._timer() - self._began

    def collected(self, bucket: int, groups: Iterable[Group]) -> None:
        """Record the work since `begin`, and the recorded work for `groups`, as work for a bucket. `groups`: the
        bucket's groups.
        """
        spent = self._timer() - self._began
        if self._evaluated:
            spent += sum(self._evaluated.pop(group, 0) for group in groups)
        self._spent[bucket] = self._spent.get(bucket, 0) + spent

    @property
    def share(self) -> float:
        """The sum of all loads as a share of the maximum, 0 to 1. Any thread can read this property."""
        return sum(self._loads.values()) / 1_000_000

    def loads(self, held: Iterable[int]) -> Mapping[int, int]:
        """Return the load of each bucket that the engine has held for a whole period, in µs of work per second. A load
        is the mean of the work in the last period and the bucket's previous load. `held`: the buckets that the engine
        holds now.
        """
        now_ms = self._clock.now_ms()
        elapsed_ms = now_ms - self._start_ms
        if elapsed_ms >= self.period_ms:
            present = frozenset(held)
            found = {bucket: self._spent.get(bucket, 0) // elapsed_ms for bucket in present & self._present}
            self._loads = {bucket: (self._loads.get(bucket, load) + load) // 2 for bucket, load in found.items()}
            self._start_ms, self._present = now_ms, present
            self._spent.clear()
            self._evaluated.clear()
        return self._loads
