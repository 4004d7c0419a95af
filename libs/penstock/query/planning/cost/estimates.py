"""The expected number of rows of whole patterns. These numbers determine the join order of a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.query.algebra.scope import visible
from penstock.query.algebra.tree import (
    Bgp,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    PathTriple,
    Project,
    Slice,
    Triple,
    Union,
    Values,
    WindowGraph,
)
from penstock.query.planning.entailment.entailed_estimates import matches
from penstock.query.planning.flatten import Element, flatten, graph_scope

if TYPE_CHECKING:
    from penstock.query.algebra.scope import Names
    from penstock.query.planning.plan_context import PlanContext
    from penstock.query.planning.relations import Scope

FILTER_KEEPS = 0.4
"""The assumed share of rows for which a condition is true."""
_INDEPENDENT_ROWS = 1000.0


def fanout(context: PlanContext, element: Element, bound: Names) -> tuple[float, float]:
    """Return two numbers: the cost of a join with an element of a group. The first number is the expected number of
    result rows per input row. Input rows bind the names `bound`. The second number is a one-time cost, measured in
    rows.
    """
    pattern = element.pattern
    if isinstance(pattern, (Triple, PathTriple)):
        context.budget.spend(pattern.at, len(element.scope.parts) // 4)
        return matches(context, pattern, element.scope.parts, bound), 0.0
    return estimate(context, pattern, bound, element.scope)


def estimate(context: PlanContext, node: Node, bound: Names, scope: Scope) -> tuple[float, float]:
    """Return the cost of a join with a whole pattern; see `fanout`."""
    context.budget.spend()
    shared = bool(visible(node) & bound)
    match node:
        case Bgp() | Join() | Filter():
            flat = flatten(node, scope, context.dataset)
            rows, once = 1.0, 0.0
            for element in flat.elements:
                matches, cost = fanout(context, element, bound)
                rows, once, bound = rows * matches, once + cost, bound | element.binds
            return rows * FILTER_KEEPS ** min(len(flat.filters), 2), once
        case LeftJoin():
            left, once = estimate(context, node.left, bound, scope)
            right, more = estimate(context, node.right, bound | visible(node.left), scope)
            return left * max(1.0, right), once + more
        case Minus():
            left, once = estimate(context, node.left, bound, scope)
            right, more = estimate(context, node.right, frozenset(), scope)
            return left, once + more + right
        case Extend():
            return estimate(context, node.inner, bound, scope)
        case Union():
            sides = [estimate(context, branch, bound, scope) for branch in node.branches]
            return sum(rows for rows, _ in sides), sum(cost for _, cost in sides)
        case Graph() | WindowGraph():
            return estimate(context, node.inner, bound, graph_scope(node, context.dataset))
        case Values():
            return (0.5 if shared else float(len(node.rows))), float(len(node.rows))
        case Slice() if node.limit is not None:
            return (0.5 if shared else float(node.limit)), _INDEPENDENT_ROWS
        case Group() if node.implicit:
            return 1.0, _INDEPENDENT_ROWS
        case Project():
            inner, once = estimate(context, node.inner, frozenset(), scope)
            return (1.0 if shared else inner), once + inner
        case _:
            return (1.0 if shared else _INDEPENDENT_ROWS), _INDEPENDENT_ROWS
