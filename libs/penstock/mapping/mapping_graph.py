"""The RDF graph of a mapping. Errors contain the place of the fault in the mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.core._native import Dictionary, LocalTerms
from penstock.errors import DataError
from penstock.rdf.formats import Format
from penstock.rdf.parsing import parse
from penstock.rdf.terms import BLANK, IRI

if TYPE_CHECKING:
    from penstock.core._native import TermTuple

RML = "http://w3id.org/rml/"
RR = "http://www.w3.org/ns/r2rml#"
_BASE = "urn:x-penstock:mapping"
_OLD_RML = "http://semweb.mmlab.be/ns/rml#"
_OLD_QL = "http://semweb.mmlab.be/ns/ql#"
_RENAMED = {
    f"{_OLD_RML}source": f"{RML}source",
    f"{_OLD_RML}reference": f"{RML}reference",
    f"{_OLD_RML}languageMap": f"{RML}languageMap",
    f"{_OLD_QL}CSV": f"{RML}CSV",
    f"{_OLD_QL}JSONPath": f"{RML}JSONPath",
}
"""Terms of older vocabularies. The value of each term is its replacement in RML's new vocabulary. All other `rr:` and
older `rml:` terms have the same local names in the new vocabulary.
"""


class MappingGraph:
    """The triples of a mapping. `rr:` terms and the older `rml:` terms are read as terms of the new vocabulary."""

    def __init__(self, text: str, base: str | None) -> None:
        self._text = text
        dictionary = Dictionary()
        quads = parse(dictionary, text, Format.TURTLE, base or _BASE)
        terms = LocalTerms(dictionary)
        columns = [terms.decode(column) for column in (quads.subjects, quads.predicates, quads.objects)]
        self.properties: dict[TermTuple, dict[str, list[TermTuple]]] = {}
        for subject, predicate, value in zip(*columns, strict=True):
            assert subject is not None, "an id of the graph"
            assert predicate is not None, "an id of the graph"
            assert value is not None, "an id of the graph"
            known = self.properties.setdefault(subject, {})
            known.setdefault(_renamed(predicate[1]), []).append(
                (IRI, _renamed(value[1]), "", "") if value[0] == IRI else value
            )

    def all(self, node: TermTuple, name: str) -> list[TermTuple]:
        """Return the values of the property rml:`name`."""
        return self.properties.get(node, {}).get(RML + name, [])

    def one(self, node: TermTuple, name: str, place: str) -> TermTuple | None:
        """Return the value of rml:`name`, or None if the node has no value. DataError if the node has several
        values.
        """
        found = self.all(node, name)
        if len(found) > 1:
            raise self.fault(place, f"rml:{name} occurs {len(found)} times; one is allowed", found[-1])
        return found[0] if found else None

    def text(self, node: TermTuple, name: str, place: str) -> str | None:
        """Return the literal or IRI of rml:`name` as a text. None if the node has no value. DataError if the value is a
        blank node, or if the node has several values.
        """
        found = self.one(node, name, place)
        if found is not None and found[0] == BLANK:
            raise self.fault(place, f"rml:{name} must be a literal or an IRI")
        return None if found is None else found[1]

    def fault(self, place: str, message: str, near: TermTuple | str | None = None) -> DataError:
        """Return the error for a fault of the mapping. `near`: a term near the fault. The error contains the line of
        this term if the text of the term occurs only once in the mapping.
        """
        text = near if isinstance(near, str) or near is None else near[1]
        line = ""
        if text and self._text.count(text) == 1:
            line = f" (line {self._text.count(chr(10), 0, self._text.index(text)) + 1})"
        return DataError(f"mapping, {place}{line}: {message}")


def _renamed(iri: str) -> str:
    if iri in _RENAMED:
        return _RENAMED[iri]
    for old in (RR, _OLD_RML):
        if iri.startswith(old):
            return RML + iri[len(old) :]
    return iri


def shown(node: TermTuple) -> str:
    """Return a name of a node for errors."""
    return f"<{node[1]}>" if node[0] == IRI else "a triples map without a name" if node[0] == BLANK else repr(node[1])
