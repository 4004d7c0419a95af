"""Reads the shards topic, applies the steps of the total order to the replica, collects the results of evaluations, and
evaluates the backlog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.wire import QueryRegistration, QueryStop, ShardLoad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.errors import UnavailableError
    from penstock.event_time.gaps import Gap
    from penstock.log import Reader
    from penstock.quarantine import InternalRecords
    from penstock.replication.registration import Registration
    from penstock.replication.replica import EngineReplica
    from penstock.replication.sequencer import Step
    from penstock.services.query_engine.bucket_commits import BucketCommits
    from penstock.services.query_engine.buckets import BucketSet
    from penstock.services.query_engine.catch_up import CatchUp
    from penstock.services.query_engine.enrolment import Enrolment
    from penstock.services.query_engine.measures.commit_metrics import CommitMetrics
    from penstock.services.query_engine.readiness import Readiness
    from penstock.services.query_engine.result_collector import ResultCollector
    from penstock.services.query_engine.retained_state import RetainedState

_POLL = 256  # records of the log read at once
_COMMIT_AT = 2_000  # number of pending records at which they are committed in the middle of a service step
_COMMIT_AT_BYTES = 32 << 20  # size of pending evaluations in bytes at which the same happens


class StepApplier:
    """Applies the steps of the total order. An UnavailableError interrupts a step; `resume` continues the step."""

    def __init__(
        self,
        reader: Reader,
        records: InternalRecords,
        replica: EngineReplica,
        buckets: BucketSet,
        enrolment: Enrolment,
        collector: ResultCollector,
        catch_up: CatchUp,
        commits: BucketCommits,
        retained: RetainedState,
        readiness: Readiness,
        metrics: CommitMetrics,
    ) -> None:
        self._reader, self._records, self._replica, self._buckets = reader, records, replica, buckets
        self._enrolment, self._collector, self._catch_up, self._commits = enrolment, collector, catch_up, commits
        self._retained, self._readiness, self._metrics = retained, readiness, metrics
        self._applying: Iterator[UnavailableError | None] | None = None
        self._cut = False  # the last call of `read` has left complete steps

    def read(self, timeout_s: float, interrupted: Callable[[], bool]) -> bool:
        """Read records, and apply the steps that are complete. Waits at most `timeout_s` seconds for records. Returns
        False if there was nothing to do.

        While `interrupted` returns True, a call ends after about SLICE_MS, and the next call applies the remaining
        steps.
        """
        waits = self._replica.held is not None or self._cut or self._catch_up.full()
        messages = [] if waits else self._reader.poll(_POLL, timeout_s)
        self._metrics.read(messages)
        self._replica.sequencer.read(messages, self._records)
        moved, over, self._cut = bool(messages), self._catch_up.slice_over(), False
        while (step := self._replica.held or self._replica.sequencer.next()) is not None:
            self._replica.held = step
            if self._applying is None:
                if not self._retained.ready(step):
                    break
                self._replica.prepare(step)
                self._enrolment.prepare(step[0])
                self._applying = self._replica.apply(step, self)
            self._apply(step, self._applying)
            moved = True
            if self._applying is not None:
                break
            if interrupted() and over():
                self._cut = True
                return moved
        if moved:
            self._retained.advance()
        if self._replica.held is None:
            self._readiness.look(messages, busy=bool(self._buckets.by_number))
        return moved

    def resume(self) -> None:
        """Continue the step or evaluation that an UnavailableError has interrupted. Call before a commit: while the
        evaluation of a group is incomplete, some of the group's cohorts are ahead of the collected results.
        """
        runtime = self._replica.runtime
        # also if a step is partially applied: the interrupted evaluation may not belong to it
        if runtime.schedule.unfinished:
            runtime.progress(())
            self._collector.collect(self._buckets)
        if not self._catch_up.settled:
            self.catch_up()
        if self._applying is not None and self._replica.held is not None:
            self._apply(self._replica.held, self._applying)
        self._enrolment.enrol_waiting()

    def catch_up(self) -> bool:
        """Evaluate due instants of queries that catch up, for a limited time. Returns False if there are no such
        instants.
        """
        found = self._catch_up.slice()
        if found:
            self._collector.collect(self._buckets)
        return found

    # ---- `StepObserver`
    def registered(self) -> None:
        """Retain the data that new registration points need."""
        self._retained.apply_floor()

    def omit(self, registration: Registration, gap: Gap) -> None:
        """Skip the instants in `gap`, if this engine evaluates the registered query."""
        self._enrolment.omit(registration, gap)

    # ---- one step
    def _apply(self, step: Step, applying: Iterator[UnavailableError | None]) -> None:
        """Apply a step, or the rest of an interrupted step. One call applies only one file of a bulk load. After an
        UnavailableError, a later call repeats the failed evaluation and continues.
        """
        first = step[0]
        if isinstance(first, QueryStop):
            self._enrolment.end(first.name)
        elif isinstance(first, QueryRegistration) and first.replaces:
            self._enrolment.end_replaced(first.replaces)
        for error in applying:
            if error is not None:
                raise error
            self._enrolment.publish_news()
            self._collector.collect(self._buckets)
            if isinstance(first, ShardLoad):
                return  # one file per service step, so that the loop reports progress between two files
            records, size = self._buckets.pending()
            if records >= _COMMIT_AT or size >= _COMMIT_AT_BYTES:
                self._commits.commit_or_wait()
        self._applying = self._replica.held = None
        if isinstance(first, QueryRegistration):
            self._enrolment.add(first)
        self._enrolment.enrol_waiting()
        self._replica.tidy()
