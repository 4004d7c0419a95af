"""What stands before the spine in the simulation: closes batches as the embedded engine does, and writes them to all shards.

The dispatcher has its own tests; here its output is what matters: in order, each batch once, every shard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.cluster.encoding import to_cluster
from penstock.engine.grid import batch_of, closed_until
from penstock.engine.streams import NEVER
from penstock.log import Record
from penstock.rdf.parsing import parse
from penstock.store import _native as native
from penstock.wire import ShardBatch, encode

if TYPE_CHECKING:
    from penstock.cluster.topics import ClusterTopics
    from penstock.log import Log


class SourceStream:
    def __init__(self, iri: str, batch_ms: int, lateness_ms: int, max_ahead_ms: int) -> None:
        self.iri, self.batch_ms, self.lateness_ms, self.max_ahead_ms = iri, batch_ms, lateness_ms, max_ahead_ms
        self.watermark = NEVER
        self.closed: int | None = None
        self.begin: int | None = None
        self.open: dict[int, list[tuple[int, Any]]] = {}


class Source:
    def __init__(self, log: Log, topics: ClusterTopics, terms: Any, clock: Any) -> None:
        self._log, self._topics, self._terms, self._clock = log, topics, terms, clock
        self._writer = log.transactional("source")
        self.streams: dict[str, SourceStream] = {}
        self.batches = 0

    def declare(
        self, iri: str, batch_ms: int = 100, lateness_ms: int = 0, max_ahead_ms: int = 86_400_000, **_: Any
    ) -> None:
        self.streams[iri] = SourceStream(iri, batch_ms, lateness_ms, max_ahead_ms)

    def push(self, iri: str, time: int, data: str) -> None:
        stream = self.streams[iri]
        times = np.array([time], np.int64)
        fates, watermark = native.Stream.decide(
            times, stream.watermark, stream.lateness_ms, self._clock(), stream.max_ahead_ms
        )
        if fates[0] != 0:
            return
        dictionary = native.Dictionary()
        quads = parse(dictionary, data.encode(), "nt")
        columns = to_cluster(dictionary, (quads.subjects, quads.predicates, quads.objects), self._terms)
        stream.open.setdefault(batch_of(time, stream.batch_ms), []).append((time, columns))
        if stream.begin is None:
            stream.begin = batch_of(time, stream.batch_ms) * stream.batch_ms
        stream.watermark = max(stream.watermark, watermark)
        self._close([stream])

    def advance(self, iri: str | None, time: int) -> None:
        streams = list(self.streams.values()) if iri is None else [self.streams[iri]]
        for stream in streams:
            if stream.begin is None:
                stream.begin = time
            stream.watermark = max(stream.watermark, time)
        self._close(streams)

    def _close(self, streams: list[SourceStream]) -> None:
        """All batches that the watermarks close, in order of their ends over all streams."""
        due = []
        for stream in streams:
            target = closed_until(stream.watermark, stream.batch_ms) // stream.batch_ms - 1
            ends = sorted({k for k in stream.open if k <= target} | {target})
            due += [((k + 1) * stream.batch_ms, k, stream) for k in ends if stream.closed is None or k > stream.closed]
        records: list[Record] = []
        for _, k, stream in sorted(due, key=lambda d: (d[0], list(self.streams).index(d[2].iri))):
            records += self._batch(stream, k)
        if records:
            self._writer.commit(records)

    def _batch(self, stream: SourceStream, k: int) -> list[Record]:
        self.batches += 1
        events = stream.open.pop(k, [])
        times = np.concatenate([np.full(len(c[0]), t, np.int64) for t, c in events] or [np.empty(0, np.int64)])
        s, p, o = (
            np.concatenate([c[i] for _, c in events] or [np.empty(0, np.uint64)]).astype(np.uint64) for i in range(3)
        )
        first = k if stream.closed is None else stream.closed + 1
        begin = stream.begin if stream.closed is None else None
        stream.closed = k
        shards = native.shard_numbers(s, self._topics.shards)
        positions = np.arange(len(s), dtype=np.uint32)
        out = []
        for shard in range(self._topics.shards):
            m = shards == shard
            batch = ShardBatch(stream.iri, first, k, positions[m], times[m], s[m], p[m], o[m], begin)
            out.append(Record(self._topics.names.shards, encode(batch), None, shard))
        return out
