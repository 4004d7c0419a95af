"""The planner: from a resolved query, or the template of a group, to a physical plan (docs/plan-format.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from penstock.query.algebra.scope import binding_variables, certain, occurring, size, visible
from penstock.query.algebra.tree import (
    BlankNode,
    Call,
    Distinct,
    Exists,
    Expr,
    Node,
    OrderBy,
    Project,
    Reduced,
    Slice,
    Term,
    Variable,
)
from penstock.query.algebra.walk import rebuild, rename
from penstock.query.budget import PlanningLimits, planning
from penstock.query.catalogue import ALL_NAMED_GRAPHS, ANY_PREDICATE
from penstock.query.datasets import query_dataset
from penstock.query.ir import ContinuousQuery, Form, RelationToStream
from penstock.query.plan_tree import render
from penstock.query.planning.cost.cardinality import CountKey, Counts, Estimator
from penstock.query.planning.entailment.entailed_algebra import with_entailed_patterns
from penstock.query.planning.entailment.rewriting import Rewriter
from penstock.query.planning.expression_specs import term_spec
from penstock.query.planning.joins import join
from penstock.query.planning.pattern_plans import compile_pattern
from penstock.query.planning.plan_context import PlanContext
from penstock.query.planning.projection_pushdown import prune_columns
from penstock.query.planning.relations import Relation, Scope, Spec
from penstock.query.planning.substitution import with_own_graph_names
from penstock.query.templates import Template

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.query.budget import Budget
    from penstock.query.catalogue import Catalogue
    from penstock.query.planning.entailment.schema import Schema
    from penstock.query.templates import Constant

MEMBER = "$member"
_LIMITS = PlanningLimits()
_STALE_FACTOR = 4  # if statistics change by a larger factor, another join order can be better
_STALE_FLOOR = 64  # below this number of edges, the join order does not matter


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """A plan, and how to read the answer from its result.

    - `outputs`: for SELECT, (name, slot) of each variable, in order. For CONSTRUCT and DESCRIBE, the slots of "s", "p"
      and "o". For ASK, `outputs` is empty, and the answer is true if the result has a row.
    - `member`: for the plan of a group, the slot of the hidden member column.
    - `parameters`: the slots of the template's parameters.
    - `labels`: description and expected number of rows by node id, for EXPLAIN.
    - `counts`: the statistics from which the plan was chosen.
    - `fragments`: for the node id of each fork, the plan that stores execute for the fork.
    - `factors`: if the answer is a cross product of independent parts, a plan for each part (docs/adr/0047).
    - `schema`: the schema for which a query with entailment was rewritten.
    """

    spec: Spec
    form: Form
    outputs: tuple[tuple[str, int], ...]
    member: int | None
    parameters: tuple[int, ...]
    labels: dict[int, tuple[str, float]]
    counts: dict[CountKey, Counts]
    fragments: dict[int, str]
    factors: tuple[Spec, ...] = ()
    schema: Schema | None = None

    def entails(self, catalogue: Catalogue) -> bool:
        """Return whether the plan is right for the current schema. Without entailment, the result is always true."""
        return self.schema is None or self.schema == catalogue.schema()

    def replan_needed(self, catalogue: Catalogue) -> bool:
        """Return whether the current statistics differ so much from `counts` that another plan could be better."""
        for (source, graph, predicate), (edges, _, _) in self.counts.items():
            if graph == ALL_NAMED_GRAPHS and predicate != ANY_PREDICATE:
                continue
            now = catalogue.label_stats(source, graph, predicate)[0]
            low, high = sorted((max(edges, _STALE_FLOOR), max(now, _STALE_FLOOR)))
            if high > low * _STALE_FACTOR:
                return True
        return False

    def render(
        self,
        rows: Mapping[int, int] | None = None,
        nanos: Mapping[int, int] | None = None,
        outcomes: Mapping[int, str] | None = None,
    ) -> str:
        """Return the plan as text for EXPLAIN. `rows`, `nanos`, `outcomes`: see `plan_tree.render`."""
        return render(self.spec, self.labels, rows or {}, nanos or {}, outcomes or {})


def plan(
    query: ContinuousQuery | Template,
    catalogue: Catalogue,
    *,
    grouped: bool,
    sample: Sequence[Constant] = (),
) -> PhysicalPlan:
    """Plan a resolved query or a template. QueryError if no plan exists. QueryLimitError above a limit.

    `grouped`: whether the plan's seed table has a member column before the columns of the parameters. `sample`: the
    constants of one member. The exact degrees of these constants serve as estimates for all members.
    """
    asked = query.query if isinstance(query, Template) else query
    with planning(_LIMITS, asked.text) as budget:
        return _planned(query, catalogue, budget, grouped=grouped, sample=sample)


def _planned(
    query: ContinuousQuery | Template,
    catalogue: Catalogue,
    budget: Budget,
    *,
    grouped: bool,
    sample: Sequence[Constant],
) -> PhysicalPlan:
    parameters = query.parameters if isinstance(query, Template) else ()
    query = query.query if isinstance(query, Template) else query
    constants = {parameter.name: constant for parameter, constant in zip(parameters, sample, strict=False)}
    hidden = ((MEMBER,) if grouped else ()) + tuple(parameter.name for parameter in parameters)
    context = PlanContext(
        query=query,
        catalogue=catalogue,
        dataset=query_dataset(query, catalogue),
        estimator=Estimator(catalogue, constants),
        hidden=hidden,
        member=MEMBER if grouped else None,
        budget=budget,
        compile=compile_pattern,
    )
    algebra = query.algebra
    if query.entailed:
        budget.at = query.entailment_at
        context.rewriter = Rewriter(catalogue.schema(), catalogue.term_id, budget)
        algebra = with_entailed_patterns(algebra, context.rewriter, context.numbers)
    seed = [context.slot(name) for name in hidden]
    scope = Scope(context.dataset.default)
    algebra = _with_unique_names(algebra, context.numbers)
    # compute and cache these now, while the stack is shallow
    size(algebra), visible(algebra), certain(algebra), binding_variables(algebra)
    body = join(context, algebra, context.seed(), scope)
    root, outputs = _answer(context, query, body, scope)
    roots = _factors(context, query, body)
    budget.look()
    shown = frozenset(slot for _, slot in outputs).union(seed[:1] if grouped else ())
    if query.form in (Form.SELECT, Form.ASK):
        root, *roots = (prune_columns(each, shown) for each in (root, *roots))
    specs = [{"slots": context.slots, "seed": seed, "root": r, "subplans": context.subplans} for r in (root, *roots)]
    if _reports_changes(query):
        specs[0]["changes"] = True
    return PhysicalPlan(
        specs[0],
        query.form,
        outputs,
        context.member_slot(),
        tuple(seed[1:] if grouped else seed),
        context.labels,
        context.estimator.counts,
        context.fragments,
        tuple(specs[1:]),
        context.rewriter.schema if context.rewriter is not None else None,
    )


def _reports_changes(query: ContinuousQuery) -> bool:
    """Return whether the query requests the change of its answer. The plan for such a query is allowed to return the
    change in place of the answer.
    """
    if query.form is not Form.SELECT and not _gives_lasting_triples(query):
        return False
    return query.changes or query.r2s is not RelationToStream.RSTREAM


def _gives_lasting_triples(query: ContinuousQuery) -> bool:
    """Return whether the query is a CONSTRUCT without blank nodes in its template. Blank nodes of a template would be
    new nodes in each evaluation.
    """
    return query.form is Form.CONSTRUCT and not any(
        isinstance(term, BlankNode) for t in query.template for term in (t.subject, t.predicate, t.object)
    )


def _factors(context: PlanContext, query: ContinuousQuery, body: Relation) -> list[Spec]:
    """Return a plan for each factor, if the answer of a group is a cross product of several factors. Otherwise []."""
    if context.member is None or query.form is not Form.SELECT or _reports_changes(query):
        return []
    if len(body.factors) < 2:
        return []
    label, rows = context.labels[body.node["id"]]
    context.labels[body.node["id"]] = f"{label}, retained as {len(body.factors)} factors", rows
    return [factor.node for factor in body.factors]


def _answer(
    context: PlanContext, query: ContinuousQuery, body: Relation, scope: Scope
) -> tuple[Spec, tuple[tuple[str, int], ...]]:
    member = context.member_slot()
    if query.form is Form.SELECT:
        return body.node, tuple((variable.name, context.slot(variable.name)) for variable in query.variables)
    if query.form is Form.ASK:
        return context.node("slice", "1", 1.0, **{"in": body.node}, offset=0, limit=1, member=member), ()
    slots = [context.fresh(name) for name in "spo"]
    outputs = tuple(zip("spo", slots, strict=True))
    if query.form is Form.CONSTRUCT:
        numbers: dict[str, int] = {}
        template = [
            [_template_term(term, context, numbers) for term in (t.subject, t.predicate, t.object)]
            for t in query.template
        ]
        # DISTINCT then counts how often each triple occurs, and gives the change of the graph (ADR 102).
        counted = _reports_changes(query)
        spec = context.node(
            "construct",
            f"{len(template)} triples a solution",
            body.rows,
            **{"in": body.node},
            template=template,
            slots=slots,
            member=member,
            **({"all": True} if counted else {}),
        )
        return context.node("distinct", "", body.rows, **{"in": spec}) if counted else spec, outputs
    terms: list[Term] = list(query.describe) or [Variable(name) for name in sorted(visible(query.algebra))]
    spec = context.node(
        "describe",
        "",
        body.rows,
        **{"in": body.node},
        terms=[term_spec(term, context) for term in terms],
        dataset=[part.spec(named=False) for part in scope.parts],
        slots=slots,
        member=member,
    )
    return spec, outputs


def _template_term(term: Term, context: PlanContext, blanks: dict[str, int]) -> dict[str, Any]:
    if isinstance(term, BlankNode):
        return {"bnode": blanks.setdefault(term.label, len(blanks))}
    return term_spec(term, context)


def _with_unique_names(algebra: Node, numbers: Iterator[int]) -> Node:
    """Rename variables that a sub-select does not project, so that each name stands for one variable. Inside GRAPH ?g,
    also rename variables that have the name of the graph variable.
    """

    def top(node: Node) -> Node:
        match node:
            case Slice() | Distinct() | Reduced() | OrderBy() | Project():
                inner = below(node.inner) if isinstance(node, Project) else top(node.inner)
                return replace(node, inner=inner)
            case _:
                return below(node)

    def below(node: Node) -> Node:
        node = rebuild(node, below, inside)
        return _hide_locals(node, numbers) if isinstance(node, Project) else node

    def inside(expr: Expr) -> Expr:
        match expr:
            case Exists():
                return replace(expr, pattern=below(expr.pattern))
            case Call():
                return replace(expr, args=tuple(map(inside, expr.args)))
            case _:
                return expr

    return with_own_graph_names(top(algebra), frozenset(), numbers)


def _hide_locals(node: Project, numbers: Iterator[int]) -> Node:
    shown = visible(node)
    local = {name: f"{name}#{next(numbers)}" for name in sorted(occurring(node.inner) - shown) if name[0] != "$"}
    return replace(node, inner=rename(node.inner, local)) if local else node
