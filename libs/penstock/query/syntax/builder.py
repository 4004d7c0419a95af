"""Builds the syntax tree: one method per rule or alias of grammar/sparql.lark.

The parser calls a method on each reduction, with the values of the rule's children. Punctuation is omitted; an absent
optional part is None. All threads share one builder, because a builder has no state.
"""

# ruff: noqa: D102 - each method is the grammar rule of its name

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

from lark import Token

from penstock.query.syntax.ast_nodes import (
    AggregateSyntax,
    Alternatives,
    AskQuery,
    AsVariable,
    BindPattern,
    BlankProperties,
    Collection,
    ConstructQuery,
    DatasetClause,
    DescribeQuery,
    DurationSyntax,
    EntailmentClause,
    ExistsSyntax,
    FilterPattern,
    FunctionCall,
    GraphPattern,
    GroupPattern,
    InlineData,
    LiteralSyntax,
    MinusPattern,
    Modifiers,
    Operation,
    OptionalPattern,
    OrderCondition,
    PathSyntax,
    Prologue,
    QueryText,
    Registration,
    SameSubject,
    SelectClause,
    SelectQuery,
    ServicePattern,
    StreamPattern,
    TriplesBlock,
    VerbObjects,
    WindowPattern,
    WindowSyntax,
    position,
)
from penstock.query.syntax.update_builder import UpdateBuilder

Children: TypeAlias = list[Any]

_BEGINNING = object()  # FROM BEGINNING, in the place of the instant of STARTING AT

_UNARY = {"!": "not", "-": "neg", "+": "pos"}


class TreeBuilder(UpdateBuilder):
    """The grammar's callbacks."""

    # ---- whole texts
    def unregistered(self, c: Children) -> QueryText:
        return QueryText((c[0],), None, c[1])

    def registered(self, c: Children) -> QueryText:
        return QueryText((c[0], c[2]), c[1], c[3])

    def prologue(self, c: Children) -> Prologue:
        return Prologue(tuple(c))

    def base_decl(self, c: Children) -> tuple[None, Token]:
        return None, c[1]

    def prefix_decl(self, c: Children) -> tuple[Token, Token]:
        return c[1], c[2]

    def registration(self, c: Children) -> Registration:
        start, operator, name, parameters, computed, nonempty, starting, _ = c
        return Registration(
            operator,
            name,
            parameters or (),
            computed,
            bool(nonempty),
            None if starting is _BEGINNING else starting,
            starting is _BEGINNING,
            position(start),
        )

    def parameters(self, c: Children) -> tuple[Token, ...]:
        return tuple(token for token in c if token.type == "VAR")

    def operator(self, c: Children) -> Token:
        token: Token = c[0]
        return token

    def computed(self, c: Children) -> DurationSyntax:
        duration: DurationSyntax = c[2]
        return duration

    def report(self, c: Children) -> bool:
        return bool(c[1].type == "NONEMPTY")

    def starting(self, c: Children) -> Token | LiteralSyntax:
        instant: Token | LiteralSyntax = c[2]
        return instant

    def beginning(self, _: Children) -> object:
        return _BEGINNING

    # ---- query forms
    def select_query(self, c: Children) -> SelectQuery:
        select, dataset, where, modifiers, values = c
        return SelectQuery(select, dataset, where, modifiers, values, select.at)

    def sub_select(self, c: Children) -> SelectQuery:
        select, where, modifiers, values = c
        return SelectQuery(select, (), where, modifiers, values, select.at)

    def select_clause(self, c: Children) -> SelectClause:
        items = () if c[2].__class__ is Token and c[2].type == "STAR" else tuple(c[2:])
        return SelectClause(items, c[1].type if c[1] else "", position(c[0]))

    def select_expression(self, c: Children) -> AsVariable:
        return AsVariable(c[0], c[2], position(c[0]))

    def construct_query(self, c: Children) -> ConstructQuery:
        start, template, dataset, where, modifiers, values = c
        return ConstructQuery(template, dataset, where, modifiers, values, at=position(start))

    def construct_short(self, c: Children) -> ConstructQuery:
        start, dataset, _, template, modifiers, values = c
        where = GroupPattern((template,), template.at)
        return ConstructQuery(template, dataset, where, modifiers, values, short=True, at=position(start))

    def describe_query(self, c: Children) -> DescribeQuery:
        dataset, where, modifiers, values = c[-4:]
        terms = () if c[1].type == "STAR" else tuple(c[1:-4])
        return DescribeQuery(terms, dataset, where, modifiers, values, position(c[0]))

    def ask_query(self, c: Children) -> AskQuery:
        start, dataset, where, modifiers, values = c
        return AskQuery(dataset, where, modifiers, values, position(start))

    # ---- dataset
    def dataset(self, c: Children) -> tuple[DatasetClause | EntailmentClause, ...]:
        return tuple(c)

    def from_default(self, c: Children) -> DatasetClause:
        return DatasetClause(c[1], named=False, window=c[2], at=position(c[0]))

    def from_named(self, c: Children) -> DatasetClause:
        return DatasetClause(c[2], named=True, window=c[3], at=position(c[0]))

    def from_stream(self, c: Children) -> DatasetClause:
        return DatasetClause(c[2], named=False, window=c[3], at=position(c[0]))

    def from_named_stream(self, c: Children) -> DatasetClause:
        return DatasetClause(c[3], named=True, window=c[4], at=position(c[0]))

    def from_named_window(self, c: Children) -> DatasetClause:
        return DatasetClause(c[5], named=True, window=c[6], window_name=c[3], at=position(c[0]))

    def asserted(self, c: Children) -> DatasetClause:
        clause: DatasetClause = c[0]
        return clause

    def removed(self, c: Children) -> DatasetClause:
        clause: DatasetClause = c[1]
        return replace(clause, removed=True, at=position(c[0]))

    def entailment(self, c: Children) -> EntailmentClause:
        return EntailmentClause(c[2], position(c[0]))

    def slide_step_window(self, c: Children) -> WindowSyntax:
        return WindowSyntax("RANGE", c[2], c[4], at=position(c[0]), second_step=c[6])

    def time_window(self, c: Children) -> WindowSyntax:
        step = None if isinstance(c[-1], Token) else c[-1]  # TUMBLING is a token
        return WindowSyntax("RANGE", c[2], step, step is not c[-1], position(c[0]))

    def now_window(self, c: Children) -> WindowSyntax:
        return WindowSyntax("NOW", at=position(c[0]))

    def all_window(self, c: Children) -> WindowSyntax:
        return WindowSyntax("ALL", None, c[-1], at=position(c[0]))

    def count_window(self, c: Children) -> WindowSyntax:
        """Build a count window. C-SPARQL also allows `[RANGE TRIPLES n]`."""
        unit, size, *step = c[2:] if c[1].type == "RANGE" else c[1:]
        return WindowSyntax(unit.type, size, step[-1], at=position(c[0]))

    def duration_number(self, c: Children) -> DurationSyntax:
        return DurationSyntax(f"{c[0]}{c[1]}", position(c[0]))

    def duration_iso(self, c: Children) -> DurationSyntax:
        return DurationSyntax("".join(c), position(c[0]))

    def duration_literal(self, c: Children) -> DurationSyntax:
        literal = c[0]
        text = literal.string if isinstance(literal, LiteralSyntax) else literal
        return DurationSyntax(str(text).strip("\"'"), position(literal))

    # ---- solution modifiers
    def where_clause(self, c: Children) -> GroupPattern:
        group: GroupPattern = c[-1]
        return group

    def solution_modifier(self, c: Children) -> Modifiers:
        group, having, order, limits = c
        limit, offset, _ = limits or (None, None, -1)
        at = next((clause[-1] for clause in c if clause), -1)
        return Modifiers(
            group[0] if group else (), having[0] if having else (), order[0] if order else (), limit, offset, at
        )

    def group_clause(self, c: Children) -> tuple[Any, int]:
        return tuple(c[2:]), position(c[0])

    def having_clause(self, c: Children) -> tuple[Any, int]:
        return tuple(c[1:]), position(c[0])

    order_clause = group_clause

    def directed(self, c: Children) -> OrderCondition:
        return OrderCondition(c[1], c[0].type == "DESC")

    def undirected(self, c: Children) -> OrderCondition:
        return OrderCondition(c[0])

    def limit_offset(self, c: Children) -> tuple[Token, Token | None, int]:
        return c[1], c[-1], position(c[0])

    def offset_limit(self, c: Children) -> tuple[Token | None, Token, int]:
        return c[-1], c[1], position(c[0])

    def values_clause(self, c: Children) -> InlineData:
        variables, rows = c[1]
        return InlineData(variables, rows, position(c[0]))

    # ---- patterns
    def group_graph_pattern(self, c: Children) -> GroupPattern:
        return GroupPattern(c[1], position(c[0]))

    def sub_select_group(self, c: Children) -> GroupPattern:
        return GroupPattern((c[1],), position(c[0]))

    def group_graph_pattern_sub(self, c: Children) -> tuple[Any, ...]:
        return tuple(c)

    def triples_block(self, c: Children) -> TriplesBlock:
        return TriplesBlock(tuple(c), position(c[0]))

    def optional(self, c: Children) -> OptionalPattern:
        return OptionalPattern(c[1], position(c[0]))

    def graph(self, c: Children) -> GraphPattern:
        return GraphPattern(c[1], c[2], position(c[0]))

    def window_graph(self, c: Children) -> WindowPattern:
        return WindowPattern(c[1], c[2], position(c[0]))

    def stream_block(self, c: Children) -> StreamPattern:
        return StreamPattern(c[1], c[2], c[3], position(c[0]))

    def service(self, c: Children) -> ServicePattern:
        return ServicePattern(position(c[0]))

    def bind(self, c: Children) -> BindPattern:
        return BindPattern(AsVariable(c[1], c[3], position(c[1])), position(c[0]))

    inline_data = values_clause

    def data_block_one(self, c: Children) -> tuple[tuple[Token, ...], tuple[Any, ...]]:
        return (c[0],), tuple((value,) for value in c[1:])

    def data_block_full(self, c: Children) -> tuple[tuple[Token, ...], tuple[Any, ...]]:
        return c[0], tuple(c[1:])

    def data_row(self, c: Children) -> tuple[Any, ...]:
        return tuple(c)

    data_variables = data_row

    def minus(self, c: Children) -> MinusPattern:
        return MinusPattern(c[1], position(c[0]))

    def group_or_union(self, c: Children) -> Alternatives:
        return Alternatives(tuple(c[::2]), position(c[0]))

    def filter(self, c: Children) -> FilterPattern:
        return FilterPattern(c[1], position(c[0]))

    # ---- templates and triples
    def template(self, c: Children) -> TriplesBlock:
        return TriplesBlock(c[1].subjects if len(c) > 1 else (), position(c[0]))

    def triples_same_subject(self, c: Children) -> SameSubject:
        return SameSubject(c[0], c[1] or (), position(c[0]))

    def property_list(self, c: Children) -> tuple[VerbObjects, ...]:
        return tuple(c)

    def verb_objects(self, c: Children) -> VerbObjects:
        return VerbObjects(c[0], c[1])

    def object_list(self, c: Children) -> tuple[Any, ...]:
        return tuple(c)

    def collection(self, c: Children) -> Collection:
        return Collection(tuple(c[1:]), position(c[0]))

    nil = collection

    def blank_node_property_list(self, c: Children) -> BlankProperties:
        return BlankProperties(c[1], position(c[0]))

    def anon(self, c: Children) -> BlankProperties:
        return BlankProperties((), position(c[0]))

    # ---- property paths
    def path_alternative(self, c: Children) -> PathSyntax:
        return PathSyntax("|", tuple(c), position(c[0]))

    def path_sequence(self, c: Children) -> PathSyntax:
        return PathSyntax("/", tuple(c[::2]), position(c[0]))

    def path_inverse(self, c: Children) -> PathSyntax:
        return PathSyntax("^", (c[1],), position(c[0]))

    def path_closure(self, c: Children) -> PathSyntax:
        return PathSyntax(str(c[1]), (c[0],), position(c[0]))

    def path_negated(self, c: Children) -> PathSyntax:
        return PathSyntax("!", tuple(part for part in c[1:] if part is not None), position(c[0]))

    # ---- terms
    def lang_literal(self, c: Children) -> LiteralSyntax:
        return LiteralSyntax(c[0], lang=c[1], at=position(c[0]))

    def typed_literal(self, c: Children) -> LiteralSyntax:
        return LiteralSyntax(c[0], datatype=c[1], at=position(c[0]))

    # ---- expressions
    def or_expression(self, c: Children) -> Operation:
        return Operation("or", tuple(c), position(c[0]))

    def and_expression(self, c: Children) -> Operation:
        return Operation("and", tuple(c), position(c[0]))

    def binary(self, c: Children) -> Operation:
        return Operation(str(c[1]), (c[0], c[2]), position(c[0]))

    def signed_addition(self, c: Children) -> Operation:
        """Build `?a -1` as the sum of `?a` and the number `-1`: the sign belongs to the number (SPARQL 1.1 production
        [116]).
        """
        return Operation("+", (c[0], c[1]), position(c[0]))

    def membership(self, c: Children) -> Operation:
        negated = c[1].type == "NOT"
        items = tuple(item for item in c[3 if negated else 2 :] if item is not None)
        return Operation("notin" if negated else "in", (c[0], *items), position(c[0]))

    def unary(self, c: Children) -> Operation:
        return Operation(_UNARY[str(c[0])], (c[1],), position(c[0]))

    def function_call(self, c: Children) -> FunctionCall:
        distinct, args = c[1]
        return FunctionCall(c[0], args, distinct, position(c[0]))

    def now_call(self, c: Children) -> FunctionCall:
        return FunctionCall(c[0], (), at=position(c[0]))

    def arguments(self, c: Children) -> tuple[bool, tuple[Any, ...]]:
        return c[1] is not None, tuple(argument for argument in c[2:] if argument is not None)

    def aggregate(self, c: Children) -> AggregateSyntax:
        name, distinct, expr = c
        star = isinstance(expr, Token) and expr.type == "STAR"
        return AggregateSyntax(name.type, None if star else expr, distinct is not None, at=position(name))

    def group_concat(self, c: Children) -> AggregateSyntax:
        name, distinct, expr = c[:3]
        return AggregateSyntax(name.type, expr, distinct is not None, c[-1], position(name))

    def exists(self, c: Children) -> ExistsSyntax:
        return ExistsSyntax(c[-1], c[0].type == "NOT", position(c[0]))
