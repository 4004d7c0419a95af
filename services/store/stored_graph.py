"""What a store applies the spine's steps to: streams without slices, and the shards that are here.

Every tuple is in the log's partition of its subject's shard, but an edge lies with its object too: a store reads all
partitions, and each shard takes what is its own (ADR 25).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.core import _native as native
from penstock.engine.intake.bins import appended
from penstock.errors import LimitError, UnknownStreamError
from penstock.event_time.grid import batch_of, closed_until
from penstock.replication.absorption import Absorption
from penstock.replication.history import INSERTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.core._native import Ids
    from penstock.engine.intake.bins import Bins
    from penstock.engine.intake.declaration import Declaration
    from penstock.errors import UnavailableError
    from penstock.replication.absorption import TermEncoder
    from penstock.replication.retention import RetentionFloor
    from penstock.services.store.shard_store import ShardStore
    from penstock.wire.records import Numbers

MAX_STREAMS = 100_000
_NEVER = -(1 << 62)


@dataclass(slots=True)
class _Waiting:
    """Tuples of one batch that is not closed yet."""

    batch: int
    s: Ids
    p: Ids
    o: Ids


class StoredStream:
    """A stream as far as the stored graph needs it."""

    def __init__(self, declaration: Declaration, number: int, absorption: Absorption) -> None:
        self.declaration = declaration
        self.absorption = absorption
        self._number = number
        self.publisher: str | None = None
        self.ended = False
        self.closed_ms: int | None = None
        self.watermark: int | None = None
        self.waiting: _Waiting | None = None

    @property
    def iri(self) -> str:
        """Its name."""
        return self.declaration.iri

    @property
    def number(self) -> int:
        """The stored graph's number for it."""
        return self._number

    @property
    def batch_ms(self) -> int:
        """The batch interval."""
        return self.declaration.batch_ms

    def append(self, times: Numbers, s: Ids, p: Ids, o: Ids) -> None:
        """Take the tuples of one batch, in order of arrival."""
        self.waiting = _Waiting(batch_of(int(times[0]), self.batch_ms), s, p, o)

    def move(self, watermark: int) -> None:
        """Let batches up to that time close."""
        self.watermark = watermark


class StoredStreams:
    """All streams, numbered as engines number them: once, in the order of their declarations."""

    def __init__(self) -> None:
        self._by_iri: dict[str, StoredStream] = {}
        self._learnt: tuple[Declaration, Absorption] | None = None
        self.next_number = 1
        self.dropped: list[StoredStream] = []  # since the graph last looked

    def __contains__(self, iri: object) -> bool:
        return iri in self._by_iri

    def __iter__(self) -> Iterator[StoredStream]:
        return iter(self._by_iri.values())

    def get(self, iri: str) -> StoredStream:
        """Return the stream; UnknownStreamError."""
        if iri not in self._by_iri:
            raise UnknownStreamError(f"unknown stream <{iri}>: declare it first")
        return self._by_iri[iri]

    def learn(self, declaration: Declaration, terms: TermEncoder) -> None:
        """Ask for what a declaration names before it is applied. TransientError; nothing has changed then."""
        self._learnt = declaration, Absorption.of(declaration, terms)

    def declare(self, declaration: Declaration) -> StoredStream:
        """Add a stream whose declaration was learnt."""
        if len(self._by_iri) >= MAX_STREAMS:
            raise LimitError(f"there are already {MAX_STREAMS} streams")
        assert self._learnt is not None, declaration.iri
        assert self._learnt[0] == declaration, declaration.iri
        return self.add(declaration, self.next_number, self._learnt[1])

    def add(self, declaration: Declaration, number: int, absorption: Absorption) -> StoredStream:
        """Add a stream under a given number."""
        stream = self._by_iri[declaration.iri] = StoredStream(declaration, number, absorption)
        self.next_number = max(self.next_number, number + 1)
        return stream

    def drop(self, iri: str) -> None:
        """Forget a stream; what it absorbed stays."""
        self.dropped.append(self._by_iri.pop(iri))


class StoredGraph:
    """The world of a store's replica. `snapshot`: the number of the last commit."""

    def __init__(self) -> None:
        self.streams = StoredStreams()
        self.shards: dict[int, ShardStore] = {}
        self.snapshot = 0
        self.gone: list[tuple[int, int, int]] = []  # (step, number, batch) of dropped streams that may be bounded yet
        self.tuples = 0
        self.batches = 0

    def moved(self, iri: str) -> None:
        """Close a stream's batches up to its watermark: the last one is stored, then Local_VTS says so."""
        stream = self.streams.get(iri)
        assert stream.watermark is not None, iri
        end = closed_until(stream.watermark, stream.batch_ms)
        batch = end // stream.batch_ms - 1
        if stream.waiting is not None and stream.waiting.batch <= batch:
            waiting, stream.waiting = stream.waiting, None
            self._store(stream, waiting)
        if stream.closed_ms is None or end > stream.closed_ms:
            self.batches += 1 if stream.closed_ms is None else (end - stream.closed_ms) // stream.batch_ms
            stream.closed_ms = end
            for shard in self.shards.values():
                shard.close(stream.number, batch)

    def begin(self, iri: str, point: int) -> None:
        """Nothing waits for that here."""

    def insert(self, s: Ids, p: Ids, o: Ids, g: Ids, stream: int, number: int) -> None:
        """Store quads."""
        self.snapshot += 1
        self.tuples += len(s)
        for shard in self.shards.values():
            shard.apply(self.snapshot, s, shard.store.number_labels(g, p), o, stream, number)

    def load(self, bins: Bins, stream: int, number: int) -> Iterator[UnavailableError | None]:
        """Store sorted bins, yielding after each: each shard takes its own, then all of them publish."""
        self.snapshot += 1
        loads = []
        for shard in list(self.shards.values()):
            shard.store.number_labels(*bins.labels)
            loads.append(native.BulkLoad(shard.store, bins.pieces, 0, stream, number, self.snapshot))
            yield from appended(loads[-1], bins.files(shard.number))
        for load in loads:
            load.publish()

    def _store(self, stream: StoredStream, waiting: _Waiting) -> None:
        commits = bool(stream.absorption.stored(waiting.p).any())
        self.snapshot += commits
        self.tuples += len(waiting.s)
        for shard in self.shards.values():
            shard.batch(self.snapshot if commits else None, stream, waiting.batch, waiting.s, waiting.p, waiting.o)

    def release(self, floor: RetentionFloor, step: int) -> None:
        """Let append logs go that no query of the cluster will ask for, `step` being the present one: leases keep what
        is being read. What dropped streams stored is told apart as long as somebody may look at the graph before.
        """
        bounds = {INSERTIONS: floor.insertions}
        for stream in self.streams:
            if stream.closed_ms is not None:
                evaluated = min(stream.closed_ms, floor.evaluated.get(stream.iri, stream.closed_ms))
                bounds[stream.number] = batch_of(max(evaluated, _NEVER), stream.batch_ms)
        closed = ((s.number, s.closed_ms // s.batch_ms) for s in self.streams.dropped if s.closed_ms is not None)
        self.gone += [(step, number, batch) for number, batch in closed]
        self.streams.dropped.clear()
        bounds |= {number: batch for dropped, number, batch in self.gone if dropped <= floor.step}
        self.gone = [found for found in self.gone if found[0] > floor.step]
        for shard in self.shards.values():
            shard.release(bounds)
