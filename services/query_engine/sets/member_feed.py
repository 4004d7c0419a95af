"""The members of a query set, read from its parameters topic.

The engine that evaluates the set reads the records. A record takes effect between two steps of the total order. The
progress of the set's group states which records have taken effect. This progress is committed together with the
results, so another engine continues with the same members (ADR 92).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np

from penstock.engine.sets import set_changes
from penstock.engine.sets.set_changes import MemberRows
from penstock.engine.sets.set_member import RECORD_KEY
from penstock.engine.sets.tables import as_table
from penstock.ingest.refused_records import DeadLetter, dead_letter_record
from penstock.log import START, Partition, UnknownTopicError
from penstock.services.query_engine.progress.saved_answers import terms_of
from penstock.services.query_engine.progress.set_progress import restore_answers, set_answers_of, set_progress_of
from penstock.services.query_engine.sets.member_records import ReadRecords, parameter_terms
from penstock.services.query_engine.sets.taken_records import REFUSED, TakenRecords

if TYPE_CHECKING:
    from collections.abc import Collection

    from penstock.engine.runtime import Runtime
    from penstock.engine.sets.set_member import SetMember
    from penstock.log import Log, Message, Reader, Record
    from penstock.log.clock import Clock
    from penstock.log.topics import TopicNames
    from penstock.replication.progress_log import GroupState
    from penstock.replication.registration import Registration
    from penstock.term_ids.cluster_terms import TermCache

RECORDS = 10_000
"""Maximum number of records that take effect at once."""
MAX_POINTS = 16
"""Maximum number of registration points of a set that lie inside a current window. While a set has this number of such
points, the set takes no further records, because each point costs an execution at each instant.
"""
IDLE_MS = 5_000
"""Interval in ms of event time. Once per interval, a set without members commits that the set needs no older tuples."""
_RETRY_MS = 1_000
_log = logging.getLogger("penstock.query-engine")


class SetPart(NamedTuple):
    """The part of a query set's members that a bucket evaluates. `parts`: the number of parts of the set. `mine`: the
    numbers of the bucket's parts.
    """

    parts: int
    mine: Collection[int]

    def has(self, key: bytes | None) -> bool:
        """Return whether a member belongs to the bucket. `key`: the key of the member's record."""
        return self.parts == 1 or part_of(key, self.parts) in self.mine


def part_of(key: bytes | None, parts: int) -> int:
    """Return the number of the part to which a member belongs. `key`: the key of the member's record."""
    return crc32(key or b"") % parts


WHOLE = SetPart(1, (0,))


class MemberFeed:
    """Reads the members of a query set. `saved`: the committed progress of the set's group, or None. `part`: which
    members this feed reads. `restoring`: whether the members of the last commit are not restored yet. The set has no
    members until the restoration.
    """

    def __init__(
        self, registration: Registration, member: SetMember, saved: GroupState | None, part: SetPart = WHOLE
    ) -> None:
        self.registration, self.member, self._part = registration, member, part
        self._saved = saved
        self.answers = set_answers_of(member)
        self._taken = TakenRecords.of(None if saved is None else saved.members)
        self.restoring = self._taken.end > 0
        self._reader: Reader | None = None
        self._retry_ms = 0
        self._known: dict[bytes | None, Message] = {}  # while restoring: the last record of each key
        self._ahead: list[Message] = []

    @property
    def busy(self) -> bool:
        """Whether there are records that have not taken effect."""
        return self.restoring or bool(self._ahead)

    def close(self) -> None:
        """Close the reader."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    # ---- the topic
    def read(self, log: Log, names: TopicNames, clock: Clock) -> bool:
        """Read records. Returns whether there were any records."""
        if len(self._ahead) >= RECORDS or (self._reader is None and not self._open(log, names, clock)):
            return False
        assert self._reader is not None
        messages = self._reader.poll(RECORDS)
        for message in messages:
            if not self._part.has(message.key):
                continue
            if message.offset < self._taken.end:
                self._known[message.key] = message
            else:
                self._ahead.append(message)
        return bool(messages)

    def _open(self, log: Log, names: TopicNames, clock: Clock) -> bool:
        if clock.now_ms() < self._retry_ms:
            return False
        topic = names.parameters(self.registration.record.name)
        try:
            self._reader = log.reader({Partition(topic): START if self.restoring else self._taken.end})
        except UnknownTopicError as error:
            self._retry_ms = clock.now_ms() + _RETRY_MS
            _log.warning("query set %s has no members: %s", self.registration.record.name, error)
            return False
        return True

    # ---- restart
    def restore(self, runtime: Runtime, terms: TermCache, last_ms: int | None) -> bool:
        """Restore the members of the last commit once the records of these members are read. Returns whether the
        members are restored now. `last_ms`: the last committed instant. TransientError if the dictionary service is
        unavailable; call again.
        """
        if self._reader is None or not self._read_to_end():
            return False
        member, saved = self.member, self._saved
        assert saved is not None
        records = ReadRecords.of(self._known.values(), member.columns)
        runs = [self._taken.run_of(message.offset) for message, _ in records.rows]
        chosen = [i for i, run in enumerate(runs) if run is None or run.point != REFUSED]
        table = as_table([records.rows[i][1] for i in chosen], member.columns)
        rows = MemberRows.read(member, table, runtime.core.limits.max_member_bytes)
        terms.learn(parameter_terms(rows, member))
        terms.look_up(terms_of(saved))
        self.restoring, self._known = False, {}
        if rows.good.any():
            self._rejoin(runtime, rows, [runs[i] for i in chosen], last_ms, saved)
        return True

    def _read_to_end(self) -> bool:
        assert self._reader is not None
        (position,) = self._reader.positions().values()
        if position < self._taken.end and self._reader.caught_up():
            self._taken.end = position  # the topic was deleted and created again
        return position >= self._taken.end

    def _rejoin(
        self, runtime: Runtime, rows: MemberRows, runs: list[object], last_ms: int | None, saved: GroupState
    ) -> None:
        member, begun = self.member, self.registration.point
        rows.find(member, runtime.core.dictionary)
        columns = rows.columns(member)  # all good rows, because their keys differ
        found = [runs[i] for i in np.flatnonzero(rows.good).tolist()]
        points = [begun if run is None or run.point is None else run.point for run in found]  # type: ignore[attr-defined]
        cohorts = []
        for point in dict.fromkeys(points):
            mask = np.array([each == point for each in points])
            last = None if point is None else max(point, point if last_ms is None else last_ms)
            cohorts.append(runtime.registry.rejoin(member, columns.take(mask), point, last))
        restored = restore_answers(cohorts, saved, member)  # type: ignore[arg-type]
        member.set_group.settle(runtime.registry.pool)
        if restored is not None:
            self.answers.resume(restored, member.set_group.set_cohorts())

    # ---- new records
    def take(self, runtime: Runtime, terms: TermCache, names: TopicNames) -> list[Record] | None:
        """Let the records that were read take effect. Returns the dead letters of refused records, or None if no record
        was due. Call between two steps of the total order. TransientError if the dictionary service is unavailable;
        call again.
        """
        group = self.member.set_group
        points = [cohort.point for cohort in group.apart.values()]
        self._taken.settle(self.registration.point, points, self.complete_until())
        if not self._ahead or len(group.apart) >= MAX_POINTS or self._taken.full:
            return None
        records, member = ReadRecords.of(self._ahead[:RECORDS], self.member.columns), self.member
        limits = runtime.core.limits
        read = MemberRows.read(member, records.table(member.columns), limits.max_member_bytes)
        records.refuse({row: reason.replace(RECORD_KEY, "the key") for row, reason in read.faults.items()})
        terms.learn(parameter_terms(read, member))
        # from here on, nothing fails
        self._remove(runtime, records.removed)
        read.find(member, runtime.core.dictionary)
        excess = self._refuse_excess(records, read, limits.max_members)
        before = self._points(read.known)
        _, point = set_changes.put(runtime, member, read, self.registration.point)
        self._record(records, read, excess, point, before)
        self._taken.end = self._ahead[:RECORDS][-1].offset + 1
        del self._ahead[:RECORDS]
        return [self._letter(names, message, reason) for message, reason in records.faults]

    def _remove(self, runtime: Runtime, keys: list[str]) -> None:
        if keys and len(self.member):
            set_changes.remove(runtime, self.member, as_table([(key,) for key in keys], [RECORD_KEY]))

    def _refuse_excess(self, records: ReadRecords, read: MemberRows, most: int) -> set[int]:
        """If the set would have more than `most` members, refuse the excess of new keys. The keys that arrived last are
        refused. Returns the row numbers of the refused keys.
        """
        new = np.flatnonzero(read.fresh & (read.known == 0))
        excess = new[max(most - len(self.member), 0) :].tolist()
        read.fresh[excess] = False
        reason = f"the set has {most} members (max_members)"
        records.faults += [(records.rows[row][0], reason) for row in excess]
        return set(excess)

    def _points(self, numbers: np.ndarray) -> dict[int, int | None]:
        """Return the registration points that lie inside a current window, by row. `numbers`: the member number of each
        row.
        """
        found: dict[int, int | None] = {}
        for cohort in self.member.set_group.apart.values():
            rows = np.flatnonzero(cohort.have(numbers)) if numbers.any() else ()  # type: ignore[attr-defined]
            found |= dict.fromkeys((int(row) for row in rows), cohort.point)
        return found

    def _record(
        self,
        records: ReadRecords,
        read: MemberRows,
        excess: set[int],
        point: int | None,
        before: dict[int, int | None],
    ) -> None:
        previous, end = dict[int, int](), self._taken.end
        for message in self._ahead[:RECORDS]:
            previous[message.offset], end = end, message.offset + 1
        for row, (message, _) in enumerate(records.rows):
            offset = message.offset
            if row in excess:
                self._taken.add(offset, REFUSED, previous[offset])
            elif read.fresh[row]:
                self._taken.add(offset, point, previous[offset])
            elif row in before:
                self._taken.add(offset, before[row], previous[offset])

    def _letter(self, names: TopicNames, message: Message, reason: str) -> Record:
        name = self.registration.record.name
        said = f"not a member of {name}: {reason}"
        data = message.value or b""
        letter = DeadLetter(message.topic, message.partition, message.offset, said, data, name)
        return dead_letter_record(names, letter, message.headers)

    # ---- progress
    def idle_since(self, last_ms: int | None) -> int | None:
        """Return a time in ms. A set without members needs no tuples up to and including this time. Returns None if
        there is no such time, or if the time is less than IDLE_MS after `last_ms`.
        """
        closed = [stream.closed_ms for stream in self.member.set_group.streams]
        if self.busy or len(self.member) or None in closed:
            return None
        now = min(each for each in closed if each is not None)
        return now if last_ms is None or now >= last_ms + IDLE_MS else None

    def complete_until(self) -> int | None:
        """Return an instant in ms. All members were evaluated up to and including this instant. Returns None if the
        instant is unknown. Call between two steps of the total order.

        The progress must contain this instant, because the progress does not contain the registration points of all
        members (see `TakenRecords`). Without the instant, the next engine would evaluate the other members from the
        registration of the set on.
        """
        triggers = [cohort.trigger for cohort in self.member.set_group.set_cohorts() if len(cohort.columns.numbers)]
        known = [trigger.last for trigger in triggers if trigger is not None]
        return min(known, default=None) if len(known) == len(triggers) else None

    def progress(self, last_ms: int | None) -> GroupState:
        """Return the progress of the set's group, which was evaluated up to instant `last_ms`."""
        if self.restoring:
            assert self._saved is not None
            return self._saved
        points = [cohort.point for cohort in self.member.set_group.apart.values()]
        self._taken.settle(self.registration.point, points, last_ms)
        return set_progress_of(self.registration.record.group, self.member, last_ms, self._taken, self.answers)
