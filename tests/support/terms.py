"""RDF terms and triples in tests: values of pyoxigraph, also if another library made them."""

from __future__ import annotations

import itertools
import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, TypeAlias

import pyoxigraph as ox
import rdflib

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Term: TypeAlias = ox.NamedNode | ox.BlankNode | ox.Literal
Triple: TypeAlias = tuple[Term, Term, Term]
Row: TypeAlias = tuple[Term | None, ...]

XSD = "http://www.w3.org/2001/XMLSchema#"
_scopes = itertools.count()


def parse_triples(data: str | bytes) -> list[Triple]:
    """Parse one message of N-Triples. Its blank nodes are new: no other call returns them."""
    scope = next(_scopes)

    def scoped(term: Any) -> Term:
        if isinstance(term, ox.Literal) and term.language:  # equal without regard to case (RDF 1.1 Concepts §3.3)
            return ox.Literal(term.value, language=term.language.lower())
        return ox.BlankNode(f"m{scope}x{term.value}") if isinstance(term, ox.BlankNode) else term

    quads = ox.parse(data.encode() if isinstance(data, str) else data, format=ox.RdfFormat.N_TRIPLES)
    return [(scoped(q.subject), q.predicate, scoped(q.object)) for q in quads]


def parse_patch(data: str) -> list[tuple[bool, Triple]]:
    """Parse the A and D rows of an RDF Patch, in order: whether the row adds, and its triple."""
    rows = [line for line in data.split("\n") if line[:2] in ("A ", "D ")]
    triples = parse_triples("\n".join(row[2:] for row in rows))
    return [(row[0] == "A", triple) for row, triple in zip(rows, triples, strict=True)]


def parse_update(text: str) -> Iterator[tuple[str | None, Triple]]:
    """Return the quads of an `INSERT DATA` (graph None = default), with new blank nodes."""
    scope = next(_scopes)
    for quad in _inserted(text):
        s, o = (
            ox.BlankNode(f"m{scope}x{t.value}") if isinstance(t, ox.BlankNode) else t
            for t in (quad.subject, quad.object)
        )
        if isinstance(o, ox.Literal) and o.language:
            o = ox.Literal(o.value, language=o.language.lower())
        graph = None if isinstance(quad.graph_name, ox.DefaultGraph) else quad.graph_name.value
        yield graph, (s, quad.predicate, o)


def _inserted(text: str) -> Iterable[Any]:
    """Return the quads as they are written. (A store of pyoxigraph changes the spelling of numbers: `02` becomes `2`.)"""
    if plain := re.fullmatch(r"\s*INSERT DATA \{(.*)\}\s*", text, re.DOTALL):
        return ox.parse(plain[1], format=ox.RdfFormat.TRIG)
    store = ox.Store()
    store.update(text)
    return store


def from_rdflib(term: Any) -> Term:
    if isinstance(term, rdflib.URIRef):
        return ox.NamedNode(str(term))
    if isinstance(term, rdflib.BNode):
        return ox.BlankNode(str(term))
    if term.language:
        return ox.Literal(str(term), language=term.language)
    return ox.Literal(str(term), datatype=ox.NamedNode(str(term.datatype or XSD + "string")))


def to_rdflib(term: Term) -> Any:
    if isinstance(term, ox.NamedNode):
        return rdflib.URIRef(term.value)
    if isinstance(term, ox.BlankNode):
        return rdflib.BNode(term.value)
    if term.language:
        return rdflib.Literal(term.value, lang=term.language)
    datatype = None if term.datatype.value == XSD + "string" else rdflib.URIRef(term.datatype.value)
    return rdflib.Literal(term.value, datatype=datatype, normalize=False)


def comparable(term: Term | None) -> Any:
    """Return a form to compare answers by: decimals and doubles by value, all other terms by spelling."""
    if not isinstance(term, ox.Literal):
        return term
    datatype = term.datatype.value
    try:
        if datatype == XSD + "decimal":
            return ("decimal", round(Decimal(term.value), 9).normalize())
        if datatype in (XSD + "double", XSD + "float"):
            return (datatype, float(f"{float(term.value.replace('INF', 'inf')):.9g}"))
        if datatype == XSD + "dateTime":
            return (datatype, term.value.replace("+00:00", "Z").replace(".000", ""))
    except (InvalidOperation, ValueError):
        pass
    return term
