"""The stored graph of a cluster, which a query engine reads from the stores (ADR 37, 38).

An engine reads the snapshot that the engine itself has reached. Engine and stores number snapshots by the same rule
(`Absorption`). The engine therefore does not see later commits of a store that is ahead. If a store is behind, a read
waits briefly, and then raises UnavailableError. The engine retries the evaluation later.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from penstock.core import _native as native
from penstock.errors import DataPlaneError, UnavailableError
from penstock.replication.absorption import Absorption, batch_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from penstock.core._native import Ids
    from penstock.engine.intake.bins import Bins
    from penstock.engine.intake.declaration import Declaration
    from penstock.engine.stored_graph import Columns
    from penstock.query.planning.cost.placement import Placement
    from penstock.remote.store_links import StoreLinks

T = TypeVar("T")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.000_2, 0.005
_MEND_AFTER_S = 0.03  # if a store takes longer to reach a snapshot, it perhaps no longer has the shard


class StoresGraph(native.RemoteStore):
    """The stored graph. Any thread can read. One thread applies steps. `snapshot`: the number of the last applied
    commit.

    `labels_only`: a local native store with the edge labels but no data. The slices of streams need these labels.
    `patience_s`: how long a read waits in s before it raises UnavailableError.
    """

    def __init__(self, shards: int, links: StoreLinks, patience_s: float, labels: str = "", snapshot: int = 0) -> None:
        super().__init__(shards)
        self.shards = shards
        self.links = links
        self.snapshot = snapshot
        self.labels_only = native.Store.open(labels, "") if labels else native.Store("", 1)
        self._patience_s = patience_s
        graphs, predicates = self.labels_only.label_pairs()
        self.define_labels(1, graphs, predicates)

    # ---- application of steps
    def number_labels(self, graphs: Ids, predicates: Ids) -> NDArray[np.uint32]:
        """Return the number of the edge label of each (graph, predicate) pair. The numbers are the same as in the
        stores, because all replicas number labels in the total order.
        """
        self.labels_only.number_labels(graphs, predicates)
        return super().number_labels(graphs, predicates)

    def commit(self, s: Ids, p: Ids, o: Ids, g: Ids, stream: int = 0, batch: int = 0) -> int:
        """Count an insertion, and return its snapshot number. The stores commit the quads."""
        del s, o, stream, batch
        self.number_labels(g, p)
        self.snapshot += 1
        return self.snapshot

    def change(self, removed: Columns, added: Columns, stream: int = 0, batch: int = 0) -> tuple[int, int, int]:
        """Count a change of quads as one snapshot. The stores commit the change. Returns the snapshot number, the
        number of quads to add, and the number of quads to remove.
        """
        del stream, batch
        for _, p, _, g in (removed, added):
            self.number_labels(g, p)
        self.snapshot += 1
        return self.snapshot, len(added[0]), len(removed[0])

    def load(self, bins: Bins, stream: int, number: int) -> Iterator[UnavailableError | None]:
        """Count a bulk load as one snapshot. The stores commit the bins."""
        del stream, number
        self.number_labels(*bins.labels)
        self.snapshot += 1
        return iter(())

    def batch(self, absorption: Absorption, predicates: Ids) -> None:
        """Count a batch as one snapshot, if the batch has tuples that the stores commit."""
        self.snapshot += bool(batch_labels(self, absorption, predicates).any())

    def capture(self, directory: str, previous: str = "") -> native.StoreCapture:
        """Copy the edge labels for a checkpoint. The graph itself is in the stores."""
        return self.labels_only.capture(directory, previous)

    # ---- `StoredGraph`
    @property
    def labels(self) -> native.Labelled:
        """The numbers of edge labels."""
        return self

    @property
    def placement(self) -> Placement | None:
        """The rule by which the planner places scans of the stored graph. None if fork-join is disabled."""
        return self.links.execution()

    def forker(self, view: native.Source, fragments: Mapping[int, str]) -> native.Forker | None:
        """Return the object that executes the forks of a plan in the stores, or None if the plan has no forks or
        fork-join is disabled.
        """
        forking = self.links.forking
        return None if forking is None else forking.forker(view, fragments)

    def stream(
        self, declaration: Declaration, number: int, dictionary: native.Dictionary, iri_id: Callable[[str], int]
    ) -> native.Stream:
        """Return a stream for windows in this process. `iri_id` must return ids of the cluster's dictionary, or raise
        UnavailableError.

        If `iri_id` returned private ids, the stream would count commits that the stores do not have.
        """
        timing = declaration.timing
        ids = tuple(iri_id(name) for name in (() if timing == "all" else timing))
        graph = 0 if declaration.absorb_into is None else iri_id(declaration.absorb_into)
        absorption = Absorption(None if timing == "all" else ids, graph)
        return WindowStream(self, dictionary, absorption, number, declaration.batch_ms)

    # ---- reading
    def view(self, bounds: Sequence[tuple[int, int]] = (), at: int | None = None) -> native.Source:
        """Return a view of snapshot `at`. None means the snapshot that this engine has reached. For each (stream
        number, batch number) in `bounds`, the view excludes later batches of the stream. UnavailableError if the stores
        do not have the snapshot within `patience_s`.
        """
        return self._patiently(lambda: self._view(bounds, at))

    def _view(self, bounds: Sequence[tuple[int, int]], at: int | None = None) -> native.Source:
        self.links.check()
        return native.RemoteStore.view(self, bounds, self.snapshot if at is None else at)

    def glance(self) -> native.Source:
        """Return a view for cardinality estimates. The call never waits. UnavailableError if the stores cannot be read
        now.
        """
        try:
            return self._view(())
        except DataPlaneError as error:
            raise UnavailableError(str(error)) from error

    def unread(self, bounds: Sequence[tuple[int, int]]) -> native.Source:
        """Return a placeholder in place of a view, for an execution that does not read the graph. The call never waits
        for stores.
        """
        del bounds
        return self.labels_only.view()

    def give_up(self, error: DataPlaneError) -> None:
        """Raise UnavailableError, so that the evaluation is retried later."""
        raise UnavailableError(f"the stores cannot be read: {error}") from error

    def latest(self) -> int:
        """Return the snapshot that this engine has reached."""
        return self.snapshot

    def edge_count(self) -> int:
        """Return the number of quads in all shards. UnavailableError if the stores cannot be read."""
        return self._patiently(super().edge_count)

    def used_bytes(self) -> int:
        """Return 0, because shards use no memory of this process."""
        return 0

    def log_bytes(self) -> int:
        """Return 0, because append logs use no memory of this process."""
        return 0

    def _patiently(self, read: Callable[[], T]) -> T:
        began, pause = time.monotonic(), _FIRST_PAUSE_S
        while True:
            try:
                return read()
            except DataPlaneError as error:
                waited = time.monotonic() - began
                if error.fault != "behind" or waited >= min(_MEND_AFTER_S, self._patience_s):
                    self.links.mend(self, doubtful=error.fault != "behind" and self.links.valid)
                if waited >= self._patience_s:
                    return self._last_try(read)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _last_try(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except DataPlaneError as error:
            reason = self.links.last_error or str(error)
            raise UnavailableError(f"the stores cannot be read: {reason}") from error


class WindowStream(native.Stream):
    """The native stream of a query engine, for windows. This stream adds no tuples to the stored graph. The stores read
    the stream from the log, and absorb its timeless tuples themselves.
    """

    def __init__(
        self, graph: StoresGraph, dictionary: native.Dictionary, absorption: Absorption, number: int, batch_ms: int
    ) -> None:
        super().__init__(graph.labels_only, dictionary, number=number, batch_ms=batch_ms, timing=None)
        self._count = graph.batch
        self._absorption = absorption

    def append(self, ts: NDArray[np.int64], s: Ids, p: Ids, o: Ids) -> None:
        """Append the tuples of one batch. The step of the total order that contains the batch also closes the batch."""
        # first number the labels in the order of the stores, which is not the order of arrival
        self._count(self._absorption, p)
        super().append(ts, s, p, o)

    def append_changes(self, ts: NDArray[np.int64], s: Ids, p: Ids, o: Ids, removed: NDArray[np.uint8]) -> None:
        """Append the tuples of one batch. Each tuple adds or removes a triple. `removed`: 1 for each tuple that removes
        a triple. The step of the total order that contains the batch also closes the batch.
        """
        self._count(self._absorption, p)
        super().append_changes(ts, s, p, o, removed)
