"""The entailed graph by its definition (docs/semantics.md §4): rules are applied until nothing new follows.

Terms are N-Triples texts. This is independent of the engine: it knows nothing of rewriting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Triple: TypeAlias = tuple[str, str, str]
Graph: TypeAlias = frozenset[Triple]

TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
SUBCLASS, SUBPROPERTY, DOMAIN, RANGE = (
    f"<{_RDFS}{name}>" for name in ("subClassOf", "subPropertyOf", "domain", "range")
)
INVERSE, SAME = (f"<http://www.w3.org/2002/07/owl#{name}>" for name in ("inverseOf", "sameAs"))
SCHEMA = (SUBCLASS, SUBPROPERTY, DOMAIN, RANGE, INVERSE, SAME)


def entailed(graph: Graph, stored: Graph) -> Graph:
    """Return the entailed graph of `graph`. The schema is that of `stored`, the stored default graph. Triples with a
    literal as subject take part in the rules, but are not in the result.
    """
    closed = closed_schema(stored)
    same = {(s, o) for s, p, o in closed if p == SAME}
    schema: dict[str, set[Triple]] = {}  # by the terms of the data to which a triple may apply
    for triple in closed:
        for term in (triple[0], triple[2]) if triple[1] == INVERSE else (triple[0],):
            schema.setdefault(term, set()).add(triple)
    found: set[Triple] = set()
    new = set(graph)
    while new:
        found |= new
        new = {triple for premise in new for triple in _follow(premise, schema, same)} - found
    return frozenset(triple for triple in found if not _literal(triple[0]))


def closed_schema(stored: Graph) -> Graph:
    """Return what the schema triples entail of one another."""
    found = {t for t in stored if t[1] in SCHEMA and not (t[1] == SAME and _literal(t[2]))}
    while True:
        same = {(s, o) for s, p, o in found if p == SAME}
        new = {(o, SAME, s) for s, o in same} | {(s, SAME, z) for s, o in same for y, z in same if o == y}
        for p in (SUBCLASS, SUBPROPERTY):
            pairs = [(s, o) for s, q, o in found if q == p]
            new |= {(s, p, z) for s, o in pairs for y, z in pairs if o == y}
        new |= {(y, p, o) for s, p, o in found for x, y in same if x == s}
        new |= {(s, p, y) for s, p, o in found for x, y in same if x == o}
        if new <= found:
            return frozenset(found)
        found |= new


def _literal(term: str) -> bool:
    return term.startswith('"')


def _iri(term: str) -> bool:
    return term.startswith("<")


def _follow(premise: Triple, schema: Mapping[str, set[Triple]], same: set[tuple[str, str]]) -> set[Triple]:
    s, p, o = premise
    found = {(y, p, o) for x, y in same if x == s} | {(s, p, y) for x, y in same if x == o}
    found |= {(s, y, o) for x, y in same if x == p and _iri(y)}
    for x, rule, y in schema.get(p, set()) | schema.get(o, set()):
        if rule == SUBPROPERTY and x == p and _iri(y):
            found.add((s, y, o))
        if rule == INVERSE and x == p and _iri(y):
            found.add((o, y, s))
        if rule == INVERSE and y == p and _iri(x):
            found.add((o, x, s))
        if rule == DOMAIN and x == p:
            found.add((s, TYPE, y))
        if rule == RANGE and x == p:
            found.add((o, TYPE, y))
        if rule == SUBCLASS and x == o and p in (TYPE, SUBCLASS):
            found.add((s, p, y))
        if rule == SUBPROPERTY and x == o and p == SUBPROPERTY:
            found.add((s, p, y))
    return found


def text(graph: Graph) -> str:
    """Return a graph as N-Triples."""
    return "".join(f"{s} {p} {o} .\n" for s, p, o in sorted(graph))
