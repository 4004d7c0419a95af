"""The plan nodes of single triple patterns and paths. This module chooses what each node looks up, and in which parts
of the dataset.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.query.algebra.scope import pattern_variables
from penstock.query.algebra.tree import PathTriple, Triple, Variable
from penstock.query.planning.expression_specs import path_spec, render_term, term_spec
from penstock.query.planning.forks import scan_node
from penstock.query.planning.relations import NO_CHOICES, Choices, Relation, Scope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.query.algebra.tree import Term
    from penstock.query.planning.plan_context import PlanContext
    from penstock.query.planning.relations import Directed, Spec

_GRAPH_BYTES = 48  # estimated size of each graph in the dataset of a scan


def scan(
    context: PlanContext,
    pattern: Triple | PathTriple,
    left: Relation,
    scope: Scope,
    choices: Choices = NO_CHOICES,
) -> Relation:
    """Join `left` with one triple pattern or path. The plan looks up the bound ends of the pattern."""
    context.budget.spend(pattern.at, len(scope.parts) // 64)
    context.budget.charge(_GRAPH_BYTES * sum(1 + len(part.graphs) for part in scope.parts))
    rows = left.rows * _fanout(context, pattern, left, scope, choices)
    dataset = [part.spec(named=scope.variable is not None) for part in scope.parts]
    graph = context.slot(scope.variable) if scope.variable is not None else None
    ends = {"s": _end(context, pattern.subject, choices), "o": _end(context, pattern.object, choices)}
    where = _where(context, scope)
    subject, object_ = _rendered(pattern.subject, choices), _rendered(pattern.object, choices)
    if isinstance(pattern, PathTriple):
        label = f"{subject} path {object_} {where}"
        path = path_spec(pattern.path, context)
        # Between two variables, a path of length zero matches only nodes of the graph (SPARQL 1.1 §18.4). Variables
        # that an EXISTS substitutes are constants.
        nodes_only = _is_open(context, pattern.subject) and _is_open(context, pattern.object)
        node = context.node(
            "path",
            label,
            rows,
            **{"in": left.node},
            **ends,
            path=path,
            dataset=dataset,
            graph=graph,
            nodes_only=nodes_only,
        )
    else:
        named = [("^" if inverse else "") + render_term(name) for name, inverse in choices.predicates]
        label = f"{subject} {'|'.join(named) or render_term(pattern.predicate)} {object_} {where}"
        predicate = _predicate(context, pattern.predicate, choices)
        members = {**ends, "p": predicate, "dataset": dataset, "graph": graph}
        node = scan_node(context, left, pattern, scope, members, label, rows)
    own = frozenset((scope.variable,)) if scope.variable is not None else frozenset()
    names = (pattern_variables(pattern) | own) - frozenset((choices.omitted,))
    return Relation(node, left.certain | names, left.maybe, rows)


def _fanout(
    context: PlanContext, pattern: Triple | PathTriple, left: Relation, scope: Scope, choices: Choices
) -> float:
    """Return the expected number of rows for each row of `left`."""
    bound, estimator = left.certain, context.estimator
    if isinstance(pattern, PathTriple) or choices is NO_CHOICES:
        return estimator.fanout(pattern, scope.parts, bound)
    if choices.omitted is None:
        alternatives = _alternative_patterns(pattern, choices.predicates)
        return sum(estimator.fanout(each, scope.parts, bound) for each in alternatives)
    known = bound | {choices.omitted} if choices.among else bound
    found = max(1, len(choices.among)) * estimator.fanout(pattern, scope.parts, known)
    return min(1.0, found) if pattern_variables(pattern) - {choices.omitted} <= bound else found


def _alternative_patterns(pattern: Triple, predicates: Sequence[Directed]) -> tuple[Triple, ...]:
    """Return a triple pattern for each of the predicates. The ends of an inverse predicate change places."""
    return tuple(
        Triple(pattern.object, name, pattern.subject, pattern.at) if inverse else replace(pattern, predicate=name)
        for name, inverse in predicates
    )


def _predicate(context: PlanContext, predicate: Term, choices: Choices) -> Spec:
    if not choices.predicates:
        return term_spec(predicate, context)
    named = [(term_spec(name, context), inverse) for name, inverse in choices.predicates]
    return {"any": [{**name, "inverse": True} if inverse else name for name, inverse in named]}


def _end(context: PlanContext, end: Term, choices: Choices) -> Spec:
    return {"any": list(choices.among)} if _is_omitted(end, choices) else term_spec(end, context)


def _rendered(end: Term, choices: Choices) -> str:
    if not _is_omitted(end, choices):
        return render_term(end)
    return f"[{len(choices.among)} terms]" if choices.among else "[]"


def _is_omitted(end: Term, choices: Choices) -> bool:
    return isinstance(end, Variable) and end.name == choices.omitted


def _is_open(context: PlanContext, term: Term) -> bool:
    return isinstance(term, Variable) and not term.name.startswith("$") and term.name not in context.substituted


def _where(context: PlanContext, scope: Scope) -> str:
    names = []
    for part in scope.parts:
        if part.source:
            clause = context.query.windows[part.source - 1]
            names.append(f"window <{clause.name}>")
        else:
            names.append("stored named graphs" if part.graphs == "named" else "stored")
    return f"[{' + '.join(names) or 'no graph'}]"
