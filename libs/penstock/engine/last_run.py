"""What a plan's last run did, and the plan drawn with that: the figures of EXPLAIN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.engine.planning import Planned
    from penstock.query.planner import PhysicalPlan
    from penstock.store import _native as native

    Figures: TypeAlias = list[tuple[int, int, int]]
    # Profiles of one execution, a profile for each factor, and the rows that the factors stand for (None: no factors).
    # A tuple, and LastRun is made of it when it is shown: each evaluation of a small query would pay for more.
    Executed: TypeAlias = tuple[tuple[native.Profile, ...], int | None]


@dataclass(slots=True)
class LastRun:
    """One run of a plan. A run is several executions where a member exceeded a limit (ADR 6); `failed` members have no
    rows in them. `time` is the instant of a standing query's run.
    """

    planned: Planned
    executed: Sequence[Executed]
    time: int | None = None
    failed: int = 0

    @property
    def recalled(self) -> bool:
        """Whether all look-ups found what they had found before, so that no operator ran (ADR 48)."""
        profiles = [profile for executed, _ in self.executed for profile in executed]
        return bool(profiles) and not any(nanos for profile in profiles for _, _, nanos in profile.operators())

    def figures(self) -> Figures:
        """Return (node id, rows, nanoseconds) of each operator, summed over the executions."""
        total: dict[int, tuple[int, int]] = {}
        for executed in self.executed:
            for number, (rows, nanos) in self._of(executed).items():
                before = total.get(number, (0, 0))
                total[number] = before[0] + rows, before[1] + nanos
        return [(number, rows, nanos) for number, (rows, nanos) in total.items()]

    def _of(self, executed: Executed) -> dict[int, tuple[int, int]]:
        profiles, product = executed
        found = {n: (rows, nanos) for profile in profiles for n, rows, nanos in profile.operators()}
        if product is not None:
            found[self.planned.physical.spec["root"]["id"]] = product, 0
        return found


def drawn(fresh: PhysicalPlan, last: LastRun | None) -> str:
    """Draw a plan made from current counts, with the figures of the last run. Where that had another plan, each is
    drawn: the last run's with its figures and the estimates that it was chosen by, and the one for current counts.
    """
    if last is None:
        return fresh.render()
    ran, figures = last.planned.physical, last.figures()
    if (ran.spec, ran.factors) == (fresh.spec, fresh.factors):
        return fresh.render(figures)
    return "\n".join(
        [
            "plan of the last run (estimates from when it was chosen)",
            ran.render(figures),
            "plan by current counts (the engine changes over when counts differ enough)",
            fresh.render(),
        ]
    )
