"""Translation of expressions, SPARQL 1.1 §17: operators, functions by name and by IRI, EXISTS, and aggregates."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Protocol

from lark import Token

from penstock.query.algebra.tree import AggregateCall, Call, Exists, Expr, Iri, Variable
from penstock.query.functions.signatures import BUILT_INS, BY_IRI, Signature
from penstock.query.syntax.ast_nodes import (
    AggregateSyntax,
    ExistsSyntax,
    ExprSyntax,
    FunctionCall,
    LiteralSyntax,
    Operation,
    position,
)
from penstock.query.syntax.hints import known_function
from penstock.query.syntax.lexis import string_value
from penstock.query.text_faults import Fault
from penstock.query.translation.names import constant, literal

if TYPE_CHECKING:
    from penstock.query.algebra.tree import Node
    from penstock.query.syntax.ast_nodes import GroupPattern
    from penstock.query.translation.context import Context


class GroupTranslator(Protocol):
    """Translates the group of an EXISTS. The protocol avoids an import of the module `patterns`, which imports this
    module.
    """

    def __call__(self, context: Context, group: GroupPattern) -> Node:
        """Return the algebra of the group."""


class ExpressionTranslator:
    """Translates expression syntax to algebra."""

    def __init__(self, group: GroupTranslator) -> None:
        self._group = group

    def __call__(self, context: Context, syntax: ExprSyntax) -> Expr:
        """Return the expression. Fault if the expression is invalid, for example if a function is unknown or has too
        many arguments.
        """
        if isinstance(syntax, Token):
            if syntax.type == "VAR":
                return context.constant_or_variable(syntax)
            return constant(syntax, context.names)
        if isinstance(syntax, LiteralSyntax):
            return literal(syntax, context.names)
        context.enter(1, syntax.at)
        expr = self._compound(context, syntax)
        context.depth -= 1
        return expr

    def _compound(self, context: Context, syntax: Operation | FunctionCall | AggregateSyntax | ExistsSyntax) -> Expr:
        match syntax:
            case Operation():
                return Call(syntax.name, self._all(context, syntax.args), "", syntax.at)
            case FunctionCall():
                return self._function(context, syntax)
            case AggregateSyntax():
                return self._aggregate(context, syntax)
            case ExistsSyntax():
                collected, context.aggregates = context.aggregates, None
                pattern = self._group(context, syntax.group)
                context.aggregates = collected
                return Exists(pattern, syntax.negated, syntax.at)

    def _all(self, context: Context, args: tuple[ExprSyntax, ...]) -> tuple[Expr, ...]:
        return tuple(map(self, repeat(context), args))

    def _function(self, context: Context, syntax: FunctionCall) -> Expr:
        signature = _signature(context, syntax)
        count = len(syntax.args)
        if not signature.least <= count <= signature.most:
            message = f"{syntax.function} takes {signature.expectation()}, not {count}"
            raise Fault(message, syntax.at, str(syntax.function))
        if syntax.distinct:
            raise Fault(f"DISTINCT is for aggregates; {syntax.function} is not one", syntax.at, str(syntax.function))
        args = self._all(context, syntax.args)
        if signature.name == "bound" and not isinstance(args[0], Variable):
            raise Fault("BOUND takes a variable", position(syntax.args[0]))
        if signature.name in ("window_start", "window_end"):
            return _window_bound(context, signature.name, syntax, args[0])
        if signature.name == "timestamp" and not context.windows:
            raise Fault("timestamp() needs a window: the query has none", syntax.at, str(syntax.function))
        base = (context.names.base or "") if signature.name == "iri" else ""
        return Call(signature.name, args, base, syntax.at)

    def _aggregate(self, context: Context, syntax: AggregateSyntax) -> Variable:
        """Return the variable that stands for an aggregate. Equal aggregates share a variable."""
        collected = context.aggregates
        if collected is None:
            message = (
                f"{syntax.name} cannot stand here: aggregates belong in SELECT, HAVING and ORDER BY,"
                " and not inside one another"
            )
            raise Fault(message, syntax.at, syntax.name)
        context.aggregates = None
        expr = None if syntax.expr is None else self(context, syntax.expr)
        context.aggregates = collected
        separator = " " if syntax.separator is None else string_value(syntax.separator)
        call = AggregateCall(syntax.name.lower(), expr, syntax.distinct, separator, syntax.at)
        if call not in collected:
            collected[call] = context.fresh("a", syntax.at)
        return collected[call]


def _signature(context: Context, syntax: FunctionCall) -> Signature:
    name = syntax.function
    if name.type in ("NAME", "NOW"):
        signature = BUILT_INS.get(name.upper())
        if signature is not None:
            return signature
        if context.names.base is None:
            raise Fault(f"there is no function '{name}'{known_function(str(name))}", syntax.at, str(name))
    iri = context.names.iri(name).value
    signature = BY_IRI.get(iri)
    if signature is not None:
        return signature
    if context.any_function:
        return Signature(iri, 0, len(syntax.args))
    meant = next((known for known in BY_IRI if known.lower() == iri.lower()), "")
    raise Fault(f"there is no function <{iri}>{f': did you mean <{meant}>?' if meant else ''}", syntax.at, str(name))


def _window_bound(context: Context, name: str, syntax: FunctionCall, window: Expr) -> Call:
    if not isinstance(window, Iri):
        raise Fault(f"{syntax.function} takes the IRI of a window", position(syntax.args[0]))
    if window.value not in context.windows:
        raise Fault(f"{syntax.function}: the query has no window <{window.value}>", window.at, str(syntax.args[0]))
    return Call(name, (), window.value, syntax.at)
