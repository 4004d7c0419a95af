"""The interface between an engine and the stored graph. The interface does not depend on the location of the shards.

`StoredGraph` is the port. `LocalGraph` has the shards in this process. `penstock.remote.stores_graph` reads the shards
of stores. Every engine operation that depends on the location of shards is a method of the port.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from penstock.core import _native as native
from penstock.engine.intake.bins import appended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from penstock.core._native import Ids
    from penstock.engine.intake.bins import Bins
    from penstock.engine.intake.declaration import Declaration
    from penstock.errors import DataPlaneError, UnavailableError
    from penstock.query.planning.cost.placement import Placement

    Columns: TypeAlias = tuple[Ids, Ids, Ids, Ids]
    """Quads as columns s, p, o and g of ids. For the default graph, g is 0."""


class StoredGraph(Protocol):
    """The port. Any thread can read `labels` and `placement`, and call `view`, `unread`, `glance`, `forker` and
    `give_up`. The methods that write belong to the writer thread.
    """

    @property
    def shards(self) -> int:
        """The number of shards."""

    @property
    def labels(self) -> native.Labelled:
        """The numbers of edge labels. Plans and the executor use these numbers."""

    @property
    def placement(self) -> Placement | None:
        """The costs by which the planner decides where operators over the graph run. If the costs are None, all
        operators run in this process.
        """

    # ---- reading
    def view(self, bounds: Sequence[tuple[int, int]] = ()) -> native.Source:
        """Return a view of the latest snapshot. For each (stream, batch) in `bounds`, the view excludes the later
        batches of the stream. UnavailableError if the graph cannot be read now.
        """

    def unread(self, bounds: Sequence[tuple[int, int]]) -> native.Source:
        """Return a placeholder for the view, for an execution that does not read the stored graph."""

    def glance(self) -> native.Source:
        """Return a view for cardinality estimates. The call never waits: UnavailableError if the graph cannot be read
        now.
        """

    def forker(self, view: native.Source, fragments: Mapping[int, str]) -> native.Forker | None:
        """Return the object that executes the forks of a plan over `view`, or None. The result is None if the plan has
        no forks, or if forks are not available.
        """

    def give_up(self, error: DataPlaneError) -> None:
        """Handle an evaluation that was repeated too often because of `error`. If the caller should retry the
        evaluation later, the call raises UnavailableError. If the call returns, the evaluation has failed.
        """

    def latest(self) -> int:
        """Return the number of the latest snapshot."""

    def edge_count(self) -> int:
        """Return the number of quads."""

    # ---- writing
    def commit(self, s: Ids, p: Ids, o: Ids, g: Ids, stream: int = 0, batch: int = 0) -> int:
        """Commit quads as one snapshot and return the snapshot's number. `stream` and `batch` identify the commit in
        the bounds of views.
        """

    def change(self, removed: Columns, added: Columns, stream: int = 0, batch: int = 0) -> tuple[int, int, int]:
        """Remove quads and add other quads, as one snapshot. A quad that is both in `removed` and in `added` is added.
        Returns the number of the snapshot, the number of added quads, and the number of removed quads.
        """

    def load(self, bins: Bins, stream: int, number: int) -> Iterator[UnavailableError | None]:
        """Commit sorted bins as one snapshot. The generator yields None after each bin. If a bin must be retried, the
        generator yields the error of the bin instead.
        """

    def stream(
        self, declaration: Declaration, number: int, dictionary: native.Dictionary, iri_id: Callable[[str], int]
    ) -> native.Stream:
        """Return a stream. When a batch closes, the stream adds its timeless tuples to this graph. `iri_id` returns the
        id of an IRI.
        """

    def release(self, stream: int, batch: int) -> None:
        """Declare that no later view excludes batches of `stream` with numbers <= `batch`. The append logs of the
        commits of these batches can then be released.
        """

    # ---- memory and files
    def used_bytes(self) -> int:
        """Return the memory of this process that shards use, in bytes."""

    def log_bytes(self) -> int:
        """Return the memory of this process that append logs use, in bytes."""

    def capture(self, directory: str, previous: str = "") -> native.StoreCapture:
        """Copy the state that a checkpoint in `directory` needs in addition to the previous checkpoint. `previous` is
        the directory of the previous checkpoint, or "" if there is no previous checkpoint.
        """


class LocalGraph:
    """The stored graph in this process. The native store implements most methods."""

    placement: Placement | None = None

    def __init__(self, store: native.Store) -> None:
        self.labels = store
        self.shards = store.shard_count()
        self.view = self.unread = self.glance = store.view
        self.latest, self.edge_count = store.latest, store.edge_count
        self.commit, self.change, self.release = store.commit, store.change, store.release
        self.used_bytes, self.log_bytes, self.capture = store.used_bytes, store.log_bytes, store.capture

    def forker(self, view: native.Source, fragments: Mapping[int, str]) -> native.Forker | None:
        """Return None: all operators run in this process."""
        del view, fragments
        return None

    def give_up(self, error: DataPlaneError) -> None:
        """Do nothing: the evaluation has failed."""
        del error

    def load(self, bins: Bins, stream: int, number: int) -> Iterator[UnavailableError | None]:
        """Commit sorted bins as one snapshot (see `StoredGraph.load`)."""
        self.labels.number_labels(*bins.labels)
        load = native.BulkLoad(self.labels, bins.pieces, bins.shards, stream, number)
        yield from appended(load, bins.files())
        load.publish()

    def stream(
        self, declaration: Declaration, number: int, dictionary: native.Dictionary, iri_id: Callable[[str], int]
    ) -> native.Stream:
        """Return a stream. When a batch closes, the stream adds its timeless tuples to this graph. `iri_id` returns the
        id of an IRI.
        """
        timing = declaration.timing
        predicates = None if timing == "all" else np.array([iri_id(p) for p in timing], np.uint64)
        graph = 0 if declaration.absorb_into is None else iri_id(declaration.absorb_into)
        named = [] if predicates is None else predicates.tolist()
        dictionary.keep(np.array([*named, *([graph] if graph else [])], np.uint64))
        return native.Stream(
            self.labels,
            dictionary,
            number=number,
            batch_ms=declaration.batch_ms,
            timing=predicates,
            absorb_graph=graph,
            memory_bytes=(declaration.slice_mb or 0) << 20,
        )
