"""Decoding of a cluster's answers. SPARQL Results JSON and N-Triples become the types of the embedded engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import rdflib

from penstock.core import _native as native
from penstock.engine.answers.answer_values import Solutions
from penstock.errors import PenstockError
from penstock.rdf.terms import BLANK, IRI, LITERAL, RDF_LANG_STRING, XSD_STRING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.core._native import TermTuple


def term_tuple(term: Mapping[str, str]) -> TermTuple:
    """Return a term of SPARQL Results JSON (§3.2.2) as (kind, lexical form, datatype, language).

    Some SPARQL services write `typed-literal` for literals with a datatype. PenstockError for an unknown kind of term.
    """
    kind, value = term["type"], term["value"]
    if kind == "uri":
        return IRI, value, "", ""
    if kind == "bnode":
        return BLANK, value, "", ""
    if kind not in ("literal", "typed-literal"):
        raise PenstockError(f"the answer contains an invalid term: {dict(term)!r}")
    language = term.get("xml:lang", "")
    return LITERAL, value, RDF_LANG_STRING if language else term.get("datatype", XSD_STRING), language


def solutions(variables: Sequence[str], bindings: Sequence[Mapping[str, Mapping[str, str]]]) -> Solutions:
    """Return the answer of a SELECT, given its variables and the `bindings` of SPARQL Results JSON."""
    terms = native.TextTerms()

    def id_of(term: Mapping[str, str] | None) -> int:
        return 0 if term is None else terms.id_of(*term_tuple(term))

    columns = [np.array([id_of(row.get(name)) for row in bindings], np.uint64) for name in variables]
    return Solutions(variables, columns, len(bindings), terms)


def answer_of(line: Mapping[str, Any]) -> Solutions | bool | rdflib.Graph:
    """Return the answer in a SPARQL Results JSON document, or in the line of an evaluation (docs/kafka.md).
    PenstockError if the document or line contains no answer.
    """
    if "boolean" in line:
        return bool(line["boolean"])
    if "results" in line:
        return solutions(line["head"]["vars"], line["results"]["bindings"])
    if "graph" in line:
        return graph_of(line["graph"])
    raise PenstockError(f"unknown form of answer: {sorted(line)}")


def none_of(line: Mapping[str, Any]) -> Solutions | bool | rdflib.Graph:
    """Return an empty answer of the same form as the answer in `line`: no rows, no triples, or False."""
    if "boolean" in line:
        return False
    return solutions(line["head"]["vars"], ()) if "results" in line else graph_of("")


def graph_of(text: str) -> rdflib.Graph:
    """Return the triples of an N-Triples document as an rdflib graph."""
    return rdflib.Graph().parse(data=text, format="nt")
