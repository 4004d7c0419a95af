"""What the planner asks of whoever runs the query: which streams and graphs exist, ids of terms, exact counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from penstock.query.algebra.tree import Iri, Literal
    from penstock.query.planning.cost.placement import Placement

STORED_GRAPH = "urn:x-penstock:stored"
"""The stored default graph, under a name (docs/semantics.md §4)."""

OUT, IN = 0, 1
"""Directions of an edge list: subject → objects, object → subjects."""


class Catalogue(Protocol):
    """Facts about one engine. `source` 0 is the stored graph, i the window of clause i - 1 of the query being planned.

    Graphs are ids (0 = default graph). Windows take graph 0. Counts may be zeros where a window is not yet built.
    """

    @property
    def placement(self) -> Placement | None:
        """How steps over the stored graph may be executed where nodes own it; None where it is all here."""

    def is_stream(self, iri: str) -> bool:
        """Whether a stream of that name is declared (or derived)."""

    def batch_ms(self, stream: str) -> int:
        """The stream's batch interval."""

    def has_graph(self, iri: str) -> bool:
        """Whether the graph is loaded, or some stream absorbs into it."""

    def timing(self, stream: str) -> bool:
        """Whether the stream has timing predicates."""

    def retention_ms(self, stream: str) -> int:
        """The stream's declared retention."""

    def term_id(self, term: Iri | Literal) -> int:
        """The id of a constant, made where it is new."""

    def label_stats(self, source: int, graph: int, predicate: int) -> tuple[int, int, int]:
        """(edges, distinct subjects, distinct objects) of a label."""

    def degree(self, source: int, vertex: int, graph: int, predicate: int, direction: int) -> int:
        """Exact length of one neighbour list."""
