"""One shard of the stored graph in a store's hands: its region, published to the data plane, and who reads it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.private_files import make_directory
from penstock.remote import RegionKind
from penstock.remote.fragments import Fragments
from penstock.replication.absorption import batch_labels

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from penstock.core._native import Ids
    from penstock.remote import Server
    from penstock.services.store.stored_streams import StoredStream

_RESERVE_BYTES = 1 << 36  # addresses, not memory


class ShardStore:
    """A store of one shard, so that shards can come and go one by one. One writer; `lease` from any thread.

    `directory` is memory (/dev/shm), and is gone with the process. `saved`: the checkpoint that it begins with.
    `epoch` tells the region from every other one of that shard. `fragments` runs steps that engines send here.
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
        """Commit edges, of which the shard takes what is its own."""
        self.store.apply(snapshot, s, labels, o, stream, batch)

    def batch(self, snapshot: int | None, stream: StoredStream, batch: int, s: Ids, p: Ids, o: Ids) -> None:
        """Store a batch's timeless tuples as that snapshot; None: it has none, and only its labels are numbered."""
        labels = batch_labels(self.store, stream.absorption, p)
        if snapshot is not None:
            rows = np.flatnonzero(labels)
            self.apply(snapshot, s[rows], labels[rows], o[rows], stream.number, batch)

    def close(self, stream: int, batch: int) -> None:
        """Say in the shard's header that a stream has closed its batches up to this one: Local_VTS."""
        self.store.set_vts(stream, batch)

    def release(self, bounds: Mapping[int, int]) -> None:
        """Let go of what tells commits of those streams, up to those batches, apart."""
        for stream, batch in bounds.items():
            if batch > self._released.get(stream, batch - 1):
                self._released[stream] = batch
                self.store.release(stream, batch)

    # ---- readers
    def lease(self, snapshot: int) -> native.StoreLease:
        """Keep what readers of that snapshot, or the latest where that is older, need. StorageError: it has gone."""
        return self.store.lease(snapshot)

    def withdraw(self) -> None:
        """Let nobody read it any more; its memory is returned. Views that others have open fail as retired."""
        self.store.retire()
        self._server.withdraw(self._region)
        shutil.rmtree(self._directory, ignore_errors=True)
