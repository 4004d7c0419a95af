"""Plans of patterns: OPTIONAL, UNION, MINUS, VALUES, GRAPH and sub-selects.

`compile_pattern` joins a relation with any pattern. Patterns are recursive. The modules that this module imports
therefore call `compile_pattern` as `PlanContext.compile`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.query.algebra.graph_use import binds_graph
from penstock.query.algebra.scope import certain, visible
from penstock.query.algebra.tree import (
    Bgp,
    Call,
    Expr,
    Extend,
    Filter,
    Graph,
    Iri,
    Join,
    LeftJoin,
    Minus,
    Node,
    Union,
    Values,
    Variable,
    WindowGraph,
)
from penstock.query.datasets import Part
from penstock.query.planning.conditions import expression, extend
from penstock.query.planning.cost.estimates import FILTER_KEEPS, estimate
from penstock.query.planning.flatten import graph_scope
from penstock.query.planning.group_patterns import compile_group
from penstock.query.planning.joins import (
    concatenate,
    graphs,
    hash_join,
    independent,
    join,
    may_correlate,
    start,
    tested,
)
from penstock.query.planning.modifiers import compile_modifier
from penstock.query.planning.relations import Relation, Scope, Spec

if TYPE_CHECKING:
    from penstock.query.planning.plan_context import PlanContext


_PROBES = 2.0  # MINUS probes its hash table; a look-up in the graph costs twice as much as such a probe


def compile_pattern(context: PlanContext, node: Node, left: Relation, scope: Scope) -> Relation:
    """Join `left` with a pattern that can be correlated with `left`."""
    context.budget.spend(node.at)
    match node:
        case Bgp() | Join():
            return compile_group(context, node, left, scope)
        case Filter():
            return compile_group(context, node, left, scope)
        case Graph() | WindowGraph():
            return _graph(context, node, left)
        case LeftJoin():
            return _optional(context, node, left, scope)
        case Union():
            return _union(context, node, left, scope)
        case Minus():
            return _minus(context, node, left, scope)
        case Extend():
            inner = join(context, node.inner, left, scope)
            return extend(context, inner, node.variable.name, node.expr, scope)
        case Values():
            return _values(context, node, left)
        case _:
            return _sub_select(context, node, left, scope)


def _sub_select(context: PlanContext, node: Node, left: Relation, scope: Scope) -> Relation:
    """Plan a sub-select. The sub-select retains only its own columns and the hidden columns. An enclosing EXISTS
    substitutes nothing inside the sub-select. If `left` is a pure seed (`Relation`) with hidden columns only, the
    sub-select starts from `left`. Otherwise, the sub-select is planned independently of `left`, and joined with `left`
    by hash.
    """
    hidden = frozenset((*context.hidden, *([scope.variable] if scope.variable is not None else [])))
    if not left.pure_seed or not left.names <= hidden:
        return hash_join(context, left, independent(context, node, scope))
    before, context.substitution = context.substitution, None
    try:
        return compile_modifier(context, node, left, scope)
    finally:
        context.substitution = before


def _optional(context: PlanContext, node: LeftJoin, outer: Relation, scope: Scope) -> Relation:
    left = join(context, node.left, outer, scope)
    if may_correlate(context, node.right, left, scope):
        row = context.fresh("row")
        inner = compile_pattern(context, node.right, context.outer(left), scope)
        condition = _condition(context, node.condition, inner, scope)
        rows = max(left.rows, inner.rows)
        spec = context.node("optional", "", rows, **{"in": left.node}, inner=inner.node, row=row, expr=condition)
        return Relation(spec, left.certain, inner.names - left.certain, rows)
    right = independent(context, node.right, scope)
    both = Relation({}, left.certain | right.certain, left.maybe | right.maybe, left.rows)
    condition = _condition(context, node.condition, both, scope)
    spec = context.node("leftjoin", "", left.rows, left=left.node, right=right.node, expr=condition)
    return Relation(spec, left.certain, (left.maybe | right.names) - left.certain, left.rows)


def _condition(context: PlanContext, condition: Expr | None, rows: Relation, scope: Scope) -> Spec | None:
    return None if condition is None else expression(context, condition, rows, scope)


def _union(context: PlanContext, node: Union, left: Relation, scope: Scope) -> Relation:
    def branches(make: Relation | None) -> list[Relation]:
        return [
            compile_pattern(context, branch, make, scope) if make is not None else independent(context, branch, scope)
            for branch in node.branches
        ]

    if left.pure_seed:
        parts = branches(None)
        return concatenate(context, parts)
    row = context.fresh("row")
    parts = branches(context.outer(left))
    inner = concatenate(context, parts)
    spec = context.node("lateral", "", inner.rows, **{"in": left.node}, inner=inner.node, row=row)
    return Relation(spec, inner.certain, inner.maybe, inner.rows)


def _minus(context: PlanContext, node: Minus, outer: Relation, scope: Scope) -> Relation:
    left = join(context, node.left, outer, scope)
    # without shared variables, MINUS removes nothing
    if not visible(node.left) & visible(node.right) - context.substituted:
        return left
    if _may_be_tested(context, node, left, scope):
        return _without_matches(context, node.right, left, scope)
    right = _subtracted(context, node.right, scope)
    ignored = [*context.hidden, *([scope.variable] if scope.variable is not None else []), *sorted(context.substituted)]
    ignore = [context.slot(name) for name in dict.fromkeys(ignored) if name in left.names and name in right.names]
    if context.substitution is not None:
        ignore.append(context.substitution.row)
    spec = context.node("minus", "", left.rows, left=left.node, right=right.node, ignore=ignore)
    return Relation(spec, left.certain, left.maybe, left.rows)


def _may_be_tested(context: PlanContext, node: Minus, left: Relation, scope: Scope) -> bool:
    """Return whether the plan can compute a MINUS by a test. The test searches, for each row of `left`, a compatible
    row of the right side.

    The test must give the same result as MINUS. Each pair of rows must therefore share a bound variable. The rows of
    the right side must not depend on variables of the outer pattern: MINUS hides these variables from its right side,
    but the test does not. An EXISTS substitutes outer variables. Inside an EXISTS, the plan therefore does not use the
    test. In a query without windows, the test must also be cheaper than MINUS.
    """
    if context.substitution is not None or not may_correlate(context, node.right, left, scope):
        return False
    if scope.variable is not None and scope.variable not in left.certain:
        return False
    if not certain(node.left) & left.certain & certain(node.right):
        return False
    # Only tests can be updated from changes (docs/adr/0078).
    if context.query.windows:
        return True
    rows, once = estimate(context, node.right, frozenset(), scope)
    return (rows + once) * _PROBES > left.rows


def _without_matches(context: PlanContext, node: Node, left: Relation, scope: Scope) -> Relation:
    """Return the rows of `left` for which no row of the pattern is compatible."""
    row = context.fresh("row")
    inner = compile_pattern(context, node, context.outer(left), scope)
    rows = left.rows * FILTER_KEEPS
    spec = context.node("semijoin", "minus", rows, **{"in": left.node}, inner=inner.node, row=row, anti=True)
    return Relation(spec, left.certain, left.maybe, rows)


def _subtracted(context: PlanContext, node: Node, scope: Scope) -> Relation:
    """Plan the right side of MINUS. MINUS compares the values in the columns. An enclosing EXISTS can substitute a
    variable that this side leaves unbound. The plan then assigns the substituted value to the variable.
    """
    if (visible(node) - certain(node)) & context.substituted:
        return join(context, node, start(context, node, scope, by_row=True), scope)
    return independent(context, node, scope)


def _values(context: PlanContext, node: Values, left: Relation) -> Relation:
    table = []
    for row in node.rows:
        context.budget.spend(work=len(row))
        table.append([0 if cell is None else context.catalogue.term_id(cell) for cell in row])
    rows = float(len(table))
    slots = [context.slot(variable.name) for variable in node.variables]
    spec = context.node("values", f"{len(table)} rows", rows, slots=slots, rows=table)
    bound = certain(node)
    return hash_join(context, left, Relation(spec, bound, visible(node) - bound, rows))


def _graph(context: PlanContext, node: Graph | WindowGraph, left: Relation) -> Relation:
    inner_scope = graph_scope(node, context.dataset)
    if _may_not_exist(context, node) and isinstance(node.name, Iri):
        return join(context, node.inner, _existing_graph(context, left, node.name, inner_scope), inner_scope)
    if inner_scope.variable is None or binds_graph(node.inner):
        return join(context, node.inner, left, inner_scope)
    if inner_scope.variable in left.maybe:
        return hash_join(context, left, independent(context, node.inner, inner_scope))
    return join(context, node.inner, graphs(context, left, inner_scope), inner_scope)


def _may_not_exist(context: PlanContext, node: Graph | WindowGraph) -> bool:
    """Return whether the plan must test that the graph of GRAPH <g> exists. If the graph does not exist, there is no
    solution. The test is necessary if no dataset clause lists the graph, and the pattern can have solutions without a
    scan.
    """
    if isinstance(node, WindowGraph) or isinstance(node.name, Variable):
        return False
    return not binds_graph(node.inner) and not context.dataset.lists(node.name.value)


def _existing_graph(context: PlanContext, left: Relation, name: Iri, scope: Scope) -> Relation:
    """Return the rows of `left` if the stored graph `name` has a triple, otherwise no rows. GRAPH <g> {} has this
    meaning.
    """
    if not scope.parts:
        node = context.node("empty", "no such graph", 0.0, slots=[context.slot(n) for n in sorted(left.names)])
        return Relation(node, left.certain, left.maybe, 0.0)
    variable = Variable(f"#graph{context.slots}")
    named = graphs(context, left, Scope((Part(0, "named"),), variable.name))
    return tested(context, Call("sameterm", (variable, name)), named)
