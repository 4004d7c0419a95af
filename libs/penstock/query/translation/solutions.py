"""Translation of grouping, aggregates and solution modifiers, SPARQL 1.1 §18.2.4 and §18.2.5."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from penstock.query.algebra.tree import (
    AggregateCall,
    Call,
    Distinct,
    Expr,
    Extend,
    Filter,
    Group,
    Node,
    OrderBy,
    OrderKey,
    Project,
    Reduced,
    Slice,
    Variable,
)
from penstock.query.syntax.ast_nodes import AsVariable, position
from penstock.query.text_faults import Fault
from penstock.query.translation.patterns import PatternTranslator, conjunction, inline_data, join

if TYPE_CHECKING:
    from lark import Token

    from penstock.query.syntax.ast_nodes import (
        ExprSyntax,
        InlineData,
        Modifiers,
        SelectClause,
        SelectQuery,
    )
    from penstock.query.translation.context import Context, Pattern, Scope

_LARGEST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class _Item:
    """An item of a SELECT clause: a variable, optionally with an expression."""

    variable: Variable
    expr: Expr | None


class SolutionTranslator:
    """Translates the clauses around the pattern of a query: SELECT, GROUP BY, HAVING, VALUES, ORDER BY, LIMIT."""

    def __init__(self) -> None:
        self.pattern = PatternTranslator(self.select)

    def select(self, context: Context, query: SelectQuery) -> tuple[Node, Scope]:
        """Return the algebra of a SELECT query, and the query's variables. The algebra has a Project. DISTINCT and
        LIMIT, if present, are above the Project.
        """
        outer, context.aggregates = context.aggregates, None
        pattern = self.pattern(context, query.where)
        node, variables = _Solution(self, context, pattern, query.modifiers, query.values).selected(query.select)
        context.aggregates = outer
        return node, {variable.name: variable for variable in variables}

    def unprojected(self, context: Context, pattern: Pattern, modifiers: Modifiers, values: InlineData | None) -> Node:
        """Return the pattern of an ASK, CONSTRUCT or DESCRIBE with its solution modifiers, but without a Project."""
        return _Solution(self, context, pattern, modifiers, values).plain()


class _Solution:
    """The state of the translation of one query or sub-query."""

    def __init__(
        self,
        translator: SolutionTranslator,
        context: Context,
        pattern: Pattern,
        modifiers: Modifiers,
        values: InlineData | None,
    ) -> None:
        self._context = context
        self._expression = translator.pattern.expression
        self._modifiers = modifiers
        self._values = None if values is None else inline_data(context, values)
        self._scope = dict(pattern.scope)
        for variable in self._values.variables if self._values is not None else ():
            self._scope.setdefault(variable.name, variable)
        self._node = pattern.filtered
        self._aggregates: dict[AggregateCall, Variable] = {}
        self._keys = self._group_keys()
        self._aliases: set[str] = set()

    def selected(self, clause: SelectClause) -> tuple[Node, tuple[Variable, ...]]:
        items = [self._item(item) for item in clause.items]
        having, order = self._having(), self._order()
        if not clause.items and self._grouped:
            raise Fault("SELECT * cannot stand with GROUP BY or aggregates: name the variables", clause.at, "SELECT")
        if self._grouped:
            self._check_items(items)
        variables = tuple({item.variable.name: item.variable for item in items}.values())
        if not clause.items:
            variables = tuple(self._scope.values())
        node = self._solved(items, having, order)
        node = Project(node, variables, clause.at)
        if clause.modifier:
            node = (Distinct if clause.modifier == "DISTINCT" else Reduced)(node, clause.at)
        return self._sliced(node), variables

    def plain(self) -> Node:
        having, order = self._having(), self._order()
        return self._sliced(self._solved([], having, order))

    @cached_property
    def _held(self) -> frozenset[str]:
        """The names of the variables that stand for aggregates. The set is complete only after all clauses are
        translated.
        """
        return frozenset(variable.name for variable in self._aggregates.values())

    @property
    def _grouped(self) -> bool:
        return bool(self._modifiers.group_by) or bool(self._aggregates)

    # ---- reading
    def _group_keys(self) -> dict[str, Variable]:
        """Translate GROUP BY. An Extend below the Group binds the variable of an expression (§18.2.4.1)."""
        keys: dict[str, Variable] = {}
        for condition in self._modifiers.group_by:
            if isinstance(condition, AsVariable):
                variable = self._new_variable(condition.variable)
                self._extend(variable, condition.expr)
                self._scope[variable.name] = variable
            else:
                expr = self._expression(self._context, condition)
                if isinstance(expr, Variable):
                    variable = expr
                else:
                    variable = self._context.fresh("k", position(condition))
                    self._node = Extend(self._node, variable, expr, position(condition))
            keys.setdefault(variable.name, variable)
        return keys

    def _extend(self, variable: Variable, syntax: ExprSyntax) -> None:
        self._node = Extend(self._node, variable, self._expression(self._context, syntax), position(syntax))

    def _new_variable(self, token: Token) -> Variable:
        if token[1:] in self._scope:
            raise Fault(f"AS {token}: the variable is already in use in this query level", position(token), str(token))
        return self._context.variable(token)

    def _item(self, item: Token | AsVariable) -> _Item:
        if not isinstance(item, AsVariable):
            return _Item(self._context.variable(item), None)
        variable = self._new_variable(item.variable)
        if variable.name in self._aliases:
            raise Fault(f"AS {item.variable}: SELECT gives it twice", variable.at, str(item.variable))
        self._aliases.add(variable.name)
        return _Item(variable, self._lifted(item.expr))

    def _lifted(self, syntax: ExprSyntax) -> Expr:
        """Translate an expression. Collect the aggregates of the expression, and replace each aggregate by a
        variable.
        """
        self._context.aggregates = self._aggregates
        expr = self._expression(self._context, syntax)
        self._context.aggregates = None
        return expr

    def _having(self) -> list[Expr]:
        return [self._lifted(condition) for condition in self._modifiers.having]

    def _order(self) -> list[OrderKey]:
        return [OrderKey(self._lifted(key.expr), key.descending) for key in self._modifiers.order_by]

    # ---- checks
    def _check_items(self, items: list[_Item]) -> None:
        """Check that the items of SELECT consist of keys and aggregates only (§19.8 note 12, §11.4)."""
        known = self._keys.keys() | {variable.name for variable in self._aggregates.values()}
        for item in items:
            read = [item.variable] if item.expr is None else _variables(item.expr)
            for variable in read:
                if variable.name not in known:
                    message = f"?{variable.name} is neither in GROUP BY nor inside an aggregate"
                    raise Fault(message, variable.at)
            known.add(item.variable.name)

    # ---- building
    def _solved(self, items: list[_Item], having: list[Expr], order: list[OrderKey]) -> Node:
        if self._grouped:
            having = [self._sampled(condition, frozenset()) for condition in having]
            order = [OrderKey(self._sampled(key.expr, frozenset(self._aliases)), key.descending) for key in order]
            aggregates = tuple((variable, call) for call, variable in self._aggregates.items())
            implicit = not self._modifiers.group_by
            self._node = Group(self._node, tuple(self._keys.values()), aggregates, implicit, self._modifiers.at)
        if having:
            condition = conjunction(having)
            self._node = Filter(self._node, condition, condition.at)
        if self._values is not None:
            self._node = join(self._node, self._values, self._values.at)
        for item in items:
            if item.expr is not None:
                self._node = Extend(self._node, item.variable, item.expr, item.variable.at)
        if order:
            self._node = OrderBy(self._node, tuple(order), self._modifiers.at)
        return self._node

    def _sampled(self, expr: Expr, aliases: frozenset[str]) -> Expr:
        """Replace variables that are not group keys by their SAMPLE (§18.2.4.1). This applies to HAVING conditions and
        ORDER BY keys of a grouped query.
        """
        replaced: dict[str, Variable] = {}
        for variable in _variables(expr):
            name = variable.name
            if name in self._keys or name in self._held or name in aliases:
                continue
            if name in self._aliases:
                self._context.warnings.append(
                    f"HAVING is decided before SELECT gives ?{name} its value: repeat the expression"
                )
            call = AggregateCall("sample", Variable(name), at=variable.at)
            if call not in self._aggregates:
                self._aggregates[call] = self._context.fresh("a", variable.at)
            replaced[name] = self._aggregates[call]
        return _replaced(expr, replaced)

    def _sliced(self, node: Node) -> Node:
        limit, offset = self._modifiers.limit, self._modifiers.offset
        if limit is None and offset is None:
            return node
        return Slice(node, _count(offset) or 0, _count(limit), self._modifiers.at)


def _count(token: Token | None) -> int | None:
    if token is None:
        return None
    if len(token) > len(str(_LARGEST)) or int(token) > _LARGEST:
        raise Fault(f"{token} is too large", position(token), str(token))
    return int(token)


def _variables(expr: Expr) -> list[Variable]:
    """Return the variables of an expression, without variables in EXISTS."""
    if isinstance(expr, Variable):
        return [expr]
    if isinstance(expr, Call):
        return [variable for argument in expr.args for variable in _variables(argument)]
    return []


def _replaced(expr: Expr, by_name: dict[str, Variable]) -> Expr:
    if not by_name:
        return expr
    if isinstance(expr, Variable):
        return by_name.get(expr.name, expr)
    if isinstance(expr, Call):
        return replace(expr, args=tuple(_replaced(argument, by_name) for argument in expr.args))
    return expr
