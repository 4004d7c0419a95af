"""Leases of query engines on a store's shards. A lease retains the append logs and replaced tables that its engine can
still read.

An engine requests a lease over the control connection (`penstock.remote.control_connection`) and renews the lease as
long as the engine runs. The lease expires after `lease_ms` without renewal. A store therefore never waits for an engine
(ADR 16).
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import DataError, StorageError
from penstock.remote.control_server import ControlServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.core import _native as native
    from penstock.remote.control_connection import Columns
    from penstock.remote.fragments import Fragments
    from penstock.services.store.shard_store import ShardStore

MAX_LEASE_MS = 600_000
MAX_ENGINES = 1_024
NEWEST = (1 << 32) - 1
"""The snapshot number that stands for the latest snapshot."""


@dataclass(slots=True)
class _Lease:
    """The lease of one engine, and its expiry on this process's monotonic clock."""

    until: float
    held: dict[int, native.StoreLease]  # by shard


class Leases:
    """All leases of one store. Any thread can call the methods."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._shards: dict[int, ShardStore] = {}
        self._leases: dict[str, _Lease] = {}

    def __len__(self) -> int:
        return len(self._leases)

    # ---- shards
    def add(self, shard: ShardStore) -> None:
        """Add a shard, and extend all leases to this shard."""
        with self._lock:
            self._shards[shard.number] = shard
            for lease in self._leases.values():
                lease.held[shard.number] = shard.lease(NEWEST)

    def remove(self, shard: ShardStore) -> None:
        """Remove a shard from the store's shards and from all leases."""
        with self._lock:
            del self._shards[shard.number]
            for lease in self._leases.values():
                lease.held.pop(shard.number, None)

    # ---- engines
    def grant(self, engine: str, snapshot: int, lease_ms: int) -> tuple[int, dict[int, int]]:
        """Grant a lease of `lease_ms` to an engine. The lease retains the data that the engine needs to read snapshot
        `snapshot` and later snapshots. The lease replaces the engine's previous lease.

        Returns a snapshot, and the epoch of each leased shard. The returned snapshot is `snapshot` if a shard has
        reached this snapshot, otherwise the newest snapshot of any shard. A shard that is behind the returned snapshot
        cannot serve this snapshot yet. A shard that the store adds later joins the lease, but possibly the engine
        cannot read the snapshot in this shard.

        DataError if `lease_ms` is out of range, or if `MAX_ENGINES` other engines have leases. StorageError if
        `snapshot` is no longer readable; the previous lease then remains.
        """
        if not 0 < lease_ms <= MAX_LEASE_MS:
            raise DataError(f"a lease lasts between 1 and {MAX_LEASE_MS} ms")
        with self._lock:
            self._expire()
            if engine not in self._leases and len(self._leases) >= MAX_ENGINES:
                raise DataError(f"{MAX_ENGINES} engines read this store already")
            held = {number: shard.lease(snapshot) for number, shard in self._shards.items()}
            until = self._clock() + lease_ms / 1000
            granted = max((lease.snapshot for lease in held.values()), default=snapshot)
            self._leases[engine] = _Lease(until, held)
            return granted, {number: self._shards[number].epoch for number in held}

    def leave(self, engine: str) -> None:
        """Release an engine's lease."""
        with self._lock:
            self._leases.pop(engine, None)

    def expire(self) -> None:
        """Release expired leases."""
        with self._lock:
            self._expire()

    def _expire(self) -> None:
        now = self._clock()
        for engine in [name for name, lease in self._leases.items() if lease.until <= now]:
            del self._leases[engine]

    def fragments_at(self, place: int) -> Fragments:
        """Return the executor of plan fragments over a shard. `place`: the shard's number. StorageError if the store
        does not have the shard.
        """
        with self._lock:
            if place not in self._shards:
                raise StorageError(f"shard {place} is not here")
            return self._shards[place].fragments

    def hello(self) -> dict[str, Any]:
        """Return the numbers of the shards as `own`, and the number of engines with a lease as `engines`."""
        with self._lock:
            return {"own": sorted(self._shards), "engines": len(self._leases)}


class LeaseServer(ControlServer[Leases]):
    """Serves the requests of query engines: the list of shards, leases, and forks (ADR 18). Runs in its own thread."""

    _thread: threading.Thread | None = None

    def _do(self, message: dict[str, Any], columns: Columns) -> dict[str, Any]:
        del columns
        leases = self._served
        match message["do"]:
            case "hello":
                return {**leases.hello(), "data_port": self.data_port}
            case "lease":
                engine, snapshot, lease_ms = str(message["engine"]), int(message["snapshot"]), int(message["lease_ms"])
                granted, epochs = leases.grant(engine, snapshot, lease_ms)
                return {"snapshot": granted, "epochs": epochs}
            case "leave":
                leases.leave(str(message["engine"]))
                return {}
            case request:
                raise ValueError(request)

    def start(self) -> None:
        """Serve until `close`."""
        self._thread = threading.Thread(target=self.run, daemon=True, name="penstock-leases")
        self._thread.start()

    def close(self) -> None:
        """Stop listening, and wait for the end of the thread and of all connections."""
        super().close()
        if self._thread is not None:
            self._thread.join()
