"""Conditions and computed columns, that is, expressions over the rows of a relation. The expressions can contain
EXISTS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.query.algebra.tree import Exists, Expr, Variable
from penstock.query.planning.cost.estimates import FILTER_KEEPS
from penstock.query.planning.exists import plan_exists
from penstock.query.planning.expression_specs import expression_spec, render_expression
from penstock.query.planning.joins import tested
from penstock.query.planning.relations import Relation, Scope, Spec
from penstock.query.planning.substitution import compatible

if TYPE_CHECKING:
    from penstock.query.planning.plan_context import PlanContext


def expression(context: PlanContext, expr: Expr, rows: Relation, scope: Scope) -> Spec:
    """Return an expression over `rows` in plan format. Each EXISTS in the expression becomes a sub-plan."""

    def sub_plan(call: Exists) -> Spec:
        inner, row = plan_exists(context, call, rows, scope)
        context.subplans.append({"node": inner.node, "row": row})
        return {"exists": len(context.subplans) - 1, "not": call.negated}

    return expression_spec(expr, context, sub_plan)


def extend(context: PlanContext, inner: Relation, name: str, expr: Expr, scope: Scope) -> Relation:
    """Add a computed column `name`. The column is unbound in rows for which the expression has an error. If an EXISTS
    substitutes the variable `name`, the variable is bound already. Only rows with a compatible value then remain.
    """
    if name in inner.names:
        own = f"{name}#{next(context.numbers)}"
        computed = extend(context, inner, own, expr, scope)
        return tested(context, compatible(Variable(own), Variable(name)), computed)
    spec = expression(context, expr, inner, scope)
    label = f"?{name} := {render_expression(expr)}"
    node = context.node("extend", label, inner.rows, **{"in": inner.node}, slot=context.slot(name), expr=spec)
    return Relation(node, inner.certain, inner.maybe | {name}, inner.rows)


def filtered(context: PlanContext, condition: Expr, rows: Relation, scope: Scope) -> Relation:
    """Return the rows for which the condition is true."""
    retained = rows.rows * FILTER_KEEPS
    if isinstance(condition, Exists):
        inner, row = plan_exists(context, condition, rows, scope)
        label = "not exists" if condition.negated else "exists"
        spec = context.node(
            "semijoin", label, retained, **{"in": rows.node}, inner=inner.node, row=row, anti=condition.negated
        )
    else:
        expr = expression(context, condition, rows, scope)
        spec = context.node("filter", render_expression(condition), retained, **{"in": rows.node}, expr=expr)
    return Relation(spec, rows.certain, rows.maybe, retained)
