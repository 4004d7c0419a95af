"""EXPLAIN: the plan of a query as text."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from penstock.engine.oneshot.drawn_plan import drawn
from penstock.engine.oneshot.engine_catalogue import EngineCatalogue, make_plan
from penstock.engine.sets.set_member import SetMember
from penstock.engine.windows.trigger import grid_of
from penstock.errors import QueryError
from penstock.query.ir import CountRange, TimeRange, Update
from penstock.query.resolve import as_query, resolve
from penstock.query.set_templates import set_template
from penstock.query.templates import parametrise

if TYPE_CHECKING:
    from penstock.engine.oneshot.one_shot import OneShot
    from penstock.engine.runtime import Runtime
    from penstock.engine.standing.groups import Cohort, Group, Member
    from penstock.engine.standing.last_run import LastRun
    from penstock.query.ir import Statement, WindowClause
    from penstock.query.templates import Constant


def explain(
    runtime: Runtime, one_shot: OneShot, statement: Statement, base: str | None, name: str | None = None
) -> str:
    """Return the plan of a query with estimates from current statistics. If the query was executed before, the text
    also has the figures of the last execution. The figures of a continuous query come from the standing query with the
    name `name`. If no name is given, the figures come from the last execution of the query's group.

    The next execution of a standing query will be timed. QueryError for an update.
    """
    if isinstance(statement, Update) and statement.operations:
        raise QueryError("an update has no plan", 1, 1, text=statement.text)
    statement = as_query(statement)
    if not statement.continuous:
        return one_shot.explain(statement, base)
    member = runtime.registry.members.get(name or "")
    if member is not None:  # the options of the registration
        statement = replace(statement, changes=member.changes, report_nonempty=member.group.query.report_nonempty)
    resolved = resolve(statement, EngineCatalogue(runtime.core, runtime.streams))
    if resolved.parameters:
        template = set_template(resolved, name or resolved.name or "").template
        constants: tuple[Constant, ...] = ()
        group = member.group if isinstance(member, SetMember) and member.ir == statement else None
    else:
        template, constants = parametrise(resolved)
        group = runtime.registry.group_of(template)
    members, last, streamed = 0, None, None
    if group is not None and group.plan is not None and any(True for _ in group.cohorts):
        members = sum(len(cohort) for cohort in group.cohorts)
        cohort = _cohort(group, member)
        last = cohort.last_run
        fresh = group.plan_now(cohort, runtime.core, runtime.streams).physical
        if last is None:
            tree = fresh.render()
        else:
            how = last.maintenance()
            outcomes = {node: words for node, words in how.items() if node is not None}
            tree = drawn(fresh, last.planned.physical, last.rows(), last.nanos(), outcomes)
            streamed = how.get(None)
            last.timed = True
    else:
        catalogue = EngineCatalogue(runtime.core, runtime.streams)
        tree = make_plan(template, catalogue, grouped=True, sample=constants).physical.render()
    count = len(template.parameters)
    lines = [f"{resolved.form.value} {resolved.r2s.value}, queries in its group: {members}, parameters: {count}"]
    lines += [f"  window {i}: {_window(clause)}" for i, clause in enumerate(resolved.windows)]
    if (grid := grid_of(resolved)) is not None:
        every = " and ".join(f"{step} ms" for step in grid.steps)
        lines.append(f"  evaluated every {every} from {grid.t0}")
    if last is not None:
        lines.append(f"  {_run(last)}")
    if streamed is not None:
        lines.append(f"  {'changes' if resolved.changes else resolved.r2s.value} {streamed}")
    return "\n".join([*lines, tree])


def _cohort(group: Group, member: Member | None) -> Cohort:
    """Return the cohort of `member`. If `member` is not in the group, return the most recently executed cohort of the
    group.
    """
    if member is not None and member.group is group and member.cohort is not None:
        return member.cohort
    return max(group.cohorts, key=_last_time)


def _last_time(cohort: Cohort) -> float:
    last = cohort.last_run
    return -inf if last is None or last.time is None else last.time


def _run(last: LastRun) -> str:
    words = [f"last run at {last.time}"]
    if last.failed:
        words.append(f"failed for {last.failed} of the queries, whose rows do not count")
    if last.reused:
        words.append("no operator ran, because all look-ups gave the same results as before")
    if last.timed_at is not None and (last.timed_at != last.time or last.failed):
        words.append(f"times are of the run at {last.timed_at}")
    return "; ".join(words)


def _window(clause: WindowClause) -> str:
    stream = f"<{clause.stream}>" if clause.stream == clause.name else f"<{clause.name}> on <{clause.stream}>"
    if clause.removed:
        stream = f"removals of {stream}"
    match clause.range:
        case CountRange(size, step):
            return f"{stream}, the last {size} tuples, every {step}"
        case TimeRange(None, step):
            return f"{stream}, all tuples, every {step} ms"
        case TimeRange(range_ms, step):
            return f"{stream}, the last {range_ms} ms, every {step} ms"
