"""EXPLAIN: the plan of a text or a standing query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.oneshot.engine_catalogue import EngineCatalogue, make_plan
from penstock.engine.windows.trigger import grid_of
from penstock.errors import QueryError
from penstock.query.ir import ContinuousQuery, CountRange, TimeRange
from penstock.query.resolve import resolve
from penstock.query.templates import parametrise

if TYPE_CHECKING:
    from penstock.engine.oneshot.one_shot import OneShot
    from penstock.engine.runtime import Runtime
    from penstock.query.ir import Statement, WindowClause


def explain(runtime: Runtime, one_shot: OneShot, statement: Statement, base: str | None) -> str:
    """Return the plan of a text, with actual rows and times of the last run if there was one."""
    if not isinstance(statement, ContinuousQuery):
        raise QueryError("an update has no plan", 1, 1, "INSERT DATA", statement.text)
    if not statement.continuous:
        return one_shot.explain(statement, base)
    resolved = resolve(statement, EngineCatalogue(runtime.core, runtime.streams))
    template, constants = parametrise(resolved)
    group = runtime.registry.group_of(template)
    if group is not None and group.plan is not None:
        members = sum(len(cohort) for cohort in group.cohorts)
        tree = group.plan.physical.render(group.profile or None)
    else:
        members = 0
        catalogue = EngineCatalogue(runtime.core, runtime.streams)
        tree = make_plan(template, catalogue, grouped=True, sample=constants).physical.render()
    lines = [
        f"{resolved.form.value} {resolved.r2s.value}, queries in its group: {members}, parameters: {len(constants)}"
    ]
    lines += [f"  window {i}: {_window(clause)}" for i, clause in enumerate(resolved.windows)]
    if (grid := grid_of(resolved)) is not None:
        every = " and ".join(f"{step} ms" for step in grid.steps)
        lines.append(f"  evaluated every {every} from {grid.t0}")
    return "\n".join([*lines, tree])


def _window(clause: WindowClause) -> str:
    stream = f"<{clause.stream}>" if clause.stream == clause.name else f"<{clause.name}> on <{clause.stream}>"
    match clause.range:
        case CountRange(size, step):
            return f"{stream}, the last {size} tuples, every {step}"
        case TimeRange(None, step):
            return f"{stream}, all tuples, every {step} ms"
        case TimeRange(range_ms, step):
            return f"{stream}, the last {range_ms} ms, every {step} ms"
