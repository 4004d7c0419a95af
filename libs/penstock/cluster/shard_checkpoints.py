"""Checkpoints of shards: the stored graph's part with the place in the log that it reflects (ADR 17, 38).

A folder `shard-<k>/<instance>` a shard and store, each a `DataDirectory`. Where stores share the root (one machine, or
a file system of the network) a shard that moves goes on from the checkpoint of whoever had it.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from penstock.cluster.commits import Absorption
from penstock.cluster.follower import empty_replica
from penstock.cluster.replica import Registration
from penstock.engine.declaration import Declaration
from penstock.engine.directory import DataDirectory, read_json
from penstock.errors import StorageError
from penstock.wire import QueryRegistration

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.cluster.replica import Replica
    from penstock.cluster.shard_store import ShardStore
    from penstock.cluster.stored_graph import StoredGraph

VERSION = 2


class ShardCheckpoints:
    """One store's checkpoints under a root that it may share with others."""

    def __init__(self, root: Path, instance: str, partitions: int) -> None:
        self._root = root
        self._instance = instance
        self._partitions = partitions
        self._open: dict[int, DataDirectory] = {}

    def save(self, replica: Replica[StoredGraph]) -> bool:
        """Put a checkpoint of every shard in force; False where the replica is in the middle of an insertion."""
        if not replica.whole:
            return False
        state, step = json.dumps(_state(replica)), replica.history.step
        for shard in replica.runtime.shards.values():
            try:
                self._save(shard, state, step)
            except OSError as error:
                raise StorageError(f"{self._root}: no checkpoint could be written: {error}") from error
        return True

    def _save(self, shard: ShardStore, state: str, step: int) -> None:
        directory = self._directory(shard.number)
        folder = directory.begin()
        (folder / "state.json").write_text(state, encoding="utf-8")
        (folder / "store").mkdir()
        shard.store.save(str(folder / "store"))
        directory.publish(folder)
        for other in directory.path.parent.iterdir():  # those of stores that had the shard before are older
            if other.name != self._instance and _step_of(other) < step:
                shutil.rmtree(other, ignore_errors=True)

    def _directory(self, shard: int) -> DataDirectory:
        """Return this store's folder of a shard, made anew where a store that is ahead has removed it."""
        known = self._open.get(shard)
        if known is not None and not (known.path / "LOCK").exists():
            self.let_go(shard)
        if shard not in self._open:
            self._open[shard] = DataDirectory(self._root / f"shard-{shard}" / self._instance, read_only=False)
        return self._open[shard]

    def let_go(self, shard: int) -> None:
        """The shard is another store's: what is here stays until that one has made its own."""
        directory = self._open.pop(shard, None)
        if directory is not None:
            directory.close(clean=True)

    def close(self) -> None:
        """Let go of all."""
        for shard in list(self._open):
            self.let_go(shard)

    def last(self, shard: int) -> tuple[Path, Replica[StoredGraph], Sequence[int]] | None:
        """Return the newest checkpoint of a shard, whoever made it: its stored part, a replica in that state, and from
        where the log is read on. None where there is none; StorageError where those that there are cannot be read.
        """
        folders = self._root.glob(f"shard-{shard}/*")
        states = []
        trouble: StorageError | None = None
        for path in folders:
            try:
                current = DataDirectory(path, read_only=True).current()
                if current is not None:
                    states.append((current, read_json(current / "state.json")))
            except StorageError as error:
                trouble = error
        if not states:
            if trouble is not None:
                raise trouble
            return None
        folder, state = max(states, key=lambda found: int(found[1].get("step", -1)))
        return folder / "store", *_restore(state, self._partitions, folder)


def _step_of(path: Path) -> int:
    """Return the step of the checkpoint in a store's folder; -1 where there is none that can be read."""
    try:
        name, _, _ = DataDirectory(path, read_only=True).pointer().decode().partition(" ")
        return int(read_json(path / name / "state.json")["step"])
    except (StorageError, KeyError, TypeError, ValueError):
        return -1


def _state(replica: Replica[StoredGraph]) -> dict[str, Any]:
    graph = replica.runtime
    return {
        "version": VERSION,
        "positions": list(replica.spine.positions()),
        "commands": replica.commands,
        "insertions": replica.insertions,
        "declared": replica.declared,
        "ended": replica.ended,
        "step": replica.history.step,
        "history": replica.history.save(),
        "snapshot": graph.snapshot,
        "gone": graph.gone,
        "next_stream": graph.streams.next_number,
        "streams": [
            {
                "number": stream.number,
                "declaration": stream.declaration.as_json(),
                "closed_ms": stream.closed_ms,
                "publisher": stream.publisher,
                "timing": stream.absorption.timing,
                "graph": stream.absorption.graph,
            }
            for stream in graph.streams
        ],
        "registrations": [asdict(registration) for registration in replica.registrations.values()],
    }


def _restore(state: dict[str, Any], partitions: int, folder: Path) -> tuple[Replica[StoredGraph], Sequence[int]]:
    if state.get("version") != VERSION or len(state["positions"]) != partitions:
        raise StorageError(f"{folder}: another version of the format, or of another number of partitions")
    try:
        replica = empty_replica(partitions)
        graph = replica.runtime
        graph.snapshot = int(state["snapshot"])
        graph.gone = [(int(step), int(number), int(batch)) for step, number, batch in state["gone"]]
        for saved in state["streams"]:
            timing = None if saved["timing"] is None else tuple(saved["timing"])
            absorption = Absorption(timing, int(saved["graph"]))
            stream = graph.streams.add(Declaration.from_json(saved["declaration"]), saved["number"], absorption)
            stream.closed_ms, stream.watermark = saved["closed_ms"], saved["closed_ms"]
            stream.publisher, stream.ended = saved["publisher"], stream.iri in state["ended"]
        graph.streams.next_number = state["next_stream"]
        replica.history.restore(state["history"], state["step"])
        replica.declared, replica.ended = state["declared"], state["ended"]
        replica.commands, replica.insertions = state["commands"], state["insertions"]
        for saved in state["registrations"]:
            record = QueryRegistration(**{**saved["record"], "streams": tuple(saved["record"]["streams"])})
            replica.registrations[record.number] = Registration(**{**saved, "record": record})
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise StorageError(f"{folder}: corrupt: {error!r}") from error
    positions: Sequence[int] = state["positions"]
    return replica, positions
