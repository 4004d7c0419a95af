"""Conversion of rdflib triples to term tuples, with checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import DataError
from penstock.rdf.terms import IRI, LITERAL, to_tuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from penstock.core._native import TermTuple


def triples_to_tuples(triples: Iterable[Any]) -> list[TermTuple]:
    """Return the terms of rdflib triples as one list: s, p, o, s, p, o, … DataError if a term is in an invalid
    position, or if an element is not a triple.
    """
    flat: list[TermTuple] = []
    for triple in triples:
        if not isinstance(triple, tuple) or len(triple) != 3:
            raise DataError(f"not a triple of rdflib terms: {triple!r}")
        subject, predicate, object_ = map(to_tuple, triple)
        if subject[0] == LITERAL:
            raise DataError(f"a literal cannot be a subject: {triple[0]!r}")
        if predicate[0] != IRI:
            raise DataError(f"a predicate must be an IRI: {triple[1]!r}")
        flat += (subject, predicate, object_)
    return flat
