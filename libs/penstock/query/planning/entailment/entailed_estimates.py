"""Estimates of the solutions of patterns over the entailed graph, and the order in which tables are joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.query.algebra.scope import pattern_variables
from penstock.query.algebra.tree import PathTriple, Triple, Variable

if TYPE_CHECKING:
    from penstock.query.algebra.scope import Names
    from penstock.query.datasets import Parts
    from penstock.query.planning.entailment.rewriting import Rewritten, Table
    from penstock.query.planning.plan_context import PlanContext


def matches(context: PlanContext, pattern: Triple | PathTriple, parts: Parts, bound: Names) -> float:
    """Return the expected number of solutions of a pattern for each row that binds the names `bound`."""
    found = 0.0
    for part in rewritten_pattern(context, pattern):
        first, _ = divided(part, bound)
        keys = bound.union(variable.name for table in first for variable in table.variables)
        rows = 1.0
        for table in first:
            rows *= max(1.0, len(table.rows) ** 0.5) if bound & table_names(table) else len(table.rows)
        found += rows * context.estimator.fanout(part.pattern, parts, keys)
    if not found:
        return context.estimator.fanout(pattern, parts, bound)
    return min(1.0, found) if pattern_variables(pattern) <= bound else found


def rewritten_pattern(context: PlanContext, pattern: Triple | PathTriple) -> tuple[Rewritten, ...]:
    """Return the rewriting of a pattern. The result is () for a path, and for a query without entailment."""
    if context.rewriter is None or isinstance(pattern, PathTriple):
        return ()
    return context.rewriter.rewritten(pattern)


def divided(part: Rewritten, bound: Names) -> tuple[list[Table], list[Table]]:
    """Divide the tables of a rewritten pattern. The first list is joined before the pattern is matched, the second list
    afterwards. A table is in the first list if rows bind one of the table's variables. A table is also in the first
    list if only this table gives the pattern a term to look up.
    """
    first: list[Table] = []
    later: list[Table] = []
    ends = [end for end in (part.pattern.subject, part.pattern.object) if isinstance(end, Variable)]
    open_ = len(ends) == 2
    for table in part.tables:
        names = table_names(table)
        if names & bound or (open_ and not any(end.name in bound for end in ends)):
            first.append(table)
            bound |= names
        else:
            later.append(table)
    return first, later


def table_names(table: Table) -> Names:
    """Return the names of a table's columns."""
    return frozenset(variable.name for variable in table.variables)
