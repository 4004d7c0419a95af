"""The planner's interface to an engine: existing streams and graphs, term ids, statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from penstock.query.algebra.tree import Iri, Literal
    from penstock.query.planning.cost.placement import Placement

STORED_GRAPH = "urn:x-penstock:stored"
"""The IRI of the stored default graph (docs/semantics.md §4)."""

ANY_PREDICATE = 0
"""Stands for all predicates in statistics. No term has this id."""

ALL_NAMED_GRAPHS = -1
"""Stands for all named graphs in statistics with ANY_PREDICATE."""

OUT, IN = 0, 1
"""Directions of an edge list: subject → objects, object → subjects."""


class Catalogue(Protocol):
    """Facts about an engine. `source` 0 is the stored graph, i the window of clause i - 1 of the query being planned.

    Graphs are ids (0 = default graph). Windows use graph 0. Statistics may be zero if a window does not exist yet.
    """

    @property
    def placement(self) -> Placement | None:
        """Where scans of the stored graph may run, if stores hold it; None: in this process only."""

    def is_stream(self, iri: str) -> bool:
        """Return whether a stream of that name is declared or derived."""

    def batch_ms(self, stream: str) -> int:
        """Return the stream's batch interval, ms."""

    def has_graph(self, iri: str) -> bool:
        """Return whether the graph is loaded, or a stream absorbs into it."""

    def timing(self, stream: str) -> bool:
        """Return whether the stream has timing predicates."""

    def retention_ms(self, stream: str) -> int:
        """Return the stream's declared retention, ms."""

    def term_id(self, term: Iri | Literal) -> int:
        """Return the id of a constant, assigning one if necessary."""

    def label_stats(self, source: int, graph: int, predicate: int) -> tuple[int, int, int]:
        """Return (edges, distinct subjects, distinct objects) of a label; for ANY_PREDICATE, sums over all labels."""

    def degree(self, source: int, vertex: int, graph: int, predicate: int, direction: int) -> int:
        """Return the exact length of a vertex's neighbour list. `direction`: OUT or IN."""
