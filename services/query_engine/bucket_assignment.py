"""Follows the placement: opens the buckets that an engine gains, and releases those that it loses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.log import START, Partition
from penstock.replication.progress_log import ProgressView, ProgressWriter
from penstock.services.query_engine.buckets import Bucket
from penstock.services.query_engine.readiness import Preparation

if TYPE_CHECKING:
    from collections.abc import Collection

    from penstock.log import Log, Reader, TransactionalWriter
    from penstock.log.clock import Clock
    from penstock.quarantine import InternalRecords
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.replication.placement_view import PlacementView
    from penstock.replication.replica import EngineReplica
    from penstock.services.query_engine.bucket_commits import BucketCommits
    from penstock.services.query_engine.buckets import BucketSet
    from penstock.services.query_engine.enrolment import Enrolment
    from penstock.services.query_engine.retained_state import RetainedState

FENCED_MS = 50
"""How often an engine checks whether the next engine of a bucket has opened it."""
_POLL = 256  # records of a progress topic read at once


@dataclass(slots=True)
class Opening:
    """A bucket whose progress is being read. `epoch`: of the placement."""

    writer: TransactionalWriter
    reader: Reader
    epoch: int
    view: ProgressView

    def close(self) -> None:
        """Close the reader and the writer."""
        self.reader.close()
        self.writer.close()


class BucketAssignment:
    """Brings the open buckets in line with the placement. `opening`: buckets whose progress is being read."""

    def __init__(
        self,
        log: Log,
        topics: ClusterTopics,
        clock: Clock,
        instance: str,
        records: InternalRecords,
        placement: PlacementView,
        replica: EngineReplica,
        buckets: BucketSet,
        commits: BucketCommits,
        enrolment: Enrolment,
        retained: RetainedState,
    ) -> None:
        self._log, self._topics, self._instance, self._records = log, topics, instance, records
        self._placement, self._replica, self._buckets = placement, replica, buckets
        self._commits, self._enrolment, self._retained = commits, enrolment, retained
        self._preparation = Preparation(clock, lambda record: enrolment.learn_constants([record]))
        self.opening: dict[int, Opening] = {}

    def update(self, *, gains: bool) -> bool:
        """Open and release buckets as the placement requires. Returns False if there was nothing to do. `gains`:
        whether to open buckets.
        """
        mine = self._placement.buckets_of(self._instance)
        if mine is None:
            return False
        held = self._buckets.by_number.keys()
        for number in self.opening.keys() - mine:
            self.opening.pop(number).close()
        moved = self._wait_to_be_fenced(held - mine)
        gained = sorted(mine - held - self.opening.keys()) if gains else []
        self._preparation.keep(gained)
        for number in gained:
            if self._preparation.step(number, self._enrolment.standing_in(number)):
                self.open(number)
        return self._opened() or bool(gained) or moved

    @property
    def holds_all(self) -> bool:
        """Whether the placement still assigns to this engine every bucket that it evaluates."""
        mine = self._placement.buckets_of(self._instance)
        return mine is not None and self._buckets.by_number.keys() <= mine

    def cancel(self) -> None:
        """Close all buckets whose progress is being read."""
        for number in list(self.opening):
            self.opening.pop(number).close()

    def close(self) -> None:
        """Release all buckets."""
        for number in list(self._buckets.by_number):
            self._buckets.release(number)
        self.cancel()

    def _wait_to_be_fenced(self, gone: Collection[int]) -> bool:
        """Release the buckets that their next engine has opened. Until then, this engine evaluates them. It checks by a
        commit, because without results it commits nothing.
        """
        return bool(gone) and self._commits.confirm(FENCED_MS, gone)

    def open(self, number: int) -> None:
        """Fence the bucket's previous engine and begin to read its progress, which no other writer extends any more."""
        writer = self._log.transactional(f"{self._topics.names.prefix}.bucket.{number}")
        reader = self._log.reader({Partition(self._topics.progress, number): START})
        view = ProgressView(self._records, states=True)
        self.opening[number] = Opening(writer, reader, self._placement.epoch, view)

    def _opened(self) -> bool:
        """Add the first bucket whose progress has been read to its end. Returns False if there is none."""
        for number, opening in list(self.opening.items()):
            for message in opening.reader.poll(_POLL):
                opening.view.feed(message)
            if not opening.reader.caught_up():
                continue
            del self.opening[number]
            opening.reader.close()
            self._add(number, opening)
            return True
        return False

    def _add(self, number: int, opening: Opening) -> None:
        saved = opening.view.whole()
        incarnation = self._buckets.next_incarnation()
        progress_writer = ProgressWriter(self._topics.progress, number, opening.view.parts())
        bucket = Bucket(number, opening.writer, progress_writer, saved, incarnation)
        self._buckets.by_number[number] = bucket
        bucket.opened = opening.epoch
        core = self._replica.runtime.core
        core.attempt = max(core.attempt, bucket.epoch)
        self._retained.record(number, bucket.committed, bucket.waits_for)
        self._enrolment.enrol_queries_of(bucket)
