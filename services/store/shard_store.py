"""One shard of a store: a region of memory that the data plane publishes, and leases for readers."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from penstock.core import _native as native
from penstock.private_files import make_directory
from penstock.remote import RegionKind
from penstock.remote.fragments import Fragments
from penstock.replication.absorption import batch_labels

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    from penstock.core._native import Ids
    from penstock.remote import Server
    from penstock.services.store.stored_streams import OpenBatch, StoredStream

    LabelledEdges: TypeAlias = tuple[Ids, NDArray[np.uint32], Ids]
    """Edges: columns of subjects, edge labels and objects."""

_RESERVE_BYTES = 1 << 36  # address space, not memory


class ShardStore:
    """A native store with one shard, so that shards can be added and removed separately. One thread writes. Any thread
    can call `lease`.

    `directory`: the region's folder, on a memory file system such as /dev/shm. The folder is removed with the shard.
    `saved`: the checkpoint to begin with; None means an empty shard. `epoch`: distinguishes this region from all other
    regions of the shard. `fragments`: executes the plan fragments of forks (ADR 18).
    """

    def __init__(self, number: int, shards: int, directory: Path, server: Server, saved: Path | None = None) -> None:
        self.number = number
        self._directory = directory
        self._server = server
        self._released: dict[int, int] = {}
        make_directory(directory, exist_ok=False)
        if saved is None:
            self.store = native.Store(str(directory), shards, own=[number], publish_logs=True)
        else:
            self.store = native.Store.open(str(saved), str(directory), publish_logs=True)
        self.fragments = Fragments(self.store)
        path = directory / f"shard-{number}.region"
        self.epoch = native.ShardReader(str(path)).epoch()
        self._region = server.publish(
            path, RegionKind.SHARD, subject=number, epoch=self.epoch, reserve_bytes=_RESERVE_BYTES, stable=True
        )

    # ---- steps
    def apply(self, snapshot: int, s: Ids, labels: NDArray[np.uint32], o: Ids, stream: int, batch: int) -> None:
        """Commit edges. Edges that the shard does not own are ignored."""
        self.store.apply(snapshot, s, labels, o, stream, batch)

    def change(self, snapshot: int, removed: LabelledEdges, added: LabelledEdges, stream: int, batch: int) -> None:
        """Commit a change. First removes the edges in `removed`, then adds the edges in `added`. Edges that the shard
        does not own are ignored.
        """
        self.store.apply_change(snapshot, removed, added, stream, batch)

    def batch(self, snapshot: int | None, stream: StoredStream, closed: OpenBatch) -> None:
        """Apply the additions and removals of a batch to the shard, as snapshot `snapshot`. If `snapshot` is None, the
        batch has no timeless tuples, and only the batch's labels are numbered.
        """
        labels = batch_labels(self.store, stream.absorption, closed.p)
        if snapshot is None:
            return
        rows = labels != 0
        if closed.removed is None:
            self.apply(snapshot, closed.s[rows], labels[rows], closed.o[rows], stream.number, closed.batch)
            return
        gone, new = (rows & (closed.removed == flag) for flag in (1, 0))
        removed, added = ((closed.s[chosen], labels[chosen], closed.o[chosen]) for chosen in (gone, new))
        self.change(snapshot, removed, added, stream.number, closed.batch)

    def close(self, stream: int, batch: int) -> None:
        """Record in the shard's header that a stream has closed its batches up to and including `batch` (Local_VTS)."""
        self.store.set_vts(stream, batch)

    def release(self, bounds: Mapping[int, int]) -> None:
        """Release append logs. `bounds`: the last batch to release, by stream number. Afterwards, no view can exclude
        the commits of the released batches.
        """
        for stream, batch in bounds.items():
            if batch > self._released.get(stream, batch - 1):
                self._released[stream] = batch
                self.store.release(stream, batch)

    # ---- readers
    def lease(self, snapshot: int) -> native.StoreLease:
        """Retain the data that readers of `snapshot` and later snapshots need. If the shard has not reached `snapshot`,
        the lease begins at the shard's latest snapshot. StorageError if `snapshot` is no longer readable.
        """
        return self.store.lease(snapshot)

    def withdraw(self) -> None:
        """Withdraw the region and free its memory. Reads through open views then fail with the fault "retired"."""
        self.store.retire()
        self._server.withdraw(self._region)
        shutil.rmtree(self._directory, ignore_errors=True)
