"""The planner's interface to an engine: its streams and graphs, term ids, and statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from penstock.query.algebra.tree import Iri, Literal
    from penstock.query.planning.cost.placement import Placement
    from penstock.query.planning.entailment.schema import Schema

STORED_GRAPH = "urn:x-penstock:stored"
"""The IRI of the stored default graph (docs/semantics.md §4)."""

ANY_PREDICATE = 0
"""Stands for all predicates in requests for statistics. No term has this id."""

ALL_NAMED_GRAPHS = -1
"""Stands for all named graphs in requests for statistics with ANY_PREDICATE."""

OUT, IN = 0, 1
"""Directions of an edge list: subject → objects, object → subjects."""


class Catalogue(Protocol):
    """Facts about an engine, for the planning of one query. Source 0 is the stored graph; source i + 1 is the window of
    the query's window clause i, counted from 0.

    Each graph has an id. The id 0 is the default graph. A window has only graph 0. Statistics can be zero if a window
    does not exist yet.
    """

    @property
    def placement(self) -> Placement | None:
        """The rule by which the planner places scans of the stored graph: in this process or in stores. None: always in
        this process.
        """

    def is_stream(self, iri: str) -> bool:
        """Return whether there is a stream with that IRI, declared or derived."""

    def batch_ms(self, stream: str) -> int:
        """Return the batch interval of a stream in ms."""

    def has_graph(self, iri: str) -> bool:
        """Return whether the named graph `iri` is stored, or a stream absorbs into this graph."""

    def timing(self, stream: str) -> bool:
        """Return whether a stream has timing predicates."""

    def retention_ms(self, stream: str) -> int:
        """Return the declared retention of a stream in ms."""

    def graph_history(self, stream: str) -> bool:
        """Return whether the stored graph of a cluster is readable as of the retained instants of a stream."""

    def term_id(self, term: Iri | Literal) -> int:
        """Return the id of a constant. A new constant gets an id."""

    def label_stats(self, source: int, graph: int, predicate: int) -> tuple[int, int, int]:
        """Return the numbers of edges, distinct subjects and distinct objects of an edge label. For ANY_PREDICATE, each
        number is the sum over all labels of the graph.
        """

    def schema(self) -> Schema:
        """Return the schema triples of the stored default graph, for entailment."""

    def degree(self, source: int, vertex: int, graph: int, predicate: int, direction: int) -> int:
        """Return the exact number of neighbours of a vertex over an edge label. `direction`: OUT or IN."""
