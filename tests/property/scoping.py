"""Bodies whose answers hang on scopes and values: OPTIONAL first inside GRAPH ?g, EXISTS over variables that some rows
leave unbound, sort keys that tie by value, language tags in mixed case.
"""

from __future__ import annotations

from dataclasses import replace

import pyoxigraph as ox

from property.bodies import LINKS, NODES, BodyMaker, Scope, X
from support import patterns as P
from support.terms import XSD

SIZE, NAME = ox.NamedNode(X + "size"), ox.NamedNode(X + "name")
SIZES = [
    ox.Literal(text, datatype=ox.NamedNode(XSD + kind))
    for text, kind in [
        ("1", "integer"), ("2", "integer"), ("1.0", "decimal"), ("2.0", "decimal"), ("2.00", "decimal"),
        ("02", "integer"), ("1e0", "double"), ("2E0", "double"),
    ]
]  # fmt: skip
NAMES = ['"rot"@de', '"rot"@DE', '"tomate"@de-CH', '"tomate"@De-ch', '"rouge"@FR', '"rouge"@fr', '"vin"@fr-CA']
TAGGED = [ox.Literal(*text[1:].split('"@')[:1], language=text.split("@")[1].lower()) for text in NAMES]


class ScopingMaker(BodyMaker):
    """Makes such bodies; everything else is as with any body."""

    # ---- groups
    def placed(self, scope: Scope, depth: int) -> P.Element:
        made = super().placed(scope, depth)
        if isinstance(made, P.Graph) and isinstance(made.name, P.Var):
            return P.Graph(made.name, self.graph_group(scope, depth))
        return made

    def graph_group(self, scope: Scope, depth: int) -> P.Group:
        """Begin with something that may have a solution without a triple, mostly."""
        rng = self.rng
        elements: list[P.Element] = []
        for _ in range(rng.choice([0, 1, 1, 2])):
            first = rng.choice([self.bare_optional, self.bare_optional, self.empty, self.loose_union, self.values])
            if depth and rng.random() < 0.25:
                first = self.subselect
            if (made := first(scope, max(depth, 1))) is not None:
                elements.append(made)
        if not elements or rng.random() < 0.7:
            elements.append(self.triples(scope, 0))
        if rng.random() < 0.3:
            elements.append(P.Filter(self.condition(scope)))
        if rng.random() < 0.15:
            elements.append(P.Minus(P.Group((self.triples(Scope(dict(scope.kinds)), 0),))))
        return P.Group(tuple(elements))

    def bare_optional(self, scope: Scope, depth: int) -> P.Element:
        elements: list[P.Element] = [self.triples(scope, 0)]
        if self.rng.random() < 0.3:
            elements.append(P.Filter(self.comparison(scope)))
        return P.Optional(P.Group(tuple(elements)))

    def empty(self, scope: Scope, depth: int) -> P.Element:
        return P.Braces(P.Group(()))

    def loose_union(self, scope: Scope, depth: int) -> P.Element:
        first = P.Group((self.bare_optional(scope, depth), self.triples(scope, 0)))
        return P.Union((first, P.Group((self.triples(scope, 0),))))

    def braces(self, scope: Scope, depth: int) -> P.Element:
        """A nested group whose filter reads what it need not bind."""
        return P.Braces(P.Group((self.triples(Scope(dict(scope.kinds)), 0), P.Filter(self.comparison(scope)))))

    def reaching(self, scope: Scope, depth: int) -> P.Element:
        """A path that may be empty."""
        path = P.Repeat(P.Link(self.rng.choice(LINKS)), self.rng.choice("*?"))
        return P.Triples(((self.node(scope, constant=0.1), path, self.node(scope, constant=0.2)),))

    def values(self, scope: Scope, depth: int) -> P.Element | None:
        """One or two columns, often with UNDEF, and terms that no graph has as nodes."""
        names = self.some([n for n in "abc" if scope.kinds.get(n, "node") == "node"], 1, 2)
        terms = [*NODES, ox.NamedNode(X + "nowhere")]
        rows = [
            tuple(None if self.rng.random() < 0.3 else self.rng.choice(terms) for _ in names)
            for _ in range(self.rng.randint(1, 4))
        ]
        for name in names:
            scope.kinds[name] = "node"
        return P.Values(tuple(map(P.Var, names)), tuple(rows))

    def exists_group(self, scope: Scope) -> P.Group:
        inner, elements = Scope(dict(scope.kinds)), list[P.Element]()
        makers = [self.triples, self.bare_optional, self.bare_optional, self.loose_union, self.braces, self.braces]
        makers += [self.reaching, self.values, self.inner_minus, self.triples]
        for _ in range(self.rng.choice([1, 1, 2, 2, 3])):
            maker = self.rng.choice(makers) if self.rng.random() > 0.08 else self.subselect
            if (made := maker(inner, 1)) is not None:
                elements.append(made)
        if self.rng.random() < 0.3:
            elements.append(P.Filter(self.inner_condition(inner)))
        group = P.Group(tuple(elements))
        named = [*map(ox.NamedNode, self.places.graphs)] + [P.Var("g")] * (2 * self.places.variable)
        windows = [*map(ox.NamedNode, self.places.windows)]
        if named and self.rng.random() < 0.3:
            return P.Group((P.Graph(self.rng.choice(named), group),))
        if windows and self.rng.random() < 0.4:
            return P.Group((P.Window(self.rng.choice(windows), group),))
        return group

    def inner_minus(self, scope: Scope, depth: int) -> P.Element:
        inner = Scope(dict(scope.kinds))
        elements: list[P.Element] = [self.triples(inner, 0)]
        if self.rng.random() < 0.3:
            elements.append(P.Filter(self.comparison(inner)))
        return P.Minus(P.Group(tuple(elements)))

    def inner_condition(self, scope: Scope) -> P.Expr:
        if self.rng.random() < 0.2:
            return P.Exists(
                P.Group((self.triples(scope, 0), P.Filter(self.comparison(scope)))), self.rng.random() < 0.5
            )
        return self.comparison(scope)

    # ---- terms
    def triple(self, scope: Scope) -> tuple[P.Node, P.Node | P.Path, P.Node]:
        kind = self.rng.random()
        if kind > 0.16:
            return super().triple(scope)
        subject = self.node(scope, constant=0.12, known=self.connected)
        if kind < 0.1:
            return subject, SIZE, self.literal(scope, "size", "w", SIZES)
        return subject, NAME, self.literal(scope, "name", "l", TAGGED)

    def comparison(self, scope: Scope) -> P.Expr:
        rng, names = self.rng, scope.of("name")
        if rng.random() < 0.06:
            return P.Call(rng.choice(["IN", "NOT IN"]), (P.Var(rng.choice(sorted(scope.kinds) or ["a"])),))
        if names and rng.random() < 0.5:
            tag = P.Call("LANG", (P.Var(rng.choice(names)),))
            tested = rng.choice([P.Call("=", (tag, ox.Literal("fr"))), P.Call("LANGMATCHES", (tag, ox.Literal("DE")))])
            return rng.choice([tested, P.Call("=", (P.Var(rng.choice(names)), rng.choice(TAGGED)))])
        return super().comparison(scope)

    def sorted(self, select: P.Select, scope: Scope) -> P.Select:
        """Sizes that are equal tie, so that the next key decides. The spelling of every variable comes last: a path of
        length zero binds a size to a node's variable too.
        """
        made = super().sorted(select, scope)
        last = tuple((P.Call("STR", (P.Var(name),)), False) for name in select.variables)
        return replace(made, order=(*made.order, *last)) if made.order else made
