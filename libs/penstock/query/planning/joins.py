"""Patterns: groups of joins, filters, OPTIONAL, UNION, MINUS, GRAPH, EXISTS.

Every function takes the relation on its left and gives the join with it. A side is *correlated* (starts from the left's
rows) wherever that equals the independent join, because then its look-ups are bound; otherwise it is
computed from the seed on its own and joined by hash.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.query.algebra.scope import all_variables, binding_variables, certain, correlatable, visible
from penstock.query.algebra.tree import (
    AggregateCall,
    Bgp,
    Call,
    Exists,
    Expr,
    Extend,
    Filter,
    Graph,
    Iri,
    Join,
    LeftJoin,
    Minus,
    Node,
    PathTriple,
    Triple,
    Union,
    Values,
    Variable,
    WindowGraph,
)
from penstock.query.datasets import Part
from penstock.query.planning import exists as exists_patterns
from penstock.query.planning import modifiers
from penstock.query.planning.cost.estimates import FILTER_KEEPS, fanout
from penstock.query.planning.cost.join_order import best_order
from penstock.query.planning.expression_specs import expression_spec, render_term
from penstock.query.planning.flatten import Element, components, conjuncts, flatten, graph_scope
from penstock.query.planning.graph_use import GraphUse, binds_graph, graph_use
from penstock.query.planning.pending import Later, Pending
from penstock.query.planning.plan_context import PlanContext, Relation, Scope, Spec
from penstock.query.planning.scans import scan
from penstock.query.planning.substitution import compatible, is_sub_select, joinable

if TYPE_CHECKING:
    from penstock.query.algebra.scope import Names

Conditions = list[tuple[Expr, Scope]]


def compile_pattern(context: PlanContext, node: Node, left: Relation, scope: Scope) -> Relation:
    """Join `left` with a pattern that may be correlated with it."""
    context.budget.spend(node.at)
    match node:
        case Bgp() | Join():
            return _group(context, node, left, scope)
        case Filter():
            return _group(context, node, left, scope)
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


def join(context: PlanContext, node: Node, left: Relation, scope: Scope) -> Relation:
    """Join `left` with any pattern: correlated where that is the same, else by hash."""
    left = _in_its_graph(context, node, left, scope)
    if left.pure_seed or _may_correlate(context, node, left, scope):
        return compile_pattern(context, node, left, scope)
    return _hash_join(context, left, independent(context, node, scope))


def _sub_select(context: PlanContext, node: Node, left: Relation, scope: Scope) -> Relation:
    """A sub-select is computed on its own: an EXISTS around it substitutes nothing inside."""
    if not left.pure_seed:
        return _hash_join(context, left, independent(context, node, scope))
    before, context.substitution = context.substitution, None
    try:
        return modifiers.compile_modifier(context, node, left, scope)
    finally:
        context.substitution = before


def _in_its_graph(context: PlanContext, node: Node, left: Relation, scope: Scope) -> Relation:
    """`left` with the graph variable bound, where the pattern may have a solution that no scan binds it for."""
    if scope.variable is None or scope.variable in left.names or graph_use(node) is not GraphUse.NEEDS:
        return left
    return replace(graphs(context, left, scope), pure_seed=left.pure_seed)


def independent(context: PlanContext, node: Node, scope: Scope) -> Relation:
    """The pattern on its own, from the seed (or from the rows of an EXISTS, where it must see what they bind)."""
    return compile_pattern(context, node, start(context, node, scope), scope)


def start(context: PlanContext, node: Node, scope: Scope, *, by_row: bool = False) -> Relation:
    """What an independent pattern starts from: the seed, times the graphs where nothing inside binds their variable."""
    seed = _base(context, node, by_row=by_row)
    if scope.variable is None or scope.variable in seed.names or binds_graph(node):
        return seed
    return replace(graphs(context, seed, scope), pure_seed=seed.pure_seed)


def _base(context: PlanContext, node: Node, *, by_row: bool = False) -> Relation:
    """The seed; inside EXISTS, where the pattern's own solutions would not do, what is substituted into it, by row."""
    given = context.substitution
    if given is None or (is_sub_select(node) and not by_row):
        return context.seed()
    if not by_row and all(joinable(node, name) for name in sorted(all_variables(node) & given.names)):
        return context.seed()
    hidden = frozenset(context.hidden)
    outer = context.outer(Relation({}, given.certain | hidden, given.maybe, 1.0))
    for test in given.tests:
        outer = filtered(context, test, outer, Scope(()))
    names = sorted(given.names | hidden)
    slots = [given.row, *(context.slot(name) for name in names)]
    label = ", ".join(f"?{name}" for name in names if name not in hidden)
    project = context.node("project", f"substituted: {label}", 1.0, **{"in": outer.node}, slots=slots)
    spec = context.node("distinct", "", 1.0, **{"in": project})
    return Relation(spec, given.certain | hidden, given.maybe, 1.0)


def extend(context: PlanContext, inner: Relation, name: str, expr: Expr, scope: Scope) -> Relation:
    """A computed column; an error leaves it unbound. What EXISTS has substituted is compared with the value."""
    if name in inner.names:
        own = f"{name}#{next(context.numbers)}"
        computed = extend(context, inner, own, expr, scope)
        return filtered(context, compatible(Variable(own), Variable(name)), computed, scope)
    spec = expression(context, expr, inner, scope)
    label = f"?{name} := {render_expression(expr)}"
    node = context.node("extend", label, inner.rows, **{"in": inner.node}, slot=context.slot(name), expr=spec)
    return Relation(node, inner.certain, inner.maybe | {name}, inner.rows)


def expression(context: PlanContext, expr: Expr, rows: Relation, scope: Scope) -> Spec:
    """An expression over `rows`, its EXISTS patterns planned as sub-plans."""

    def exists(call: Exists) -> Spec:
        inner, row = exists_patterns.exists(context, call.pattern, rows, scope)
        context.subplans.append({"node": inner.node, "row": row})
        return {"exists": len(context.subplans) - 1, "not": call.negated}

    return expression_spec(expr, context, exists)


def render_expression(expr: Expr) -> str:
    """An expression as EXPLAIN shows it."""
    if isinstance(expr, Exists):
        return "not exists {…}" if expr.negated else "exists {…}"
    if isinstance(expr, Call):
        return f"{expr.name}({', '.join(map(render_expression, expr.args))})"
    if isinstance(expr, AggregateCall):
        return f"{expr.name}(…)"
    return render_term(expr)


# ---- groups
def _group(context: PlanContext, node: Node, left: Relation, scope: Scope) -> Relation:
    conditions: Conditions = []
    while isinstance(node, Filter):
        conditions += [(condition, scope) for condition in conjuncts(node.condition)]
        node = node.inner
    around = left.names - frozenset(context.hidden) - context.substituted
    flat = flatten(node, scope, context.dataset, around)
    elements = list(flat.elements)
    if len(elements) == 1 and elements[0].pattern is node:  # not a group: a whole pattern under filters
        current = compile_pattern(context, node, left, scope)
        for condition, where in conditions:
            current = filtered(context, condition, current, where)
        return current
    pending = [*flat.filters, *conditions]
    parts = components(elements, left.names, frozenset(context.hidden), context.substituted)
    return _joined(context, parts, pending, left)


def _joined(context: PlanContext, parts: list[list[Element]], pending: Conditions, left: Relation) -> Relation:
    """Connected parts of a group, each explored on its own, then crossed: what one part tests is tested once, not once
    for each row of the others. The first part starts from `left`.
    """
    relations: list[Relation] = []
    waiting = Pending(pending)
    home = {name: i for i, part in enumerate(parts) for element in part for name in element.binds}
    for i, part in enumerate(parts):
        begin = left if i == 0 else context.seed()
        later = Later({}, -1, home, i, left.names - begin.names)
        relations.append(_explored(context, part, waiting, begin, later))
    if left.pure_seed:  # the largest streams past the others, which are collected
        relations.sort(key=lambda relation: -relation.rows)
    last = {name: i for i, relation in enumerate(relations) for name in relation.names}
    current = relations[0]
    for i, right in enumerate(relations[1:], start=1):
        current = _hash_join(context, current, right)
        current = _filtered(context, waiting, current, Later(last, i, {}), None if i == 1 else right.names)
    return _filtered(context, waiting, current, Later({}, -1, {}), None)


def _explored(
    context: PlanContext, elements: list[Element], waiting: Pending, left: Relation, around: Later
) -> Relation:
    """`left` joined with connected elements in the best order; conditions as soon as their variables are there.
    `around`: what other parts of the group bind.
    """
    order = best_order(
        elements,
        left.certain,
        lambda element: element.binds,
        lambda element, bound: fanout(context, element, bound),
        search=context.may_search(elements),
    )
    names = [elements[i].binds for i in order]
    last = {name: position for position, own in enumerate(names) for name in own}
    current = left
    for position, i in enumerate(order):
        current = _extend_with(context, elements[i], current)
        later = replace(around, last=last, position=position)
        current = _filtered(context, waiting, current, later, names[position])
    return current


def _filtered(
    context: PlanContext, waiting: Pending, current: Relation, later: Later, touched: Names | None
) -> Relation:
    """Apply the conditions that nothing joined later can change."""
    for condition, where in waiting.take(current.certain, later, touched):
        current = filtered(context, condition, current, where)
    return current


def _extend_with(context: PlanContext, element: Element, left: Relation) -> Relation:
    pattern, scope = element.pattern, element.scope
    if not isinstance(pattern, (Triple, PathTriple)):
        return join(context, pattern, left, scope)
    if element.binds & left.maybe:  # a cell may be unbound: the scan could not look it up
        return _hash_join(context, left, scan(context, pattern, _base(context, Bgp((pattern,))), scope))
    return scan(context, pattern, left, scope)


# ---- joins
def _may_correlate(context: PlanContext, node: Node, left: Relation, scope: Scope) -> bool:
    fixed = frozenset(context.hidden) | context.substituted
    outer = left.names - fixed
    touched = binding_variables(node) | (frozenset((scope.variable,)) if scope.variable is not None else frozenset())
    return not touched & left.maybe and correlatable(node, outer)


def _hash_join(context: PlanContext, left: Relation, right: Relation) -> Relation:
    if left.pure_seed and not left.names:  # the unit table (a test of constants has no names either, but may be empty)
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


def _optional(context: PlanContext, node: LeftJoin, outer: Relation, scope: Scope) -> Relation:
    left = join(context, node.left, outer, scope)
    if _may_correlate(context, node.right, left, scope):
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


def concatenate(context: PlanContext, parts: list[Relation]) -> Relation:
    """The rows of all parts."""
    rows = sum(part.rows for part in parts)
    spec = context.node("union", "", rows, inputs=[part.node for part in parts])
    bound = frozenset.intersection(*(part.certain for part in parts))
    names = frozenset[str]().union(*(part.names for part in parts))
    return Relation(spec, bound, names - bound, rows)


def _minus(context: PlanContext, node: Minus, outer: Relation, scope: Scope) -> Relation:
    left = join(context, node.left, outer, scope)
    if not visible(node.left) & visible(node.right) - context.substituted:  # disjoint domains take nothing away
        return left
    right = _taken_away(context, node.right, scope)
    ignored = [*context.hidden, *([scope.variable] if scope.variable is not None else []), *sorted(context.substituted)]
    ignore = [context.slot(name) for name in dict.fromkeys(ignored) if name in left.names and name in right.names]
    if context.substitution is not None:
        ignore.append(context.substitution.row)
    spec = context.node("minus", "", left.rows, left=left.node, right=right.node, ignore=ignore)
    return Relation(spec, left.certain, left.maybe, left.rows)


def _taken_away(context: PlanContext, node: Node, scope: Scope) -> Relation:
    """The right side of MINUS. What an EXISTS substitutes is compared cell by cell, so that it is bound here."""
    if (visible(node) - certain(node)) & context.substituted:
        return join(context, node, start(context, node, scope, by_row=True), scope)
    return independent(context, node, scope)


def _values(context: PlanContext, node: Values, left: Relation) -> Relation:
    table = [[0 if cell is None else context.catalogue.term_id(cell) for cell in row] for row in node.rows]
    rows = float(len(table))
    slots = [context.slot(variable.name) for variable in node.variables]
    spec = context.node("values", f"{len(table)} rows", rows, slots=slots, rows=table)
    bound = certain(node)
    return _hash_join(context, left, Relation(spec, bound, visible(node) - bound, rows))


# ---- graphs
def _graph(context: PlanContext, node: Graph | WindowGraph, left: Relation) -> Relation:
    inner_scope = graph_scope(node, context.dataset)
    if _may_not_exist(context, node) and isinstance(node.name, Iri):
        return join(context, node.inner, _existing_graph(context, left, node.name, inner_scope), inner_scope)
    if inner_scope.variable is None or binds_graph(node.inner):
        return join(context, node.inner, left, inner_scope)
    if inner_scope.variable in left.maybe:
        return _hash_join(context, left, independent(context, node.inner, inner_scope))
    return join(context, node.inner, graphs(context, left, inner_scope), inner_scope)


def _may_not_exist(context: PlanContext, node: Graph | WindowGraph) -> bool:
    """Whether a stored graph is named that no clause lists, around a pattern that has solutions without a triple."""
    if isinstance(node, WindowGraph) or isinstance(node.name, Variable):
        return False
    return not binds_graph(node.inner) and not context.dataset.lists(node.name.value)


def _existing_graph(context: PlanContext, left: Relation, name: Iri, scope: Scope) -> Relation:
    """`left` if the stored graph has a triple, else nothing: what GRAPH <g> {} asks."""
    if not scope.parts:
        node = context.node("empty", "no such graph", 0.0, slots=[context.slot(n) for n in sorted(left.names)])
        return Relation(node, left.certain, left.maybe, 0.0)
    variable = Variable(f"#graph{context.slots}")
    named = graphs(context, left, Scope((Part(0, "named"),), variable.name))
    return filtered(context, Call("sameterm", (variable, name)), named, scope)


def graphs(context: PlanContext, left: Relation, scope: Scope) -> Relation:
    """`left` times the graphs that the variable of the GRAPH around ranges over."""
    assert scope.variable is not None
    dataset = [part.spec(named=True) for part in scope.parts]
    rows = left.rows * max(1, len(dataset))
    label = f"?{scope.variable}"
    node = context.node("graphs", label, rows, **{"in": left.node}, graph=context.slot(scope.variable), dataset=dataset)
    return Relation(node, left.certain | {scope.variable}, left.maybe, rows)


# ---- filters
def filtered(context: PlanContext, condition: Expr, rows: Relation, scope: Scope) -> Relation:
    """The rows for which the condition is true."""
    kept = rows.rows * FILTER_KEEPS
    if isinstance(condition, Exists):
        inner, row = exists_patterns.exists(context, condition.pattern, rows, scope)
        label = "not exists" if condition.negated else "exists"
        spec = context.node(
            "semijoin", label, kept, **{"in": rows.node}, inner=inner.node, row=row, anti=condition.negated
        )
    else:
        expr = expression(context, condition, rows, scope)
        spec = context.node("filter", render_expression(condition), kept, **{"in": rows.node}, expr=expr)
    return Relation(spec, rows.certain, rows.maybe, kept)
