"""The vocabulary of RDFS and OWL that entailment interprets (docs/semantics.md §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.query.algebra.tree import Iri, Triple

if TYPE_CHECKING:
    from penstock.query.algebra.tree import PathTriple

_RDFS = "http://www.w3.org/2000/01/rdf-schema#"
_OWL = "http://www.w3.org/2002/07/owl#"

TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
SUBCLASS = _RDFS + "subClassOf"
SUBPROPERTY = _RDFS + "subPropertyOf"
DOMAIN = _RDFS + "domain"
RANGE = _RDFS + "range"
INVERSE = _OWL + "inverseOf"
SAME_AS = _OWL + "sameAs"

SCHEMA = (SUBCLASS, SUBPROPERTY, DOMAIN, RANGE, INVERSE, SAME_AS)
"""The predicates of the schema."""

HIERARCHICAL = (TYPE, SUBCLASS, SUBPROPERTY)
"""The predicates whose objects have superclasses or superproperties."""


def names_class_or_property(pattern: Triple | PathTriple) -> bool:
    """Return whether the object of a pattern can be a class or a property."""
    if not isinstance(pattern, Triple):
        return False
    return not isinstance(pattern.predicate, Iri) or pattern.predicate.value in HIERARCHICAL
