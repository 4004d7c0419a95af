"""Updates as values: their text, and what they mean as operations on quads (docs/semantics.md §1)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

import pyoxigraph as ox

from support import patterns as P
from support.evaluator import Content, evaluate
from support.evaluator import Data as Dataset
from support.printing import Printer
from support.terms import Triple, parse_triples

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from support.terms import Term

Graph: TypeAlias = "str | None"  # None: the default graph
State: TypeAlias = "Mapping[Graph, set[Triple]]"
Quad: TypeAlias = "tuple[str | P.Var | None, tuple[P.Node, P.Node, P.Node]]"
Change: TypeAlias = "tuple[bool, Graph, Triple]"  # whether it adds

_fresh = count()


@dataclass(frozen=True)
class Data:
    """INSERT DATA (`insert`) or DELETE DATA of lines of N-Triples."""

    insert: bool
    lines: str
    graph: Graph

    def __str__(self) -> str:
        verb = "INSERT DATA" if self.insert else "DELETE DATA"
        return f"{verb} {{ {self.lines if self.graph is None else f'GRAPH <{self.graph}> {{ {self.lines} }}'} }}"

    def changes(self, state: State) -> Iterator[Change]:
        del state
        for triple in parse_triples(self.lines):
            yield self.insert, self.graph, triple


@dataclass(frozen=True)
class Modify:
    """DELETE {…} INSERT {…} WHERE {…}. `given`: WITH a graph. `using`: graphs of USING. `short`: DELETE WHERE."""

    delete: tuple[Quad, ...]
    insert: tuple[Quad, ...]
    group: P.Group
    variables: tuple[str, ...]
    given: Graph = None
    using: tuple[str, ...] = ()
    short: bool = False

    def __str__(self) -> str:
        if self.short:
            return f"DELETE WHERE {{ {_template(self.delete)} }}"
        parts = [f"WITH <{self.given}>"] if self.given is not None else []
        parts += [f"DELETE {{ {_template(self.delete)} }}"] if self.delete else []
        parts += [f"INSERT {{ {_template(self.insert)} }}"] if self.insert or not self.delete else []
        parts += [f"USING <{graph}>" for graph in self.using]
        return " ".join([*parts, "WHERE", Printer().group(self.group)])

    def changes(self, state: State) -> Iterator[Change]:
        contents = {graph: Content(frozenset(triples)) for graph, triples in state.items() if triples}
        default, names = contents.get(self.given, Content(frozenset())), tuple(g for g in contents if g is not None)
        if self.using:
            default, names = Content(frozenset().union(*(state.get(g, set()) for g in self.using))), ()
        graphs = {graph: content for graph, content in contents.items() if graph is not None}
        data = Dataset(default, graphs if not self.using else {}, names)
        rows = evaluate(P.Select(tuple(P.Var(name) for name in self.variables), self.group), data)
        solutions = [dict(zip(rows.variables, row, strict=True)) for row in rows.rows]  # type: ignore[union-attr]
        for adds, template in ((False, self.delete), (True, self.insert)):
            for row in solutions:
                blanks: dict[str, Term] = {}
                for quad in template:
                    yield from self._instance(adds, quad, row, blanks)

    def _instance(
        self, adds: bool, quad: Quad, row: dict[str, Term | None], blanks: dict[str, Term]
    ) -> Iterator[Change]:
        graph, triple = quad
        name = row.get(graph.name) if isinstance(graph, P.Var) else graph
        if isinstance(graph, P.Var) and not isinstance(name, ox.NamedNode):
            return
        s, p, o = (_term(term, row, blanks) for term in triple)
        if isinstance(s, ox.NamedNode | ox.BlankNode) and isinstance(p, ox.NamedNode) and o is not None:
            yield (
                adds,
                self.given if graph is None else name.value if isinstance(name, ox.NamedNode) else name,
                (s, p, o),
            )


def _term(term: P.Node, row: dict[str, Term | None], blanks: dict[str, Term]) -> Term | None:
    if isinstance(term, P.Var):
        return row.get(term.name)
    if isinstance(term, ox.BlankNode):  # new for each solution
        if term.value not in blanks:
            blanks[term.value] = ox.BlankNode(f"u{next(_fresh)}")
        return blanks[term.value]
    return term


def _template(quads: Sequence[Quad]) -> str:
    parts = []
    for graph, triple in quads:
        text = " ".join(Printer().term(term) for term in triple) + " ."
        name = Printer().term(graph) if isinstance(graph, P.Var) else f"<{graph}>"
        parts.append(text if graph is None else f"GRAPH {name} {{ {text} }}")
    return " ".join(parts)


@dataclass(frozen=True)
class Clear:
    """CLEAR or DROP of a graph's IRI, or of DEFAULT, NAMED or ALL."""

    verb: str
    target: str

    def __str__(self) -> str:
        known = self.target in ("DEFAULT", "NAMED", "ALL")
        return f"{self.verb} {self.target if known else f'GRAPH <{self.target}>'}"

    def changes(self, state: State) -> Iterator[Change]:
        for graph, triples in state.items():
            if self.target in (graph, "ALL", "DEFAULT" if graph is None else "NAMED"):
                yield from ((False, graph, triple) for triple in triples)


@dataclass(frozen=True)
class Transfer:
    """ADD, MOVE or COPY, SILENT: of a graph without triples nothing."""

    verb: str
    source: Graph
    target: Graph

    def __str__(self) -> str:
        source, target = ("DEFAULT" if g is None else f"<{g}>" for g in (self.source, self.target))
        return f"{self.verb} SILENT {source} TO {target}"

    def changes(self, state: State) -> Iterator[Change]:
        moved = set(state.get(self.source, set()))
        if self.source == self.target or (self.source is not None and not moved):
            return
        if self.verb != "ADD":
            yield from ((False, self.target, triple) for triple in set(state.get(self.target, set())))
        if self.verb == "MOVE":
            yield from ((False, self.source, triple) for triple in moved)
        yield from ((True, self.target, triple) for triple in moved)


Operation: TypeAlias = Data | Modify | Clear | Transfer


def text(operations: Sequence[Operation]) -> str:
    return " ; ".join(map(str, operations))


def changes(operations: Sequence[Operation], state: Mapping[Graph, set[Triple]]) -> list[Change]:
    """What a text does, in order: each operation reads what those before it have left."""
    now = {graph: set(triples) for graph, triples in state.items()}
    made: list[Change] = []
    for operation in operations:
        done = list(operation.changes(now))
        for adds, graph, triple in done:
            triples = now.setdefault(graph, set())
            triples.add(triple) if adds else triples.discard(triple)
        made += done
    return made
