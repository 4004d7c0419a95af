"""Translation of graph patterns, SPARQL 1.1 §18.2.2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lark import Token

from penstock.query.algebra.tree import (
    Bgp,
    Call,
    Expr,
    Extend,
    Graph,
    Iri,
    Join,
    LeftJoin,
    Literal,
    Minus,
    Node,
    PathTriple,
    Triple,
    Union,
    Values,
    Variable,
    WindowGraph,
)
from penstock.query.syntax.ast_nodes import (
    Alternatives,
    BindPattern,
    Element,
    FilterPattern,
    GraphPattern,
    GroupPattern,
    InlineData,
    LiteralSyntax,
    MinusPattern,
    OptionalPattern,
    SelectQuery,
    StreamPattern,
    TriplesBlock,
    WindowPattern,
    position,
)
from penstock.query.text_faults import Fault
from penstock.query.translation.context import Pattern, Scope
from penstock.query.translation.expressions import ExpressionTranslator
from penstock.query.translation.names import constant
from penstock.query.translation.triples import PatternReader
from penstock.query.translation.window_clauses import block_window

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.query.translation.context import Context

_UNIT = Bgp(())


def join(left: Node, right: Node, at: int = -1) -> Node:
    """Join two patterns. An empty basic graph pattern, the neutral element, is omitted (§18.2.2.8)."""
    if left == _UNIT:
        return right
    if right == _UNIT:
        return left
    return Join(left, right, at)


def conjunction(conditions: list[Expr]) -> Expr:
    """Return the conjunction of conditions. The list must not be empty."""
    return conditions[0] if len(conditions) == 1 else Call("and", tuple(conditions), "", conditions[0].at)


def inline_data(context: Context, syntax: InlineData) -> Values:
    """Translate VALUES (§10.2). Fault if a variable occurs twice, or if a row has the wrong length."""
    names: set[str] = set()
    for token in syntax.variables:
        if token[1:] in names:
            raise Fault(f"{token} stands twice in VALUES", position(token), str(token))
        names.add(token[1:])

    variables = tuple(map(context.variable, syntax.variables))

    def cell(value: Token | LiteralSyntax) -> Iri | Literal | None:
        if isinstance(value, Token) and value.type == "UNDEF":
            return None
        return constant(value, context.names)

    for row in syntax.rows:
        context.budget.spend(work=len(row))
        if len(row) != len(variables):
            at = position(row[0]) if row else syntax.at
            raise Fault(f"a row of VALUES has {len(row)} values for {len(variables)} variables", at)
    return Values(variables, tuple(tuple(map(cell, row)) for row in syntax.rows), syntax.at)


class PatternTranslator:
    """Translates groups to algebra. `sub_select` translates a sub-select to its algebra and scope."""

    def __init__(self, sub_select: Callable[[Context, SelectQuery], tuple[Node, Scope]]) -> None:
        self._sub_select = sub_select
        self.expression = ExpressionTranslator(lambda context, group: self(context, group).filtered)

    def __call__(self, context: Context, group: GroupPattern) -> Pattern:
        """Translate a group. Fault for an invalid element; LimitFault if the nesting is too deep."""
        context.enter(2, group.at)
        reading = _GroupReader(self, context, self._sub_select)
        for element in group.elements:
            reading.add(element)
        context.depth -= 2
        return reading.finish()


class _GroupReader:
    """Translates a group element by element, by the algorithm of §18.2.2.6."""

    def __init__(
        self,
        translate: PatternTranslator,
        context: Context,
        sub_select: Callable[[Context, SelectQuery], tuple[Node, Scope]],
    ) -> None:
        self._translate = translate
        self._context = context
        self._sub_select = sub_select
        self._node: Node = _UNIT
        self._scope: Scope = {}
        self._filters: list[Expr] = []
        self._triples: PatternReader | None = None

    def add(self, element: Element) -> None:
        """Add the next element. A FILTER does not end a basic graph pattern; all other elements do (§5.1)."""
        self._context.budget.spend(element.at)
        if isinstance(element, TriplesBlock):
            if self._triples is None:
                self._triples = PatternReader(self._context)
            self._triples.read(element)
        elif isinstance(element, FilterPattern):
            self._filters.append(self._translate.expression(self._context, element.condition))
        else:
            self._end_of_triples()
            self._pattern(element)

    def finish(self) -> Pattern:
        """Return the translated group."""
        self._end_of_triples()
        return Pattern(self._node, self._scope, conjunction(self._filters) if self._filters else None)

    def _end_of_triples(self) -> None:
        if self._triples is None or not self._triples.triples:
            return
        triples = tuple(self._triples.triples)
        self._triples = None
        for triple in triples:
            self._see_triple(triple)
        self._node = join(self._node, Bgp(triples, triples[0].at))

    def _see_triple(self, triple: Triple | PathTriple) -> None:
        predicate = triple.predicate if isinstance(triple, Triple) else None
        for term in (triple.subject, predicate, triple.object):
            if isinstance(term, Variable) and not term.name.startswith("_:"):
                self._scope.setdefault(term.name, term)

    def _see(self, scope: Scope) -> None:
        for name, variable in scope.items():
            self._scope.setdefault(name, variable)

    def _pattern(self, element: Element) -> None:
        match element:
            case Alternatives():
                self._alternatives(element)
            case OptionalPattern():
                self._optional(element)
            case MinusPattern():
                inner = self._translate(self._context, element.group)
                self._node = Minus(self._node, inner.filtered, element.at)
            case GraphPattern():
                self._graph(element)
            case WindowPattern():
                self._window(element)
            case StreamPattern():
                self._stream(element)
            case BindPattern():
                self._bind(element)
            case InlineData():
                values = inline_data(self._context, element)
                self._see({variable.name: variable for variable in values.variables})
                self._node = join(self._node, values, element.at)
            case SelectQuery():
                node, scope = self._sub_select(self._context, element)
                self._see(scope)
                self._node = join(self._node, node, element.at)
            case _:
                raise Fault("SERVICE is not supported: all data is read in place", element.at, "SERVICE")

    def _alternatives(self, element: Alternatives) -> None:
        branches = [self._translate(self._context, branch) for branch in element.branches]
        for branch in branches:
            self._see(branch.scope)
        if len(branches) == 1:
            node = branches[0].filtered
        else:
            node = Union(tuple(branch.filtered for branch in branches), element.at)
        self._node = join(self._node, node, element.at)

    def _optional(self, element: OptionalPattern) -> None:
        inner = self._translate(self._context, element.group)
        self._see(inner.scope)
        self._node = LeftJoin(self._node, inner.node, inner.condition, element.at)

    def _graph(self, element: GraphPattern) -> None:
        context = self._context
        if element.name.type == "VAR":
            variable = context.variable(element.name)
            self._see({variable.name: variable})
            name: Iri | Variable = variable
        else:
            name = iri = context.names.iri(element.name)
            clause = context.windows.get(iri.value)
            if clause is not None and clause.named_window:
                raise Fault(f"<{iri.value}> is a named window: write WINDOW {element.name} {{…}}", iri.at)
        inner = self._translate(context, element.group)
        self._see(inner.scope)
        self._node = join(self._node, Graph(name, inner.filtered, element.at), element.at)

    def _window(self, element: WindowPattern) -> None:
        name = self._context.names.iri(element.name)
        clause = self._context.windows.get(name.value)
        if clause is None:
            raise Fault(f"no FROM NAMED WINDOW clause declares <{name.value}>", name.at, str(element.name))
        if not clause.named_window:
            message = f"<{name.value}> is a stream, not a named window: write GRAPH {element.name} {{…}}"
            raise Fault(message, name.at, str(element.name))
        self._join_window(name, element)

    def _stream(self, element: StreamPattern) -> None:
        """Translate a window in a pattern of CQELS-QL. The window becomes a named window. Equal windows become one
        window.
        """
        stream = self._context.names.iri(element.stream)
        self._join_window(Iri(block_window(stream.value, element, self._context), stream.at), element)

    def _join_window(self, name: Iri, element: WindowPattern | StreamPattern) -> None:
        inner = self._translate(self._context, element.group)
        self._see(inner.scope)
        self._node = join(self._node, WindowGraph(name, inner.filtered, element.at), element.at)

    def _bind(self, element: BindPattern) -> None:
        """Translate BIND. Fault if the variable is already in scope in the group (§18.2.1)."""
        token = element.binding.variable
        if token[1:] in self._scope:
            raise Fault(f"BIND to {token}, which is already bound before it in its group", position(token), str(token))
        expr = self._translate.expression(self._context, element.binding.expr)
        variable = self._context.variable(token)
        self._scope[variable.name] = variable
        self._node = Extend(self._node, variable, expr, element.at)
