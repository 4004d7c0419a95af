"""Buckets, and the set of buckets that one engine evaluates. A bucket is a share of the standing queries.

Each bucket has its own transactional writer. Opening the writer fences the bucket's previous engine and ends that
engine's open transaction. The bucket's partition of the progress topic then contains the last committed progress, from
which the queries continue.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from penstock.engine.sets.set_member import RECORD_KEY
from penstock.engine.windows.trigger import GridTrigger
from penstock.query.ir import ContinuousQuery
from penstock.replication.progress_log import BucketState
from penstock.replication.registration import buckets_of
from penstock.replication.status_topic import standing_record
from penstock.services.query_engine.derived_stream_sink import DerivedStreamSink
from penstock.services.query_engine.progress.bucket_progress import (
    answers_of,
    catch_up_counted,
    complete_queries,
    progress_of,
    restore_counted,
    restore_predecessors,
)
from penstock.services.query_engine.sets.member_feed import MemberFeed, SetPart

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from penstock.core import _native as native
    from penstock.engine.intake.streams import LiveStream
    from penstock.engine.oneshot.texts import Texts
    from penstock.engine.runtime import Runtime
    from penstock.engine.standing.groups import Cohort, Group, Member
    from penstock.event_time.gaps import Gap
    from penstock.log import Record, TransactionalWriter
    from penstock.log.topics import TopicNames
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.replication.placement_view import PlacementView
    from penstock.replication.progress_log import ProgressWriter
    from penstock.replication.registration import Registration
    from penstock.services.query_engine.progress.saved_answers import SavedAnswers
    from penstock.services.query_engine.result_sinks import Evaluated, ResultSinks
    from penstock.services.query_engine.retained_state import RetainedState
    from penstock.term_ids.cluster_terms import TermService
    from penstock.wire import QueryRegistration


class Bucket:
    """One bucket that this engine has opened. `committed`: the committed progress of each group.

    The progress can depend on registration points and stops that this engine's replica has not applied yet. The
    bucket's queries are therefore enrolled only once the replica has applied step `waits_for` of the total order.
    """

    def __init__(
        self,
        number: int,
        writer: TransactionalWriter,
        progress_writer: ProgressWriter,
        saved: BucketState | None,
        incarnation: int,
        shares: int = 1,
    ) -> None:
        self.number, self.shares = number, shares
        self.incarnation = incarnation
        self.epoch = 1 if saved is None else saved.epoch + 1
        self.writer = writer
        self.progress_writer = progress_writer
        self.saved = saved
        self.last_commit = saved or BucketState(number, self.epoch, 0)
        self.committed = {progress.group: progress for progress in (saved.groups if saved is not None else ())}
        self.waits_for = 0 if saved is None else saved.step
        self.complete: set[int] = set()  # numbers of queries with `changes` (see `GroupState.complete`)
        for progress in self.committed.values():
            self.complete.update(complete_queries(progress))
        self.last_ms: dict[int, int] = {g: p.last_ms for g, p in self.committed.items() if p.last_ms is not None}
        self.groups: dict[int, Group] = {}
        self.answers: dict[int, SavedAnswers] = {}  # by group
        self.feeds: dict[int, MemberFeed] = {}  # by group, of query sets
        self.derived_sinks: dict[int, DerivedStreamSink] = {}  # by group, of groups that publish
        self.ending: list[DerivedStreamSink] = []  # of queries that were stopped
        self.members: dict[str, tuple[Member, Registration]] = {}
        self.pending: list[Record] = []
        self.pending_evaluations = self.pending_bytes = 0
        self.fired: set[int] = set()
        self.enrolled = False
        self.finished: set[int] = set()  # numbers of stopped queries that were evaluated to their end
        self.dirty = False
        self.errors: dict[int, str | None] = {}  # reported errors, by number of the query
        self._errors_at = self._published_members = -1  # counts of changes and members when errors were last reported
        self._published_derived: dict[int, str] = {}
        self.opened = 0  # epoch of the placement under which the bucket was opened

    @property
    def unwritten(self) -> bool:
        """Whether there are records or progress to commit."""
        derived_sinks = (*self.derived_sinks.values(), *self.ending)
        return bool(self.fired or self.pending or self.dirty) or any(
            derived_sink.changed for derived_sink in derived_sinks
        )

    @property
    def changing(self) -> dict[str, int]:
        """The numbers of the queries with `changes`, by name."""
        records = (registration.record for _, registration in self.members.values())
        return {record.name: record.number for record in records if record.changes}

    def draining(self, incarnation: int) -> Bucket:
        """Return a temporary bucket with the same saved progress, but with groups of its own. In this bucket, a stopped
        query can be evaluated at the instants that were due before the stop.
        """
        return Bucket(self.number, self.writer, self.progress_writer, self.saved, incarnation, self.shares)

    # ---- members
    def enrol(self, registrations: Iterable[Registration], runtime: Runtime, texts: Texts) -> None:
        """Make queries members of this bucket. A query continues after the last committed instant of the query's group.
        If the group has no committed instant, the query begins after the registration point.
        """
        fresh: dict[int, list[Cohort]] = {}
        for registration in registrations:
            member, cohort = self._join(registration, runtime, texts)
            self.members[str(registration.record.number)] = member, registration
            if registration.after is not None:  # its group's committed progress lacks the query's windows
                self.fired.add(registration.record.group)
            if cohort is not None:
                fresh.setdefault(registration.record.group, []).append(cohort)
        for number, cohorts in fresh.items():
            self._restore(number, cohorts, runtime)

    def _join(self, registration: Registration, runtime: Runtime, texts: Texts) -> tuple[Member, Cohort | None]:
        """Add a query to its cohort. Returns (member, cohort). The second element is None if the cohort existed before,
        or if the cohort has no registration point.
        """
        record, point, after = registration.record, registration.point, registration.after
        ir = texts.parse(record.text, record.base, accepted=True)
        assert isinstance(ir, ContinuousQuery), record.name  # the coordinator has checked it
        name = str(record.number)  # a name can be used again for another query
        if record.report is not None:
            return self._join_set(registration, ir, runtime), None
        query, apart = replace(ir, changes=record.changes), -(record.number << 32) - self.incarnation
        member = runtime.registry.restore(
            query, name, record.base, record.max_catch_up, apart if record.alone else self.incarnation
        )
        member.point = point
        member.skip(registration.gaps)
        group = self.groups[record.group] = member.group
        if group.publishes is not None:
            self._open_derived_sink(registration, group.publishes)
        if record.alone:
            group.since_step = 0 if record.past else registration.step
            group.begins_after = after
        cohort = group.apart.get(point if point is None or after is None else (point, after))
        if cohort is not None:
            cohort.add([member])
            return member, None
        begin = registration.begins_after
        last = None if begin is None else max(begin, self.last_ms.get(record.group, begin))
        cohort = runtime.registry.restore_cohort([member], point, last, after=after)
        if last is not None and group.publishes is not None and any(gap.until > last for gap in registration.gaps):
            runtime.firing.counted(cohort)  # the previous engine has possibly failed before it advanced the stream
        return member, None if point is None else cohort

    def _join_set(self, registration: Registration, ir: ContinuousQuery, runtime: Runtime) -> Member:
        """Add a query set without members. The set's `MemberFeed` adds the members later."""
        record, report, most = registration.record, registration.record.report, registration.record.max_catch_up
        assert report is not None
        restore, parts = runtime.registry.restore_set, buckets_of(record.group, record.parts, self.shares)
        name = str(record.number) if len(parts) == 1 else f"{record.number}/{self.number}"  # one set in each bucket
        member = restore(ir, name, record.base, (RECORD_KEY,), report=report, max_catch_up=most)
        member.point = registration.point
        member.skip(registration.gaps)
        self.groups[record.group] = member.group
        part = SetPart(record.parts, parts[self.number] if record.parts > 1 else (0,))
        self.feeds[record.group] = MemberFeed(registration, member, self.committed.get(record.group), part)
        return member

    def _restore(self, number: int, cohorts: list[Cohort], runtime: Runtime) -> None:
        saved, group, dictionary = self.committed.get(number), self.groups[number], runtime.core.dictionary
        restored = None if saved is None else restore_predecessors(cohorts, saved, dictionary)
        for cohort in cohorts:
            if saved is not None:
                restore_counted(cohort, saved)
            catch_up_counted(cohort)
        group.settle(runtime.registry.pool)
        if restored is not None and number not in self.answers:
            self.answers[number] = answers_of(dictionary)
            self.answers[number].resume(restored, group.cohorts)

    def _open_derived_sink(self, registration: Registration, stream: LiveStream) -> None:
        """Create the sink of a derived stream, and restore the committed state of the sink. The command directly before
        the query's registration declares the stream.
        """
        record = registration.record
        derived_sink = DerivedStreamSink(
            stream.iri, record.number - 1, stream.batch_ms, record.name, registration.until
        )
        saved = self.committed.get(record.group)
        if saved is not None and saved.published is not None:
            derived_sink.restore(saved.published)
        self.derived_sinks[record.group] = derived_sink

    def omit(self, name: str, gap: Gap, runtime: Runtime) -> None:
        """Skip the instants of a gap. If the query publishes a stream, the watermark of the stream advances past these
        instants.
        """
        member, registration = self.members[name]
        member.skip([gap])
        number = registration.record.group
        cohorts = list(member.group.cohorts) if number in self.feeds else [member.cohort]
        started = [each for each in cohorts if each is not None and isinstance(each.trigger, GridTrigger)]
        for cohort in started:
            assert isinstance(cohort.trigger, GridTrigger)
            cohort.trigger.omit(gap)
            runtime.firing.skipped(cohort)
        if not started:
            return
        if all(each.next is None or each.next > gap.until for each in member.group.cohorts):
            self.last_ms[number] = max(gap.until, self.last_ms.get(number, gap.until))
            self.fired.add(number)

    def end(self, name: str, runtime: Runtime) -> None:
        """Remove a stopped query. If the query publishes a stream, the next commit ends the stream."""
        number = self.members[name][1].record.group
        derived_sink = self.derived_sinks.get(number)
        self.dismiss(name, runtime)
        self.dirty = True
        if derived_sink is not None:
            derived_sink.ends = derived_sink.changed = True
            self.ending.append(derived_sink)

    def dismiss(self, name: str, runtime: Runtime) -> None:
        """Remove a query that is stopped, or whose bucket is released."""
        member, registration = self.members.pop(name)
        stream = member.group.publishes
        ended = stream is not None and stream.ended
        runtime.registry.remove(member)
        if stream is not None:
            stream.ended = ended  # a step of the total order ends the stream
        number = registration.record.group
        self.complete.discard(registration.record.number)
        self.derived_sinks.pop(number, None)
        if number in self.feeds:
            self.feeds.pop(number).close()
        if not any(other.record.group == number for _, other in self.members.values()):
            del self.groups[number]
            self.committed.pop(number, None)
            self.answers.pop(number, None)
            self.last_ms.pop(number, None)
            self.fired.discard(number)

    # ---- results
    def add(self, evaluated: Evaluated) -> None:
        """Add evaluations to the next commit."""
        self.pending += evaluated.records
        self.pending_evaluations += evaluated.evaluations
        self.pending_bytes += sum(len(record.value or b"") for record in evaluated.records)

    def committed_pending(self) -> None:
        """Record that all pending records and the progress are committed."""
        for number in self.fired:
            answers = self.feeds[number].answers if number in self.feeds else self.answers.get(number)
            if answers is not None:
                answers.committed()
        self.pending, self.fired, self.dirty = [], set(), False
        self.pending_evaluations = self.pending_bytes = 0

    def report_status(self, names: TopicNames, registration: Registration) -> None:
        """Add to the next commit a record of a query's status: registration point, gaps and error."""
        self.pending.append(self._standing(names, registration))
        self.dirty = True

    def outdated(self, sinks: ResultSinks) -> bool:
        """Return whether the errors of results topics have changed since the last report."""
        return self._errors_at not in (-1, sinks.changes)

    def report_errors(self, names: TopicNames, sinks: ResultSinks) -> None:
        """Add to the next commit the status of each query whose error has changed. A query has an error while its
        results topic or stream refuses its answers.

        The first call adds the status of all queries with a topic or stream of their own, because the previous engine
        has possibly reported errors.
        """
        derived = {number: sink.last_error for number, sink in self.derived_sinks.items() if sink.last_error}
        now = sinks.changes, len(self.members), derived
        if (self._errors_at, self._published_members, self._published_derived) == now:
            return
        self._errors_at, self._published_members, self._published_derived = now
        for _, registration in self.members.values():
            record = registration.record
            error = derived.get(record.group) or sinks.error_of(record)
            known = self.errors.get(record.number, "" if record.topic or record.publishes else None)
            if error != known:
                self.errors[record.number] = error
                self.pending.append(self._standing(names, registration))

    def _standing(self, names: TopicNames, registration: Registration) -> Record:
        record, point, gaps, reason = registration.record, registration.point, registration.gaps, registration.refused
        error = self.errors.get(record.number) if reason is None else reason
        return standing_record(names, record, point, gaps, error, refused=reason is not None)

    def publish(
        self, topics: ClusterTopics, dictionary: native.Dictionary, terms: TermService, sinks: ResultSinks
    ) -> None:
        """Add the batches of derived streams to the pending records. An evaluation that a stream refuses is replaced by
        an error. After a TransientError, nothing is lost; call again.
        """
        for number, derived_sink in self.derived_sinks.items():
            if derived_sink.changed:
                self.pending += derived_sink.records(topics, dictionary, terms)
                self.pending = sinks.without_refused(self.pending, derived_sink)
                self.fired.add(number)
        while self.ending:
            self.pending += self.ending[0].records(topics, dictionary, terms)
            self.pending = sinks.without_refused(self.pending, self.ending[0])
            del self.ending[0]

    def progress(self, runtime: Runtime, step: int) -> BucketState:
        """Return the progress of all groups, as of step `step` of the total order. Updates only groups that were
        evaluated since the last commit.
        """
        for number in self.fired:
            last, dictionary = self.last_ms.get(number), runtime.core.dictionary
            if number in self.feeds:
                self.committed[number] = self.feeds[number].progress(last)
                continue
            answers = self.answers.setdefault(number, answers_of(dictionary))
            progress = progress_of(number, self.groups[number], last, answers, self.complete)
            derived_sink = self.derived_sinks.get(number)
            self.committed[number] = (
                progress if derived_sink is None else replace(progress, published=derived_sink.save())
            )
        return BucketState(self.number, self.epoch, step, tuple(self.committed.values()))


class BucketSet:
    """The open buckets of one engine, by number in `by_number`. `shares`: number of buckets of the cluster."""

    def __init__(self, shares: int, runtime: Runtime, placement: PlacementView, retained: RetainedState) -> None:
        self._shares, self._runtime, self._placement, self._retained = shares, runtime, placement, retained
        self._incarnations = count(1)
        self.by_number: dict[int, Bucket] = {}

    def __iter__(self) -> Iterator[Bucket]:
        return iter(self.by_number.values())

    def next_incarnation(self) -> int:
        """Return a new incarnation number, for a bucket that is opened or drained."""
        return next(self._incarnations)

    def numbers_of(self, query: QueryRegistration) -> Collection[int]:
        """Return the numbers of a query's buckets, whether or not this engine has opened them. Only a query set with
        several parts has several buckets.
        """
        return buckets_of(query.group, query.parts, self._shares)

    def enrolled(self, query: QueryRegistration) -> list[Bucket]:
        """Return the buckets of a query that this engine has opened, and whose queries it has enrolled."""
        buckets = (self.by_number.get(number) for number in self.numbers_of(query))
        return [bucket for bucket in buckets if bucket is not None and bucket.enrolled]

    def member(self, query: QueryRegistration) -> list[Bucket]:
        """Return the buckets of which a query is a member. The list is empty if this engine does not evaluate the
        query.
        """
        buckets = (self.by_number.get(number) for number in self.numbers_of(query))
        return [bucket for bucket in buckets if bucket is not None and str(query.number) in bucket.members]

    def pending(self) -> tuple[int, int]:
        """Return the number of records that wait for a commit, and the size in bytes of those records that contain
        evaluations. Both are totals of all buckets.
        """
        return sum(len(bucket.pending) for bucket in self), sum(bucket.pending_bytes for bucket in self)

    def release(self, number: int) -> None:
        """End the evaluation of a bucket and close its writer. The next engine evaluates uncommitted instants again."""
        bucket = self.by_number.pop(number)
        for name in list(bucket.members):
            bucket.dismiss(name, self._runtime)
        bucket.writer.close()
        self._retained.release(number)

    def lose(self, number: int) -> None:
        """Release a bucket that another engine has opened."""
        opened = self.by_number[number].opened
        self.release(number)
        self._placement.lost(number, opened)
