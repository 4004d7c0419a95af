"""A stored graph that lies elsewhere, in the shape that the engine knows: what `native.Store` is in its own process."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, TypeVar

from penstock.core import _native as native
from penstock.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.core._native import Ids
    from penstock.errors import DataPlaneError
    from penstock.node.cluster import Nodes

T = TypeVar("T")


class RemoteGraph(native.RemoteStore):
    """Reads go to shards elsewhere one-sidedly; how commits get there, and who is waited for, is the subclass's."""

    def commit(self, s: Ids, p: Ids, o: Ids, g: Ids, stream: int = 0, batch: int = 0) -> int:
        """Commit quads as one snapshot; returns its number."""
        raise NotImplementedError

    def loaded(self, graphs: Ids, predicates: Ids) -> None:
        """Count a bulk load with those labels, which whoever has the shards takes in as one commit."""
        raise NotImplementedError

    def _patiently(self, read: Callable[[], T]) -> T:
        """Return what `read` returns. Where it fails because a shard cannot be read, wait, and read again."""
        raise NotImplementedError

    def view(self, bounds: Sequence[tuple[int, int]] = (), at: int | None = None) -> native.Source:
        """Return the graph at the latest stable snapshot, or at that one; waits for shards that cannot be read, and
        errs where they stay away.
        """
        begin = super().view
        return self._patiently(lambda: begin(bounds, at))

    def glance(self) -> native.Source:
        """Return the graph for counts."""
        return self.view()

    def unread(self, bounds: Sequence[tuple[int, int]]) -> native.Source:
        """Return what stands for the graph where nobody looks into it."""
        return self.view(bounds)

    def give_up(self, error: DataPlaneError) -> None:
        """Return where an evaluation that was interrupted too often has failed; AwayError where it is to wait."""

    def latest(self) -> int:
        """Return the latest stable snapshot."""
        return self._patiently(super().latest)

    def edge_count(self) -> int:
        """Return the number of quads."""
        return self._patiently(super().edge_count)

    def used_bytes(self) -> int:
        """Memory of this process that the graph takes: none, it lies elsewhere."""
        return 0

    def log_bytes(self) -> int:
        """Append logs lie elsewhere, too."""
        return 0

    def capture(self, directory: str, previous: str = "") -> native.StoreCapture:
        """Copy what of the graph is this process's own, for a checkpoint; StorageError where nothing is."""
        raise StorageError(f"the stored graph lies elsewhere and cannot be saved to {directory or previous}")


class NodesGraph(RemoteGraph):
    """The stored graph on the nodes of one engine, which commits through their log."""

    def __init__(self, nodes: Nodes, shards: int) -> None:
        super().__init__(shards)
        # Weak: the core's objects take no part in the collection of cycles.
        self._nodes: Nodes = weakref.proxy(nodes)

    def commit(self, s: Ids, p: Ids, o: Ids, g: Ids, stream: int = 0, batch: int = 0) -> int:
        """Commit quads as one snapshot; returns its number. What streams absorb, nodes commit themselves."""
        if stream:
            raise StorageError(f"batch {batch} of stream {stream} has to reach the nodes as a batch")
        if not len(s):
            return self._nodes.snapshot
        snapshot = self._nodes.commit({"s": s, "absorbed": self.number_labels(g, p), "o": o})
        self._nodes.settle()
        return snapshot

    def _patiently(self, read: Callable[[], T]) -> T:
        return self._nodes.patiently(read)
