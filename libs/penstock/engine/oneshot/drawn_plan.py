"""A plan by current counts, drawn beside what the last run of its text did."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.query.planner import PhysicalPlan


def drawn(fresh: PhysicalPlan, ran: PhysicalPlan, rows: Mapping[int, int], nanos: Mapping[int, int]) -> str:
    """Draw the plan that current counts ask for, with the rows and times (ns) of the last run by node id.

    Where the last run had another plan, both are drawn: the last run's with its figures and the estimates by which it
    was chosen, and the one for current counts.
    """
    if (ran.spec, ran.factors) == (fresh.spec, fresh.factors):
        return fresh.render(rows, nanos)
    return "\n".join(
        [
            "plan of the last run, with the estimates by which it was chosen",
            ran.render(rows, nanos),
            "plan by current counts, which the engine adopts once they differ enough",
            fresh.render(),
        ]
    )
