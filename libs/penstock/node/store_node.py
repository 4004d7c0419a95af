"""A node's state: its shards, its parts of the streams' slices, and the leases of engines that read them."""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.core import _native as native
from penstock.errors import DataError, StorageError
from penstock.node.checkpoints import Progress
from penstock.remote import RegionKind
from penstock.remote.fragments import Fragments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from penstock.node.checkpoints import Checkpoints
    from penstock.remote import Server
    from penstock.remote.control_connection import Columns

MAX_LEASE_MS = 600_000
MAX_ENGINES = 1_024
_NEVER = -(1 << 62)


@dataclass(slots=True)
class _EngineLease:
    """What one engine needs here, and until when (of this process's monotonic clock)."""

    until: float
    held: native.StoreLease
    bounds: dict[int, int] = field(default_factory=dict)  # by stream: no earlier batch will bound it
    slices: dict[int, int] = field(default_factory=dict)  # by stream: no slice up to this batch will be copied


class StoreNode:
    """Some shards of a store, in files of `directory` that `server` lets others read.

    Entries of a log come in order, each once (`apply`); every node takes all of them and keeps its part. The files are
    gone when the process is: a node that comes back, under new epochs, takes the log again, from its last checkpoint
    (`checkpoints`) or from the beginning. Any thread; `clock` gives seconds of a monotonic clock. StorageError where
    the checkpoint is damaged, DataError where it is another node's.
    """

    def __init__(
        self,
        directory: Path,
        shards: int,
        own: Sequence[int],
        server: Server,
        *,
        slice_mb: int = 0,
        checkpoints: Checkpoints | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.shards = shards
        self.own = sorted(own)
        self.position = 0
        self.log = ""  # the log that it follows, once it follows one
        self._checkpoints = checkpoints
        self._saved = -1  # position of the last checkpoint
        self._intervals: dict[int, int] = {}  # by stream: its batch interval
        self._directory = directory
        self._server = server
        self._slice_bytes = slice_mb << 20
        self._clock = clock
        self._parts: dict[int, native.PartPublisher] = {}
        self._regions: dict[int, int] = {}  # by stream: the number under which its slices are published
        self._batches: dict[int, int] = {}  # by stream: the last batch that committed something
        self._released: dict[int, int] = {}  # by stream: no earlier batch can bound it any more
        self._recycled: dict[int, int] = {}  # by stream: no slice up to this batch will be copied
        self._leases: dict[str, _EngineLease] = {}
        self._saving = threading.Lock()  # taken before the next
        self._writing = threading.Lock()
        self._publishing = threading.Lock()  # slices; taken last: a lease must not wait for a checkpoint
        self._leasing = threading.Lock()
        self._store = self._open()
        self.fragments = Fragments(self._store)
        for shard in self.own:
            self._publish_shard(shard)

    def _open(self) -> native.Store:
        """The store of the last checkpoint, with its streams declared, or an empty one."""
        last = self._checkpoints.last() if self._checkpoints is not None else None
        if last is None:
            return native.Store(str(self._directory), self.shards, own=self.own, publish_logs=True)
        saved, progress = last
        if (progress.shards, progress.own) != (self.shards, self.own):
            raise DataError(f"{saved} has shards {progress.own} of {progress.shards}, not {self.own} of {self.shards}")
        store = native.Store.open(str(saved), str(self._directory), publish_logs=True)
        self.log, self.position, self._saved = progress.log, progress.position, progress.position
        self._batches, self._released = dict(progress.batches), dict(progress.released)
        for stream, batch_ms in progress.streams.items():
            self._declare(stream, batch_ms)
        return store

    def _publish_shard(self, shard: int) -> None:
        path = self._directory / f"shard-{shard}.region"
        epoch = native.ShardReader(str(path)).epoch()
        self._server.publish(path, RegionKind.SHARD, subject=shard, epoch=epoch, reserve_bytes=1 << 36, stable=True)

    # ---- the log
    def follow(self, log: str) -> None:
        """Follow that log from now on; DataError where entries of another one were applied."""
        with self._writing:
            if self.log not in ("", log):
                raise DataError("the node holds what another engine's log says: start it anew, without its checkpoint")
            self.log = log

    def checkpoint(self) -> int:
        """Save what is here; returns the position from which the log will be needed. Entries are applied meanwhile, but
        while what has changed is copied.

        The engine has to have copied all slices that it will need: they are not saved. StorageError.
        """
        if self._checkpoints is None:
            raise StorageError("the node keeps no checkpoints")
        with self._saving:
            with self._writing:
                if self.position == self._saved:
                    return self._saved
                at = self._progress()
                write = self._checkpoints.capture(self._store, at)
            write()
            self._saved = at.position
            return self._saved

    def _progress(self) -> Progress:
        return Progress(
            self.log,
            self.position,
            self.shards,
            self.own,
            dict(self._intervals),
            dict(self._batches),
            self.released(),
        )

    def apply(self, position: int, entry: dict[str, Any], columns: Columns) -> int:
        """Apply the log's entry at a position, where that is the next one; returns the next position.

        An entry that was applied before is passed over. DataError where one is missing in between.
        """
        with self._writing:
            if position < self.position:
                return self.position
            if position > self.position:
                raise DataError(f"entry {position} of the log does not follow {self.position - 1}")
            self._define_labels(entry, columns)
            match entry["kind"]:
                case "declare":
                    self._declare(int(entry["stream"]), int(entry["batch_ms"]))
                case "commit":
                    self._commit(entry, columns)
                case "batch":
                    self._batch(entry, columns)
                case "close":
                    self._store.set_vts(int(entry["stream"]), int(entry["batch"]))
                case kind:
                    raise DataError(f"the log has an entry of an unknown kind: {kind!r}")
            self.position = position + 1
            return self.position

    def _define_labels(self, entry: dict[str, Any], columns: Columns) -> None:
        if "graphs" in columns:
            self._store.define_labels(int(entry["first_label"]), columns["graphs"], columns["predicates"])

    def _declare(self, stream: int, batch_ms: int) -> None:
        path = self._directory / f"slices-{stream}-{self.position}.region"
        part = native.PartPublisher(str(path), stream, batch_ms, self.shards, self.own, self._slice_bytes)
        with self._publishing:
            if stream in self._parts:
                self._server.withdraw(self._regions.pop(stream))
            epoch = secrets.randbits(63)  # readers must not take it for that of a former process
            self._regions[stream] = self._server.publish(
                path, RegionKind.SLICES, subject=stream, epoch=epoch, reserve_bytes=1 << 36
            )
            self._parts[stream] = part
        self._intervals[stream] = batch_ms

    def _commit(self, entry: dict[str, Any], columns: Columns) -> None:
        stream, batch = int(entry.get("stream", 0)), int(entry.get("batch", 0))
        self._store.apply(int(entry["snapshot"]), columns["s"], columns["absorbed"], columns["o"], stream, batch)
        if stream:
            self._batches[stream] = batch
            self._release_unleased(stream)

    def _batch(self, entry: dict[str, Any], columns: Columns) -> None:
        """One closed batch: its slice, its timeless tuples as one commit, and then the stream's progress."""
        stream, batch = int(entry["stream"]), int(entry["batch"])
        with self._publishing:
            if batch > self._recycled.get(stream, _NEVER):  # otherwise the log is taken again
                self._parts[stream].publish(batch, columns["ts"], columns["s"], columns["o"], columns["labels"])
        if entry["snapshot"]:
            rows = np.flatnonzero(columns["absorbed"])
            part = {name: columns[name][rows] for name in ("s", "absorbed", "o")}
            self._commit(entry, part)
        self._store.set_vts(stream, batch)

    # ---- leases
    def lease(self, engine: str, snapshot: int, lease_ms: int, released: dict[int, tuple[int, int]]) -> int:
        """Keep what `engine` needs to read `snapshot` and later ones for that long; returns the snapshot that it is.

        `released` says of each stream up to which batch the engine bounds it no more, and up to which it needs no
        slices. StorageError where the snapshot cannot be read any more.
        """
        if not 0 < lease_ms <= MAX_LEASE_MS:
            raise DataError(f"a lease lasts between 1 and {MAX_LEASE_MS} ms")
        with self._leasing:
            self._expire()
            if engine not in self._leases and len(self._leases) >= MAX_ENGINES:
                raise DataError(f"{MAX_ENGINES} engines read this node already")
            held = self._store.lease(snapshot)  # the new one before the old one goes
            until = self._clock() + lease_ms / 1000
            bounds = {stream: bound for stream, (bound, _) in released.items()}
            slices = {stream: batch for stream, (_, batch) in released.items()}
            self._leases[engine] = _EngineLease(until, held, bounds, slices)
            for stream in bounds:
                self._release(stream)
            recyclable = {stream: self._recyclable(stream) for stream in slices}
        with self._publishing:
            self._recycled |= recyclable
            for stream, batch in recyclable.items():
                if stream in self._parts:
                    self._parts[stream].release(batch)
        return held.snapshot

    def leave(self, engine: str) -> None:
        """Let go of an engine's lease."""
        with self._leasing:
            self._leases.pop(engine, None)

    def expire(self) -> None:
        """Let go of leases that have run out."""
        with self._leasing:
            self._expire()

    def fragments_at(self, place: int) -> Fragments:
        """Return what runs fragments: the node is one place, whatever shards it has."""
        del place
        return self.fragments

    def _expire(self) -> None:
        now = self._clock()
        for engine in [name for name, lease in self._leases.items() if lease.until <= now]:
            del self._leases[engine]

    def _release(self, stream: int) -> None:
        """Release what no engine bounds any more."""
        oldest = min(lease.bounds.get(stream, _NEVER) for lease in self._leases.values())
        if oldest > self._released.get(stream, _NEVER):
            self._released[stream] = oldest
            self._store.release(stream, oldest)

    def _recyclable(self, stream: int) -> int:
        """Up to which batch no engine needs slices."""
        return min(lease.slices.get(stream, _NEVER) for lease in self._leases.values())

    def _release_unleased(self, stream: int) -> None:
        """Nobody reads: an engine that comes later reads the latest snapshot, and bounds no earlier batch."""
        with self._leasing:
            self._expire()
            if not self._leases:
                self._released[stream] = self._batches[stream]
                self._store.release(stream, self._batches[stream])

    def released(self) -> dict[int, int]:
        """Of each stream the batch before which none can bound it any more: later than an engine said, where its lease
        had run out.
        """
        with self._leasing:
            return dict(self._released)

    def status(self) -> dict[str, Any]:
        """Return what the node is and how far it has come."""
        return {
            "shards": self.shards,
            "own": self.own,
            "position": self.position,
            "keeps": self._checkpoints is not None,
            "snapshot": self._store.latest(),
            "engines": len(self._leases),
            "used_bytes": self._store.used_bytes(),
            "log_bytes": self._store.log_bytes(),
        }
