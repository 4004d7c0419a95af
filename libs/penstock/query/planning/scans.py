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
from penstock.query.planning.relations import Relation, Scope

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from penstock.query.algebra.tree import Iri, Term
    from penstock.query.planning.plan_context import PlanContext
    from penstock.query.planning.relations import Spec

    Directed: TypeAlias = tuple[Iri, bool]
    """A predicate, and whether its triples are matched from object to subject."""

_GRAPH_BYTES = 48  # estimated size of each graph in the dataset of a scan


def scan(
    context: PlanContext,
    pattern: Triple | PathTriple,
    left: Relation,
    scope: Scope,
    predicates: Sequence[Directed] = (),
) -> Relation:
    """Join `left` with one triple pattern or path. The plan looks up the bound ends of the pattern. If `predicates` are
    given, the pattern matches their triples as a set, instead of the triples of its own predicate.
    """
    context.budget.spend(pattern.at, len(scope.parts) // 64)
    context.budget.charge(_GRAPH_BYTES * sum(1 + len(part.graphs) for part in scope.parts))
    alternatives = alternative_patterns(pattern, predicates) if isinstance(pattern, Triple) else ()
    fanouts = [context.estimator.fanout(each, scope.parts, left.certain) for each in alternatives or (pattern,)]
    rows = left.rows * sum(fanouts)
    dataset = [part.spec(named=scope.variable is not None) for part in scope.parts]
    graph = context.slot(scope.variable) if scope.variable is not None else None
    ends = {"s": term_spec(pattern.subject, context), "o": term_spec(pattern.object, context)}
    where = _where(context, scope)
    subject, object_ = render_term(pattern.subject), render_term(pattern.object)
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
        named = [("^" if inverse else "") + render_term(name) for name, inverse in predicates]
        label = f"{subject} {'|'.join(named) or render_term(pattern.predicate)} {object_} {where}"
        predicate = _any_of(context, predicates) if predicates else term_spec(pattern.predicate, context)
        members = {**ends, "p": predicate, "dataset": dataset, "graph": graph}
        node = scan_node(context, left, pattern, scope, members, label, rows)
    own = frozenset((scope.variable,)) if scope.variable is not None else frozenset()
    return Relation(node, left.certain | pattern_variables(pattern) | own, left.maybe, rows)


def alternative_patterns(pattern: Triple, predicates: Sequence[Directed]) -> tuple[Triple, ...]:
    """Return a triple pattern for each of the predicates. The ends of an inverse predicate change places."""
    return tuple(
        Triple(pattern.object, name, pattern.subject, pattern.at) if inverse else replace(pattern, predicate=name)
        for name, inverse in predicates
    )


def _any_of(context: PlanContext, predicates: Sequence[Directed]) -> Spec:
    specs = [{**term_spec(name, context), **({"inverse": True} if inverse else {})} for name, inverse in predicates]
    return {"any": specs}


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
