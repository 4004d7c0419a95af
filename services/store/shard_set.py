"""The state machine of a store: the set of its shards, and streams without slices.

The log has each tuple in one partition: the partition of the subject's shard. The stored graph has each edge in two
shards: the subject's shard and the object's shard. A store therefore reads all partitions, and each shard stores the
edges that it owns (ADR 25).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.core import _native as native
from penstock.engine.intake.bins import appended
from penstock.event_time.grid import batch_of, closed_until
from penstock.replication.history import INSERTIONS, NOTHING
from penstock.services.store.stored_streams import StoredStreams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.core._native import Ids
    from penstock.engine.intake.bins import Bins
    from penstock.engine.stored_graph import Columns
    from penstock.errors import UnavailableError
    from penstock.replication.retention import RetentionFloor
    from penstock.services.store.shard_store import ShardStore
    from penstock.services.store.stored_streams import OpenBatch, StoredStream


class ShardSet:
    """The state machine of a store's replica. `snapshot`: number of the last commit."""

    def __init__(self) -> None:
        self.streams = StoredStreams()
        self.shards: dict[int, ShardStore] = {}
        self.snapshot = 0
        # (step of the drop, stream number, last batch) of dropped streams whose commits some views still exclude
        self.gone: list[tuple[int, int, int]] = []
        self.tuples = 0
        self.batches = 0

    def moved(self, iri: str) -> None:
        """Close the batches of a stream that end at or before the stream's watermark. Stores the open batch, then
        writes the number of the last closed batch to the vector timestamp of each shard (Local_VTS).
        """
        stream = self.streams.get(iri)
        if stream.watermark is None:
            return  # a derived stream that ends before its first batch
        end = closed_until(stream.watermark, stream.batch_ms)
        batch = end // stream.batch_ms - 1
        if stream.open_batch is not None and stream.open_batch.batch <= batch:
            waiting, stream.open_batch = stream.open_batch, None
            self._store(stream, waiting)
        if stream.closed_ms is None or end > stream.closed_ms:
            self.batches += 1 if stream.closed_ms is None else (end - stream.closed_ms) // stream.batch_ms
            stream.closed_ms = end
            for shard in self.shards.values():
                shard.close(stream.number, batch)

    def begin(self, iri: str, point: int) -> None:
        """Do nothing. Only query engines, which evaluate queries, need the beginning of a stream."""

    def insert(self, s: Ids, p: Ids, o: Ids, g: Ids, stream: int, number: int) -> None:
        """Commit quads, given as columns of term ids, to all shards as one snapshot."""
        self.snapshot += 1
        self.tuples += len(s)
        for shard in self.shards.values():
            shard.apply(self.snapshot, s, shard.store.number_labels(g, p), o, stream, number)

    def change(self, removed: Columns, added: Columns, stream: int, number: int) -> None:
        """Commit a change of quads to all shards as one snapshot. First removes the quads in `removed`, then adds the
        quads in `added`. Labels of removed quads get their numbers before labels of added quads.
        """
        self.snapshot += 1
        self.tuples += len(removed[0]) + len(added[0])
        for shard in self.shards.values():
            gone, new = ((s, shard.store.number_labels(g, p), o) for s, p, o, g in (removed, added))
            shard.change(self.snapshot, gone, new, stream, number)

    def load(self, bins: Bins, stream: int, number: int) -> Iterator[UnavailableError | None]:
        """Append sorted bins to the shards as one snapshot. Each shard appends its own bins. After the last bin, all
        shards publish their bins. Yields None after each bin. Yields an UnavailableError if the bin cannot be read now;
        the next iteration then retries.
        """
        self.snapshot += 1
        loads = []
        for shard in list(self.shards.values()):
            shard.store.number_labels(*bins.labels)
            loads.append(native.BulkLoad(shard.store, bins.pieces, 0, stream, number, self.snapshot))
            yield from appended(loads[-1], bins.files(shard.number))
        for load in loads:
            load.publish()

    def _store(self, stream: StoredStream, waiting: OpenBatch) -> None:
        commits = bool(stream.absorption.stored(waiting.p).any())
        self.snapshot += commits
        self.tuples += len(waiting.s)
        for shard in self.shards.values():
            shard.batch(self.snapshot if commits else None, stream, waiting)

    def release(self, floor: RetentionFloor, step: int) -> None:
        """Release append logs that no query of the cluster can read. Append logs that a lease retains are not released.
        `step`: the current step.

        As long as a query can read a snapshot from before the drop of a stream, views can exclude the stream's commits.
        """
        bounds = {INSERTIONS: floor.insertions}
        for stream in self.streams:
            if stream.closed_ms is not None:
                evaluated = min(stream.closed_ms, floor.evaluated.get(stream.iri, stream.closed_ms))
                bounds[stream.number] = batch_of(max(evaluated, NOTHING), stream.batch_ms)
        closed = ((s.number, s.closed_ms // s.batch_ms) for s in self.streams.dropped if s.closed_ms is not None)
        self.gone += [(step, number, batch) for number, batch in closed]
        self.streams.dropped.clear()
        bounds |= {number: batch for dropped, number, batch in self.gone if dropped <= floor.step}
        self.gone = [found for found in self.gone if found[0] > floor.step]
        for shard in self.shards.values():
            shard.release(bounds)
