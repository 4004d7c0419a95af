"""Decides which scans of the stored graph run in place, and which run in forks on the stores (docs/plan-format.md)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from penstock.query.algebra.tree import Iri, Term, Triple, Variable
from penstock.query.planning.cost.placement import Step
from penstock.query.planning.relations import Chain, Scan

if TYPE_CHECKING:
    from penstock.query.planning.cost.placement import Placement
    from penstock.query.planning.plan_context import PlanContext
    from penstock.query.planning.relations import Relation, Scope, Spec


def scan_node(
    context: PlanContext,
    left: Relation,
    pattern: Triple,
    scope: Scope,
    members: dict[str, Any],
    label: str,
    rows: float,
) -> Spec:
    """Return the plan node of a scan. The node is a scan in place, a new fork that contains the scan, or the fork on
    the left with the scan added.
    """
    positions = {"s": pattern.subject, "p": pattern.predicate, "o": pattern.object}
    terms = [term for position, term in positions.items() if "any" not in members[position]]
    if scope.variable is not None:
        terms.append(Variable(scope.variable))
    names = frozenset(term.name for term in terms if isinstance(term, Variable))
    bound = names & left.certain
    scan = Scan(members, label, bound, names - left.certain, rows)
    why = ""
    placement = context.catalogue.placement
    if placement is not None and all(part.source == 0 for part in scope.parts):
        chain: Chain | None
        begun = context.chains.get(left.node["id"])
        if begun is not None and begun.key in _ends(pattern, scope, bound):
            chain = Chain(begun.left, begun.key, (*begun.scans, scan))
        else:
            key = _key(context, pattern, scope, bound)
            chain = Chain(left, key, (scan,)) if key else None
        if chain is not None:
            forked, why = _fork(context, placement, chain)
            if forked is not None:
                return forked
    return context.node("scan", f"{label}{why}", rows, **{"in": left.node}, **members)


def _ends(pattern: Triple, scope: Scope, bound: frozenset[str]) -> list[str]:
    """Return the bound variables that a scan can look up, the subject before the object. A scan that reads the labels
    of a vertex can look up only the first of these variables.
    """
    ends: list[Term] = [pattern.subject, pattern.object]
    found = [end.name for end in ends if isinstance(end, Variable) and end.name in bound]
    graphs = sum(2 if part.graphs == "named" else len(part.graphs) for part in scope.parts)
    # with several graphs, a scan reads the labels of a vertex to find the graphs in which it has edges
    probes = not isinstance(pattern.predicate, Iri) or graphs > 1
    return found[:1] if probes else found


def _key(context: PlanContext, pattern: Triple, scope: Scope, bound: frozenset[str]) -> str:
    """Return the bound variable that a scan should look up. Among the variables that the scan can look up, this
    variable has the fewest expected matches. "" if the scan can look up no variable.
    """
    ends = _ends(pattern, scope, bound)
    fanouts = [context.estimator.fanout(pattern, scope.parts, frozenset((end,))) for end in ends]
    return ends[fanouts.index(min(fanouts))] if ends else ""


def _fork(context: PlanContext, placement: Placement, chain: Chain) -> tuple[Spec | None, str]:
    """Return (fork node of a chain of scans, "") or, if there should be no fork, (None, reason for EXPLAIN)."""
    each = max(chain.left.rows, 1e-9)
    entering = [chain.left.rows, *(scan.rows for scan in chain.scans[:-1])]
    steps = tuple(Step(rows / each, scan.rows / each) for rows, scan in zip(entering, chain.scans, strict=True))
    binds = list(dict.fromkeys(name for scan in chain.scans for name in sorted(scan.binds)))
    uses = sorted(frozenset[str]().union(*(scan.uses for scan in chain.scans)) - set(binds))
    widths = 1 + len(uses), 1 + len(binds)
    least = placement.least_rows(steps, *widths)
    if least is None:
        return None, "" if placement.execution == "in-place" else ", in place: fork-join is never cheaper"
    rows = chain.left.rows
    costs = placement.in_place_us(rows, steps), placement.forked_us(rows, steps, *widths)
    # The estimates in the plan of a group are per member, and the number of members is unknown here.
    if placement.execution == "auto" and context.member is None and rows < least:
        return None, f", in place: {_ms(costs[0])}, by fork-join {_ms(costs[1])}"
    label = f"at ?{chain.key}'s stores from {least} rows on (in place {_ms(costs[0])}, by fork-join {_ms(costs[1])})"
    return _fork_node(context, chain, least, label, uses, binds), ""


def _fork_node(context: PlanContext, chain: Chain, least: int, label: str, uses: list[str], binds: list[str]) -> Spec:
    row = context.fresh("row")
    inner, there = context.outer(chain.left).node, {"op": "seed", "id": 0}
    for scan in chain.scans:
        inner = context.node("scan", scan.label, scan.rows, **{"in": inner}, **scan.members)
        there = {**inner, "in": there}
    used, bound = [context.slot(name) for name in uses], [context.slot(name) for name in binds]
    node = context.node(
        "fork",
        label,
        chain.scans[-1].rows,
        **{"in": chain.left.node},
        inner=inner,
        row=row,
        key=context.slot(chain.key),
        uses=used,
        least=least,
    )
    root = {"op": "project", "id": 0, "in": there, "slots": [row, *bound]}
    seed = [row, *used]
    fragment = {"slots": context.slots, "seed": seed, "root": root, "subplans": []}
    context.fragments[node["id"]] = json.dumps(fragment)
    context.chains[node["id"]] = chain
    return node


def _ms(us: float) -> str:
    return f"{us / 1000:.2g} ms"
