"""Random query bodies over the small vocabulary of the random streams."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyoxigraph as ox

from support import patterns as P
from support.evaluator import integer

if TYPE_CHECKING:
    import random

X = "urn:x:"
STRANGER = X + "stranger/number/"
NODES = [ox.NamedNode(f"{X}n{k}") for k in range(4)]
LINKS = [ox.NamedNode(f"{X}p{k}") for k in range(2)]
VALUE, LABEL = ox.NamedNode(X + "value"), ox.NamedNode(X + "label")
LABELS = [ox.Literal(text) for text in ("red", "green", "blue", 'a "quoted"')]
INTEGERS = [integer(k) for k in range(-2, 8)]


@dataclass(frozen=True)
class Places:
    """Where patterns may stand: `default` (whether anything lies there), graphs by constant, windows by name,
    GRAPH ?g.
    """

    graphs: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()
    variable: bool = False


@dataclass
class Scope:
    """The variables that a group binds so far, by kind: node, number, text, any."""

    kinds: dict[str, str] = field(default_factory=dict)

    def of(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.kinds.items() if kind in kinds]


class BodyMaker:
    """Makes bodies from a random stream; `total` bodies have ORDER BY with a total order and LIMIT in places."""

    def __init__(
        self,
        rng: random.Random,
        places: Places,
        *,
        blank_nodes: bool = False,
        connected: bool = False,
        computes: bool = False,
    ) -> None:
        self.rng, self.places, self.connected, self.computes = rng, places, connected, computes
        self.sortable = not blank_nodes
        self.fresh = 0

    # ---- forms
    def select(self, *, sorted_allowed: bool = True) -> P.Select:
        scope = Scope()
        group = self.binding(scope, depth=2)
        if self.rng.random() < 0.28:
            return self.aggregated(group, scope, sorted_allowed=sorted_allowed)
        names = self.some(sorted(scope.kinds), 1, 4)
        projection: list[P.Var | tuple[P.Expr, P.Var]] = [P.Var(n) for n in names]
        if scope.of("number") and self.rng.random() < 0.15:
            projection.append((self.arithmetic(scope), self.new("e")))
        select = P.Select(tuple(projection), group, distinct=self.rng.random() < 0.25)
        return self.sorted(select, scope) if sorted_allowed and self.rng.random() < 0.2 else select

    def ask(self) -> P.Ask:
        return P.Ask(self.group(Scope(), depth=2))

    def construct(self) -> P.Construct:
        scope = Scope()
        group = self.binding(scope, depth=1)
        nodes = [P.Var(n) for n in scope.of("node")] or [self.rng.choice(NODES)]
        objects = [P.Var(n) for n in sorted(scope.kinds)] + [self.rng.choice(NODES)]
        template = tuple(
            (self.rng.choice(nodes), self.rng.choice([*LINKS, VALUE]), self.rng.choice(objects))
            for _ in range(self.rng.randint(1, 2))
        )
        return P.Construct(template, group)

    def aggregated(self, group: P.Group, scope: Scope, *, sorted_allowed: bool) -> P.Select:
        rng = self.rng
        keys = tuple(P.Var(n) for n in self.some(sorted(scope.kinds), 1, 2)) if rng.random() < 0.75 else None
        made: list[tuple[P.Expr, P.Var]] = []
        for _ in range(rng.randint(1, 2)):
            made.append((self.aggregate(scope), self.new("agg")))
        having = None
        if keys and rng.random() < 0.35:
            having = P.Call(rng.choice([">", "<=", "="]), (P.Aggregate("COUNT", None), integer(rng.randint(1, 3))))
        select = P.Select((*(keys or ()), *made), group, keys=keys, having=having)
        return self.sorted(select, scope) if sorted_allowed and keys and rng.random() < 0.2 else select

    def aggregate(self, scope: Scope) -> P.Aggregate:
        rng = self.rng
        numbers = scope.of("number")
        if numbers and rng.random() < 0.6:
            return P.Aggregate(
                rng.choice(["SUM", "AVG", "MIN", "MAX"]), P.Var(rng.choice(numbers)), rng.random() < 0.25
            )
        if rng.random() < 0.4:
            return P.Aggregate("COUNT", None)
        return P.Aggregate("COUNT", P.Var(rng.choice(sorted(scope.kinds))), rng.random() < 0.4)

    def sorted(self, select: P.Select, scope: Scope) -> P.Select:
        """Add ORDER BY over every projected variable (a total order up to equal rows), and often LIMIT and OFFSET."""
        if not self.sortable:
            return select
        keys = [(self.sort_key(name, scope), self.rng.random() < 0.3) for name in select.variables]
        self.rng.shuffle(keys)
        limit = self.rng.randint(0, 4) if self.rng.random() < 0.6 else None
        offset = self.rng.randint(0, 2) if limit is not None and self.rng.random() < 0.4 else 0
        return P.Select(
            select.projection, select.group, select.distinct, select.keys, select.having, tuple(keys), limit, offset
        )

    def sort_key(self, name: str, scope: Scope) -> P.Expr:
        var = P.Var(name)
        return P.Call("STR", (var,)) if scope.kinds.get(name) == "any" else var

    # ---- groups
    def binding(self, scope: Scope, depth: int) -> P.Group:
        """Make a group that binds at least one variable."""
        group = self.group(scope, depth)
        if scope.kinds:
            return group
        return P.Group((*group.elements, P.Triples(((self.node(scope, constant=0), LINKS[0], NODES[0]),))))

    def group(self, scope: Scope, depth: int) -> P.Group:
        elements: list[P.Element] = [self.placed(scope, depth)]
        makers = [self.triples, self.placed, self.placed]
        if depth:
            makers += [self.optional, self.optional, self.union, self.minus, self.bind, self.values, self.subselect]
        if self.computes:
            makers += [self.computed] * 8
        for _ in range(self.rng.choice([0, 1, 1, 2] if depth == 2 else [0, 0, 1]) + self.computes):
            made = self.rng.choice(makers)(scope, depth)
            if made is not None:
                elements.append(made)
            if self.computes and isinstance(made, P.Bind) and self.rng.random() < 0.7:
                elements.append(self.joined(made.var, scope))
        if self.rng.random() < 0.4:
            elements.insert(self.rng.randint(1, len(elements)), P.Filter(self.condition(scope)))
        return P.Group(tuple(elements))

    def placed(self, scope: Scope, depth: int) -> P.Element:
        """Make triples somewhere: in the default graph, a named graph, a window, or under GRAPH ?g."""
        rng, options = self.rng, ["default", "default"]
        options += ["graph"] * (2 * bool(self.places.graphs)) + ["window"] * (3 * bool(self.places.windows))
        options += ["variable"] * self.places.variable
        place = rng.choice(options)
        if place == "default":
            return self.triples(scope, depth)
        inner: list[P.Element] = [self.triples(scope, depth)]
        if depth and rng.random() < 0.15:
            inner.append(P.Optional(P.Group((self.triples(scope, 0),))))
        if rng.random() < 0.15:
            inner.append(P.Filter(self.condition(scope)))
        group = P.Group(tuple(inner))
        if place == "graph":
            return P.Graph(ox.NamedNode(rng.choice(self.places.graphs)), group)
        if place == "window":
            return P.Window(ox.NamedNode(rng.choice(self.places.windows)), group)
        name = rng.choice(["g", "g", "h"])
        if name in scope.kinds and scope.kinds[name] != "node":
            name = self.new("g").name
        scope.kinds[name] = "node"
        return P.Graph(P.Var(name), group)

    def triples(self, scope: Scope, depth: int = 0) -> P.Triples:
        return P.Triples(tuple(self.triple(scope) for _ in range(self.rng.choice([1, 1, 1, 2]))))

    def triple(self, scope: Scope) -> tuple[P.Node, P.Node | P.Path, P.Node]:
        rng = self.rng
        subject = self.node(scope, constant=0.12, known=self.connected)
        kind = rng.random()
        if kind < 0.5:
            return subject, rng.choice(LINKS), self.node(scope, constant=0.1, other=subject)
        if kind < 0.72:
            return subject, VALUE, self.literal(scope, "number", "v", INTEGERS)
        if kind < 0.77:
            return subject, LABEL, self.literal(scope, "text", "t", LABELS)
        if kind < 0.9:
            scope.kinds.setdefault("p", "node")
            if rng.random() < 0.3:
                return subject, P.Var("p"), self.node(scope, constant=0.4, other=subject)
            scope.kinds["o"] = "any"
            return subject, P.Var("p"), P.Var("o")
        return subject, self.path(2), self.node(scope, constant=0.2, other=subject)

    def node(self, scope: Scope, constant: float, other: P.Node | None = None, *, known: bool = False) -> P.Node:
        """Make a node; seldom the same as `other`, the pattern's other end."""
        if self.rng.random() < constant:
            return self.rng.choice(NODES)
        apart = other.name if isinstance(other, P.Var) and self.rng.random() < 0.9 else ""
        names = [n for n in "abc" if n != apart]
        bound = [n for n in scope.of("node") if n in names]
        name = self.rng.choice(bound) if bound and (known or self.rng.random() < 0.6) else self.rng.choice(names)
        scope.kinds[name] = "node"
        return P.Var(name)

    def literal(self, scope: Scope, kind: str, name: str, constants: list[ox.Literal]) -> P.Node:
        if self.rng.random() < 0.1:
            return self.rng.choice(constants)
        name = self.rng.choice([name, name, name + "2"])
        scope.kinds[name] = kind
        return P.Var(name)

    def path(self, depth: int) -> P.Path:
        rng = self.rng
        if not depth or rng.random() < 0.3:
            return P.Link(rng.choice(LINKS))
        kinds = ["inverse", "sequence", "alternative"]
        kind = rng.choice(kinds if self.connected else [*kinds, "repeat", "repeat", "negated"])
        if kind == "inverse":
            return P.Inverse(self.path(depth - 1))
        if kind == "sequence":
            return P.Sequence(self.path(depth - 1), self.path(depth - 1))
        if kind == "alternative":
            return P.Alternative(self.path(depth - 1), self.path(depth - 1))
        if kind == "repeat":
            return P.Repeat(self.path(depth - 1), rng.choice("*+?"))
        # Only links and literals' predicates: the other end may then be anything, and no variable is typed by it.
        forward = tuple(self.some([*LINKS, VALUE], 1, 2))
        return P.Negated((*forward, VALUE, LABEL) if VALUE not in forward else (*forward, LABEL))

    # ---- the other elements
    def optional(self, scope: Scope, depth: int) -> P.Element:
        return P.Optional(self.group(scope, depth - 1))

    def union(self, scope: Scope, depth: int) -> P.Element:
        return P.Union(tuple(self.group(scope, depth - 1) for _ in range(2)))

    def minus(self, scope: Scope, depth: int) -> P.Element:
        return P.Minus(self.group(Scope(dict(scope.kinds)), depth - 1))

    def bind(self, scope: Scope, depth: int) -> P.Element | None:
        if not scope.of("number"):
            return None
        expr, var = self.arithmetic(scope), self.new("x")
        scope.kinds[var.name] = "number"
        return P.Bind(expr, var)

    def computed(self, scope: Scope, depth: int) -> P.Element | None:
        """Bind a term that is no inline one, now and then one that the data has; later patterns may be joined on it."""
        rng = self.rng
        free = [n for n in "abc" if n not in scope.kinds]
        nodes, numbers = [n for n in scope.of("node") if n in "abcgh"], scope.of("number")
        if rng.random() < 0.2:
            var = P.Var("t")
            while var.name in scope.kinds:  # one that literals have, too
                var = self.new("t")
            start = rng.choice(['a "quo', "a rather long text, "])
            expr: P.Expr = P.Call("CONCAT", (ox.Literal(start), ox.Literal(rng.choice(['ted"', "ted"]))))
            scope.kinds[var.name] = "text"
            return P.Bind(expr, var)
        if numbers and rng.random() < 0.6:
            start = rng.choice([f"{X}n", STRANGER, STRANGER])
            text = P.Call("CONCAT", (ox.Literal(start), P.Call("STR", (P.Var(rng.choice(numbers)),))))
        elif nodes:
            text = _iri_text(rng.choice(nodes))
        else:
            return None
        expr = P.Call("IRI", (text,))
        if nodes and rng.random() < 0.3:
            known = P.Var(rng.choice(nodes))
            expr = P.Call("IF", (P.Call("=", (known, rng.choice(NODES))), known, expr))
        var = P.Var(rng.choice(free)) if free and rng.random() < 0.7 else self.new("n")
        scope.kinds[var.name] = "node"
        return P.Bind(expr, var)

    def joined(self, var: P.Var, scope: Scope) -> P.Element:
        """Make a pattern, somewhere, that is joined on a variable which was computed."""
        rng = self.rng
        kind = scope.kinds[var.name]
        if kind == "node":
            link, other = rng.choice(LINKS), self.node(scope, constant=0.1, other=var)
            triple = (var, link, other) if rng.random() < 0.5 else (other, link, var)
        else:
            triple = (self.node(scope, constant=0.1), LABEL if kind == "text" else VALUE, var)
        group = P.Group((P.Triples((triple,)),))
        if self.places.windows and rng.random() < 0.5:
            return P.Window(ox.NamedNode(rng.choice(self.places.windows)), group)
        return rng.choice([P.Optional, P.Minus])(group) if rng.random() < 0.3 else group.elements[0]

    def values(self, scope: Scope, depth: int) -> P.Element | None:
        known = [n for n in scope.of("node") if n in "abc"]
        if not known:
            return None
        name = self.rng.choice(known)
        rows: list[tuple[ox.NamedNode | None, ...]] = [(t,) for t in self.some(NODES, 1, 4)]
        if self.rng.random() < 0.2:
            rows.append((None,))
        return P.Values((P.Var(name),), tuple(rows))

    def subselect(self, scope: Scope, depth: int) -> P.Element:
        inner = Scope()
        group = self.binding(inner, depth - 1)
        if self.rng.random() < 0.5:
            select = self.aggregated(group, inner, sorted_allowed=True)
        else:
            names = self.some(sorted(inner.kinds), 1, 3)
            select = P.Select(tuple(P.Var(n) for n in names), group, distinct=self.rng.random() < 0.4)
            if self.rng.random() < 0.4:
                select = self.sorted(select, inner)
        for name in select.variables:
            # An aggregate's value is a number; it may also be unbound, which only COALESCE and BOUND care for.
            scope.kinds[name] = inner.kinds.get(name, "aggregate")
        return P.SubSelect(select)

    # ---- expressions
    def condition(self, scope: Scope) -> P.Expr:
        rng = self.rng
        simple = self.comparison(scope)
        kind = rng.random()
        if kind < 0.15:
            return P.Call(rng.choice(["&&", "||"]), (simple, self.comparison(scope)))
        if kind < 0.25:
            return P.Call("!", (simple,))
        if kind < 0.42:
            return P.Exists(self.exists_group(scope), rng.random() < 0.5)
        return simple

    def comparison(self, scope: Scope) -> P.Expr:
        rng = self.rng
        nodes, numbers, texts = scope.of("node"), scope.of("number"), scope.of("text")
        kind = rng.random()
        if numbers and kind < 0.5:
            right = P.Var(rng.choice(numbers)) if rng.random() < 0.3 else rng.choice(INTEGERS)
            return P.Call(rng.choice(["<", ">", "<=", ">=", "=", "!="]), (P.Var(rng.choice(numbers)), right))
        if texts and kind < 0.6:
            return P.Call("CONTAINS", (P.Var(rng.choice(texts)), ox.Literal(rng.choice("reg"))))
        if nodes and kind < 0.75:
            right = P.Var(rng.choice(nodes)) if rng.random() < 0.5 else rng.choice(NODES)
            return P.Call(rng.choice(["=", "!="]), (P.Var(rng.choice(nodes)), right))
        if self.computes and len(nodes) > 1 and kind < 0.79:
            left, right = rng.sample(nodes, 2)
            return P.Call("sameTerm", (P.Var(left), P.Call("IRI", (_iri_text(right),))))
        if nodes and kind < 0.83:
            name = rng.choice(["IN", "NOT IN"])
            return P.Call(name, (P.Var(rng.choice(nodes)), *self.some(NODES, 1, 3)))
        any_name = rng.choice(sorted(scope.kinds) or ["a"])
        return P.Call(rng.choice(["BOUND", "isIRI", "isLiteral", "BOUND"]), (P.Var(any_name),))

    def exists_group(self, scope: Scope) -> P.Group:
        inner = Scope(dict(scope.kinds))
        elements: list[P.Element] = [self.triples(inner)]
        if self.rng.random() < 0.3:
            elements.append(P.Filter(self.comparison(inner)))
        group = P.Group(tuple(elements))
        named = [*map(ox.NamedNode, self.places.graphs)]
        windows = [*map(ox.NamedNode, self.places.windows)]
        if named and self.rng.random() < 0.3:
            return P.Group((P.Graph(self.rng.choice(named), group),))
        if windows and self.rng.random() < 0.4:
            return P.Group((P.Window(self.rng.choice(windows), group),))
        return group

    def arithmetic(self, scope: Scope) -> P.Expr:
        rng = self.rng
        left: P.Expr = P.Var(rng.choice(scope.of("number")))
        right: P.Expr = P.Var(rng.choice(scope.of("number"))) if rng.random() < 0.4 else rng.choice(INTEGERS)
        made = P.Call(rng.choice("+-*"), (left, right))
        return P.Call("COALESCE", (made, integer(0))) if rng.random() < 0.2 else made

    # ---- small things
    def new(self, prefix: str) -> P.Var:
        self.fresh += 1
        return P.Var(f"{prefix}{self.fresh}")

    def some(self, items: list, least: int, most: int) -> list:  # type: ignore[type-arg]
        return self.rng.sample(items, min(len(items), self.rng.randint(least, most)))


def _iri_text(name: str) -> P.Expr:
    """The text of a variable's IRI; some other IRI's where it is a literal."""
    text = P.Call("STR", (P.Var(name),))
    return P.Call("IF", (P.Call("CONTAINS", (text, ox.Literal(X))), text, ox.Literal(NODES[2].value)))
