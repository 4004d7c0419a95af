"""Bodies as SPARQL text, for Penstock or (for the reference engines) for a plain SPARQL 1.1 engine."""

from __future__ import annotations

from dataclasses import dataclass

import pyoxigraph as ox

from support import patterns as P

INFIX = {"=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "&&", "||"}


@dataclass(frozen=True)
class Printer:
    """`names` None prints Penstock's text. Else WINDOW becomes GRAPH, and `GRAPH ?g` a union over `names`: the graphs
    that `GRAPH ?g` ranges over (a plain engine would also range over the other windows)."""

    names: tuple[str, ...] | None = None

    def body(self, body: P.Body) -> str:
        if isinstance(body, P.Ask):
            return "ASK " + self.group(body.group)
        if isinstance(body, P.Construct):
            template = " ".join(f"{self.term(s)} {self.term(p)} {self.term(o)} ." for s, p, o in body.template)
            return f"CONSTRUCT {{ {template} }} WHERE {self.group(body.group)}"
        return self.select(body)

    def head(self, body: P.Body) -> tuple[str, str]:
        """Split `body` where dataset clauses go: (SELECT …, WHERE …)."""
        if isinstance(body, P.Ask):
            return "ASK", "WHERE " + self.group(body.group)
        if isinstance(body, P.Construct):
            text = self.body(body)
            at = text.index("WHERE")
            return text[:at].strip(), text[at:]
        return self._projection(body), self._rest(body)

    def select(self, select: P.Select) -> str:
        return f"{self._projection(select)} {self._rest(select)}"

    def _projection(self, select: P.Select) -> str:
        parts = [
            self.term(p) if isinstance(p, P.Var) else f"({self.expr(p[0])} AS {self.term(p[1])})"
            for p in select.projection
        ]
        return f"SELECT {'DISTINCT ' if select.distinct else ''}{' '.join(parts)}"

    def _rest(self, select: P.Select) -> str:
        text = f"WHERE {self.group(select.group)}"
        if select.keys:
            text += " GROUP BY " + " ".join(map(self.term, select.keys))
        if select.having is not None:
            text += f" HAVING ({self.expr(select.having)})"
        if select.order:
            text += " ORDER BY " + " ".join(f"{'DESC' if d else 'ASC'}({self.expr(e)})" for e, d in select.order)
        if select.limit is not None:
            text += f" LIMIT {select.limit}"
        return text + (f" OFFSET {select.offset}" if select.offset else "")

    def group(self, group: P.Group) -> str:
        return "{ " + " ".join(self.element(e) for e in group.elements) + " }"

    def element(self, element: P.Element) -> str:
        match element:
            case P.Triples(patterns):
                return " ".join(f"{self.term(s)} {self.verb(p)} {self.term(o)} ." for s, p, o in patterns)
            case P.Optional(group):
                return "OPTIONAL " + self.group(group)
            case P.Union(groups):
                return " UNION ".join(map(self.group, groups))
            case P.Minus(group):
                return "MINUS " + self.group(group)
            case P.Bind(expr, var):
                return f"BIND({self.expr(expr)} AS {self.term(var)})"
            case P.Values(variables, rows):
                lines = " ".join("(" + " ".join(self.term(t) if t else "UNDEF" for t in row) + ")" for row in rows)
                return f"VALUES ({' '.join(map(self.term, variables))}) {{ {lines} }}"
            case P.Graph(name, group):
                return self._graph(name, group)
            case P.Window(name, group):
                return f"{'WINDOW' if self.names is None else 'GRAPH'} {self.term(name)} {self.group(group)}"
            case P.Filter(expr):
                return f"FILTER({self.expr(expr)})"
            case P.SubSelect(select):
                return "{ " + self.select(select) + " }"
            case P.Braces(group):
                return self.group(group)

    def _graph(self, name: P.Node, group: P.Group) -> str:
        if self.names is None or not isinstance(name, P.Var):
            return f"GRAPH {self.term(name)} {self.group(group)}"
        if not self.names:
            return f"{{ VALUES {self.term(name)} {{ }} }}"
        branches = (f"{{ GRAPH <{g}> {self.group(group)} VALUES {self.term(name)} {{ <{g}> }} }}" for g in self.names)
        return "{ " + " UNION ".join(branches) + " }"

    def verb(self, verb: P.Node | P.Path) -> str:
        match verb:
            case P.Link(iri):
                return str(iri)
            case P.Inverse(path):
                return f"^({self.verb(path)})"
            case P.Sequence(first, second):
                return f"({self.verb(first)}/{self.verb(second)})"
            case P.Alternative(first, second):
                return f"({self.verb(first)}|{self.verb(second)})"
            case P.Repeat(path, mark):
                return f"({self.verb(path)}){mark}"
            case P.Negated(forward, inverse):
                return "!(" + "|".join([*map(str, forward), *(f"^{i}" for i in inverse)]) + ")"
            case _:
                return self.term(verb)

    def term(self, term: P.Node) -> str:
        if self.names is None and isinstance(term, ox.Literal) and term.language:
            return f"{str(term)[: -len(term.language)]}{term.language.title()}"  # the case of a tag has no meaning
        return "?" + term.name if isinstance(term, P.Var) else str(term)

    def expr(self, expr: P.Expr) -> str:
        match expr:
            case P.Call(name, args) if name in INFIX and len(args) == 2:
                return f"({self.expr(args[0])} {name} {self.expr(args[1])})"
            case P.Call("!", (inner,)):
                return f"(!{self.expr(inner)})"
            case P.Call("IN" | "NOT IN" as name, (first, *rest)):
                return f"({self.expr(first)} {name} ({', '.join(map(self.expr, rest))}))"
            case P.Call(name, args):
                return f"{name}({', '.join(map(self.expr, args))})"
            case P.Exists(group, negated):
                return f"{'NOT ' if negated else ''}EXISTS {self.group(group)}"
            case P.Aggregate(name, argument, distinct):
                return f"{name}({'DISTINCT ' if distinct else ''}{self.expr(argument) if argument else '*'})"
            case _:
                return self.term(expr)  # type: ignore[arg-type]
