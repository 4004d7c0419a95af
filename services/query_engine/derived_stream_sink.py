"""The derived-stream sink: writes the published answers of a query to the log, as batches (docs/semantics.md §5).

The engine writes the tuples to the shards topic, in the transaction that commits the evaluation. All engines then apply
these tuples as steps of the total order. Engines therefore treat a derived stream like any other stream, and any engine
can evaluate the queries that read the derived stream.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.errors import DataError
from penstock.event_time.grid import batch_of, batch_start, closed_until
from penstock.log import Record
from penstock.term_ids.cluster_terms import OWN_BLANKS
from penstock.term_ids.reencoding import to_cluster
from penstock.wire import ShardBatch, StreamEnd, encode
from penstock.wire.parts import split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.core._native import Ids
    from penstock.engine.answers.result_blocks import Block
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.term_ids.cluster_terms import TermService

_NO_IDS, _NEVER = np.empty(0, np.uint64), np.empty(0, np.int64)
_Tuples = tuple["Ids", "Ids", "Ids"]


@dataclass(slots=True)
class DerivedStreamSink:
    """One derived stream and its progress. `until`: the last instant whose answer is published; None means no limit.

    If the dictionary service rejects a term of an answer, the evaluation publishes nothing. `refused`: the instants
    whose answers the last call of `records` did not publish for this reason, each with its error. `last_error`: the
    error of the latest evaluation, or None if its answer was not rejected.
    """

    iri: str
    declared: int
    batch_ms: int
    query: str
    until: int | None = None
    ends: bool = False  # whether the stream ends after its current tuples
    changed: bool = False
    _watermark: int | None = None
    _closed: int | None = None
    _begin: int | None = None
    _fresh: list[tuple[int, Block]] = field(default_factory=list)  # in local ids; the block retains the terms
    _open: dict[int, list[tuple[int, _Tuples]]] = field(default_factory=dict)  # by batch, in global ids
    _latest: int | None = None  # instant of the latest evaluation since the last call of `records`
    last_error: str | None = None
    refused: list[tuple[int, str]] = field(default_factory=list)

    # ---- from evaluations
    def take(self, time: int | None, block: Block | None, following: int) -> None:
        """Add the answer of an evaluation at instant `time`, and advance the stream's watermark to `following`, in ms.
        If `time` and `block` are None, only the watermark advances.
        """
        if self.until is not None and time is not None and time > self.until:
            return
        count = len(block.columns[0]) if block is not None and block.columns else 0
        if self._begin is None:
            self._begin = batch_start(time, self.batch_ms) if count and time is not None else following
        if block is not None and count and time is not None:
            self._fresh.append((time, block))
        if time is not None:
            self._latest = time
        self._watermark = following if self._watermark is None else max(self._watermark, following)
        self.changed = True

    # ---- output to the log
    def records(self, topics: ClusterTopics, dictionary: native.Dictionary, terms: TermService) -> list[Record]:
        """Return the records of all batches that the watermark closes. If the stream ends, the records of its end
        follow. After a TransientError, nothing is lost; call again.
        """
        self._learn(dictionary, terms)
        found: list[Record] = []
        if self._watermark is not None:
            target = closed_until(self._watermark, self.batch_ms) // self.batch_ms - 1
            held = sorted(number for number in self._open if number <= target)
            for number in held if held and held[-1] == target else [*held, target]:
                if self._closed is None or number > self._closed:
                    found += self._batch(topics, number)
        if self.ends:
            found += _to_all(topics, [encode(StreamEnd(self.iri, self.declared))] * topics.shards)
        self.changed = False
        return found

    def _learn(self, dictionary: native.Dictionary, terms: TermService) -> None:
        """Convert new tuples to global ids, all in one request. If the dictionary service rejects a term, the method
        instead sends one request per evaluation.
        """
        refused: list[tuple[int, str]] = []
        try:
            found = _encoded(self._fresh, dictionary, terms)
        except DataError:
            found = []
            for time, block in self._fresh:
                try:
                    found += _encoded([(time, block)], dictionary, terms)
                except DataError as error:
                    refused.append((time, f"stream {self.iri} cannot contain the answer: {error}"))
        for time, tuples in found:
            self._open.setdefault(batch_of(time, self.batch_ms), []).append((time, tuples))
        self._fresh, self.refused = [], refused
        if self._latest is not None:
            self.last_error = dict(refused).get(self._latest)
            self._latest = None

    def _batch(self, topics: ClusterTopics, number: int) -> list[Record]:
        parts = self._open.pop(number, [])
        times = np.concatenate([np.full(len(s), time, np.int64) for time, (s, _, _) in parts] or [_NEVER])
        s, p, o = (np.concatenate([columns[i] for _, columns in parts] or [_NO_IDS]) for i in range(3))
        first, begin = (number, self._begin) if self._closed is None else (self._closed + 1, None)
        self._closed = number
        shards = native.shard_numbers(s, topics.shards)
        batches = []
        for shard in range(topics.shards):
            rows = np.flatnonzero(shards == shard)
            columns = (rows.astype(np.uint32), times[rows], s[rows], p[rows], o[rows])
            batches.append(ShardBatch(self.iri, first, number, *columns, begin, self.declared))
        records = zip(*split(batches), strict=True)
        return [record for part in records for record in _to_all(topics, [encode(each) for each in part])]

    # ---- takeover by another engine
    def save(self) -> str:
        """Return the progress and the tuples of open batches, as JSON. Call after `records`."""
        assert not self._fresh
        tuples = [
            [time, *(column.tolist() for column in columns)] for part in self._open.values() for time, columns in part
        ]
        return json.dumps([self._watermark, self._closed, self._begin, tuples])

    def restore(self, saved: str) -> None:
        """Restore the state that `save` has returned."""
        self._watermark, self._closed, self._begin, tuples = json.loads(saved)
        for time, *columns in tuples:
            s, p, o = (np.array(column, np.uint64) for column in columns)
            self._open.setdefault(batch_of(time, self.batch_ms), []).append((time, (s, p, o)))


def _encoded(
    fresh: Sequence[tuple[int, Block]], dictionary: native.Dictionary, terms: TermService
) -> list[tuple[int, _Tuples]]:
    """Return the tuples of evaluations in global ids. DataError if the dictionary service rejects a term.
    TransientError if the service is unavailable.
    """
    columns = [column for _, block in fresh for column in block.columns]
    if not columns:
        return []
    ids = to_cluster(dictionary, columns, terms, OWN_BLANKS, transient=True)
    return [(time, (ids[3 * i], ids[3 * i + 1], ids[3 * i + 2])) for i, (time, _) in enumerate(fresh)]


def _to_all(topics: ClusterTopics, values: list[bytes]) -> list[Record]:
    return [Record(topics.names.shards, value, None, shard) for shard, value in enumerate(values)]
