"""Texts of queries and updates that are large, deep or wide. A text is a function of its seed: a shape and a size.

Sizes follow a Pareto distribution between 4 and 100,000 parts: one text of five has more than 40 parts, one of a
hundred and twenty more than 4,000, and one of a thousand is beyond what the planning limits allow.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

STREAM = "urn:x:stream/0"
PROLOGUE = "PREFIX : <urn:x:>\n"
SMALLEST, LARGEST, TAIL = 4, 100_000, 0.7
"""Parts of a text, and the exponent of the tail: P(size > x) = (SMALLEST / x) ** TAIL."""


class Writer:
    """Writes one text."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.left = min(LARGEST, int(SMALLEST * (1 - self.rng.random()) ** (-1 / TAIL)))
        self.names = self.rng.choice((3, 20, 10**6))
        self.shape = self.rng.choice(SHAPES)

    def text(self) -> str:
        return PROLOGUE + self.shape(self)

    # ---- small things
    def var(self) -> str:
        return f"?v{self.rng.randint(0, min(self.names, max(3, 3 * self.left)))}"

    def iri(self) -> str:
        return self.rng.choice(
            (":p", f":p{self.rng.randint(0, self.names)}", f"<urn:x:{'y' * self.rng.randint(0, 60)}>")
        )

    def value(self) -> str:
        return self.rng.choice(
            (str(self.rng.getrandbits(self.rng.choice((4, 40, 400)))), '"a"@en', "1.5e3", '"x"', self.iri())
        )

    def triple(self) -> str:
        self.left -= 1
        return f"{self.var()} {self.rng.choice((self.iri(), self.iri(), self.path(2), self.var()))} {self.rng.choice((self.var(), self.value()))}"

    def path(self, depth: int) -> str:
        parts = [
            self.iri() if depth <= 0 or self.rng.random() < 0.7 else self.path(depth - 1)
            for _ in range(self.rng.randint(1, 3))
        ]
        joined = self.rng.choice(("/", "|")).join(parts)
        return self.rng.choice((f"({joined})", f"({joined})*", f"({joined})+", f"^({joined})", f"({joined})?"))

    def expression(self, depth: int) -> str:
        self.left -= 1
        if depth <= 0 or self.left <= 0 or self.rng.random() < 0.3:
            return self.rng.choice((self.var(), self.value()))
        one, two = self.expression(depth - 1), self.expression(depth - 1)
        return self.rng.choice(
            (f"({one} + {two})", f"({one} && {two})", f"!({one})", f"({one} = {two})", f"STR({one})", f"({one} IN ({two}, 1))",
             f"COALESCE({one}, {two})", f"IF({one}, {two}, 1)", f"REGEX(STR({one}), 'a+')", f"EXISTS {{ {self.triple()} }}")
        )  # fmt: skip

    def block(self, depth: int) -> str:
        parts = [self.element(depth) for _ in range(self.rng.randint(1, 6)) if self.left > 0]
        return " ".join(parts or [f"{self.triple()} ."])

    def element(self, depth: int) -> str:
        if depth <= 0 or self.left <= 0:
            return f"{self.triple()} ."
        inner = self.block(depth - 1)
        return self.rng.choice(
            (f"{self.triple()} .", f"{self.triple()} .", f"OPTIONAL {{ {inner} }}", f"MINUS {{ {inner} }}",
             f"{{ {inner} }} UNION {{ {self.block(depth - 1)} }}", f"{{ {inner} }}", f"GRAPH {self.var()} {{ {inner} }}",
             f"FILTER({self.expression(3)})", f"FILTER NOT EXISTS {{ {inner} }}", f"{{ SELECT * {{ {inner} }} }}",
             f"BIND({self.expression(2)} AS ?b{self.rng.getrandbits(30)})", f"VALUES {self.var()} {{ {self.value()} UNDEF }}",
             f"{{ SELECT (COUNT(*) AS ?c{self.rng.getrandbits(30)}) {{ {inner} }} GROUP BY {self.var()} }}")
        )  # fmt: skip

    def many(self, one: Callable[[], str], between: str) -> str:
        count, self.left = max(1, self.left), 10**9
        return between.join(one() for _ in range(count))

    # ---- shapes
    def mixed(self) -> str:
        body = []
        while self.left > 0:
            body.append(self.element(self.rng.randint(0, 6)))
        return f"SELECT * {{ {' '.join(body)} }}"

    def standing(self) -> str:
        body = []
        while self.left > 0:
            body.append(self.element(self.rng.randint(0, 4)))
        return f"REGISTER QUERY q AS SELECT * FROM STREAM <{STREAM}> [RANGE 10s STEP 1s] {{ {' '.join(body)} }}"

    def unions(self) -> str:
        return f"SELECT * {{ {self.many(lambda: f'{{ {self.triple()} }}', ' UNION ')} }}"

    def triples(self) -> str:
        return f"SELECT * {{ {self.many(self.triple, ' . ')} }}"

    def optionals(self) -> str:
        return f"SELECT * {{ ?s ?p ?o {self.many(lambda: f'OPTIONAL {{ {self.triple()} }}', ' ')} }}"

    def filters(self) -> str:
        return f"SELECT * {{ ?v0 ?p ?v1 {self.many(lambda: f'FILTER({self.expression(2)})', ' ')} }}"

    def exists(self) -> str:
        return f"SELECT * {{ ?v0 ?p ?v1 {self.many(lambda: f'FILTER EXISTS {{ {self.triple()} }}', ' ')} }}"

    def sequence(self) -> str:
        return f"SELECT * {{ ?s {self.many(self.iri, self.rng.choice('/|'))} ?o }}"

    def closure(self) -> str:
        return f"SELECT * {{ ?s ({self.many(self.iri, self.rng.choice('/|'))})* ?o }}"

    def values(self) -> str:
        return f"SELECT * {{ VALUES ?v0 {{ {self.many(self.value, ' ')} }} ?v0 ?p ?o }}"

    def membership(self) -> str:
        return f"SELECT * {{ ?s ?p ?v0 FILTER(?v0 IN ({self.many(self.value, ', ')})) }}"

    def disjunction(self) -> str:
        return f"SELECT * {{ ?s ?p ?v0 FILTER({self.many(lambda: f'?v0 = {self.value()}', ' || ')}) }}"

    def sum(self) -> str:
        return f"SELECT * {{ ?s ?p ?v0 FILTER({self.many(self.value, ' + ')} > 1) }}"

    def aggregates(self) -> str:
        count = max(1, self.left)
        items = " ".join(f"(SUM({self.var()} + {i}) AS ?s{i})" for i in range(count))
        return f"SELECT {items} {{ ?v0 ?p ?v1 }} GROUP BY ?v0 HAVING(SUM(?v1) > 1)"

    def having(self) -> str:
        return f"SELECT ?v0 {{ ?v0 ?p ?v1 }} GROUP BY ?v0 HAVING {self.many(lambda: f'(SUM(?v1 + {self.value()}) > 1)', ' ')}"

    def projection(self) -> str:
        return f"SELECT {self.many(self.var, ' ')} {{ ?v0 ?p ?v1 }} ORDER BY ?v1"

    def order(self) -> str:
        return f"SELECT * {{ ?v0 ?p ?v1 }} ORDER BY {self.many(lambda: f'DESC({self.expression(2)})', ' ')}"

    def template(self) -> str:
        return f"CONSTRUCT {{ {self.many(lambda: f'?v0 {self.iri()} {self.value()}', ' . ')} }} {{ ?v0 ?p ?v1 }}"

    def prefixes(self) -> str:
        count = max(1, self.left)
        declared = "\n".join(f"PREFIX p{i}: <urn:{'z' * self.rng.choice((1, 50))}{i}>" for i in range(count))
        return f"{declared} SELECT * {{ ?s p0:a ?o }}"

    def long_prefix(self) -> str:
        names = " ".join(f"?s l:n{i} ?o{i % 7} ." for i in range(max(1, self.left)))
        return f"PREFIX l: <urn:{'z' * self.rng.choice((10, 1_000, 1_000_000))}> SELECT * {{ {names} }}"

    def graphs(self) -> str:
        clauses = self.many(lambda: f"FROM {self.rng.choice(('', 'NAMED '))}{self.iri()}", " ")
        return f"SELECT * {clauses} {{ {' '.join(f'?s :p{i} ?o{i} .' for i in range(self.rng.randint(1, 60)))} GRAPH ?g {{ ?s ?p ?o }} }}"

    def windows(self) -> str:
        clauses = " ".join(
            f"FROM NAMED WINDOW :w{i} ON <{STREAM}> [RANGE {i + 1}s STEP 1s]" for i in range(max(1, self.left))
        )
        return f"SELECT * {clauses} {{ WINDOW :w0 {{ ?s ?p ?o }} }}"

    def brackets(self) -> str:
        open_, close = self.rng.choice((("(", ")"), ("!(", ")"), ("(1 + ", ")"), ("STR(", ")")))
        return f"SELECT * {{ ?s ?p ?o FILTER({open_ * self.left}?o{close * self.left}) }}"

    def groups(self) -> str:
        open_ = self.rng.choice(
            ("{ ", "{ ?s ?p ?o . ", "{ OPTIONAL ", "{ ?a ?b ?c MINUS ", "{ SELECT * ", "{ GRAPH ?g ", "[ :p ")
        )
        if open_ == "[ :p ":
            return f"SELECT * {{ ?s :p {'[ :p ' * self.left}?o{' ]' * self.left} }}"
        return f"SELECT * {open_ * self.left}{{ ?s ?p ?o }}{' }' * self.left}"

    def list(self) -> str:
        return f"SELECT * {{ ?s ?p ({self.many(self.value, ' ')}) }}"

    def literal(self) -> str:
        quote = self.rng.choice(('"', "'''"))
        return f"SELECT * {{ ?s ?p {quote}{'ab' * self.left * 100}{quote} }}"

    def number(self) -> str:
        return f"SELECT * {{ ?s ?p {'7' * self.left * 10} . FILTER(?s > 1.{'0' * self.left}e1) }}"

    def insert(self) -> str:
        return (
            f"INSERT DATA {{ {self.many(lambda: f':s{self.rng.getrandbits(20)} {self.iri()} {self.value()}', ' . ')} }}"
        )


SHAPES = [
    Writer.mixed, Writer.mixed, Writer.mixed, Writer.standing, Writer.unions, Writer.triples, Writer.optionals,
    Writer.filters, Writer.exists, Writer.sequence, Writer.closure, Writer.values, Writer.membership,
    Writer.disjunction, Writer.sum, Writer.aggregates, Writer.having, Writer.projection, Writer.order, Writer.template,
    Writer.prefixes, Writer.long_prefix, Writer.graphs, Writer.windows, Writer.brackets, Writer.groups, Writer.list,
    Writer.literal, Writer.number, Writer.insert,
]  # fmt: skip
