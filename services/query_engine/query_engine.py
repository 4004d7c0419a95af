"""The query-engine service: follows the total order, evaluates the buckets that the placement assigns to this engine,
and commits results with progress.

Each evaluation of a query at an instant is committed exactly once. For this, one transaction of the bucket's writer
contains the results together with the progress of the queries' groups. The next engine that opens the writer fences
this engine, and continues after the committed progress (docs/semantics.md §5, ADR 28).

| module | part |
| --- | --- |
| `bucket_assignment.py` | opens and releases buckets as the placement requires |
| `enrolment.py` | makes queries members of open buckets |
| `step_applier.py` | reads the log, applies its steps |
| `result_collector.py` | makes records of evaluations |
| `bucket_commits.py` | one transaction per bucket |
| `sets/` | query sets: their members from topics |
| `retained_state.py` | retains the data that the cluster's queries can still read |
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.engine.oneshot.one_shot import OneShot
from penstock.engine.oneshot.texts import Texts
from penstock.engine.standing.query_status import QueryStatus, part_order, status_of
from penstock.errors import UnavailableError
from penstock.log import Partition
from penstock.quarantine import InternalRecords
from penstock.replication.heartbeats import BEAT_MS, HeartbeatSender
from penstock.replication.placement_view import PlacementView
from penstock.services.query_engine.bucket_assignment import BucketAssignment
from penstock.services.query_engine.bucket_commits import BucketCommits
from penstock.services.query_engine.buckets import BucketSet
from penstock.services.query_engine.catch_up import CatchUp
from penstock.services.query_engine.enrolment import Enrolment
from penstock.services.query_engine.measures.commit_metrics import CommitMetrics
from penstock.services.query_engine.measures.load_meter import LoadMeter
from penstock.services.query_engine.readiness import Readiness
from penstock.services.query_engine.result_collector import ResultCollector
from penstock.services.query_engine.result_sinks import ResultSinks
from penstock.services.query_engine.retained_state import RetainedState
from penstock.services.query_engine.sets.member_feeds import MemberFeeds
from penstock.services.query_engine.sets.member_lists import MemberLists
from penstock.services.query_engine.step_applier import StepApplier
from penstock.term_ids.cluster_terms import one_shot_core
from penstock.updates.evaluation import UpdateEvaluator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from penstock.log import Log
    from penstock.log.clock import Clock
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.services.query_engine.replica_checkpoint import ReplicaFactory


class QueryEngine:
    """One engine process. `replicas` creates its replica.

    The engine calls `progress` for each evaluation; an exception that `progress` raises ends the engine. `interrupted`
    returns whether the process is stopping; steps are then short. `timer`: see `LoadMeter`. `load_directory`: see
    `UpdateEvaluator`. `last_error`: the error of the last step if the step ended early because another process was
    unreachable, otherwise None. `reports_floors`: whether heartbeats contain the times up to which no query can use
    tuples, so that terms can be removed (ADR 50). `graph`: the stored graph if stores hold it, otherwise None.
    """

    def __init__(
        self,
        log: Log,
        topics: ClusterTopics,
        instance: str,
        replicas: ReplicaFactory,
        clock: Clock,
        progress: Callable[[], None] = lambda: None,
        interrupted: Callable[[], bool] = lambda: False,
        timer: Callable[[], int] = time.perf_counter_ns,
        load_directory: Path | None = None,
        *,
        reports_floors: bool = False,
    ) -> None:
        self.topics, self._progress, self._interrupted = topics, progress, interrupted
        self.last_error: str | None = None
        self.leaving = False
        self.commit_metrics = metrics = CommitMetrics(clock)
        self.sinks = sinks = ResultSinks(log, topics, clock)
        self.meter = LoadMeter(clock, timer)
        collector = ResultCollector(sinks, self.meter, self._record_evaluation)
        replica, positions, self.graph = replicas.make(collector)
        self.replica = replica
        runtime = replica.runtime
        texts = Texts(replica.core.limits)
        core = one_shot_core(replica.core)
        self.one_shot = OneShot(core, runtime.streams, texts)
        self.updates = UpdateEvaluator(core, runtime.streams, texts, lambda: replica.insertions, load_directory)
        partitions = [Partition(topics.names.shards, i) for i in range(topics.shards)]
        self._reader = log.reader(dict(zip(partitions, positions, strict=True)))
        self._retained = retained = RetainedState(log, topics, replica)
        records = InternalRecords(log, topics.names)
        self._placement = placement = PlacementView(log, topics, clock)
        self._heartbeat_sender = HeartbeatSender(log, topics, clock, "query-engine", instance, ready=False)
        self._clock = clock
        self._floors: dict[str, int] | None = {} if reports_floors else None
        self._floors_ms = 0  # time of the next computation of `_floors`
        self._readiness = Readiness(self._reader, clock, self.graph)
        self._catch_up = catch_up = CatchUp(runtime, clock)
        buckets = BucketSet(topics.buckets, runtime, placement, retained)
        self.buckets = buckets.by_number
        self.enrolment = enrolment = Enrolment(topics.names, replica, texts, buckets, collector, catch_up, metrics)
        self.commits = commits = BucketCommits(log, topics, clock, replica, buckets, sinks, metrics, retained)
        self.member_lists = MemberLists(self.buckets)
        self.feeds = MemberFeeds(log, topics.names, clock, replica, buckets, collector)
        self.assignment = BucketAssignment(
            log, topics, clock, instance, records, placement, replica, buckets, commits, enrolment, retained
        )
        self._steps = StepApplier(
            self._reader,
            records,
            replica,
            buckets,
            enrolment,
            collector,
            catch_up,
            commits,
            retained,
            self._readiness,
            metrics,
        )
        retained.apply_floor()

    def step(self, timeout_s: float = 0.0) -> bool:
        """Perform one service step. Waits at most `timeout_s` seconds for records. Returns False if there was nothing
        to do. After a TransientError, call again later.

        If an evaluation or command cannot reach another process, the step ends and `last_error` has the reason. The
        next step continues the evaluation or command. The engine still sends heartbeats, so that its buckets are not
        moved. Another engine would have to wait for the same process.
        """
        self._beat()
        self.member_lists.step()
        self.last_error = None
        try:
            if self.graph is not None:
                self.graph.links.place(self._placement.refresh())
            if self._catch_up.settled:
                self.commits.commit()
            self._steps.resume()
            moved = self.assignment.update(gains=not self.leaving)
            moved |= self._retained.learn(self.buckets)
            moved |= self.feeds.step()
            moved |= self._steps.read(0.0 if self._catch_up else timeout_s, self._interrupted)
            if self._catch_up and self._catch_up.settled:
                if any(bucket.pending_evaluations for bucket in self.buckets.values()):
                    self._catch_up.record_live()
                self.commits.commit()  # the results of live queries do not wait for the backlog
            moved |= self._steps.catch_up()
            self.commits.commit()
            if self.replica.held is None and not self._catch_up:
                self.commit_metrics.idle()
        except UnavailableError as error:
            self.last_error = str(error)
            return self.commits.confirm()
        return moved

    def close(self) -> None:
        """Release all buckets and close all connections. The next engines of the buckets evaluate uncommitted instants
        again.
        """
        self.assignment.close()
        self._heartbeat_sender.close()
        self._reader.close()
        self._retained.close()
        if self.graph is not None:
            self.graph.links.close()

    # ---- heartbeats
    def _beat(self) -> None:
        if self._floors is not None and (now_ms := self._clock.now_ms()) >= self._floors_ms:
            self._floors, self._floors_ms = self._retained.floors(), now_ms + BEAT_MS
        loads = self.meter.loads(self.buckets)
        self._heartbeat_sender.beat(tuple(self.buckets), ready=self._readiness.ready, loads=loads, floors=self._floors)

    def _record_evaluation(self) -> None:
        self._heartbeat_sender.progress()
        self._progress()

    def send_heartbeats(self) -> None:
        """Send heartbeats from a thread, independently of the duration of steps."""
        self._heartbeat_sender.start()

    def answer_at(self, url: str) -> None:
        """Announce, in heartbeats, the URL at which this engine answers one-shot queries."""
        self._heartbeat_sender.url = url

    def status(self, name: str) -> QueryStatus | None:
        """Return the status of a query, or None if this engine does not evaluate the query. Any thread can call this
        method.
        """
        found = [
            replace(status_of(member), name=name)  # the name of a member is the query's number
            for bucket in list(self.buckets.values())
            for member, registration in list(bucket.members.values())
            if registration.record.name == name
        ]
        return min(found, key=lambda status: part_order(status.state, status.next), default=None)

    # ---- positions
    def positions(self) -> Sequence[int]:
        """Return an offset for each partition of the shards topic. A restart resumes at these offsets if a checkpoint
        is written now.
        """
        return self.replica.sequencer.positions()

    def read_to(self) -> dict[Partition, int]:
        """Return the offset of the next record to read, for each partition of the shards topic."""
        return self._reader.positions()

    def caught_up(self) -> bool:
        """Return whether every record that the log contained at the last poll is applied, and all results are
        committed.
        """
        return (
            self._reader.caught_up()
            and self.last_error is None  # an engine that waits has not caught up, even if it has read everything
            and not self.replica.runtime.schedule.unfinished
            and not self._catch_up
            and self.replica.held is None
            and not self.assignment.opening
            and not self.feeds.busy
            and not any(bucket.pending for bucket in self.buckets.values())
        )

    # ---- leaving
    def leave(self) -> None:
        """Announce the shutdown. This engine evaluates each of its buckets until another engine has opened the
        bucket.
        """
        self.leaving = True
        self._heartbeat_sender.leave()
        self._beat()
        self.assignment.cancel()

    @property
    def left(self) -> bool:
        """Whether this engine has no buckets any more."""
        return not self.buckets

    @property
    def holds_all(self) -> bool:
        """Whether the placement still assigns to this engine every bucket that the engine evaluates."""
        return self.assignment.holds_all
