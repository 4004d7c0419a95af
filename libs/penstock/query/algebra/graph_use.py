"""How a pattern inside of GRAPH ?g depends on the graph. SPARQL 1.1 §18.6 evaluates the pattern in each graph
separately.
"""

from __future__ import annotations

from enum import Enum, auto

from penstock.query.algebra.tree import (
    Bgp,
    Call,
    Distinct,
    Exists,
    Expr,
    Extend,
    Filter,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    OrderBy,
    Project,
    Reduced,
    Slice,
    Union,
)
from penstock.query.budget import spend


class GraphUse(Enum):
    """How the solutions of a pattern depend on the active graph."""

    NONE = auto()
    """The pattern reads no graph: its solutions are the same in each graph."""
    BINDS = auto()
    """Every solution comes from a scan, and the scan binds the graph variable."""
    DEPENDS = auto()
    """A solution can depend on the graph, although no scan binds the graph variable. A plan must therefore bind the
    variable before it evaluates the pattern.
    """


def binds_graph(node: Node) -> bool:
    """Return whether every solution of the pattern comes from a scan that binds the variable of the enclosing GRAPH."""
    return graph_use(node) is GraphUse.BINDS


def graph_use(node: Node) -> GraphUse:
    """Return how a pattern depends on the graph of the enclosing GRAPH."""
    spend()
    match node:
        case Bgp():
            return GraphUse.BINDS if node.patterns else GraphUse.NONE
        case Join():
            return _of_join(graph_use(node.left), graph_use(node.right))
        case LeftJoin():
            alone = graph_use(node.left), graph_use(node.right), _of_condition(node.condition)
            return _of_first(*alone)
        case Minus():
            return _of_first(graph_use(node.left), graph_use(node.right))
        case Filter():
            return _of_first(graph_use(node.inner), _of_condition(node.condition))
        case Extend():
            return _of_first(graph_use(node.inner), _of_condition(node.expr))
        case Union():
            uses = {graph_use(branch) for branch in node.branches}
            return uses.pop() if len(uses) == 1 else GraphUse.DEPENDS
        case Project() | Distinct() | Reduced() | OrderBy() | Slice():
            return _of_whole(graph_use(node.inner))
        case Group():
            return GraphUse.DEPENDS if node.implicit else _of_whole(graph_use(node.inner))
        case _:
            return GraphUse.NONE  # VALUES; another GRAPH or WINDOW, which reads another graph


def tests_patterns(expr: Expr | None) -> bool:
    """Return whether an expression contains an EXISTS. Such an expression depends on the active graph, because EXISTS
    evaluates its pattern in the active graph.
    """
    if isinstance(expr, Exists):
        return True
    return isinstance(expr, Call) and any(map(tests_patterns, expr.args))


def _of_condition(expr: Expr | None) -> GraphUse:
    return GraphUse.DEPENDS if tests_patterns(expr) else GraphUse.NONE


def _of_join(left: GraphUse, right: GraphUse) -> GraphUse:
    uses = {left, right}
    return next(use for use in (GraphUse.BINDS, GraphUse.DEPENDS, GraphUse.NONE) if use in uses)


def _of_first(first: GraphUse, *others: GraphUse) -> GraphUse:
    """Return the GraphUse of a pattern with several parts. `first`: the part whose solutions the other parts extend or
    filter.
    """
    if first is GraphUse.NONE and any(other is not GraphUse.NONE for other in others):
        return GraphUse.DEPENDS
    return first


def _of_whole(inner: GraphUse) -> GraphUse:
    """Return the GraphUse of a sub-select. A sub-select groups, sorts and limits its rows separately for each graph.
    Each row therefore needs a graph.
    """
    return inner if inner is GraphUse.BINDS else GraphUse.DEPENDS
