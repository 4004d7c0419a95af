"""The instants at which a query is evaluated, and the windows' own report instants (docs/semantics.md §3).

Times are integer milliseconds. Nothing here depends on arrival: the same clauses give the same grid for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import lcm

_EXACT_STEPS = 10  # inclusion-exclusion over more steps than this costs more than it tells


@dataclass(frozen=True, slots=True)
class Grid:
    """All instants t0 + k·step of several steps; k ≥ 0 only where `bounded` (STARTING AT).

    All steps share t0, so grids of unequal steps never drift apart (trap 9).
    """

    t0: int
    steps: tuple[int, ...]
    bounded: bool = False

    def __post_init__(self) -> None:
        assert self.steps, "a grid without steps"
        assert all(step > 0 for step in self.steps), self.steps

    def next_after(self, time: int) -> int:
        """Return the first instant later than `time`."""
        if self.bounded and time < self.t0:
            return self.t0
        return min([self.latest(step, time) + step for step in self.steps])

    def latest(self, step: int, time: int) -> int:
        """Return the latest report instant, not later than `time`, of a window with that step."""
        return time - (time - self.t0) % step

    def count(self, after: int, until: int) -> int:
        """Return how many instants lie in (after, until] (an upper bound where there are very many different steps)."""
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
    """Return the steps that are not multiples of another: the rest add no instants."""
    distinct = sorted(set(steps))
    return tuple(step for i, step in enumerate(distinct) if not any(step % smaller == 0 for smaller in distinct[:i]))


def batch_of(time: int, batch_ms: int) -> int:
    """Return the number k of the batch (kΔ, (k+1)Δ] that holds `time`."""
    return (time - 1) // batch_ms


def batch_start(time: int, batch_ms: int) -> int:
    """Return the exclusive start kΔ of the batch that holds `time`."""
    return batch_of(time, batch_ms) * batch_ms


def batch_end(time: int, batch_ms: int) -> int:
    """Return the inclusive end (k+1)Δ of the batch that holds `time`."""
    return (batch_of(time, batch_ms) + 1) * batch_ms


def closed_until(watermark: int, batch_ms: int) -> int:
    """Return the end of the last batch that a watermark closes: the largest multiple of Δ not beyond it."""
    return watermark // batch_ms * batch_ms
