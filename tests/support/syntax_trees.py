"""Random syntax trees of limited depth: every node type, in every shape that the grammar can produce."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from lark import Token

from penstock.query.syntax import ast_nodes as ast

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

T = TypeVar("T")

SPELLINGS: dict[str, list[str]] = {
    "VAR": ["?x", "?y", "$z", "?été", "?0", *(f"?v{i}" for i in range(20))],
    "IRIREF": ["<http://ex.org/a>", "<b>", "<>"],
    "PNAME_LN": ["ex:p", ":q", "ex:a.b:c", ":%41\\,x", "ex:0"],
    "PNAME_NS": ["ex:", ":"],
    "NAME": ["po", "X-Lab", "strlen", "a.b", "_n"],
    "A": ["a"],
    "BLANK_NODE_LABEL": ["_:x", "_:1.y"],
    "INTEGER": ["3", "42"],
    "DECIMAL": ["1.5", ".5"],
    "DOUBLE": ["1e3", "1.e-3"],
    "INTEGER_NEGATIVE": ["-1"],
    "DECIMAL_POSITIVE": ["+.5"],
    "DOUBLE_NEGATIVE": ["-1e0"],
    "BOOLEAN": ["true", "FALSE"],
    "UNDEF": ["UNDEF"],
    "STRING_LITERAL1": ["'a'", "''", "'\\n\"'"],
    "STRING_LITERAL2": ['"b"', '"\\\\"', '"# no comment"'],
    "STRING_LITERAL_LONG1": ["'''it's\n'''"],
    "STRING_LITERAL_LONG2": ['"""say ""x"" """'],
    "LANGTAG": ["@en", "@de-AT-1996"],
}
IRIS = ["IRIREF", "PNAME_LN", "PNAME_NS", "NAME"]
STRINGS = ["STRING_LITERAL1", "STRING_LITERAL2", "STRING_LITERAL_LONG1", "STRING_LITERAL_LONG2"]
NUMBERS = ["INTEGER", "DECIMAL", "DOUBLE", "INTEGER_NEGATIVE", "DECIMAL_POSITIVE", "DOUBLE_NEGATIVE"]


class TreeMaker:
    """Makes trees from a source of randomness; `depth` bounds their nesting."""

    def __init__(self, rng: random.Random, depth: int = 4) -> None:
        self.rng = rng
        self.depth = depth

    # ---- choices
    def some(self, make: Callable[[], T], least: int = 0, most: int = 3) -> tuple[T, ...]:
        return tuple(make() for _ in range(self.rng.randint(least, most)))

    def maybe(self, make: Callable[[], T]) -> T | None:
        return make() if self.rng.random() < 0.4 else None

    def flip(self) -> bool:
        return self.rng.random() < 0.5

    def deeper(self, flat: Callable[[], T], *compound: Callable[[], T]) -> T:
        """Return a tree of `compound` while there is depth left, and sometimes one of `flat`."""
        if self.depth <= 0 or self.rng.random() < 0.35:
            return flat()
        self.depth -= 1
        made = self.rng.choice(compound)()
        self.depth += 1
        return made

    def token(self, *kinds: str) -> Token:
        kind = self.rng.choice(kinds)
        return Token(kind, self.rng.choice(SPELLINGS[kind]))

    # ---- terms, paths, triples
    def variable(self) -> Token:
        return self.token("VAR")

    def iri(self) -> Token:
        return self.token(*IRIS)

    def string(self) -> Token:
        return self.token(*STRINGS)

    def literal(self) -> ast.LiteralSyntax:
        if self.flip():
            return ast.LiteralSyntax(self.string(), lang=self.token("LANGTAG"))
        return ast.LiteralSyntax(self.string(), datatype=self.iri())

    def value(self) -> Any:
        return self.literal() if self.rng.random() < 0.2 else self.token(*IRIS, *STRINGS, *NUMBERS, "BOOLEAN")

    def path(self) -> Any:
        def one_of(operators: str, least: int, most: int) -> ast.PathSyntax:
            return ast.PathSyntax(self.rng.choice(operators), self.some(self.path, least, most))

        def member() -> Any:
            return step() if self.flip() else ast.PathSyntax("^", (step(),))

        def step() -> Token:
            return self.token(*IRIS, "A")

        return self.deeper(
            step,
            lambda: one_of("|/", 2, 3),
            lambda: one_of("^*+?", 1, 1),
            lambda: ast.PathSyntax("!", self.some(member)),
        )

    def verb_objects(self) -> ast.VerbObjects:
        return ast.VerbObjects(self.variable() if self.flip() else self.path(), self.some(self.node, 1, 2))

    def leaf(self) -> Any:
        kind = self.rng.random()
        return self.variable() if kind < 0.5 else self.token("BLANK_NODE_LABEL") if kind < 0.55 else self.value()

    def node(self) -> Any:
        return self.deeper(
            self.leaf,
            lambda: ast.Collection(self.some(self.node)),
            lambda: ast.BlankProperties(self.some(self.verb_objects, 0, 2)),
        )

    def same_subject(self) -> ast.SameSubject:
        subject = self.node()
        alone = isinstance(subject, ast.Collection) and subject.items
        alone = alone or (isinstance(subject, ast.BlankProperties) and subject.properties)
        return ast.SameSubject(subject, self.some(self.verb_objects, 0 if alone else 1, 2))

    def triples(self) -> ast.TriplesBlock:
        return ast.TriplesBlock(self.some(self.same_subject, 1, 2))

    # ---- expressions
    def operation(self) -> ast.Operation:
        kind = self.rng.choice(["nary", "binary", "unary", "list"])
        if kind == "nary":
            return ast.Operation(self.rng.choice(["or", "and"]), self.some(self.expression, 2, 3))
        if kind == "binary":
            signs = ["=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/"]
            return ast.Operation(self.rng.choice(signs), self.some(self.expression, 2, 2))
        if kind == "unary":
            return ast.Operation(self.rng.choice(["not", "neg", "pos"]), self.some(self.expression, 1, 1))
        return ast.Operation(self.rng.choice(["in", "notin"]), self.some(self.expression, 1, 3))

    def call(self) -> ast.FunctionCall:
        if self.rng.random() < 0.2:
            return ast.FunctionCall(Token("NOW", "now"), ())
        args = self.some(self.expression)
        return ast.FunctionCall(self.iri(), args, bool(args) and self.rng.random() < 0.2)

    def aggregate(self) -> ast.AggregateSyntax:
        name = self.rng.choice(["COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT"])
        expr = None if name == "COUNT" and self.flip() else self.expression()
        separator = self.maybe(self.string) if name == "GROUP_CONCAT" else None
        return ast.AggregateSyntax(name, expr, self.flip(), separator)

    def expression(self) -> Any:
        return self.deeper(
            lambda: self.variable() if self.flip() else self.value(),
            self.operation,
            self.call,
            self.aggregate,
            lambda: ast.ExistsSyntax(self.group(), self.flip()),
        )

    def binding(self) -> ast.AsVariable:
        return ast.AsVariable(self.expression(), self.variable())

    # ---- patterns
    def inline_data(self) -> ast.InlineData:
        variables = self.some(self.variable)

        def row() -> tuple[Any, ...]:
            return tuple(self.token("UNDEF") if self.rng.random() < 0.2 else self.value() for _ in variables)

        return ast.InlineData(variables, self.some(row))

    def element(self) -> Any:
        name = self.iri() if self.flip() else self.variable()
        return self.rng.choice(
            [
                lambda: ast.Alternatives(self.some(self.group, 1, 3)),
                lambda: ast.OptionalPattern(self.group()),
                lambda: ast.MinusPattern(self.group()),
                lambda: ast.GraphPattern(name, self.group()),
                lambda: ast.WindowPattern(self.iri(), self.group()),
                lambda: ast.StreamPattern(self.iri(), self.window(), self.group()),
                lambda: ast.FilterPattern(self.expression()),
                lambda: ast.BindPattern(self.binding()),
                self.inline_data,
            ]
        )()

    def group(self) -> ast.GroupPattern:
        return self.deeper(
            lambda: ast.GroupPattern((self.triples(),) if self.flip() else ()),
            lambda: ast.GroupPattern(self.some(self.element)),
            lambda: ast.GroupPattern((self.triples(), self.element(), self.triples())),
            lambda: ast.GroupPattern((self.select_query(()),)),
        )

    # ---- queries
    def modifiers(self) -> ast.Modifiers:
        def key() -> ast.OrderCondition:
            return ast.OrderCondition(self.expression(), self.flip())

        def grouping() -> Any:
            return self.binding() if self.flip() else self.expression()

        most = 2 if self.rng.random() < 0.4 else 0
        return ast.Modifiers(
            self.some(grouping, 0, most),
            self.some(self.expression, 0, most),
            self.some(key, 0, most),
            self.maybe(lambda: self.token("INTEGER")),
            self.maybe(lambda: self.token("INTEGER")),
        )

    def select_query(self, dataset: tuple[ast.DatasetClause, ...]) -> ast.SelectQuery:
        items = self.some(lambda: self.binding() if self.flip() else self.variable())
        clause = ast.SelectClause(items, self.rng.choice(["", "DISTINCT", "REDUCED"]))
        return ast.SelectQuery(clause, dataset, self.group(), self.modifiers(), self.maybe(self.inline_data))

    def query(self) -> Any:
        clauses = self.some(self.dataset_clause)
        form = self.rng.choice(["select", "select", "construct", "describe", "ask"])
        if form == "select":
            return self.select_query(clauses)
        tail = (clauses, self.group(), self.modifiers(), self.maybe(self.inline_data))
        if form == "construct":
            return ast.ConstructQuery(self.triples() if self.flip() else ast.TriplesBlock(()), *tail)
        if form == "describe":
            terms = self.some(lambda: self.iri() if self.flip() else self.variable())
            return ast.DescribeQuery(terms, tail[0], self.maybe(self.group), *tail[2:])
        return ast.AskQuery(*tail)

    # ---- whole texts
    def duration(self) -> ast.DurationSyntax:
        return ast.DurationSyntax(self.rng.choice(["10s", "500ms", "PT1M30S", "1.5h"]))

    def window(self) -> ast.WindowSyntax:
        kind = self.rng.choice(["RANGE", "NOW", "ALL", "TRIPLES", "ELEMENTS"])
        if kind == "NOW":
            return ast.WindowSyntax(kind)
        make = self.duration if kind in ("RANGE", "ALL") else lambda: self.token("INTEGER")
        if kind == "RANGE" and self.rng.random() < 0.2:
            return ast.WindowSyntax(kind, make(), tumbling=True)
        return ast.WindowSyntax(kind, None if kind == "ALL" else make(), self.maybe(make))

    def dataset_clause(self) -> ast.DatasetClause:
        if self.flip():
            window = self.maybe(self.window)
            return ast.DatasetClause(self.iri(), self.flip(), window, removed=window is not None and self.flip())
        name = self.iri()
        return ast.DatasetClause(self.iri(), True, self.window(), name, self.flip())

    def prologue(self) -> ast.Prologue:
        def declaration() -> tuple[Token | None, Token]:
            if self.flip():
                return None, Token("IRIREF", "<http://base.org/x>")
            return self.token("PNAME_NS"), self.token("IRIREF")

        namespaces = [(Token("PNAME_NS", name), Token("IRIREF", "<http://ex.org/>")) for name in SPELLINGS["PNAME_NS"]]
        return ast.Prologue((*namespaces, *self.some(declaration)))

    def registration(self) -> ast.Registration:
        operator = self.rng.choice(["QUERY", "STREAM", "RSTREAM", "ISTREAM", "DSTREAM"])
        instant = Token("STRING_LITERAL1", "'2014-08-01T00:00:00Z'")
        starts = [self.token("INTEGER"), instant, ast.LiteralSyntax(instant, datatype=self.iri())]
        every, at = self.maybe(self.duration), self.maybe(lambda: self.rng.choice(starts))
        declared = tuple(self.token("VAR") for _ in range(self.rng.choice([0, 0, 1, 3])))
        return ast.Registration(Token(operator, operator), self.iri(), declared, every, self.flip(), at)

    def text(self) -> ast.QueryText:
        if self.flip():
            return ast.QueryText((self.prologue(),), None, self.query())
        return ast.QueryText((self.prologue(), self.prologue()), self.registration(), self.query())
