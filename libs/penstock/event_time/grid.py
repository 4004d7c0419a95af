"""The evaluation instants of a query, and the report instants of its windows (docs/semantics.md §3).

Times are integer milliseconds. The grid depends only on the query's clauses, not on the arrival of events.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import lcm

_EXACT_STEPS = 10  # with more steps, inclusion-exclusion is too expensive


@dataclass(frozen=True, slots=True)
class Grid:
    """The instants t0 + k·step for every step in `steps`. If `bounded` is set (STARTING AT), only k ≥ 0 is allowed.

    All times are in ms. All steps share t0. A step that is a multiple of another step therefore adds no instants.
    """

    t0: int
    steps: tuple[int, ...]
    bounded: bool = False

    def __post_init__(self) -> None:
        assert self.steps, "a grid needs at least one step"
        assert all(step > 0 for step in self.steps), self.steps

    def next_after(self, time: int) -> int:
        """Return the first instant after `time`."""
        if self.bounded and time < self.t0:
            return self.t0
        return min([self.latest(step, time) + step for step in self.steps])

    def latest(self, step: int, time: int) -> int:
        """Return the latest t0 + k·step at or before `time`. The result can have k < 0, even if the grid is
        `bounded`.
        """
        return time - (time - self.t0) % step

    def count(self, after: int, until: int) -> int:
        """Return the number of instants in (after, until]. If the grid has more than 10 steps that are not multiples of
        another step, the result is only an upper bound.
        """
        if self.bounded:
            after = max(after, self.t0 - 1)
        if until <= after:
            return 0
        if len(self.steps) == 1:
            return self._multiples(self.steps[0], after, until)
        steps = _independent(self.steps)
        if len(steps) > _EXACT_STEPS:
            return sum(self._multiples(step, after, until) for step in steps)
        return sum(
            (1 if size % 2 else -1) * self._multiples(lcm(*chosen), after, until)
            for size in range(1, len(steps) + 1)
            for chosen in combinations(steps, size)
        )

    def _multiples(self, step: int, after: int, until: int) -> int:
        return (until - self.t0) // step - (after - self.t0) // step


@lru_cache(maxsize=1024)
def _independent(steps: tuple[int, ...]) -> tuple[int, ...]:
    """Return the steps that are not multiples of another step. The other steps add no instants."""
    distinct = sorted(set(steps))
    return tuple(step for i, step in enumerate(distinct) if not any(step % smaller == 0 for smaller in distinct[:i]))


def batch_of(time: int, batch_ms: int) -> int:
    """Return the number k of the batch (kΔ, (k+1)Δ] that contains `time`."""
    return (time - 1) // batch_ms


def batch_start(time: int, batch_ms: int) -> int:
    """Return the exclusive start kΔ of the batch that contains `time`."""
    return batch_of(time, batch_ms) * batch_ms


def batch_end(time: int, batch_ms: int) -> int:
    """Return the inclusive end (k+1)Δ of the batch that contains `time`."""
    return (batch_of(time, batch_ms) + 1) * batch_ms


def closed_until(watermark: int, batch_ms: int) -> int:
    """Return the end of the last batch that a watermark closes. The end is the largest multiple of Δ at or before the
    watermark.
    """
    return watermark // batch_ms * batch_ms
