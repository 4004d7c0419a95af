"""Solution modifiers and sub-selects: grouping, projection, DISTINCT, ORDER BY, LIMIT.

Modifiers process whole answers, and are therefore never correlated. Each modifier starts from the seed. Modifiers
group, sort and project by the hidden columns first. These columns are the member, the parameters, and the graph
variable of an enclosing GRAPH. One execution therefore computes the answers of all members of a group.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.query.algebra.scope import expression_variables
from penstock.query.algebra.tree import (
    Call,
    Distinct,
    Group,
    Literal,
    Node,
    OrderBy,
    Project,
    Reduced,
    Slice,
    Variable,
)
from penstock.query.planning.conditions import expression, extend
from penstock.query.planning.joins import join, start
from penstock.query.planning.relations import Relation, Scope, Spec

if TYPE_CHECKING:
    from penstock.query.algebra.tree import AggregateCall
    from penstock.query.planning.plan_context import PlanContext

_XSD = "http://www.w3.org/2001/XMLSchema#"
_MOST_FIRST = 1_000_000  # more rows are sorted completely
_OF_NOTHING = {
    "count": Literal("0", _XSD + "integer"),
    "sum": Literal("0", _XSD + "integer"),
    "avg": Literal("0", _XSD + "integer"),
    "group_concat": Literal("", _XSD + "string"),
}


def compile_modifier(context: PlanContext, node: Node, left: Relation, scope: Scope) -> Relation:
    """Plan a modifier over its inner pattern. `left`: the seed, or its cross product with graphs."""
    assert left.pure_seed, "modifiers are never correlated"
    match node:
        case Group():
            return _group(context, node, left, scope)
        case Project():
            inner = _inner(context, node.inner, left, scope)
            return _project(context, inner, [*_hidden(context, scope), *(v.name for v in node.variables)])
        case Distinct(inner=Project(inner=OrderBy() as order) as project) if _sorts_by(context, order, project):
            # The rows that remain are sorted; before that, DISTINCT may be updated (ADR 78).
            distinct = replace(node, inner=replace(project, inner=order.inner))
            return compile_modifier(context, replace(order, inner=distinct), left, scope)
        case Distinct():
            inner = _inner(context, node.inner, left, scope)
            return _wrap(context, "distinct", inner)
        case Reduced():
            return _wrap(context, "reduced", _inner(context, node.inner, left, scope))
        case OrderBy():
            return _order(context, node, _inner(context, node.inner, left, scope), scope)
        case Slice():
            inner = _inner(context, node.inner, left, scope)
            if scope.variable is None:
                _limit_order(context, inner.node, node)
            limit = "all" if node.limit is None else str(node.limit)
            # Inside of GRAPH ?g, the sub-select is evaluated for each graph, and LIMIT applies to each graph
            # separately.
            graph = None if scope.variable is None else context.slot(scope.variable)
            spec = context.node(
                "slice",
                f"{limit} from {node.offset}",
                inner.rows,
                **{"in": inner.node},
                offset=node.offset,
                limit=node.limit,
                member=context.member_slot(),
                graph=graph,
            )
            return Relation(spec, inner.certain, inner.maybe, inner.rows)
        case _:
            raise TypeError(f"not a pattern: {type(node).__name__}")


def _sorts_by(context: PlanContext, order: OrderBy, project: Project) -> bool:
    """Return whether all sort keys can be computed from the projected variables and the parameters."""
    shown = frozenset(variable.name for variable in project.variables).union(context.hidden)
    return all(expression_variables(key.expr) <= shown for key in order.keys)


def _inner(context: PlanContext, node: Node, left: Relation, scope: Scope) -> Relation:
    return join(context, node, left, scope)


def _hidden(context: PlanContext, scope: Scope) -> list[str]:
    return [*context.hidden, *([scope.variable] if scope.variable is not None else [])]


def _project(context: PlanContext, inner: Relation, names: list[str]) -> Relation:
    names = list(dict.fromkeys(names))
    label = ", ".join(f"?{name}" for name in names if name not in context.hidden)
    slots = [context.slot(name) for name in names]
    spec = context.node("project", label, inner.rows, **{"in": inner.node}, slots=slots)
    retained = frozenset(names)
    return Relation(
        spec, inner.certain & retained, retained - inner.certain, inner.rows, factors=_retained(context, inner, names)
    )


def _retained(context: PlanContext, inner: Relation, names: list[str]) -> tuple[Relation, ...]:
    """Return the factors, each with only the columns that a projection retains. The result is () if no factor has a
    projected name, or if a factor lacks a hidden column.
    """
    shown, hidden = frozenset(names) - frozenset(context.hidden), frozenset(context.hidden)
    if not shown <= inner.names or any(not hidden <= factor.certain for factor in inner.factors):
        return ()
    projected = []
    for factor in inner.factors:
        slots = [context.slot(name) for name in names if name in factor.names]
        node = context.node("project", "of a factor", factor.rows, **{"in": factor.node}, slots=slots)
        retained = factor.names & frozenset(names)
        projected.append(Relation(node, factor.certain & retained, retained - factor.certain, factor.rows))
    return tuple(projected)


def _wrap(context: PlanContext, op: str, inner: Relation) -> Relation:
    spec = context.node(op, "", inner.rows, **{"in": inner.node})
    return Relation(spec, inner.certain, inner.maybe, inner.rows)


def _order(context: PlanContext, node: OrderBy, inner: Relation, scope: Scope) -> Relation:
    keys = [{"expr": expression(context, key.expr, inner, scope), "desc": key.descending} for key in node.keys]
    spec = context.node(
        "order", f"{len(keys)} keys", inner.rows, **{"in": inner.node}, keys=keys, member=context.member_slot()
    )
    return Relation(spec, inner.certain, inner.maybe, inner.rows)


def _limit_order(context: PlanContext, node: Spec, limited: Slice) -> None:
    """If an ORDER BY is directly below a LIMIT, set in the ORDER BY how many first rows each member needs."""
    while node["op"] == "project":
        node = node["in"]
    if node["op"] != "order" or limited.limit is None or limited.offset + limited.limit > _MOST_FIRST:
        return
    node["first"] = limited.offset + limited.limit
    label, rows = context.labels[node["id"]]
    context.labels[node["id"]] = f"{label}, first {node['first']} rows", rows


def _group(context: PlanContext, node: Group, left: Relation, scope: Scope) -> Relation:
    inner = _inner(context, node.inner, left, scope)
    hidden = _hidden(context, scope)
    names = list(dict.fromkeys([*hidden, *(key.name for key in node.keys)]))
    aggregates = [_aggregate(context, out, call, inner, scope) for out, call in node.aggregates]
    implicit = node.implicit and scope.variable is None
    matches = ""  # the number of matches: distinguishes a graph without matches from an aggregate that is an error
    if node.implicit and not implicit and any(call.name in _OF_NOTHING for _, call in node.aggregates):
        matches = f"{node.aggregates[0][0].name}#matches"
        aggregates.append({"agg": "count_star", "distinct": False, "out": context.slot(matches)})
    rows = 1.0 if node.implicit else max(1.0, inner.rows / 3)
    spec = context.node(
        "group",
        ", ".join(f"?{name}" for name in names if name not in hidden),
        rows,
        **{"in": inner.node},
        keys=[context.slot(name) for name in names],
        aggs=aggregates,
        implicit=implicit,
        hidden=[context.slot(name) for name in hidden],
    )
    keys = frozenset(names)
    outs = frozenset(out.name for out, _ in node.aggregates)
    relation = Relation(spec, inner.certain & keys, (keys - inner.certain) | outs, rows)
    if node.implicit and not implicit:
        return _per_graph(context, node, relation, matches, scope)
    return relation


def _per_graph(context: PlanContext, node: Group, groups: Relation, matches: str, scope: Scope) -> Relation:
    """Plan aggregates without GROUP BY inside of GRAPH ?g. Each graph yields a row, even if the graph has no matches.

    `matches`: the variable with the number of matches in a graph. This variable is unbound if the graph has no matches.
    """
    base = start(context, node, scope)
    spec = context.node("leftjoin", "", base.rows, left=base.node, right=groups.node)
    outs = {out.name for out, _ in node.aggregates} | ({matches} if matches else set())
    current = Relation(spec, base.certain, frozenset(outs), base.rows)
    renamed: dict[str, str] = {}
    for out, call in node.aggregates:
        default = _OF_NOTHING.get(call.name)
        if default is None:
            continue
        renamed[out.name] = f"{out.name}#filled"
        value = Call("if", (Call("bound", (Variable(matches),)), Variable(out.name), default))
        current = extend(context, current, renamed[out.name], value, scope)
    for name, filled in renamed.items():
        slots = [context.slot(n) for n in sorted(current.names - {name, matches})]
        project: Spec = context.node("project", "", current.rows, **{"in": current.node}, slots=slots)
        current = Relation(project, current.certain, current.maybe - {name, matches}, current.rows)
        current = extend(context, current, name, Variable(filled), scope)
    return current


def _aggregate(context: PlanContext, out: Variable, call: AggregateCall, inner: Relation, scope: Scope) -> Spec:
    spec: Spec = {
        "agg": "count_star" if call.name == "count" and call.expr is None else call.name,
        "distinct": call.distinct,
        "out": context.slot(out.name),
    }
    if call.expr is not None:
        spec["expr"] = expression(context, call.expr, inner, scope)
    if call.name == "group_concat":
        spec["separator"] = call.separator
    return spec
