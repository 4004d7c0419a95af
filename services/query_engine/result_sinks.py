"""Result sinks: the records of evaluations, and the handling of topics that reject them.

A topic that rejects one record aborts the whole transaction. The engine then replaces the records that the topic
rejects, and commits again. Each evaluation is committed once, as an answer or as an error. An answer beyond the topic's
`max.message.bytes` becomes an error in that topic. While a topic rejects all records (deleted, not authorized), the
evaluations of its query become errors in the cluster's results topic, and the engine retries the topic periodically.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from zlib import crc32

from penstock.engine.answers.json_lines import json_line
from penstock.log import Record, RecordTooLargeError
from penstock.log.sizes import wire_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.engine.answers.result_blocks import Evaluation
    from penstock.log import Log, RecordRefusedError
    from penstock.log.clock import Clock
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.services.query_engine.derived_stream_sink import DerivedStreamSink
    from penstock.wire import QueryRegistration

MAX_LINE_BYTES = 60 << 20
"""Maximum size of an answer as JSON, in any topic."""
RETRY_MS = 60_000
"""Time after which the engine retries a topic that has rejected records, in ms."""
_HEAD = ("query", "time", "windows", "snapshot", "attempt")  # fields of a result line, without the answer


@dataclass(slots=True)
class _Refusal:
    """What a topic rejects: records of more than `limit` bytes; None: all records. `met`: whether a record was
    replaced.
    """

    reason: str
    limit: int | None
    until_ms: int
    met: bool = False


class ResultSinks:
    """The results topics of an engine's queries. `refused`: number of answers replaced by errors. `changes`: number of
    changes of `error_of`.
    """

    def __init__(self, log: Log, topics: ClusterTopics, clock: Clock) -> None:
        self._log, self._topics, self._clock = log, topics, clock
        self._refusals: dict[str, _Refusal] = {}
        self.refused = self.changes = 0

    def record(self, query: QueryRegistration, evaluation: Evaluation) -> Record:
        """Return the record of an evaluation."""
        name = query.name
        topic, partition = (query.topic, 0) if query.topic else (self._topics.names.results, self._partition(name))
        key = _key(name, evaluation.time)
        refusal = self._in_force(topic)
        if refusal is not None and refusal.limit is None:
            return self._error(Record(topic, b"", key, partition), refusal, name, partial(json_line, evaluation, name))
        record = Record(topic, result_line(evaluation, name), key, partition)
        if refusal is None or refusal.limit is None or wire_bytes(record) <= refusal.limit:
            return record
        return self._error(record, refusal, name, partial(json_line, evaluation, name))

    def _partition(self, name: str) -> int:
        return crc32(name.encode()) % self._topics.result_partitions

    def _in_force(self, topic: str) -> _Refusal | None:
        refusal = self._refusals.get(topic)
        return None if refusal is None or refusal.until_ms <= self._clock.now_ms() else refusal

    def _error(self, record: Record, refusal: _Refusal, name: str, line: Callable[[str], str]) -> Record:
        """Return an error record in place of a record: in its topic, or in the results topic if its topic rejects
        all.
        """
        self.refused += 1
        self.changes += not refusal.met
        refusal.met = True
        reason = refusal.reason
        if refusal.limit is not None:
            reason = f"the answer is a record of {wire_bytes(record)} bytes; {reason}"
            found = record._replace(value=line(reason).encode())
            if wire_bytes(found) <= refusal.limit:
                return found
        return Record(self._topics.names.results, line(reason).encode(), record.key, self._partition(name))

    # ---- transactions
    def refuse(self, error: RecordRefusedError, pending: Sequence[Record]) -> bool:
        """Process a rejected transaction. Returns False if the topic is not a results topic or none of its records can
        be replaced: the caller must then handle the error.
        """
        topic = error.topic
        if not self._topics.takes_results(topic):
            return False
        limit = self._log.limits([topic]).get(topic) if isinstance(error, RecordTooLargeError) else None
        before = self._in_force(topic)
        if limit is not None and before is not None and before.limit == limit:
            fits = all(wire_bytes(record) <= limit for record in pending if record.topic == topic)
            limit = None if fits else limit  # it rejects records within its limit
        if limit is None and topic == self._topics.names.results:
            return False
        reason = f"topic {topic} takes {limit} bytes (max.message.bytes)"
        if limit is None:
            reason = f"topic {topic} cannot be written: {error}"
        self._refusals[topic] = _Refusal(reason, limit, self._clock.now_ms() + RETRY_MS)
        return True

    def replaced(self, record: Record) -> Record:
        """Return an error record if the topic rejects the record, otherwise the record itself."""
        refusal = self._in_force(record.topic)
        if refusal is None or record.value is None:
            return record
        if refusal.limit is not None and wire_bytes(record) <= refusal.limit:
            return record
        line = json.loads(record.value)
        return self._error(record, refusal, line["query"], partial(_error_line, line))

    def without_refused(self, pending: list[Record], sink: DerivedStreamSink) -> list[Record]:
        """Return the records, with errors in place of evaluations that a derived stream rejects."""
        if not sink.refused:
            return pending
        self.refused += len(sink.refused)
        reasons = {_key(sink.query, time): reason for time, reason in sink.refused}
        return [
            record._replace(value=_error_line(json.loads(record.value), reasons[record.key]).encode())
            if record.value is not None and record.key in reasons and self._topics.takes_results(record.topic)
            else record
            for record in pending
        ]

    def committed(self, pending: Sequence[Record]) -> None:
        """Record that records are committed. A retried topic that has accepted a record is no longer restricted."""
        for topic in self._refusals.keys() & {record.topic for record in pending}:
            if self._refusals[topic].until_ms <= self._clock.now_ms():
                del self._refusals[topic]
                self.changes += 1

    def error_of(self, query: QueryRegistration) -> str | None:
        """Return why answers are missing from a query's topic, or None if none are missing."""
        refusal = self._refusals.get(query.topic or self._topics.names.results)
        return refusal.reason if refusal is not None and refusal.met else None


def _key(query: str, time: int) -> bytes:
    return f"{query}@{time}".encode()


def _error_line(line: dict[str, Any], reason: str) -> str:
    """Return the line of an evaluation with an error in place of its answer. An existing error remains."""
    head = {name: line[name] for name in _HEAD}
    return json.dumps(head | {"error": line.get("error", reason)}, ensure_ascii=False)


def result_line(evaluation: Evaluation, query: str) -> bytes:
    """Return the JSON line of an evaluation. An error replaces a line longer than `MAX_LINE_BYTES`."""
    line = json_line(evaluation, query).encode()
    if len(line) <= MAX_LINE_BYTES:
        return line
    error = f"the answer has {len(line)} bytes (MAX_LINE_BYTES is {MAX_LINE_BYTES})"
    return json_line(evaluation, query, error).encode()
