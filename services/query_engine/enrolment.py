"""Enrolment: makes the replica's queries members of open buckets, and removes stopped queries from the buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.oneshot.engine_catalogue import EngineCatalogue
from penstock.errors import UnavailableError
from penstock.services.query_engine.progress.saved_answers import terms_of
from penstock.term_ids.cluster_terms import constants_of
from penstock.wire import QueryRegistration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from penstock.engine.oneshot.texts import Texts
    from penstock.event_time.gaps import Gap
    from penstock.log.topics import TopicNames
    from penstock.replication.registration import Registration
    from penstock.replication.replica import EngineReplica
    from penstock.replication.sequencer import SequencedRecord
    from penstock.services.query_engine.buckets import Bucket, BucketSet
    from penstock.services.query_engine.catch_up import CatchUp
    from penstock.services.query_engine.measures.commit_metrics import CommitMetrics
    from penstock.services.query_engine.result_collector import ResultCollector


class Enrolment:
    """Enrols the queries of an engine's buckets. If a method raises UnavailableError, call the method again later."""

    def __init__(
        self,
        names: TopicNames,
        replica: EngineReplica,
        texts: Texts,
        buckets: BucketSet,
        collector: ResultCollector,
        catch_up: CatchUp,
        metrics: CommitMetrics,
    ) -> None:
        self._names, self._replica, self._texts = names, replica, texts
        self._buckets, self._collector, self._catch_up, self._metrics = buckets, collector, catch_up, metrics

    # ---- queries of a bucket that was opened
    def standing_in(self, number: int) -> Iterator[QueryRegistration]:
        """Yield the registrations of a bucket's queries that are not stopped."""
        records = (each.record for each in self._replica.registrations.values() if each.stopped is None)
        return (record for record in records if number in self._buckets.numbers_of(record))

    def enrol_waiting(self) -> None:
        """Enrol the queries of open buckets whose enrolment had to wait. A bucket waits until the replica has reached
        the step that the bucket's committed progress names.
        """
        for bucket in self._buckets:
            self.enrol_queries_of(bucket)

    def enrol_queries_of(self, bucket: Bucket) -> None:
        """Enrol the queries of a bucket. Does nothing if the queries are already enrolled, or if the replica has not
        reached the step of the bucket's committed progress.
        """
        if not bucket.enrolled and self._replica.history.step >= bucket.waits_for:
            registrations = self._replica.registrations.values()
            mine = [r for r in registrations if bucket.number in self._buckets.numbers_of(r.record)]
            standing = [registration for registration in mine if registration.stopped is None]
            late = [r for r in mine if r.stopped is not None and r.stopped > bucket.waits_for]
            self.learn_constants(registration.record for registration in (*late, *standing))
            self._replica.terms.look_up(t for progress in bucket.committed.values() for t in terms_of(progress))
            over = self._catch_up.patience()
            for registration in late:
                if registration.record.report is None:
                    self.finish(bucket, registration, _never if registration.replaced else over)
                else:
                    bucket.dirty = True  # a stopped query set is not evaluated any more
            bucket.enrolled = True
            for registration in standing:
                if max(registration.step, registration.pointed or 0, registration.leapt or 0) > bucket.waits_for:
                    bucket.report_status(self._names, registration)
            self._enrol(bucket, standing)

    def finish(self, bucket: Bucket, registration: Registration, over: Callable[[], bool]) -> None:
        """Evaluate a stopped query at each uncommitted instant that was due before the stop. Does nothing if an earlier
        call has completed this evaluation.

        Once `over` returns True, the remaining instants are skipped.
        """
        if registration.record.number in bucket.finished:
            return
        runtime = self._replica.runtime
        draining = bucket.draining(self._buckets.next_incarnation())
        draining.enrol([registration], runtime, self._texts)
        member = draining.members[str(registration.record.number)][0]
        try:
            self._fire_due(draining)
            self._catch_up.finish(member.group, over)
        except UnavailableError:  # discard everything: a later call evaluates all of these instants again
            self._collector.discard(member.group)
            draining.dismiss(member.name, runtime)
            raise
        bucket.finished.add(registration.record.number)
        self._collector.drain(bucket, draining, registration, member)
        bucket.dirty = True
        draining.end(member.name, runtime)
        bucket.ending += draining.ending

    def _enrol(self, bucket: Bucket, registrations: Iterable[Registration]) -> None:
        accepted = (registration for registration in registrations if registration.refused is None)
        chosen = sorted(accepted, key=lambda registration: registration.record.number)
        bucket.enrol(chosen, self._replica.runtime, self._texts)
        self._fire_due(bucket)
        self._collector.collect(self._buckets)

    def _fire_due(self, bucket: Bucket) -> None:
        """Evaluate the due instants of a bucket's queries. Some instants can be due, because this replica can be ahead
        of the bucket's last commit.
        """
        runtime = self._replica.runtime
        streams = dict.fromkeys(s for group in bucket.groups.values() for s in group.streams)
        runtime.schedule.run(list(streams), runtime.firing)
        runtime.firing.tidy()

    # ---- steps of the log
    def prepare(self, first: SequencedRecord) -> None:
        """If the next step registers a query of an enrolled bucket, fetch the ids of the query's constants. `first`:
        the first record of the step. After an UnavailableError, nothing has changed.
        """
        if isinstance(first, QueryRegistration) and self._buckets.enrolled(first):
            self.learn_constants([first])

    def learn_constants(self, records: Iterable[QueryRegistration]) -> None:
        """Fetch the global ids of the constants of queries. Call before planning, because planning cannot wait for the
        dictionary service.
        """
        runtime, terms = self._replica.runtime, self._replica.terms
        catalogue = EngineCatalogue(runtime.core, runtime.streams)
        found = (
            constants_of(self._texts.parse(record.text, record.base, accepted=True), catalogue) for record in records
        )
        terms.learn(term for constants in found for term in constants)

    def add(self, record: QueryRegistration) -> None:
        """Enrol a query that a step has registered, if this engine has enrolled the other queries of its bucket."""
        for bucket in self._buckets.enrolled(record):
            self._enrol(bucket, [self._replica.registrations[record.number]])

    def end(self, name: str) -> None:
        """Remove a query that the next step stops, if the query is a member here. Before the removal, the engine
        evaluates due instants of the query for at most FINISH_MS.
        """
        if (known := self._replica.registrations.standing(name)) is not None:
            self._end(known, self._catch_up.patience())

    def end_replaced(self, number: int) -> None:
        """Remove a query that the next step replaces, if the query is a member here. Before the removal, the engine
        evaluates all due instants of the query. The new query begins after these instants, so no instant is skipped.
        """
        if (known := self._replica.registrations.get(number)) is not None:
            self._end(known, _never)

    def _end(self, known: Registration, over: Callable[[], bool]) -> None:
        number = str(known.record.number)
        for bucket in self._buckets.member(known.record):
            self._catch_up.finish(bucket.members[number][0].group, over)
            self._collector.collect(self._buckets)
            bucket.end(number, self._replica.runtime)

    def publish_news(self) -> None:
        """Add to the next commit the status of each enrolled query that has a new registration point or a new gap."""
        news, self._replica.news = self._replica.news, []
        for registration in news:
            if registration.stopped is None:
                for bucket in self._buckets.enrolled(registration.record):
                    bucket.report_status(self._names, registration)

    def omit(self, registration: Registration, gap: Gap) -> None:
        """Skip the instants of a query's new gap, if the query is a member here."""
        buckets = self._buckets.member(registration.record)
        for bucket in buckets:
            bucket.omit(str(registration.record.number), gap, self._replica.runtime)
        if buckets:
            self._metrics.omitted(registration.record.name, gap)


def _never() -> bool:
    return False
