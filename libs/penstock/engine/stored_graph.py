"""The stored graph as an engine uses it, wherever its shards lie.

`StoredGraph` is the port. `LocalGraph` keeps the shards in this process; `penstock.remote.stores_graph` reads those of
stores. Everything of an engine that depends on where they lie is a method here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from penstock.core import _native as native
from penstock.engine.intake.bins import appended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from penstock.core._native import Ids
    from penstock.engine.intake.bins import Bins
    from penstock.engine.intake.declaration import Declaration
    from penstock.errors import DataPlaneError, UnavailableError
    from penstock.query.planning.cost.placement import Placement


class StoredGraph(Protocol):
    """Views are of any thread; everything else is the writer's."""

    @property
    def shards(self) -> int:
        """How many there are."""

    @property
    def labels(self) -> native.Labelled:
        """The numbers of edge labels, which plans and their execution use."""

    @property
    def placement(self) -> Placement | None:
        """Where steps over the graph may be executed; None: in this process alone."""

    # ---- reading
    def view(self, bounds: Sequence[tuple[int, int]] = ()) -> native.Source:
        """Return the latest snapshot without the batches of those streams beyond the given ones. UnavailableError."""

    def unread(self, bounds: Sequence[tuple[int, int]]) -> native.Source:
        """Return a source that takes the place of the view in an execution that reads nothing of it."""

    def glance(self) -> native.Source:
        """Return the graph for counts. UnavailableError where they would have to be waited for."""

    def forker(self, view: native.Source, fragments: Mapping[int, str]) -> native.Forker | None:
        """Return what runs the forks of a plan over that view; None where the plan has none, or nothing runs them."""

    def give_up(self, error: DataPlaneError) -> None:
        """Return where an evaluation that was interrupted too often has failed. UnavailableError: it is to wait."""

    def latest(self) -> int:
        """Return the number of the latest snapshot."""

    def edge_count(self) -> int:
        """Return the number of quads."""

    # ---- writing
    def commit(self, s: Ids, p: Ids, o: Ids, g: Ids, stream: int = 0, batch: int = 0) -> int:
        """Commit quads as one snapshot, which bounds know by that stream and batch; returns its number."""

    def load(self, bins: Bins, stream: int, number: int) -> Iterator[UnavailableError | None]:
        """Commit sorted bins likewise, yielding after each; an error where one has to be tried again."""

    def stream(
        self, declaration: Declaration, number: int, dictionary: native.Dictionary, iri_id: Callable[[str], int]
    ) -> native.Stream:
        """Return a stream whose timeless tuples are stored here when a batch closes. `iri_id` gives names their ids."""

    def release(self, stream: int, batch: int) -> None:
        """Note that no view will bound that stream before `batch` any more."""

    # ---- memory and files
    def used_bytes(self) -> int:
        """Memory of this process that the shards take."""

    def log_bytes(self) -> int:
        """Memory of this process that append logs take."""

    def capture(self, directory: str, previous: str = "") -> native.StoreCapture:
        """Copy what a checkpoint needs beyond the previous one."""


class LocalGraph:
    """The stored graph in this process: most of it is the core's store itself."""

    placement: Placement | None = None

    def __init__(self, store: native.Store) -> None:
        self.labels = store
        self.shards = store.shard_count()
        self.view = self.unread = self.glance = store.view
        self.latest, self.edge_count = store.latest, store.edge_count
        self.commit, self.release = store.commit, store.release
        self.used_bytes, self.log_bytes, self.capture = store.used_bytes, store.log_bytes, store.capture

    def forker(self, view: native.Source, fragments: Mapping[int, str]) -> native.Forker | None:
        """Return None: every step is executed here."""
        del view, fragments
        return None

    def give_up(self, error: DataPlaneError) -> None:
        """Return: the evaluation has failed."""
        del error

    def load(self, bins: Bins, stream: int, number: int) -> Iterator[UnavailableError | None]:
        """Commit sorted bins, yielding after each; an error where one has to be tried again."""
        self.labels.number_labels(*bins.labels)
        load = native.BulkLoad(self.labels, bins.pieces, bins.shards, stream, number)
        yield from appended(load, bins.files())
        load.publish()

    def stream(
        self, declaration: Declaration, number: int, dictionary: native.Dictionary, iri_id: Callable[[str], int]
    ) -> native.Stream:
        """Return a stream whose timeless tuples are stored here when a batch closes. `iri_id` gives names their ids."""
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
