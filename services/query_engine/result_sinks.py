"""Result sinks: the records of evaluations, and the handling of topics that reject them.

If a topic rejects one record, the whole transaction fails. The engine then commits again, with errors in place of the
rejected records. Each evaluation is committed once, as an answer or as an error. An answer that exceeds the topic's
`max.message.bytes` is replaced by an error in that topic. A topic may also reject all records, because it was deleted
or the engine is not authorized. The evaluations of its queries are then replaced by errors in the cluster's results
topic, and the engine retries the topic periodically. It does not retry a deleted topic before the topic exists again:
the attempt would end the writer of the bucket.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from zlib import crc32

from penstock.engine.answers.json_lines import json_line
from penstock.log import Record, RecordTooLargeError, TransientError, UnknownTopicError
from penstock.log.sizes import wire_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.engine.answers.result_blocks import Evaluation
    from penstock.log import Log, RecordRefusedError
    from penstock.log.clock import Clock
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.services.query_engine.derived_stream_sink import DerivedStreamSink
    from penstock.wire import QueryRegistration

MAX_LINE_BYTES = 60 << 20
"""Maximum size of an answer as JSON, in bytes, for all topics."""
RETRY_MS = 60_000
"""Time in ms after which the engine retries a topic that has rejected records."""
_BROKEN = "an earlier record of this query was rejected: the next evaluation has the complete answer"
_HEAD = ("query", "time", "windows", "snapshot", "attempt")  # fields of a result line, except the answer


@dataclass(slots=True)
class _Refusal:
    """What a topic rejects: records of more than `limit` bytes, or all records if `limit` is None. `until_ms`: when to
    retry the topic. `absent`: whether the topic was deleted. `met`: whether a record was replaced for this reason.
    """

    reason: str
    limit: int | None
    until_ms: int
    absent: bool = False
    met: bool = False


class ResultSinks:
    """The results topics of an engine's queries. `refused`: number of answers that were replaced by errors. `changes`:
    number of times that a result of `error_of` has changed.
    """

    def __init__(self, log: Log, topics: ClusterTopics, clock: Clock) -> None:
        self._log, self._topics, self._clock = log, topics, clock
        self._refusals: dict[str, _Refusal] = {}
        self.refused = self.changes = 0

    def record(self, query: QueryRegistration, evaluation: Evaluation, complete: set[int]) -> Record:
        """Return the record of an evaluation: its answer, or an error if the topic is known to reject the answer.

        `complete`: the numbers of the queries with `changes` whose results topic has every change since their last
        complete answer. The record of another query with `changes` has the complete answer in place of added and
        removed rows. The method adds the query, or removes it if an error replaces its answer.
        """
        if evaluation.error is not None or not evaluation.has_changes:
            return self._record(query, evaluation)[0]
        record, answers = self._record(query, evaluation, complete=query.number not in complete)
        (complete.add if answers else complete.discard)(query.number)
        return record

    def _record(
        self, query: QueryRegistration, evaluation: Evaluation, *, complete: bool = False
    ) -> tuple[Record, bool]:
        """Return the record of an evaluation, and whether it has the answer, not an error that replaces it.
        `complete`: see `json_line`.
        """
        name = query.name
        topic, partition = (query.topic, 0) if query.topic else (self._topics.names.results, self._partition(name))
        key = _key(name, evaluation.time)
        refusal = self._in_force(topic)
        if refusal is not None and refusal.limit is None:
            record = Record(topic, b"", key, partition)
            return self._error(record, refusal, name, partial(json_line, evaluation, name)), False
        limit = None if refusal is None else refusal.limit
        for whole in (complete,) if complete or not evaluation.has_changes else (False, True):
            # the changes may be longer than the complete answer
            line, answers = result_line(evaluation, name, complete=whole)
            record = Record(topic, line, key, partition)
            fits = limit is None or wire_bytes(record) <= limit
            if answers and fits:
                return record, True
        if refusal is None or fits:
            return record, answers
        return self._error(record, refusal, name, partial(json_line, evaluation, name)), False

    def _partition(self, name: str) -> int:
        return crc32(name.encode()) % self._topics.result_partitions

    def _in_force(self, topic: str) -> _Refusal | None:
        refusal = self._refusals.get(topic)
        if refusal is None:
            return None
        now_ms = self._clock.now_ms()
        if refusal.until_ms <= now_ms:
            if not (refusal.absent and self._is_absent(topic)):
                return None
            refusal.until_ms = now_ms + RETRY_MS
        return refusal

    def _is_absent(self, topic: str) -> bool:
        """Return whether a topic that was deleted is still missing, or cannot be looked up."""
        try:
            return topic not in self._log.topics()
        except TransientError:
            return True

    def _error(self, record: Record, refusal: _Refusal, name: str, line: Callable[[str], bytes]) -> Record:
        """Return an error record that replaces `record`. The error record is for the topic of `record`, or for the
        cluster's results topic if the former rejects it, too. `line` returns the error line for a reason.
        """
        self.refused += 1
        self.changes += not refusal.met
        refusal.met = True
        reason = refusal.reason
        if refusal.limit is not None:
            reason = f"the answer is a record of {wire_bytes(record)} bytes; {reason}"
            found = record._replace(value=line(reason))
            if wire_bytes(found) <= refusal.limit:
                return found
        return Record(self._topics.names.results, line(reason), record.key, self._partition(name))

    # ---- transactions
    def refuse(self, error: RecordRefusedError, pending: Sequence[Record]) -> bool:
        """Record that a topic has rejected a transaction, so that errors replace the answers that it rejects: those
        above its size limit, or all. Returns False if the topic is not a results topic, or if it is the cluster's
        results topic and rejects errors, too; the caller must then handle the error.
        """
        topic = error.topic
        if not self._topics.takes_results(topic):
            return False
        limit = self._log.limits([topic]).get(topic) if isinstance(error, RecordTooLargeError) else None
        before = self._in_force(topic)
        if limit is not None and before is not None and before.limit == limit:
            fits = all(wire_bytes(record) <= limit for record in pending if record.topic == topic)
            limit = None if fits else limit  # the topic rejects even records within its limit
        if limit is None and topic == self._topics.names.results:
            return False
        reason = f"topic {topic} takes {limit} bytes (max.message.bytes)"
        if limit is None:
            reason = f"topic {topic} cannot be written: {error}"
        absent = isinstance(error, UnknownTopicError)
        self._refusals[topic] = _Refusal(reason, limit, self._clock.now_ms() + RETRY_MS, absent)
        return True

    def replaced(self, pending: Sequence[Record], members: Mapping[str, int], complete: set[int]) -> list[Record]:
        """Return the records `pending`, with errors in place of those that their topics reject.

        `members`: the numbers of the bucket's queries with `changes`, by name. If a record of such a query is replaced,
        the query is removed from `complete`, and errors replace its later records, too: they do not have the complete
        answer.
        """
        found, broken = [], set[str]()
        for record in pending:
            name = _query_of(record)
            written = self._replaced(record)
            if written is not record and name in members:
                broken.add(name)
            elif name in broken and record.value is not None:
                line = json.loads(record.value)
                if "results" in line:
                    broken.remove(name)
                else:
                    written = record._replace(value=_error_line(line, _BROKEN))
            found.append(written)
        complete.difference_update(members[name] for name in broken)
        return found

    def _replaced(self, record: Record) -> Record:
        """Return the record, or an error record if its topic rejects it."""
        refusal = self._in_force(record.topic)
        if refusal is None or record.value is None:
            return record
        if refusal.limit is not None and wire_bytes(record) <= refusal.limit:
            return record
        line = json.loads(record.value)
        return self._error(record, refusal, line["query"], partial(_error_line, line))

    def without_refused(self, pending: list[Record], sink: DerivedStreamSink) -> list[Record]:
        """Return the records `pending`, with errors in place of the evaluations that derived stream `sink` rejects."""
        if not sink.refused:
            return pending
        self.refused += len(sink.refused)
        reasons = {_key(sink.query, time): reason for time, reason in sink.refused}
        return [
            record._replace(value=_error_line(json.loads(record.value), reasons[record.key]))
            if record.value is not None and record.key in reasons and self._topics.takes_results(record.topic)
            else record
            for record in pending
        ]

    def committed(self, pending: Sequence[Record]) -> None:
        """Record that the records `pending` are committed. If a topic that is due for a retry has accepted one of them,
        its restriction ends.
        """
        for topic in self._refusals.keys() & {record.topic for record in pending}:
            if self._refusals[topic].until_ms <= self._clock.now_ms():
                del self._refusals[topic]
                self.changes += 1

    def error_of(self, query: QueryRegistration) -> str | None:
        """Return why answers are missing in a query's results topic, or None if none are missing."""
        refusal = self._refusals.get(query.topic or self._topics.names.results)
        return refusal.reason if refusal is not None and refusal.met else None


def _key(query: str, time: int) -> bytes:
    return f"{query}@{time}".encode()


def _query_of(record: Record) -> str:
    """Return the name of the query of a result record. For any other record, return a text that is no query's name."""
    name, at, _ = (record.key or b"").decode(errors="replace").rpartition("@")
    return name if at else ""


def _error_line(line: dict[str, Any], reason: str) -> bytes:
    """Return the line of an evaluation with an error in place of its answer. If the line has an error already, that
    error remains.
    """
    head = {name: line[name] for name in _HEAD}
    return json.dumps(head | {"error": line.get("error", reason)}, ensure_ascii=False).encode()


def result_line(evaluation: Evaluation, query: str, *, complete: bool = False) -> tuple[bytes, bool]:
    """Return the JSON line of an evaluation, in UTF-8, and whether the line is within `MAX_LINE_BYTES`. If it is not,
    an error replaces it. `complete`: see `json_line`.
    """
    line = json_line(evaluation, query, complete=complete)
    if len(line) <= MAX_LINE_BYTES:
        return line, True
    error = f"the answer has {len(line)} bytes (MAX_LINE_BYTES is {MAX_LINE_BYTES})"
    return json_line(evaluation, query, error), False
