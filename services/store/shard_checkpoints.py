"""Checkpoints of shards. A checkpoint contains a shard of the stored graph, and a position in the log (ADR 17, 38). The
shard contains the effect of all records before this position.

Each store keeps its checkpoint of shard k in the folder `shard-<k>/<instance>`, a `DataDirectory`. Stores can share the
root folder, on one machine or by a network file system. A shard that moves to another store then continues from the
checkpoint of the previous store.
"""

from __future__ import annotations

import json
import shutil
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.checkpoint.checkpoint_writer import STORE, capture_store
from penstock.engine.checkpoint.data_directory import DataDirectory, read_json
from penstock.errors import StorageError
from penstock.replication.absorption import Absorption
from penstock.replication.replica_state import ReplicaState, check, restore
from penstock.services.store.follower import empty_replica

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.core import _native as native
    from penstock.engine.intake.declaration import Declaration
    from penstock.replication.replica import Replica
    from penstock.replication.replica_state import Saved
    from penstock.services.store.shard_set import ShardSet
    from penstock.services.store.shard_store import ShardStore
    from penstock.services.store.stored_streams import StoredStream

VERSION = 4
_STATE = "state.json"


class ShardCheckpoints:
    """The checkpoints of one store. Several stores can share the root folder."""

    def __init__(self, root: Path, instance: str, partitions: int) -> None:
        self._root = root
        self._instance = instance
        self._partitions = partitions
        self._open: dict[int, DataDirectory] = {}
        self._finishing = threading.Lock()  # serialises publication and release

    def save(self, replica: Replica[ShardSet]) -> bool:
        """Write a checkpoint of every shard of `replica`. Returns False, and writes nothing, if a step is partially
        applied. StorageError if a checkpoint cannot be written.
        """
        if not replica.whole:
            return False
        for shard in replica.runtime.shards.values():
            self.capture(replica, shard).write()
        return True

    def capture(self, replica: Replica[ShardSet], shard: ShardStore) -> ShardCapture:
        """Copy the changes of a shard since its last checkpoint. Call only if no step is partially applied
        (`replica.whole`). StorageError if the folder cannot be written.
        """
        state = ReplicaState.of(replica, VERSION, _extra(replica.runtime), _of_stream)
        try:
            directory = self._directory(shard.number)
            folder = directory.begin()
            copied = capture_store(shard.store, folder, directory.in_force())
        except OSError as error:
            raise self._unwritten(error) from error
        return ShardCapture(self, directory, folder, state, copied)

    def finish(self, capture: ShardCapture) -> None:
        """Write and publish a captured checkpoint, and remove older checkpoints that other stores have written for the
        shard. Does nothing if the shard was released meanwhile. Any thread can call this method. StorageError if the
        checkpoint cannot be written.
        """
        with self._finishing:
            if capture.directory not in self._open.values():
                return
            try:
                (capture.folder / _STATE).write_text(json.dumps(capture.state.as_json()), encoding="utf-8")
                capture.copied.write()
                capture.directory.publish(capture.folder)
                for other in capture.directory.path.parent.iterdir():  # older checkpoints of previous stores
                    if other.name != self._instance and _step_of(other) < capture.state.fields["step"]:
                        shutil.rmtree(other, ignore_errors=True)
            except OSError as error:
                raise self._unwritten(error) from error

    def _unwritten(self, error: OSError) -> StorageError:
        return StorageError(f"{self._root}: no checkpoint could be written: {error}")

    def _directory(self, shard: int) -> DataDirectory:
        """Return this store's folder of a shard. Creates the folder again if another store, with a newer checkpoint,
        has removed the folder.
        """
        known = self._open.get(shard)
        if known is not None and not (known.path / "LOCK").exists():
            self.release(shard)
        if shard not in self._open:
            self._open[shard] = DataDirectory(self._root / f"shard-{shard}" / self._instance, read_only=False)
        return self._open[shard]

    def release(self, shard: int) -> None:
        """Close the checkpoint folder of a shard that this store no longer has. The checkpoint remains until the
        shard's new store has written a newer checkpoint.
        """
        with self._finishing:
            directory = self._open.pop(shard, None)
            if directory is not None:
                directory.close(clean=True)

    def close(self) -> None:
        """Release all shards."""
        for shard in list(self._open):
            self.release(shard)

    def last(self, shard: int) -> tuple[Path, Replica[ShardSet], Sequence[int]] | None:
        """Return the newest checkpoint that any store has written for a shard, as a tuple. The tuple contains the
        folder of the stored graph, a replica in the saved state, and the offset at which to continue in each partition.

        None if the shard has no checkpoint. StorageError if no existing checkpoint can be read.
        """
        folders = self._root.glob(f"shard-{shard}/*")
        states = []
        last_error: StorageError | None = None
        for path in folders:
            try:
                current = DataDirectory(path, read_only=True).current()
                if current is not None:
                    states.append((current, read_json(current / _STATE)))
            except StorageError as error:
                last_error = error
        if not states:
            if last_error is not None:
                raise last_error
            return None
        folder, state = max(states, key=lambda found: int(found[1].get("step", -1)))
        return folder / STORE, *_restore(state, self._partitions, folder)


def _step_of(path: Path) -> int:
    """Return the step of the checkpoint in a store's folder, or -1 if there is no readable checkpoint."""
    try:
        name, _, _ = DataDirectory(path, read_only=True).pointer().decode().partition(" ")
        return int(read_json(path / name / _STATE)["step"])
    except (StorageError, KeyError, TypeError, ValueError):
        return -1


@dataclass(frozen=True, slots=True)
class ShardCapture:
    """A checkpoint of a shard that is captured and not yet written."""

    checkpoints: ShardCheckpoints
    directory: DataDirectory
    folder: Path
    state: ReplicaState
    copied: native.StoreCapture

    def write(self) -> None:
        """Write and publish the checkpoint. Call once, from any thread. StorageError if the checkpoint cannot be
        written; the previous checkpoint then remains.
        """
        self.checkpoints.finish(self)


def _extra(graph: ShardSet) -> Saved:
    return {"snapshot": graph.snapshot, "gone": list(graph.gone)}


def _of_stream(stream: StoredStream) -> Saved:
    return {"timing": stream.absorption.timing, "graph": stream.absorption.graph}


def _restore(state: Saved, partitions: int, folder: Path) -> tuple[Replica[ShardSet], Sequence[int]]:
    check(state, VERSION, partitions, folder)
    replica = empty_replica(partitions)
    graph = replica.runtime

    def restore_state_machine() -> None:
        graph.snapshot = int(state["snapshot"])
        graph.gone = [(int(step), int(number), int(batch)) for step, number, batch in state["gone"]]

    def add_stream(declaration: Declaration, saved: Saved) -> StoredStream:
        timing = None if saved["timing"] is None else tuple(saved["timing"])
        stream = graph.streams.add(declaration, saved["number"], Absorption(timing, int(saved["graph"])))
        stream.watermark = saved["closed_ms"]
        return stream

    return replica, restore(replica, state, folder, restore_state_machine, add_stream)
