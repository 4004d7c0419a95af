"""The plan of the pattern of an EXISTS. The bindings of each outer row are substituted in the pattern (SPARQL 1.1
§18.6).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from penstock.query.algebra.graph_use import binds_graph
from penstock.query.algebra.scope import binding_variables
from penstock.query.algebra.tree import Call, Exists, Node, Variable
from penstock.query.algebra.walk import rename
from penstock.query.planning.joins import concatenate, graphs, join, tested
from penstock.query.planning.relations import Relation, Scope
from penstock.query.planning.substitution import Substitution, compatible, joinable, with_own_graph_names

if TYPE_CHECKING:
    from penstock.query.algebra.scope import Names
    from penstock.query.planning.plan_context import PlanContext

MAX_EXISTS_OPTIONALS = 6
"""Maximum number of variables of an EXISTS that can be unbound in outer rows. Each such variable doubles the number of
plans for the EXISTS.
"""


def plan_exists(context: PlanContext, call: Exists, rows: Relation, scope: Scope) -> tuple[Relation, int]:
    """Plan an EXISTS over the outer `rows`. Returns a plan and the slot of the row number. The plan yields the numbers
    of the outer rows that have a match.

    LimitFault, with the position of the EXISTS, if too many of its variables need separate plans.
    """
    pattern, row = call.pattern, context.fresh("row")
    unsure = binding_variables(pattern) & rows.maybe
    apart = sorted(name for name in unsure if not joinable(pattern, name))
    if len(apart) > MAX_EXISTS_OPTIONALS:
        names = ", ".join(f"?{name}" for name in apart)
        message = f"an EXISTS has {len(apart)} variables that may be unbound outside of it: {names}"
        context.budget.exceeded("MAX_EXISTS_OPTIONALS", f"{message}; the limit is {MAX_EXISTS_OPTIONALS}", call.at)
    if not apart:
        given = Substitution(rows.certain, rows.maybe, row)
        return _one_case(context, pattern, context.outer(rows), unsure, given, scope), row
    cases = []
    for bound in product((True, False), repeat=len(apart)):
        case = frozenset(name for name, is_bound in zip(apart, bound, strict=True) if is_bound)
        cases.append(_rows_with(context, pattern, rows, scope, row, case, frozenset(apart) - case))
    return concatenate(context, cases), row


def _rows_with(
    context: PlanContext, pattern: Node, rows: Relation, scope: Scope, row: int, bound: Names, unbound: Names
) -> Relation:
    """Plan the pattern for some outer rows: the rows that bind the names `bound` and do not bind the names `unbound`.
    All these names are variables of the pattern.
    """
    tests = [Call("bound", (Variable(name),)) for name in sorted(bound)]
    tests += [Call("not", (Call("bound", (Variable(name),)),)) for name in sorted(unbound)]
    given = Substitution(rows.certain | bound, rows.maybe - bound, row, tuple(tests))
    outer = context.outer(rows)
    outer = Relation(outer.node, given.certain, given.maybe, outer.rows)
    for test in tests:
        outer = tested(context, test, outer)
    free = {name: f"{name}#free{context.slots}" for name in sorted(unbound)}
    unsure = binding_variables(pattern) & rows.maybe - bound - unbound
    return _one_case(context, rename(pattern, free), outer, unsure, given, scope)


def _one_case(
    context: PlanContext, pattern: Node, outer: Relation, unsure: Names, given: Substitution, scope: Scope
) -> Relation:
    """Plan the pattern over the rows `outer`.

    `unsure`: names that can be unbound in an outer row. No look-up can use these names. In the pattern, a new variable
    replaces each of these names. A condition compares the value of the new variable with the outer value. A name that
    occurs only in expressions is not replaced. Expressions read the outer value of such a name, or find the name
    unbound.
    """
    own = {name: f"{name}#inside{context.slots}" for name in sorted(unsure)}
    before = context.substitution
    context.substitution = replace(given, maybe=given.maybe - own.keys())
    try:
        if scope.variable is not None and scope.variable not in outer.names and not binds_graph(pattern):
            outer = graphs(context, outer, scope)
        pattern = with_own_graph_names(rename(pattern, own), context.substituted, context.numbers)
        inner = join(context, pattern, outer, scope)
        for name, inside in own.items():
            inner = tested(context, compatible(Variable(name), Variable(inside)), inner)
        return inner
    finally:
        context.substitution = before
