"""The query-engine service: follows the spine, evaluates the buckets that are its own, commits results with progress.

Every (query, t) is committed exactly once: results and the groups' progress go into one transaction of the bucket's
writer; whoever opens that writer next fences this one and goes on behind the progress (docs/semantics.md §5; ADR 28).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from penstock.engine.oneshot.engine_catalogue import EngineCatalogue
from penstock.engine.oneshot.one_shot import OneShot, Texts
from penstock.errors import UnavailableError
from penstock.log import (
    START,
    FencedError,
    Partition,
    Record,
    RecordRefusedError,
    TransientError,
    UnknownTopicError,
)
from penstock.quarantine import InternalRecords
from penstock.quarantine.kinds import SHARDS
from penstock.remote.stores_graph import StoresGraph
from penstock.replication.heartbeats import HeartbeatSender
from penstock.replication.history import INSERTIONS
from penstock.replication.placement_view import PlacementView
from penstock.replication.progress_log import ProgressView, ProgressWriter
from penstock.replication.retention import Commitments
from penstock.services.query_engine.bucket_progress import terms_of
from penstock.services.query_engine.buckets import Bucket
from penstock.services.query_engine.catch_up import CatchUp
from penstock.services.query_engine.commit_metrics import CommitMetrics
from penstock.services.query_engine.readiness import Preparation, Readiness
from penstock.services.query_engine.result_sinks import ResultSinks
from penstock.term_ids.cluster_terms import ClusterCore, constants_of, one_shot_core
from penstock.wire import QueryRegistration, QueryStop, ShardLoad

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from penstock.engine.answers.result_blocks import Block
    from penstock.engine.standing.groups import Cohort, Group, Member
    from penstock.event_time.gaps import Gap
    from penstock.log import Log, Reader, TransactionalWriter
    from penstock.log.clock import Clock
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.replication.replica import EngineReplica, Registration
    from penstock.replication.sequencer import SequencedRecord, Step
    from penstock.wire import GroupProgress

_POLL = 256  # records of the log taken at once
_COMMIT_AT = 2_000  # results that wait before they are committed in between
_log = logging.getLogger("penstock.query-engine")
CONFIRM_MS = 1_000
"""How often an engine that waits looks whether its buckets are still its own."""
FENCED_MS = 50
"""How often an engine looks whether the next holder of a bucket has opened it."""


@dataclass(slots=True)
class _Opening:
    """A bucket whose progress is being read."""

    writer: TransactionalWriter
    reader: Reader
    epoch: int
    view: ProgressView


class QueryEngine:
    """One engine process. `positions`: from where each partition of the log is read, as the replica's
    checkpoint says.
    """

    def __init__(
        self,
        log: Log,
        topics: ClusterTopics,
        instance: str,
        replica: EngineReplica,
        positions: Sequence[int],
        clock: Clock,
    ) -> None:
        self.topics = topics
        self.replica = replica
        self.buckets: dict[int, Bucket] = {}
        self._log = log
        self._instance = instance
        self.commit_metrics = CommitMetrics(topics.names, clock)
        self.sinks = ResultSinks(log, topics, clock)
        self._fired: dict[Group, int] = {}
        self._published: dict[Group, list[tuple[int | None, Block | None, int]]] = {}
        replica.runtime.firing.listener = self._record_fired
        replica.runtime.firing.derived_sink = self._record_published
        replica.runtime.evaluator.as_of = lambda group, time: replica.history.bounds(group.by_iri, time)
        replica.omit = self._omit
        self._catch_up = CatchUp(replica.runtime, clock)
        self._texts = Texts(replica.runtime.core.limits)
        core = replica.runtime.core
        assert isinstance(core, ClusterCore)
        self.one_shot = OneShot(one_shot_core(core), replica.runtime.streams, self._texts)
        self._applying: Iterator[UnavailableError | None] | None = None
        partitions = [Partition(topics.names.shards, i) for i in range(topics.shards)]
        self._reader = log.reader(dict(zip(partitions, positions, strict=True)))
        self._commitments = Commitments(log, topics)
        self._records = InternalRecords(log, topics.names)
        self._placement = PlacementView(log, topics, clock)
        self._clock, self._confirmed_ms = clock, clock.now_ms()
        store = replica.runtime.core.store
        self.graph = store if isinstance(store, StoresGraph) else None  # where stores have the stored graph
        self._heartbeat_sender = HeartbeatSender(log, topics, clock, "query-engine", instance, ready=False)
        self._opening: dict[int, _Opening] = {}
        self._progress: dict[int, ProgressWriter] = {}  # of the buckets
        self._readiness = Readiness(self._reader, clock, self.graph)
        self._preparation = Preparation(clock, lambda record: self._learn_constants([record]))
        self._incarnations = count(1)
        self.last_error: str | None = None  # why the last step came to nothing
        self.leaving = False
        self.progress: Callable[[], None] = lambda: None  # called for each evaluation; what it raises ends the engine
        self.interrupted: Callable[[], bool] = lambda: False  # whether steps are to be short
        self._cut = False  # the last step has left steps of the log undone
        replica.hold = self._apply_retention_floor
        self._apply_retention_floor()

    def step(self, timeout_s: float = 0.0) -> bool:
        """Do what there is to do now; False where that was nothing. TransientErrors are met by coming back later:
        `trouble` tells of them. The heart goes on meanwhile: nobody else would fare better.
        """
        self._beat()
        self.last_error = None
        try:
            if self.graph is not None:
                self.graph.links.place(self._placement.refresh())
            if self._catch_up.settled:
                self._commit()
            self._go_on()
            moved = self._placed()
            moved |= self._learn()
            moved |= self._read(0.0 if self._catch_up else timeout_s)
            moved |= self._go_on_late()
            self._commit()
            if self.replica.held is None and not self._catch_up:
                self.commit_metrics.idle()
        except UnavailableError as error:
            self.last_error = str(error)
            return self._confirm()
        return moved

    def close(self) -> None:
        """Let go; what is not committed is done again by whoever has the buckets next."""
        for number in [*self.buckets, *self._opening]:
            self._release_bucket(number)
        self._heartbeat_sender.close()
        self._reader.close()
        self._commitments.close()
        if self.graph is not None:
            self.graph.links.close()

    def _beat(self) -> None:
        self._heartbeat_sender.beat(tuple(self.buckets), ready=self._readiness.ready)

    def send_heartbeats(self) -> None:
        """Send heartbeats from a thread, whatever there is to do."""
        self._heartbeat_sender.start()

    def answer_at(self, url: str) -> None:
        """Tell others where one-shot queries are answered here."""
        self._heartbeat_sender.url = url

    def positions(self) -> Sequence[int]:
        """Return where a restart from a checkpoint made now reads on."""
        return self.replica.sequencer.positions()

    def read_to(self) -> dict[Partition, int]:
        """Return from where each partition is read next."""
        return self._reader.positions()

    def caught_up(self) -> bool:
        """Whether everything in the log has been applied and committed (as it was at the last poll)."""
        return (
            self._reader.caught_up()
            and self.last_error is None  # who waits has not caught up, whatever was read
            and not self.replica.runtime.schedule.unfinished
            and not self._catch_up
            and self.replica.held is None
            and not self._opening
            and not any(bucket.pending for bucket in self.buckets.values())
        )

    # ---- which buckets
    def _placed(self) -> bool:
        mine = self._placement.buckets_of(self._instance)
        if mine is None:
            return False
        for number in self._opening.keys() - mine:
            self._release_bucket(number)
        moved = self._wait_to_be_fenced(self.buckets.keys() - mine)
        gained = [] if self.leaving else sorted(mine - self.buckets.keys() - self._opening.keys())
        self._preparation.keep(gained)
        for number in gained:
            if self._preparation.step(number, self._standing_in(number)):
                self._open(number)
        return self._opened() or bool(gained) or moved

    def leave(self) -> None:
        """Ask to be replaced. Buckets are evaluated here until whoever gets them has opened them."""
        self.leaving = True
        self._heartbeat_sender.leave()
        self._beat()
        for number in list(self._opening):
            self._release_bucket(number)

    @property
    def left(self) -> bool:
        """Whether nothing is evaluated here any more."""
        return not self.buckets

    @property
    def holds_all(self) -> bool:
        """Whether the placement gives every bucket that is evaluated here to this engine still."""
        mine = self._placement.buckets_of(self._instance)
        return mine is not None and self.buckets.keys() <= mine

    def _wait_to_be_fenced(self, gone: Collection[int]) -> bool:
        """Evaluate buckets that were placed elsewhere until their next holder has opened them; find out whether it has,
        where nothing is committed that would show it.
        """
        return bool(gone) and self._confirm(FENCED_MS, gone)

    def _standing_in(self, number: int) -> Iterator[QueryRegistration]:
        records = (each.record for each in self.replica.registrations.values() if each.stopped is None)
        return (record for record in records if self._bucket_of(record) == number)

    def _open(self, number: int) -> None:
        """Fence whoever had the bucket; from now on nobody else writes to its progress topic, so it has an end."""
        writer = self._log.transactional(f"{self.topics.names.prefix}.bucket.{number}")
        reader = self._log.reader({Partition(self.topics.progress, number): START})
        view = ProgressView(self._records, states=True)
        self._opening[number] = _Opening(writer, reader, self._placement.epoch, view)

    def _opened(self) -> bool:
        """Take in the buckets whose progress has been read to its end."""
        for number, opening in list(self._opening.items()):
            for message in opening.reader.poll(_POLL):
                opening.view.feed(message)
            if not opening.reader.caught_up():
                continue
            del self._opening[number]
            opening.reader.close()
            saved = opening.view.whole()
            bucket = self.buckets[number] = Bucket(number, opening.writer, saved, next(self._incarnations))
            self._progress[number] = ProgressWriter(self.topics.progress, number, opening.view.parts())
            bucket.opened = opening.epoch
            core = self.replica.runtime.core
            core.attempt = max(core.attempt, bucket.epoch)
            self._record_progress(number, bucket.committed, bucket.waits_for)
            self._enrol_all(bucket)
            return True
        return False

    def _enrol_all(self, bucket: Bucket) -> None:
        """Take in the queries of a bucket, as soon as this replica has come as far as the one that left it."""
        if not bucket.enrolled and self.replica.history.step >= bucket.waits_for:
            mine = [r for r in self.replica.registrations.values() if self._bucket_of(r.record) == bucket.number]
            standing = [registration for registration in mine if registration.stopped is None]
            late = [r for r in mine if r.stopped is not None and r.stopped > bucket.waits_for]
            self._learn_constants(registration.record for registration in (*late, *standing))
            self.replica.terms.look_up(t for progress in bucket.committed.values() for t in terms_of(progress))
            over = self._catch_up.patience()
            for registration in late:
                self._finish(bucket, registration, over)
            bucket.enrolled = True
            for registration in standing:
                if max(registration.step, registration.pointed or 0, registration.leapt or 0) > bucket.waits_for:
                    bucket.tell(self.topics.names, registration)
            self._enrol(bucket, standing)

    def _finish(self, bucket: Bucket, registration: Registration, over: Callable[[], bool]) -> None:
        """Evaluate what was due before a query was stopped, and that its last engine has not committed; once. What is
        left when the time is `over` is not evaluated.
        """
        if registration.record.number in bucket.finished:
            return
        draining = Bucket(bucket.number, bucket.writer, bucket.saved, next(self._incarnations))
        draining.enrol([registration], self.replica.runtime, self._texts)
        member = draining.members[str(registration.record.number)][0]
        try:
            self._run(draining)
            self._catch_up.finish(member.group, over)
        except UnavailableError:  # nothing of it counts: it is done from its beginning later
            self._published.pop(member.group, None)
            self._fired.pop(member.group, None)
            draining.dismiss(member.name, self.replica.runtime)
            raise
        bucket.finished.add(registration.record.number)
        for given in self._published.pop(member.group, ()):
            draining.derived_sinks[registration.record.group].take(*given)
        bucket.pending += self._results(registration, member)
        bucket.dirty = True
        self._fired.clear()
        draining.end(member.name, self.replica.runtime)
        bucket.ending += draining.ending

    def _release_bucket(self, number: int) -> None:
        opening = self._opening.pop(number, None)
        if opening is not None:
            opening.reader.close()
            opening.writer.close()
            return
        bucket = self.buckets.pop(number)
        for name in list(bucket.members):
            bucket.dismiss(name, self.replica.runtime)
        bucket.writer.close()
        self._commitments.release(number)
        self._apply_retention_floor()

    def _bucket_of(self, record: QueryRegistration) -> int:
        return record.group % self.topics.buckets

    def _enrol(self, bucket: Bucket, registrations: Iterable[Registration]) -> None:
        chosen = sorted(registrations, key=lambda registration: registration.record.number)
        bucket.enrol(chosen, self.replica.runtime, self._texts)
        self._run(bucket)
        self._collect()

    def _run(self, bucket: Bucket) -> None:
        """Fire what is due of a bucket's queries: this replica may be ahead of where they were left."""
        streams = dict.fromkeys(s for group in bucket.groups.values() for s in group.streams)
        self.replica.runtime.schedule.run(list(streams), self.replica.runtime.firing)
        self.replica.runtime.firing.tidy()

    # ---- the log
    def _read(self, timeout_s: float) -> bool:
        waits = self.replica.held is not None or self._cut or self._catch_up.full()
        messages = [] if waits else self._reader.poll(_POLL, timeout_s)
        self.commit_metrics.read(messages)
        for message in messages:
            part = self._records.read(message, SHARDS)
            if part is not None:
                self.replica.sequencer.take(message.partition, message.offset, part)
        moved, over, self._cut = bool(messages), self._catch_up.slice_over(), False
        while (step := self.replica.held or self.replica.sequencer.next()) is not None:
            self.replica.held = step
            if self._applying is None:
                if not self._commitments.ready(self.replica, step):
                    break
                self.replica.prepare(step)
                self._prepare(step[0])
                self._applying = self.replica.apply(step)
            self._apply(step, self._applying)
            moved = True
            if self._applying is not None:
                break
            if self.interrupted() and over():
                self._cut = True
                return moved
        if self.replica.held is None:
            self._readiness.look(messages, busy=bool(self.buckets))
        return moved

    def _prepare(self, first: SequencedRecord) -> None:
        """Learn the constants of a query that is to be enrolled. AwayError: nothing has changed."""
        if isinstance(first, QueryRegistration):
            bucket = self.buckets.get(self._bucket_of(first))
            if bucket is not None and bucket.enrolled:
                self._learn_constants([first])

    def _learn_constants(self, records: Iterable[QueryRegistration]) -> None:
        """Have the cluster's ids given to constants before a query is planned: half planned, it could not wait."""
        runtime, terms = self.replica.runtime, self.replica.terms
        catalogue = EngineCatalogue(runtime.core, runtime.streams)
        found = (
            constants_of(self._texts.parse(record.text, record.base, accepted=True), catalogue) for record in records
        )
        terms.learn(term for constants in found for term in constants)

    def _go_on(self) -> None:
        """Go on with what an AwayError has interrupted, before anything is committed: in half a pass, some cohorts have
        gone beyond the results that were collected, and others of their group have not.
        """
        runtime = self.replica.runtime
        if runtime.schedule.unfinished:  # also where a step has been applied in part: its pass may be another one
            runtime.progress(())
            self._collect()
        if not self._catch_up.settled:
            self._go_on_late()
        if self._applying is not None and self.replica.held is not None:
            self._apply(self.replica.held, self._applying)
        for bucket in self.buckets.values():
            self._enrol_all(bucket)

    def _go_on_late(self) -> bool:
        """Evaluate a slice of what is due of queries that are behind; False where none is."""
        found = self._catch_up.slice()
        if found:
            self._collect()
        return found

    def _apply(self, step: Step, applying: Iterator[UnavailableError | None]) -> None:
        """Apply a step, or what is left of it. AwayError: an evaluation waits, and the rest with it."""
        first = step[0]
        if isinstance(first, QueryStop) and (known := self.replica.standing(first.name)) is not None:
            bucket = self.buckets.get(self._bucket_of(known.record))
            if bucket is not None and (name := str(known.record.number)) in bucket.members:
                self._catch_up.finish(bucket.members[name][0].group, self._catch_up.patience())
                self._collect()
                bucket.end(name, self.replica.runtime)
        for error in applying:
            if error is not None:
                raise error
            self._tell()
            self._collect()
            if isinstance(first, ShardLoad):
                return  # the heart beats between two files
            if sum(len(bucket.pending) for bucket in self.buckets.values()) >= _COMMIT_AT:
                self._commit_or_wait()
        self._applying = self.replica.held = None
        if isinstance(first, QueryRegistration):
            bucket = self.buckets.get(self._bucket_of(first))
            if bucket is not None and bucket.enrolled:
                self._enrol(bucket, [self.replica.registrations[first.number]])
        for waiting in self.buckets.values():
            self._enrol_all(waiting)
        self.replica.tidy()

    def _tell(self) -> None:
        """Tell the registration points of queries in this engine's buckets, with the next commit."""
        news, self.replica.news = self.replica.news, []
        for registration in news:
            bucket = self.buckets.get(self._bucket_of(registration.record))
            if bucket is not None and bucket.enrolled and registration.stopped is None:
                bucket.tell(self.topics.names, registration)

    def _omit(self, registration: Registration, gap: Gap) -> None:
        """Leave out the instants of a gap, where the query is evaluated here."""
        bucket = self.buckets.get(self._bucket_of(registration.record))
        if bucket is not None and (name := str(registration.record.number)) in bucket.members:
            bucket.omit(name, gap, self.replica.runtime)
            self.commit_metrics.omitted(registration.record.name, gap)

    # ---- results
    def _record_fired(self, group: Group, time: int) -> None:
        self._heartbeat_sender.progress()
        self.progress()
        self._fired[group] = max(time, self._fired.get(group, time))

    def _record_published(self, cohort: Cohort, block: Block | None, following: int) -> None:
        time = None if block is None else block.reading.time
        self._published.setdefault(cohort.group, []).append((time, block, following))

    def _collect(self) -> None:
        """Take the evaluations of what has fired."""
        fired, self._fired = self._fired, {}
        published, self._published = self._published, {}
        for bucket in self.buckets.values():
            for number, group in bucket.groups.items():
                for given in published.get(group, ()):
                    bucket.derived_sinks[number].take(*given)
                if group in fired:
                    bucket.last_ms[number] = max(fired[group], bucket.last_ms.get(number, fired[group]))
                    bucket.fired.add(number)
                    bucket.pending += [
                        r
                        for cohort in group.cohorts
                        for m in cohort
                        for r in self._results(bucket.members[m.name][1], m)
                    ]

    def _results(self, registration: Registration, member: Member) -> list[Record]:
        record, until = registration.record, registration.until
        evaluations = member.result_queue.take()
        return [self.sinks.record(record, e) for e in evaluations if until is None or e.time <= until]

    def _commit_or_wait(self) -> None:
        """Commit in the middle of a step; a transient error leaves the results pending, which is bounded by
        the step.
        """
        try:
            self._commit()
        except TransientError:
            return

    def _commit(self) -> None:
        """Commit each bucket's results with its progress. A bucket that another engine has opened is let go.

        One that is not enrolled waits: its progress would say that all queries stopped by now are done.
        """
        for number, bucket in list(self.buckets.items()):
            if not bucket.enrolled or not (bucket.unwritten or bucket.outdated(self.sinks)):
                continue
            bucket.publish(self.topics, self.replica.runtime.core.dictionary, self.replica.terms.service, self.sinks)
            progress = bucket.progress(self.replica.runtime, self.replica.history.step)
            records = self._progress[number].records(progress, bucket.fired)
            try:
                if not self._write(bucket, records):
                    self._release_bucket(number)  # what was not committed is evaluated again once it is open again
                    continue
            except FencedError:
                self._release_bucket(number)
                self._placement.lost(number, bucket.opened)
                continue
            self.commit_metrics.committed(bucket.pending)
            self.sinks.committed(bucket.pending)
            self._progress[number].committed()
            bucket.said = progress
            bucket.pending, bucket.fired, bucket.dirty = [], set(), False
            self._record_progress(number, bucket.committed, progress.step)

    def _write(self, bucket: Bucket, progress: Sequence[Record]) -> bool:
        """Commit what a bucket has pending. Errors replace what results topics refuse. False where a refusal has ended
        the writer.
        """
        while True:
            bucket.tell_errors(self.topics.names, self.sinks)
            try:
                bucket.writer.commit([*bucket.pending, *progress])
            except RecordRefusedError as error:
                blamed = self.sinks.refuse(error, bucket.pending)
                if not blamed and not self._passes(error):
                    raise
                _log.warning("results are refused: %s", error)
                if error.over:
                    return False
                if not blamed:
                    raise TransientError(f"results are refused: {error}") from error
                bucket.pending = [self.sinks.replaced(record) for record in bucket.pending]
            else:
                return True

    def _passes(self, error: RecordRefusedError) -> bool:
        """Whether to retry after a refusal that no results topic of a query explains: either the refusing topic is
        unknown, because a topic was just deleted or created, or the cluster's results topic was deleted. The latter is
        created again.
        """
        if error.topic == self.topics.names.results and isinstance(error, UnknownTopicError):
            self._log.create(self.topics.all())
            return True
        return not error.topic

    def _confirm(self, every_ms: int = CONFIRM_MS, buckets: Collection[int] | None = None) -> bool:
        """Find out whether buckets (None: all) are still this engine's, by committing again what they have committed;
        True where one was released.

        Who waits commits nothing, and hence does not hear that it was fenced: it would wait for ever for a graph that
        stores keep for nobody any more.
        """
        now_ms, held = self._clock.now_ms(), len(self.buckets)
        if now_ms < self._confirmed_ms + every_ms:
            return False
        self._confirmed_ms = now_ms
        for number in list(self.buckets if buckets is None else buckets):
            bucket = self.buckets[number]
            record = self._progress[number].confirmation(bucket.said)
            try:
                bucket.writer.commit([record])
            except FencedError:
                self._release_bucket(number)
                self._placement.lost(number, bucket.opened)
            except TransientError:
                break
        return len(self.buckets) < held

    # ---- what others still need
    def _learn(self) -> bool:
        """Take in what the buckets of other engines have committed."""
        learnt = self._commitments.learn(self.buckets)
        if learnt:
            self._apply_retention_floor()
        return learnt

    def _record_progress(self, number: int, committed: Mapping[int, GroupProgress], step: int) -> None:
        self._commitments.record(number, committed, step)
        self._apply_retention_floor()

    def _apply_retention_floor(self) -> None:
        """Keep, for every query of the cluster, what whoever continues it from its last commit will look at."""
        self._commitments.forget_stopped(self.replica)
        floor, runtime = self._commitments.retention_floor(self.replica), self.replica.runtime
        for stream in runtime.streams:
            stream.retained_from = floor.retained.get(stream.iri)
            stream.evaluated_from = floor.evaluated.get(stream.iri)
        runtime.core.store.release(INSERTIONS, floor.insertions)
        for track in self.replica.history.prune(floor.step):
            runtime.core.store.release(track.number, track.batch(track.closed[-1]))
