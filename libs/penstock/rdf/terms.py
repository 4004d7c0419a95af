"""Conversion between rdflib terms and native tuples `(kind, lexical, datatype, lang)`. Lexical forms are preserved."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from rdflib import BNode, Literal, URIRef

from penstock.core._native import PRIVATE_SLOTS, check_term
from penstock.errors import DataError
from penstock.rdf.id_layout import PAYLOAD, TAG_SHIFT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rdflib.term import Node

    from penstock.core._native import Dictionary, Ids, LocalTerms, TermTuple

IRI = 1
BLANK = 2
LITERAL = 3

XSD_BOOLEAN = "http://www.w3.org/2001/XMLSchema#boolean"
XSD_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
RDF_LANG_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"

RdflibTerm = URIRef | BNode | Literal

_ENTRIES = (0, 2)  # tags of IRIs and of literals that are not inline

MAX_TERM_BYTES = 8 << 20
"""`max_term_bytes`: the maximum size of a term in a cluster. The size is the sum of lexical form, datatype and language
tag, as UTF-8.

A result line with one term of this size fits in a log record, even if the term consists of control characters. JSON
escapes each control character with six bytes.
"""
_SURELY_SMALL = MAX_TERM_BYTES // 4  # characters; UTF-8 needs at most four bytes each

_CACHED_TERMS, _CACHED_LENGTH = 16_384, 256
"""Number of recently used terms in the cache, and the maximum length of their texts. The cache holds at most about 10
MB.
"""


def check_iri(iri: str) -> str:
    """Return the IRI. DataError if it is relative or malformed (RFC 3987)."""
    try:
        check_term(IRI, iri)
    except TypeError:
        raise DataError(f"not an IRI: {iri!r}") from None
    return iri


def is_private(term_id: int) -> bool:
    """Return whether an id is private. A private id is valid only in the partial dictionary that has assigned it (ADR
    37).
    """
    return term_id >> int(TAG_SHIFT) in _ENTRIES and term_id & int(PAYLOAD) >= PRIVATE_SLOTS


def private_ids(ids: Ids) -> Ids:
    """Return the private ids among `ids`."""
    tags, payloads = ids >> TAG_SHIFT, ids & PAYLOAD
    return ids[np.isin(tags, _ENTRIES) & (payloads >= np.uint64(PRIVATE_SLOTS))]


def term_bytes(term: TermTuple) -> int:
    """Return the size of a term as UTF-8."""
    return sum(len(part.encode("utf-8", "surrogatepass")) for part in term[1:])


def term_fits(term: TermTuple) -> bool:
    """Return whether a cluster accepts a term of this size (`max_term_bytes`)."""
    return len(term[1]) + len(term[2]) + len(term[3]) <= _SURELY_SMALL or term_bytes(term) <= MAX_TERM_BYTES


def check_term_size(term: TermTuple) -> None:
    """Raise DataError if a term exceeds `max_term_bytes`."""
    if not term_fits(term):
        raise DataError(f"a term of {term_bytes(term)} bytes exceeds max_term_bytes ({MAX_TERM_BYTES})")


def to_tuple(term: Node) -> TermTuple:
    """Return the tuple of an rdflib term.

    DataError for objects that are not RDF terms (variables, graphs), for relative IRIs, for IRIs with forbidden
    characters (RFC 3987), and for invalid language tags (BCP 47).
    """
    if isinstance(term, BNode):
        return (BLANK, str(term), "", "")
    if isinstance(term, URIRef):
        found = (IRI, str(term), "", "")
    elif isinstance(term, Literal):
        datatype = RDF_LANG_STRING if term.language else XSD_STRING if term.datatype is None else str(term.datatype)
        found = (LITERAL, str(term), datatype, term.language or "")
    else:
        raise DataError(f"not an RDF term: {term!r}")
    check_term(*found)
    return found


def from_tuple(term: TermTuple) -> RdflibTerm:
    """Return the rdflib term with its lexical form unchanged.

    Literals of type xsd:string get no datatype, because rdflib treats literals with and without this datatype as
    different terms. rdflib's parsers and most users write string literals without the datatype.
    """
    return _cached_term(term) if len(term[1]) <= _CACHED_LENGTH else _new_term(term)


def _new_term(term: TermTuple) -> RdflibTerm:
    kind, lexical, datatype, lang = term
    if kind == IRI:
        return URIRef(lexical)
    if kind == BLANK:
        return BNode(lexical)
    if lang:
        return Literal(lexical, lang=lang)
    if datatype == XSD_STRING:
        return Literal(lexical)
    return Literal(lexical, datatype=_datatype(datatype), normalize=False)


# Results repeat the same terms, and creating a Literal costs more than finding a row (rdflib 7.6: 3.5 µs). Terms are
# immutable, so callers can share them.
_cached_term = lru_cache(maxsize=_CACHED_TERMS)(_new_term)


@lru_cache(maxsize=256)
def _datatype(iri: str) -> URIRef:
    return URIRef(iri)


def encode(dictionary: Dictionary, terms: Iterable[Node]) -> Ids:
    """Return the ids of rdflib terms.

    Blank nodes that were decoded from this dictionary keep their ids. In each call, every other label gets a fresh
    blank node.
    """
    tuples = [to_tuple(term) for term in terms]
    ids = dictionary.intern_many(tuples)
    for i, (kind, lexical, _, _) in enumerate(tuples):
        if kind == BLANK and (known := dictionary.find(BLANK, lexical)):
            ids[i] = known
    return ids


def decode(terms: LocalTerms, ids: Ids) -> list[RdflibTerm | None]:
    """Return the rdflib terms of ids. The id 0 (unbound) gives None."""
    return [None if term is None else from_tuple(term) for term in terms.decode(ids)]
