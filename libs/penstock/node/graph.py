"""The stored graph on nodes, in the shape that the engine knows: what `native.Store` is to the embedded engine."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, NoReturn

from penstock.errors import StorageError
from penstock.store import _native as native

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.node.cluster import Nodes
    from penstock.store._native import Ids


class RemoteGraph(native.RemoteStore):
    """Reads go to the nodes' shards one-sidedly, commits through their log."""

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

    def view(self, bounds: Sequence[tuple[int, int]] = (), at: int | None = None) -> native.Source:
        """Return the graph at the latest stable snapshot, or at that one; waits for nodes that have gone, and errs
        where they stay.
        """
        begin = super().view
        return self._nodes.patiently(lambda: begin(bounds, at))

    def latest(self) -> int:
        """Return the latest stable snapshot."""
        return self._nodes.patiently(super().latest)

    def edge_count(self) -> int:
        """Return the number of quads."""
        return self._nodes.patiently(super().edge_count)

    def used_bytes(self) -> int:
        """Memory of this process that the graph takes: none, it lies on the nodes."""
        return 0

    def log_bytes(self) -> int:
        """Append logs lie on the nodes, too."""
        return 0

    def capture(self, directory: str, previous: str = "") -> NoReturn:
        """Refuse: nodes keep their shards themselves."""
        raise StorageError(f"the stored graph lies on nodes and cannot be saved to {directory or previous}")
