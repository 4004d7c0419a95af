"""Commits: one transaction per bucket, with the bucket's results, batches of derived streams, and progress.

An engine that opens a bucket fences the writer of the bucket's previous engine. The previous engine notices at its next
commit, and releases the bucket (docs/semantics.md §5, ADR 28).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from penstock.log import FencedError, RecordRefusedError, TransientError, UnknownTopicError

if TYPE_CHECKING:
    from collections.abc import Collection

    from penstock.log import Log
    from penstock.log.clock import Clock
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.replication.progress_log import BucketState
    from penstock.replication.replica import EngineReplica
    from penstock.services.query_engine.buckets import Bucket, BucketSet
    from penstock.services.query_engine.measures.commit_metrics import CommitMetrics
    from penstock.services.query_engine.result_sinks import ResultSinks
    from penstock.services.query_engine.retained_state import RetainedState

CONFIRM_MS = 1_000
"""Interval in ms between two checks by an engine that waits for other processes. Each check ensures that no other
engine has opened the engine's buckets.
"""
_log = logging.getLogger("penstock.query-engine")


class BucketCommits:
    """The transactions of an engine's buckets."""

    def __init__(
        self,
        log: Log,
        topics: ClusterTopics,
        clock: Clock,
        replica: EngineReplica,
        buckets: BucketSet,
        sinks: ResultSinks,
        metrics: CommitMetrics,
        retained: RetainedState,
    ) -> None:
        self._log, self._topics, self._clock, self._replica = log, topics, clock, replica
        self._buckets, self._sinks, self._metrics, self._retained = buckets, sinks, metrics, retained
        self._confirmed_ms = clock.now_ms()

    def commit(self) -> None:
        """Commit each bucket's results with its progress. Releases a bucket that another engine has opened.

        Skips a bucket whose queries are not enrolled yet. The progress of such a bucket would wrongly state that all
        stopped queries of the bucket were evaluated to their end.
        """
        replica = self._replica
        for number, bucket in list(self._buckets.by_number.items()):
            if not bucket.enrolled or not (bucket.unwritten or bucket.outdated(self._sinks)):
                continue
            bucket.publish(self._topics, replica.runtime.core.dictionary, replica.terms.service, self._sinks)
            try:
                progress = self._write(bucket)
                if progress is None:
                    self._buckets.release(number)  # uncommitted instants are evaluated again after the next opening
                    continue
            except FencedError:
                self._buckets.lose(number)
                continue
            self._metrics.committed(bucket.pending_evaluations)
            self._sinks.committed(bucket.pending)
            bucket.progress_writer.committed()
            bucket.last_commit = progress
            bucket.committed_pending()
            self._retained.record(number, bucket.committed, progress.step)

    def commit_or_wait(self) -> None:
        """Commit in the middle of a service step. If a TransientError occurs, the results wait for a later commit."""
        try:
            self.commit()
        except TransientError:
            return

    def _write(self, bucket: Bucket) -> BucketState | None:
        """Commit the pending records of a bucket with its progress, and return the progress. If a results topic refuses
        records, the method replaces these records by error records and tries again. Returns None if a refusal has made
        the writer unusable.
        """
        replica = self._replica
        progress = bucket.progress(replica.runtime, replica.history.step)
        while True:
            bucket.report_errors(self._topics.names, self._sinks)
            try:
                bucket.writer.commit([*bucket.pending, *bucket.progress_writer.records(progress, bucket.fired)])
            except RecordRefusedError as error:
                blamed = self._sinks.refuse(error, bucket.pending)
                if not blamed and not self._passes(error):
                    raise
                _log.warning("results are refused: %s", error)
                if error.over:
                    return None
                if not blamed:
                    raise TransientError(f"results are refused: {error}") from error
                before = set(bucket.complete)
                bucket.pending = self._sinks.replaced(bucket.pending, bucket.changing, bucket.complete)
                if bucket.complete != before:
                    progress = bucket.progress(replica.runtime, replica.history.step)
            else:
                return progress

    def _passes(self, error: RecordRefusedError) -> bool:
        """Return whether a refusal is temporary. Called only for a refusal that `ResultSinks.refuse` has not handled.
        The refusal is temporary if the error names no topic, because a topic was then just deleted or created. The
        refusal is also temporary if the cluster's results topic was deleted. This method then creates the topic again.
        """
        if error.topic == self._topics.names.results and isinstance(error, UnknownTopicError):
            self._log.create([topic for topic in self._topics.all() if topic.name == error.topic])
            return True
        return not error.topic

    def confirm(self, every_ms: int = CONFIRM_MS, numbers: Collection[int] | None = None) -> bool:
        """Commit the last progress of buckets again, to check that no other engine has opened these buckets. Releases
        each bucket that another engine has opened. Returns whether any bucket was released. `numbers`: the buckets to
        check; None means all buckets.

        Does nothing if the previous check was less than `every_ms` ago. Without this check, an engine that waits for
        another process would commit nothing, and would not notice the fencing. The engine could then wait forever for a
        snapshot that stores no longer retain.
        """
        now_ms, held = self._clock.now_ms(), len(self._buckets.by_number)
        if now_ms < self._confirmed_ms + every_ms:
            return False
        self._confirmed_ms = now_ms
        for number in list(self._buckets.by_number if numbers is None else numbers):
            bucket = self._buckets.by_number[number]
            record = bucket.progress_writer.confirmation(bucket.last_commit)
            try:
                bucket.writer.commit([record])
            except FencedError:
                self._buckets.lose(number)
            except TransientError:
                break
        return len(self._buckets.by_number) < held
