"""Checks of a query that need no engine (docs/semantics.md §4, §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.query.algebra.scope import visible
from penstock.query.algebra.tree import Call, Exists, Node, Variable
from penstock.query.algebra.walk import children, expressions
from penstock.query.syntax.ast_nodes import AskQuery, position
from penstock.query.text_faults import Fault

if TYPE_CHECKING:
    from lark import Token

    from penstock.query.algebra.tree import Expr, Triple
    from penstock.query.budget import Budget
    from penstock.query.ir import ContinuousQuery
    from penstock.query.syntax.ast_nodes import QuerySyntax


def check_operator(query: QuerySyntax, operator: Token) -> None:
    """Raise Fault if a query has ISTREAM or DSTREAM together with ASK, ORDER BY, LIMIT or OFFSET. Differences of such
    answers are not defined.
    """
    if operator.type not in ("ISTREAM", "DSTREAM"):
        return
    modifiers = query.modifiers
    if isinstance(query, AskQuery):
        raise Fault(f"{operator} cannot be used with ASK", position(operator))
    if modifiers.order_by:
        raise Fault(f"{operator} cannot be used with ORDER BY", position(modifiers.order_by[0].expr))
    if modifiers.limit is not None or modifiers.offset is not None:
        raise Fault(f"{operator} cannot be used with LIMIT or OFFSET", position(modifiers.limit or modifiers.offset))


def check_windows(query: ContinuousQuery) -> None:
    """Raise Fault for a registered query without a window, because such a query would have no instants."""
    if query.registered and not query.windows:
        raise Fault("a registered query needs a window: FROM STREAM <s> [RANGE …]", query.at, "REGISTER")


def check_depth(root: Node, budget: Budget) -> None:
    """Raise LimitFault if the algebra is too deep, because all later steps are recursive. A long chain of OPTIONALs is
    deep although the text is not nested.
    """
    most = 2 * budget.limits.max_nesting
    stack: list[tuple[Node, int, int]] = [(root, 1, 0)]
    while stack:
        node, depth, at = stack.pop()
        at = node.at if node.at >= 0 else at
        budget.spend(at)
        if depth > most:
            message = f"the query is nested too deeply: more than {most} patterns inside one another"
            budget.exceeded("max_nesting", message, at)
        stack.extend((child, depth + 1, at) for child in children(node))
        for expr in expressions(node):
            stack.extend((pattern, depth + 1, at) for pattern in _exists(expr))


def _exists(expr: Expr) -> list[Node]:
    if isinstance(expr, Exists):
        return [expr.pattern]
    if isinstance(expr, Call):
        return [pattern for argument in expr.args for pattern in _exists(argument)]
    return []


def template_warnings(template: tuple[Triple, ...], algebra: Node) -> list[str]:
    """Return warnings about variables of a CONSTRUCT template that the pattern never binds. No triple with such a
    variable is ever created (§16.2).
    """
    terms = [term for triple in template for term in (triple.subject, triple.predicate, triple.object)]
    names = {term.name for term in terms if isinstance(term, Variable)}
    return [f"the template uses ?{name}, which the pattern never binds" for name in sorted(names - visible(algebra))]
