"""Checkpoints of shards: the stored graph's part with the place in the log that it reflects (ADR 17, 38).

A folder `shard-<k>/<instance>` a shard and store, each a `DataDirectory`. Where stores share the root (one machine, or
a file system of the network) a shard that moves goes on from the checkpoint of whoever had it.
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
    from penstock.services.store.shard_store import ShardStore
    from penstock.services.store.stored_graph import StoredGraph
    from penstock.services.store.stored_streams import StoredStream

VERSION = 3
_STATE = "state.json"


class ShardCheckpoints:
    """One store's checkpoints under a root that it may share with others."""

    def __init__(self, root: Path, instance: str, partitions: int) -> None:
        self._root = root
        self._instance = instance
        self._partitions = partitions
        self._open: dict[int, DataDirectory] = {}
        self._finishing = threading.Lock()  # what is put in force, and letting go

    def save(self, replica: Replica[StoredGraph]) -> bool:
        """Put a checkpoint of every shard in force; False where the replica is in the middle of an insertion."""
        if not replica.whole:
            return False
        for shard in replica.runtime.shards.values():
            self.capture(replica, shard).write()
        return True

    def capture(self, replica: Replica[StoredGraph], shard: ShardStore) -> ShardCapture:
        """Copy what has changed of a shard since its last checkpoint. The replica is whole. StorageError."""
        state = ReplicaState.of(replica, VERSION, _extra(replica.runtime), _of_stream)
        try:
            directory = self._directory(shard.number)
            folder = directory.begin()
            copied = capture_store(shard.store, folder, directory.in_force())
        except OSError as error:
            raise self._unwritten(error) from error
        return ShardCapture(self, directory, folder, state, copied)

    def finish(self, capture: ShardCapture) -> None:
        """Put what was captured in force, unless the shard has been let go of. Any thread. StorageError."""
        with self._finishing:
            if capture.directory not in self._open.values():
                return
            try:
                (capture.folder / _STATE).write_text(json.dumps(capture.state.as_json()), encoding="utf-8")
                capture.copied.write()
                capture.directory.publish(capture.folder)
                for other in capture.directory.path.parent.iterdir():  # of stores that had the shard before: older
                    if other.name != self._instance and _step_of(other) < capture.state.fields["step"]:
                        shutil.rmtree(other, ignore_errors=True)
            except OSError as error:
                raise self._unwritten(error) from error

    def _unwritten(self, error: OSError) -> StorageError:
        return StorageError(f"{self._root}: no checkpoint could be written: {error}")

    def _directory(self, shard: int) -> DataDirectory:
        """Return this store's folder of a shard, made anew where a store that is ahead has removed it."""
        known = self._open.get(shard)
        if known is not None and not (known.path / "LOCK").exists():
            self.release(shard)
        if shard not in self._open:
            self._open[shard] = DataDirectory(self._root / f"shard-{shard}" / self._instance, read_only=False)
        return self._open[shard]

    def release(self, shard: int) -> None:
        """The shard is another store's: what is here stays until that one has made its own."""
        with self._finishing:
            directory = self._open.pop(shard, None)
            if directory is not None:
                directory.close(clean=True)

    def close(self) -> None:
        """Let go of all."""
        for shard in list(self._open):
            self.release(shard)

    def last(self, shard: int) -> tuple[Path, Replica[StoredGraph], Sequence[int]] | None:
        """Return the newest checkpoint of a shard, whoever made it: its stored part, a replica in that state, and from
        where the log is read on. None where there is none; StorageError where those that there are cannot be read.
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
    """Return the step of the checkpoint in a store's folder; -1 where there is none that can be read."""
    try:
        name, _, _ = DataDirectory(path, read_only=True).pointer().decode().partition(" ")
        return int(read_json(path / name / _STATE)["step"])
    except (StorageError, KeyError, TypeError, ValueError):
        return -1


@dataclass(frozen=True, slots=True)
class ShardCapture:
    """A shard at a step, on its way to the disk."""

    checkpoints: ShardCheckpoints
    directory: DataDirectory
    folder: Path
    state: ReplicaState
    copied: native.StoreCapture

    def write(self) -> None:
        """Put it in force; once, from any thread. StorageError: the checkpoint before stays."""
        self.checkpoints.finish(self)


def _extra(graph: StoredGraph) -> Saved:
    return {"snapshot": graph.snapshot, "gone": list(graph.gone)}


def _of_stream(stream: StoredStream) -> Saved:
    return {"timing": stream.absorption.timing, "graph": stream.absorption.graph}


def _restore(state: Saved, partitions: int, folder: Path) -> tuple[Replica[StoredGraph], Sequence[int]]:
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
