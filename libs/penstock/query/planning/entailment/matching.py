"""Plans of triple patterns and paths over the entailed graph: unions of scans of the asserted triples (ADR 93)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.query.algebra.scope import pattern_variables
from penstock.query.algebra.tree import Bgp, Call, Iri, PathTriple, Triple, Variable
from penstock.query.planning.entailment.entailed_estimates import divided, rewritten_pattern, table_names
from penstock.query.planning.joins import base, concatenate, hash_join, tested
from penstock.query.planning.relations import NO_CHOICES, Choices, Relation, Scope
from penstock.query.planning.scans import scan

if TYPE_CHECKING:
    from penstock.query.algebra.scope import Names
    from penstock.query.planning.entailment.rewriting import Rewritten, Table
    from penstock.query.planning.plan_context import PlanContext
    from penstock.query.planning.relations import Directed

_MOST_LABELS = 16  # maximum number of edge labels that one scan looks up


def match(context: PlanContext, pattern: Triple | PathTriple, left: Relation, scope: Scope) -> Relation:
    """Join `left` with one triple pattern or path. If the query has an entailment, the pattern matches the entailed
    graph.

    Each solution of the pattern occurs once for each row of `left`, even if several triples entail the solution.
    """
    parts = rewritten_pattern(context, pattern)
    if not parts or isinstance(pattern, PathTriple):
        return scan(context, pattern, left, scope)
    predicates, parts = _one_scan(pattern, parts, scope)
    if predicates and not parts:
        return scan(context, pattern, left, scope, Choices(predicates))
    if len(parts) == 1 and not predicates and not parts[0].tables:
        return scan(context, parts[0].pattern, left, scope)
    own = frozenset((scope.variable,)) if scope.variable is not None else frozenset()
    names = pattern_variables(pattern) | own
    if names <= left.certain and not left.pure_seed and not predicates and _is_one_test(parts, names, left):
        return _part(context, parts[0], left, scope, names)
    row = None if left.pure_seed else context.fresh("row")
    branches = []
    if predicates:
        branches.append(scan(context, pattern, _start(context, pattern, left), scope, Choices(predicates)))
    branches += [_part(context, part, _start(context, part.pattern, left), scope, names) for part in parts]
    if left.pure_seed:
        return _distinct(context, branches)
    if names <= left.certain:  # a test
        inner = concatenate(context, branches)
        rows = min(left.rows, inner.rows)
        label = f"entailed, {len(branches)} patterns"
        spec = context.node("semijoin", label, rows, **{"in": left.node}, inner=inner.node, row=row, anti=False)
        return Relation(spec, left.certain, left.maybe, rows)
    inner = _distinct(context, branches)
    spec = context.node("lateral", "entailed", inner.rows, **{"in": left.node}, inner=inner.node, row=row)
    return Relation(spec, inner.certain, left.maybe, inner.rows)


def _part(context: PlanContext, part: Rewritten, start: Relation, scope: Scope, names: Names) -> Relation:
    """Plan one pattern of a rewriting. The plan starts from the rows of `start`. The result has the columns of these
    rows and the columns `names`.
    """
    current = start
    part, choices = _with_choices(part, names, start)
    first, later = divided(part, start.certain)
    for table in first:
        current = hash_join(context, current, _values(context, table))
    current = scan(context, part.pattern, current, scope, choices)
    # a fork numbers its rows, so that equal rows differ
    numbers = [current.node["row"]] if current.node["op"] == "fork" else []
    for table in later:
        current = hash_join(context, current, _values(context, table))
    if isinstance(part.subject, Variable):
        literal = Call("isliteral", (part.subject,))
        current = tested(context, Call("not", (literal,)), current)
    removed = sorted(current.names - start.names - names)
    if not removed and not numbers:
        return current
    slots = [*(context.slot(name) for name in removed), *numbers]
    node = context.node("project", "", current.rows, **{"in": current.node}, without=slots)
    return Relation(node, current.certain - set(removed), current.maybe, current.rows)


def _with_choices(part: Rewritten, names: Names, start: Relation) -> tuple[Rewritten, Choices]:
    """Return a pattern whose scan tests whether a match exists, if only this is of interest: an end is a variable that
    is neither bound nor one of `names`. A table of the end's values becomes part of the scan.
    """
    ends = part.pattern.subject, part.pattern.object
    free = [end for end in ends if isinstance(end, Variable) and end.name not in names | start.names]
    if len(free) != 1:
        return part, NO_CHOICES
    (omitted,) = free
    other = ends[ends[0] == omitted]
    of_end = [table for table in part.tables if omitted in table.variables]
    if not of_end:
        return part, Choices(omitted=omitted.name)
    is_bound = not isinstance(other, Variable) or other.name in start.certain
    if not is_bound or len(of_end) > 1 or of_end[0].variables != (omitted,):
        return part, NO_CHOICES
    tables = tuple(table for table in part.tables if table is not of_end[0])
    return replace(part, tables=tables), Choices(omitted=omitted.name, among=tuple(row[0] for row in of_end[0].rows))


def _is_one_test(parts: tuple[Rewritten, ...], names: Names, left: Relation) -> bool:
    """Return whether a single scan tests each row of `left`, and outputs the row once."""
    if len(parts) != 1:
        return False
    part, choices = _with_choices(parts[0], names, left)
    return choices.omitted is not None and not part.tables and isinstance(part.pattern.predicate, Iri)


def _start(context: PlanContext, pattern: Triple, left: Relation) -> Relation:
    """Return the relation from which a pattern of a rewriting starts."""
    return base(context, Bgp((pattern,))) if left.pure_seed else context.outer(left)


def _one_scan(
    pattern: Triple, parts: tuple[Rewritten, ...], scope: Scope
) -> tuple[tuple[Directed, ...], tuple[Rewritten, ...]]:
    """Return (predicates, other parts). The parts that differ from the pattern only in the predicate and its direction
    are matched by one scan of these predicates. () if fewer than two parts can be matched by one scan.

    A scan of several predicates has no graph variable. With many graphs, separate scans are faster, because they look
    up only the graphs in which a vertex has edges.
    """
    if scope.variable is not None or any(isinstance(part.graphs, str) for part in scope.parts):
        return (), parts
    predicates: list[Directed] = []
    others: list[Rewritten] = []
    for part in parts:
        read = part.pattern
        if part.tables or not isinstance(read.predicate, Iri):
            others.append(part)
        elif part.subject is None and (read.subject, read.object) == (pattern.subject, pattern.object):
            predicates.append((read.predicate, False))
        elif (read.object, read.subject) == (pattern.subject, pattern.object):
            predicates.append((read.predicate, True))
        else:
            others.append(part)
    labels = len(predicates) * sum(max(1, len(part.graphs)) for part in scope.parts)
    if len(predicates) < 2 or labels > _MOST_LABELS:
        return (), parts
    return tuple(predicates), tuple(others)


def _distinct(context: PlanContext, parts: list[Relation]) -> Relation:
    union = concatenate(context, parts) if len(parts) > 1 else parts[0]
    node = context.node("distinct", f"entailed, {len(parts)} patterns", union.rows, **{"in": union.node})
    return Relation(node, union.certain, union.maybe, union.rows)


def _values(context: PlanContext, table: Table) -> Relation:
    context.budget.spend(work=1 + len(table.rows) // 16)
    rows = float(len(table.rows))
    slots = [context.slot(variable.name) for variable in table.variables]
    node = context.node("values", f"{len(table.rows)} rows", rows, slots=slots, rows=[list(row) for row in table.rows])
    return Relation(node, table_names(table), frozenset(), rows)
