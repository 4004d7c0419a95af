"""Estimates how many rows match a triple pattern, for each row on the left of a join. The estimates use exact
statistics (docs/architecture.md, "Queries").

The statistics come from the header of the stored graph and from windows. For a window that does not exist yet, the
estimates assume fixed values. A new plan replaces the first plan as soon as statistics are available. Strider also
adapts plans to measured cardinalities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.query.algebra.tree import Iri, Literal, PathTriple, Term, Triple, Variable
from penstock.query.catalogue import ALL_NAMED_GRAPHS, ANY_PREDICATE, IN, OUT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.query.algebra.scope import Names
    from penstock.query.catalogue import Catalogue
    from penstock.query.datasets import Parts

UNKNOWN = (1000.0, 200.0, 200.0)  # assumed edges, subjects and objects of a label without statistics
_PER_VERTEX = 8.0  # assumed edges of a vertex over all labels, for a variable predicate
_ALL_EDGES = 1e6  # assumed edges over all labels, in a window
_CLOSURE = 4.0  # assumed matches of `*` and `+` paths, as a multiple of the matches of one step

Counts = tuple[int, int, int]
CountKey = tuple[int, int, int]  # source, graph, predicate


class Estimator:
    """Estimates the matches of triple patterns for one plan. `counts`: the statistics that the estimator has used."""

    def __init__(self, catalogue: Catalogue, sample: Mapping[str, Iri | Literal]) -> None:
        """`sample`: the constants of one member of a query group, by parameter name. A constant's degree is the number
        of its edges with one label. The degrees of the sample's constants are used as estimates for all members of the
        group.
        """
        self._catalogue = catalogue
        self._sample = sample
        self.counts: dict[CountKey, Counts] = {}
        self._degrees: dict[tuple[int, Iri | Literal, int, int, int], float] = {}

    def fanout(self, pattern: Triple | PathTriple, parts: Parts, bound: Names) -> float:
        """Return the expected number of matches of a pattern for a row that binds the names `bound`."""
        if isinstance(pattern, PathTriple):
            ends = self._is_bound(pattern.subject, bound) + self._is_bound(pattern.object, bound)
            return (UNKNOWN[0] * _CLOSURE, _PER_VERTEX * _CLOSURE, 0.5)[ends]
        subject, object_ = self._is_bound(pattern.subject, bound), self._is_bound(pattern.object, bound)
        if not isinstance(pattern.predicate, Iri):
            selectivity = 0.2 if self._is_bound(pattern.predicate, bound) else 1.0
            edges = sum(self._all_edges(part.source, graph) for part in parts for graph in _graphs(part.graphs))
            return selectivity * min(
                edges, 0.5 if subject and object_ else _PER_VERTEX if subject or object_ else edges
            )
        return sum(self._part(pattern, part.source, graph, bound) for part in parts for graph in _graphs(part.graphs))

    def _part(self, pattern: Triple, source: int, graph: int, bound: Names) -> float:
        assert isinstance(pattern.predicate, Iri)
        predicate = self._catalogue.term_id(pattern.predicate)
        edges, subjects, objects = self._stats(source, graph, predicate)
        subject, object_ = self._is_bound(pattern.subject, bound), self._is_bound(pattern.object, bound)
        known_subject, known_object = self._constant(pattern.subject), self._constant(pattern.object)
        if known_object is not None:
            degree = self._degree(source, known_object, graph, predicate, IN)
            return min(1.0, degree / max(subjects, 1.0)) if subject else float(degree)
        if known_subject is not None:
            degree = self._degree(source, known_subject, graph, predicate, OUT)
            return min(1.0, degree / max(objects, 1.0)) if object_ else float(degree)
        if subject and object_:
            return min(1.0, edges / max(subjects * objects, 1.0))
        if subject:
            return edges / max(subjects, 1.0)
        if object_:
            return edges / max(objects, 1.0)
        return edges

    def _all_edges(self, source: int, graph: int) -> float:
        """Return the number of edges of a graph over all labels. For a window, the number is an assumption."""
        if source != 0:
            return _ALL_EDGES
        key = (source, graph, ANY_PREDICATE)
        if key not in self.counts:
            self.counts[key] = self._catalogue.label_stats(source, graph, ANY_PREDICATE)
        return float(self.counts[key][0])

    def _stats(self, source: int, graph: int, predicate: int) -> tuple[float, float, float]:
        key = (source, graph, predicate)
        if key not in self.counts:
            self.counts[key] = self._catalogue.label_stats(source, graph, predicate) if graph >= 0 else (0, 0, 0)
        counts = self.counts[key]
        if counts[0] == 0 and (source != 0 or graph < 0):
            return UNKNOWN
        return (float(counts[0]), float(counts[1]), float(counts[2]))

    def _degree(self, source: int, vertex: Iri | Literal, graph: int, predicate: int, direction: int) -> float:
        edges, subjects, objects = self._stats(source, graph, predicate)
        if graph < 0 or self.counts[source, graph, predicate][0] == 0:
            return edges / max(objects if direction == IN else subjects, 1.0)
        key = (source, vertex, graph, predicate, direction)
        if key not in self._degrees:
            vertex_id = self._catalogue.term_id(vertex)
            self._degrees[key] = float(self._catalogue.degree(source, vertex_id, graph, predicate, direction))
        return self._degrees[key]

    def _constant(self, term: Term) -> Iri | Literal | None:
        if isinstance(term, (Iri, Literal)):
            return term
        return self._sample.get(term.name) if isinstance(term, Variable) else None

    def _is_bound(self, term: Term, bound: Names) -> bool:
        return not isinstance(term, Variable) or term.name in bound


def _graphs(graphs: tuple[int, ...] | str) -> tuple[int, ...]:
    """Return the graph ids under which the statistics of a dataset part are stored. A window has only graph 0."""
    if isinstance(graphs, str):
        return (ALL_NAMED_GRAPHS,)
    return graphs or (0,)
