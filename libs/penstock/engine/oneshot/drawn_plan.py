"""The text of a plan for the current statistics, with the rows and times of the last execution."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.query.planner import PhysicalPlan


def drawn(
    fresh: PhysicalPlan,
    ran: PhysicalPlan,
    rows: Mapping[int, int],
    nanos: Mapping[int, int],
    outcomes: Mapping[int, str] | None = None,
) -> str:
    """Return `fresh`, the plan for the current statistics, as text. `rows`, `nanos` and `outcomes` are the figures of
    the last execution by node id: the number of rows, the time in ns, and the way in which the operator was evaluated.

    `ran` is the plan of the last execution. If the plan `ran` differs from `fresh`, the text contains both plans. The
    plan `ran` comes first, with the figures, and with the estimates for which the planner chose this plan. The plan
    `fresh` follows.
    """
    if (ran.spec, ran.factors) == (fresh.spec, fresh.factors):
        return fresh.render(rows, nanos, outcomes)
    return "\n".join(
        [
            "plan of the last run, with the estimates by which it was chosen",
            ran.render(rows, nanos, outcomes),
            "plan by current counts, which the engine adopts once they differ enough",
            fresh.render(),
        ]
    )
