"""Plans of group graph patterns: connected parts, join order, and early tests of conditions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.query.algebra.tree import Bgp, Expr, Filter, Node, PathTriple, Triple
from penstock.query.planning.conditions import filtered
from penstock.query.planning.cost.estimates import fanout
from penstock.query.planning.cost.join_order import best_order
from penstock.query.planning.entailment.matching import match
from penstock.query.planning.flatten import Element, components, conjuncts, flatten
from penstock.query.planning.joins import base, hash_join, join
from penstock.query.planning.pending import Later, Pending
from penstock.query.planning.relations import Relation, Scope

if TYPE_CHECKING:
    from penstock.query.algebra.scope import Names
    from penstock.query.planning.plan_context import PlanContext

Conditions = list[tuple[Expr, Scope]]


def compile_group(context: PlanContext, node: Node, left: Relation, scope: Scope) -> Relation:
    """Join `left` with a group. The elements are joined in the cheapest order, and conditions are tested as early as
    possible.
    """
    conditions: Conditions = []
    while isinstance(node, Filter):
        conditions += [(condition, scope) for condition in conjuncts(node.condition)]
        node = node.inner
    around = left.names - frozenset(context.hidden) - context.substituted
    flat = flatten(node, scope, context.dataset, around)
    elements = list(flat.elements)
    if len(elements) == 1 and elements[0].pattern is node:  # not a group, but a single pattern under filters
        current = context.compile(context, node, left, scope)
        for condition, where in conditions:
            current = filtered(context, condition, current, where)
        return current
    pending = [*flat.filters, *conditions]
    parts = components(elements, left.names, frozenset(context.hidden), context.substituted)
    return _joined(context, parts, pending, left)


def _joined(context: PlanContext, parts: list[list[Element]], pending: Conditions, left: Relation) -> Relation:
    """Join the connected parts of a group. The first part starts from `left`.

    Each part is planned separately, and the plan joins the results by cross products. The plan therefore tests the
    conditions of a part only once, and not again for each row of the other parts.
    """
    relations: list[Relation] = []
    waiting = Pending(pending)
    home = {name: i for i, part in enumerate(parts) for element in part for name in element.binds}
    for i, part in enumerate(parts):
        begin = left if i == 0 else context.seed()
        later = Later({}, -1, home, i, left.names - begin.names)
        relations.append(_explored(context, part, waiting, begin, later))
    if left.pure_seed:  # the largest part is streamed, and the others are materialised
        relations.sort(key=lambda relation: -relation.rows)
    last = {name: i for i, relation in enumerate(relations) for name in relation.names}
    current = relations[0]
    for i, right in enumerate(relations[1:], start=1):
        current = hash_join(context, current, right)
        current = _filtered(context, waiting, current, Later(last, i, {}), None if i == 1 else right.names)
    return _filtered(context, waiting, current, Later({}, -1, {}), None)


def _explored(
    context: PlanContext, elements: list[Element], waiting: Pending, left: Relation, around: Later
) -> Relation:
    """Join `left` with connected elements in the best order. Conditions are tested as soon as their variables are
    bound. `around`: the names that other parts of the group bind.
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
    """Test the conditions whose result no later join can affect. `touched`: see `Pending.take`."""
    for condition, where in waiting.take(current.certain, later, touched):
        current = filtered(context, condition, current, where)
    return current


def _extend_with(context: PlanContext, element: Element, left: Relation) -> Relation:
    pattern, scope = element.pattern, element.scope
    if not isinstance(pattern, (Triple, PathTriple)):
        return join(context, pattern, left, scope)
    if element.binds & left.maybe:  # a scan cannot look up a cell that can be unbound
        return hash_join(context, left, match(context, pattern, base(context, Bgp((pattern,))), scope))
    return match(context, pattern, left, scope)
