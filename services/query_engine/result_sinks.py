"""Result sinks: the records of evaluations, and the handling of topics that reject records.

If a topic rejects one record, the whole transaction fails. The engine then commits again, with errors in place of the
rejected records. Each evaluation is committed once, as an answer or as an error. An answer that exceeds the topic's
`max.message.bytes` is replaced by an error in that topic. A topic can also reject all records, because the topic was
deleted or the engine is not authorized. The evaluations of the topic's queries are then replaced by errors in the
cluster's results topic, and the engine retries the topic periodically. A deleted topic is retried only once the topic
exists again: an earlier attempt would make the bucket's writer unusable.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary
from zlib import crc32

import numpy as np

from penstock.engine.answers.avro.row_records import error_value, line_of, schema_id_of
from penstock.engine.answers.evaluation_records import RESULT_BATCH_BYTES
from penstock.engine.answers.evaluation_records import record_format as record_format_of
from penstock.engine.answers.record_lines import error_line, format_of, halves, lines_of
from penstock.errors import LimitError
from penstock.log import Record, RecordTooLargeError, TransientError, UnknownTopicError
from penstock.log.sizes import wire_bytes
from penstock.services.query_engine.result_targets import Place, Routes, Target, evaluation_key, row_format_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from penstock.core._native import Ids
    from penstock.engine.answers.avro.row_records import RowFormat
    from penstock.engine.answers.membership import Membership
    from penstock.engine.answers.result_blocks import Block
    from penstock.log import Log, RecordRefusedError
    from penstock.log.clock import Clock
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.services.query_engine.derived_stream_sink import DerivedStreamSink
    from penstock.services.query_engine.result_targets import Answers, Queries
    from penstock.wire import QueryRegistration

MAX_LINE_BYTES = 60 << 20
"""Maximum size of an answer as JSON, in bytes, for all topics."""
RETRY_MS = 60_000
"""Time in ms after which the engine retries a topic that has rejected records."""
_BROKEN = "an earlier record of this query was rejected: the next evaluation has the complete answer"


@dataclass(slots=True)
class _Refusal:
    """The records that a topic rejects: records of more than `limit` bytes, or all records if `limit` is None.
    `until_ms`: when to retry. `absent`: whether the topic was deleted. `met`: whether a record was replaced.
    """

    reason: str
    limit: int | None
    until_ms: int
    absent: bool = False
    met: bool = False


class Evaluated(NamedTuple):
    """Records of evaluations, and the number of evaluations in these records."""

    records: list[Record]
    evaluations: int


class ResultSinks:
    """The results topics of an engine's queries. `refused`: number of answers that were replaced by errors. `changes`:
    number of times that a result of `error_of` has changed.
    """

    def __init__(self, log: Log, topics: ClusterTopics, clock: Clock) -> None:
        self._log, self._topics, self._clock = log, topics, clock
        self._refusals: dict[str, _Refusal] = {}
        self._row_formats: dict[int, RowFormat] = {}  # by schema id
        self._routes: WeakKeyDictionary[Membership, Routes] = WeakKeyDictionary()
        self.refused = self.changes = 0

    def records(self, block: Block, queries: Queries, complete: set[int]) -> Evaluated:
        """Return the records of the evaluations in a block: their answers, or errors if the topics are known to reject
        the answers. `queries`: the bucket's queries, by member name.

        `complete`: numbers of queries with `changes`. The results topic of such a query contains every change since the
        query's last complete answer. A query with `changes` that is not in `complete` gets the complete answer in place
        of added and removed rows, and is added to `complete`. A query is removed from `complete` if an error replaces
        its answer.
        """
        routes = self._routes.get(block.members)
        if routes is None:
            routes = self._routes[block.members] = Routes(block.members, queries, self.place_of)
        records: list[Record] = []
        evaluations = 0
        for place, numbers in routes.places:
            members = block.reported(numbers)
            evaluations += len(members)
            target = Target(block, routes, place, complete)
            if block.errors:
                failed = np.isin(members, np.fromiter(block.errors, np.uint64))
                records += [self.failed(target, n) for n in members[failed].tolist()]
                members = members[~failed]
            if len(members):
                records += self._answers(target, members)
        return Evaluated(records, evaluations)

    def _answers(self, target: Target, members: Ids) -> Sequence[Record]:
        """Return the records of members' answers."""
        if target.place.rows is not None:
            return self.rows(target, members)
        refusal = self._in_force(target.place.topic)
        limit = None if refusal is None else refusal.limit
        if refusal is not None and limit is None:
            return [self._rejected(target, n, refusal, b"") for n in members.tolist()]
        begins = target.begins(members)
        most = RESULT_BATCH_BYTES if limit is None else max(min(RESULT_BATCH_BYTES, limit - target.envelope), 1)
        try:
            records, counts, size = target.encoded(members, most, begins)
        except LimitError as error:  # an answer is too large for its format
            target.complete.difference_update(target.routes.queries[n].number for n in begins)
            if len(members) > 1:
                return [record for i in range(len(members)) for record in self._answers(target, members[i : i + 1])]
            target.complete.discard(target.routes.queries[int(members[0])].number)
            return [self.failed(target, int(members[0]), str(error))]
        if limit is not None or size > MAX_LINE_BYTES:
            at = 0
            for i, count in enumerate(counts):
                if count == 1 and _exceeds(records[i], limit):
                    records[i] = self._too_long(target, int(members[at]), records[i], refusal, begins)
                at += count
        return records

    def _too_long(
        self, target: Target, member: int, record: Record, refusal: _Refusal | None, begins: Collection[int]
    ) -> Record:
        """Return a record that replaces an answer which is too long. If the answer consists of changes, and the
        complete answer is short enough, the record has the complete answer. Otherwise, the record has an error.
        """
        if target.block.changes is not None and member not in begins:
            (whole,), _, _ = target.encoded(np.array([member], np.uint64), 1, (member,))
            if not _exceeds(whole, None if refusal is None else refusal.limit):
                return whole
        size = len(record.value or b"")
        if refusal is not None and size <= MAX_LINE_BYTES:
            return self._rejected(target, member, refusal, record.value or b"")
        target.complete.discard(target.routes.queries[member].number)
        return self.failed(target, member, f"the answer has {size} bytes (MAX_LINE_BYTES is {MAX_LINE_BYTES})")

    def _rejected(self, target: Target, member: int, refusal: _Refusal, value: bytes) -> Record:
        """Return the error that replaces a member's answer. `value`: the value of the answer's record."""
        query = target.routes.queries[member]
        target.complete.discard(query.number)
        record = target.place.record(value, target.key(member))
        return self._error(record, refusal, query.name, partial(target.line, member))

    def rows(self, answers: Answers, members: Ids) -> Sequence[Record]:
        """Return the records of members' answers in Avro. If a row cannot be a record, or if its record is too long, an
        error replaces all rows of the answer.
        """
        try:
            records, counts = answers.encoded_rows(members)
        except LimitError as error:
            if len(members) > 1:
                return [record for i in range(len(members)) for record in self.rows(answers, members[i : i + 1])]
            return [self.failed(answers, int(members[0]), str(error))]
        refusal = self._in_force(answers.place.topic)
        if refusal is None and all(len(record.value or b"") <= MAX_LINE_BYTES for record in records):
            return records
        found: list[Record] = []
        left = deque(records)
        for member, count in zip(members.tolist(), counts, strict=True):
            rows = [left.popleft() for _ in range(count)]
            longest = max(rows, key=wire_bytes)
            if (size := len(longest.value or b"")) > MAX_LINE_BYTES:
                found.append(
                    self.failed(answers, member, f"a row has {size} bytes (MAX_LINE_BYTES is {MAX_LINE_BYTES})")
                )
            elif refusal is not None and self._refuses(longest):
                failed = self._error(longest, refusal, answers.name(member), partial(answers.line, member))
                found.append(failed._replace(key=rows[0].key))
            else:
                found += rows
        return found

    def failed(self, answers: Answers, member: int, error: str | None = None) -> Record:
        """Return the record of a failed evaluation. `error`: the reason, or None if the block contains the reason."""
        record = answers.place.failure(answers.line(member, error), answers.key(member))
        return self.accepted(record, answers.name(member), partial(answers.line, member))

    def accepted(self, record: Record, name: str, line: Callable[[str], bytes]) -> Record:
        """Return the record, or an error in its place if the topic rejects the record. `line`: see `_error`."""
        refusal = self._in_force(record.topic)
        return self._error(record, refusal, name, line) if refusal is not None and self._refuses(record) else record

    def place_of(self, query: QueryRegistration) -> Place:
        """Return the place of a query's records."""
        record_format, rows = record_format_of(query.result_format), None
        if record_format == "avro":
            rows = self._row_formats[query.schema_id] = row_format_of(query)
        if query.topic:
            return Place(query.topic, 0, record_format, rows)
        return Place(self._topics.names.results, self._partition(query.name), record_format, rows)

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
        """Return an error record that replaces `record`. The error record is for the same topic, or for the cluster's
        results topic if the same topic also rejects errors. `line(reason)` returns the evaluation with the error
        `reason`, as a line of JSON.
        """
        self.refused += 1
        self.changes += not refusal.met
        refusal.met = True
        reason = refusal.reason
        if refusal.limit is not None:
            reason = f"the answer is a record of {wire_bytes(record)} bytes; {reason}"
            found = self._with_error(record, line(reason))
            if wire_bytes(found) <= refusal.limit:
                return found
        return Record(self._topics.names.results, line(reason), record.key, self._partition(name))

    # ---- transactions
    def refuse(self, error: RecordRefusedError, pending: Sequence[Record]) -> bool:
        """Record that a topic has rejected a transaction. Errors then replace the answers that the topic rejects: all
        answers, or only answers above the size limit. Returns False if the caller must handle the error: the topic is
        not a results topic, or it is the cluster's results topic and also rejects errors.
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
        """Return the records `pending`, with errors in place of the records that the topics reject.

        `members`: the numbers of the bucket's queries with `changes`, by name. If a record of such a query is replaced,
        errors also replace the query's later records, until a record has the complete answer. If no later record has
        the complete answer, the query is removed from `complete`.
        """
        found, broken, left = [], set[str](), deque(self._without_divided(pending))
        while left:
            record = left.popleft()
            if _is_batch(record) and record.value is not None and self._topics.takes_results(record.topic):
                later = broken and any(lines_of(record.value, record.headers, broken.__contains__))
                if (self._refuses(record) or later) and (parts := halves(record.value, record.headers)):
                    left.extendleft(record._replace(key=key, value=value) for key, value in reversed(parts))
                    continue
            name = _query_of(record)
            written = self._replaced(record)
            if written is not record and name in members:
                broken.add(name)
            elif name in broken and record.value is not None:
                line = self._line(record)
                if "added" not in line and "error" not in line:
                    broken.remove(name)
                else:
                    written = self._with_error(record, error_line(line, _BROKEN))
            found.append(written)
        complete.difference_update(members[name] for name in broken)
        return found

    def _without_divided(self, pending: Sequence[Record]) -> Sequence[Record]:
        """Return the records `pending`, with one change. An answer in Avro has one record for each row. If a topic
        rejects a row, an error replaces all records of the answer.
        """
        divided: dict[tuple[str, bytes], Record] = {}
        for record in pending:
            place = record.topic, _first_key(record)
            if _is_row(record) and place not in divided and self._refuses(record):
                divided[place] = self._replaced(record)._replace(key=place[1])
        if not divided:
            return pending
        found = []
        for record in pending:
            place = record.topic, _first_key(record)
            if not _is_row(record) or place not in divided:
                found.append(record)
            elif record.key == place[1]:
                found.append(divided[place])
        return found

    def _refuses(self, record: Record) -> bool:
        refusal = self._in_force(record.topic)
        return refusal is not None and (refusal.limit is None or wire_bytes(record) > refusal.limit)

    def _replaced(self, record: Record) -> Record:
        """Return the record, or an error record if the topic rejects the record."""
        refusal = self._in_force(record.topic)
        if refusal is None or not self._refuses(record):
            return record
        line = self._line(record)
        return self._error(record, refusal, line["query"], partial(error_line, line))

    def _line(self, record: Record) -> Mapping[str, Any]:
        """Return the first evaluation in a results record as a JSON object. For a record in Avro, the object has no
        answer.
        """
        if _is_row(record) and record.value is not None:
            return line_of(record.value, of_set=self._row_formats[schema_id_of(record.value)].of_set)
        return next(iter(lines_of(record.value or b"{}", record.headers)))

    def _with_error(self, record: Record, line: bytes) -> Record:
        """Return a record for the same topic with an error in place of the answer. If the given record is in Avro, the
        result is in Avro, too. `line`: the evaluation with the error, as JSON.
        """
        if not _is_row(record):
            return record._replace(value=line, headers=())
        return record._replace(value=error_value(line, self._row_formats[schema_id_of(record.value or b"")]))

    def without_refused(self, pending: list[Record], sink: DerivedStreamSink) -> list[Record]:
        """Return the records `pending`, with errors in place of the evaluations that the derived stream rejects."""
        if not sink.refused:
            return pending
        self.refused += len(sink.refused)
        reasons = {evaluation_key(sink.query, time): reason for time, reason in sink.refused}
        return [
            self._with_error(record, error_line(self._line(record), reasons[record.key]))
            if record.value is not None and record.key in reasons and self._topics.takes_results(record.topic)
            else record
            for record in pending
        ]

    def committed(self, pending: Sequence[Record]) -> None:
        """Record that the records `pending` are committed. If a topic that is due for a retry has accepted one of the
        records, the topic's restriction ends.
        """
        if not self._refusals:
            return
        for topic in self._refusals.keys() & {record.topic for record in pending}:
            if self._refusals[topic].until_ms <= self._clock.now_ms():
                del self._refusals[topic]
                self.changes += 1

    def error_of(self, query: QueryRegistration) -> str | None:
        """Return why answers are missing in a query's results topic, or None if no answers are missing."""
        refusal = self._refusals.get(query.topic or self._topics.names.results)
        return refusal.reason if refusal is not None and refusal.met else None


def _query_of(record: Record) -> str:
    """Return the name of the query of a result record. For any other record, return a text that is no query's name."""
    name, at, _ = (record.key or b"").decode(errors="replace").rpartition("@")
    return name if at else ""


def _is_batch(record: Record) -> bool:
    """Return whether a record can have several evaluations."""
    return format_of(record.headers) in ("json-batch", "arrow")


def _is_row(record: Record) -> bool:
    """Return whether a record is in Avro."""
    return bool(record.headers) and format_of(record.headers) == "avro"


def _first_key(record: Record) -> bytes:
    """Return the key of the first record of an evaluation whose records are in Avro."""
    name, at, rest = (record.key or b"").rpartition(b"@")
    return name + at + rest.partition(b"/")[0]


def _exceeds(record: Record, limit: int | None) -> bool:
    """Return whether a record is too long. MAX_LINE_BYTES is the limit of all topics, `limit` that of its topic."""
    if len(record.value or b"") > MAX_LINE_BYTES:
        return True
    return limit is not None and wire_bytes(record) > limit
