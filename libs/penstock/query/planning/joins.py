"""Joins of a relation with a pattern. The pattern is either correlated, or computed independently and joined by hash.

A *correlated* pattern is evaluated from the rows on its left. Its look-ups then have bound keys. A pattern is
correlated whenever the result is the same as the result of the independent join. Otherwise the pattern is computed from
the seed, and joined by hash.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.query.algebra.graph_use import GraphUse, binds_graph, graph_use
from penstock.query.algebra.scope import all_variables, binding_variables, correlatable
from penstock.query.planning.cost.estimates import FILTER_KEEPS
from penstock.query.planning.expression_specs import expression_spec, render_expression
from penstock.query.planning.relations import Relation, Scope, Spec
from penstock.query.planning.substitution import is_sub_select, joinable

if TYPE_CHECKING:
    from penstock.query.algebra.tree import Call, Exists, Node
    from penstock.query.planning.plan_context import PlanContext


def join(context: PlanContext, node: Node, left: Relation, scope: Scope) -> Relation:
    """Join `left` with any pattern. The join is correlated if this gives the same result as a hash join. Otherwise, it
    is a hash join.
    """
    left = _in_its_graph(context, node, left, scope)
    if left.pure_seed or may_correlate(context, node, left, scope):
        return context.compile(context, node, left, scope)
    return hash_join(context, left, independent(context, node, scope))


def independent(context: PlanContext, node: Node, scope: Scope) -> Relation:
    """Plan a pattern independently of the rows on its left. The plan begins with the relation that `start` returns."""
    return context.compile(context, node, start(context, node, scope), scope)


def start(context: PlanContext, node: Node, scope: Scope, *, by_row: bool = False) -> Relation:
    """Return the relation from which an independent pattern starts. Outside of GRAPH ?g, this is the relation that
    `base` returns.

    Inside of GRAPH ?g, the pattern starts from the cross product of this relation with the graphs. No product is needed
    if the relation binds ?g, or if each solution of the pattern comes from a scan that binds ?g. `by_row`: see `base`.
    """
    seed = base(context, node, by_row=by_row)
    if scope.variable is None or scope.variable in seed.names or binds_graph(node):
        return seed
    return replace(graphs(context, seed, scope), pure_seed=seed.pure_seed)


def base(context: PlanContext, node: Node, *, by_row: bool = False) -> Relation:
    """Return the relation from which a pattern starts. This relation is the seed, or the values that an enclosing
    EXISTS substitutes, with the numbers of the outer rows. The pattern starts from these values if `by_row` is set. The
    pattern also starts from these values if a join with the outer rows would give another result than the substitution
    (see `joinable`).
    """
    given = context.substitution
    if given is None or (is_sub_select(node) and not by_row):
        return context.seed()
    if not by_row and all(joinable(node, name) for name in sorted(all_variables(node) & given.names)):
        return context.seed()
    hidden = frozenset(context.hidden)
    outer = context.outer(Relation({}, given.certain | hidden, given.maybe, 1.0))
    for test in given.tests:
        outer = tested(context, test, outer)
    names = sorted(given.names | hidden)
    slots = [given.row, *(context.slot(name) for name in names)]
    label = ", ".join(f"?{name}" for name in names if name not in hidden)
    project = context.node("project", f"substituted: {label}", 1.0, **{"in": outer.node}, slots=slots)
    spec = context.node("distinct", "", 1.0, **{"in": project})
    return Relation(spec, given.certain | hidden, given.maybe, 1.0)


def _in_its_graph(context: PlanContext, node: Node, left: Relation, scope: Scope) -> Relation:
    """Bind the variable of the enclosing GRAPH in `left`, if the pattern can have a solution for which no scan binds
    this variable.
    """
    if scope.variable is None or scope.variable in left.names or graph_use(node) is not GraphUse.DEPENDS:
        return left
    return replace(graphs(context, left, scope), pure_seed=left.pure_seed)


def may_correlate(context: PlanContext, node: Node, left: Relation, scope: Scope) -> bool:
    """Return whether a pattern can be correlated with `left`. The correlated join must give the same result as the
    independent join.
    """
    fixed = frozenset(context.hidden) | context.substituted
    outer = left.names - fixed
    touched = binding_variables(node) | (frozenset((scope.variable,)) if scope.variable is not None else frozenset())
    return not touched & left.maybe and correlatable(node, outer)


def hash_join(context: PlanContext, left: Relation, right: Relation) -> Relation:
    """Join two relations by hash on their shared names. Without shared names, the result is all pairs of rows."""
    # `left` is the unit table, which has one row (a test of constants has no names either, but can have no row)
    if left.pure_seed and not left.names:
        return right
    shared = sorted(left.names & right.names - frozenset(context.hidden))
    rows = max(left.rows, right.rows) if shared else left.rows * right.rows
    label = f"on {', '.join('?' + name for name in shared)}" if shared else "all pairs"
    node = context.node("join", label, rows, left=left.node, right=right.node)
    bound = left.certain | right.certain
    factors = () if shared else (*_factors(left), *_factors(right))
    return Relation(node, bound, (left.maybe | right.maybe) - bound, rows, factors=factors)


def _factors(side: Relation) -> tuple[Relation, ...]:
    return () if side.pure_seed else side.factors or (side,)


def concatenate(context: PlanContext, parts: list[Relation]) -> Relation:
    """Return the concatenation of relations."""
    rows = sum(part.rows for part in parts)
    spec = context.node("union", "", rows, inputs=[part.node for part in parts])
    bound = frozenset.intersection(*(part.certain for part in parts))
    names = frozenset[str]().union(*(part.names for part in parts))
    return Relation(spec, bound, names - bound, rows)


def graphs(context: PlanContext, left: Relation, scope: Scope) -> Relation:
    """Return the cross product of `left` with the graphs over which the variable of the enclosing GRAPH ranges."""
    assert scope.variable is not None
    dataset = [part.spec(named=True) for part in scope.parts]
    rows = left.rows * max(1, len(dataset))
    label = f"?{scope.variable}"
    node = context.node("graphs", label, rows, **{"in": left.node}, graph=context.slot(scope.variable), dataset=dataset)
    return Relation(node, left.certain | {scope.variable}, left.maybe, rows)


def tested(context: PlanContext, condition: Call, rows: Relation) -> Relation:
    """Return the rows for which a condition without EXISTS is true."""
    retained = rows.rows * FILTER_KEEPS
    expr = expression_spec(condition, context, _no_exists)
    spec = context.node("filter", render_expression(condition), retained, **{"in": rows.node}, expr=expr)
    return Relation(spec, rows.certain, rows.maybe, retained)


def _no_exists(call: Exists) -> Spec:
    raise TypeError(f"{call} needs a plan of its own")
