"""Follows the placement: opens the buckets that an engine gains, and releases the buckets that the engine loses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.log import START, Partition
from penstock.replication.log_end import LogEnd
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
"""Interval in ms at which an engine checks whether the next engine of a bucket has opened the bucket."""
_POLL = 256  # records of a progress topic read at once


@dataclass(slots=True)
class Opening:
    """A bucket whose progress this engine reads. The previous engine evaluates the bucket until this engine opens
    `writer`.

    `epoch`: number of the placement when the writer was opened. `end`: end offset of the bucket's progress; None until
    the writer is open.
    """

    place: Partition
    reader: Reader
    log_end: LogEnd
    view: ProgressView
    writer: TransactionalWriter | None = None
    epoch: int = 0
    end: int | None = None

    def read(self) -> bool:
        """Read further records of the progress. Returns False if there were no records."""
        messages = self.reader.poll(_POLL)
        for message in messages:
            self.view.feed(message)
        self.log_end.look(messages)
        return bool(messages)

    @property
    def whole(self) -> bool:
        """Whether this engine has read everything that earlier engines have committed for the bucket."""
        return self.end is not None and self.reader.positions()[self.place] >= self.end

    def close(self) -> None:
        """Close the reader and the writer."""
        self.reader.close()
        if self.writer is not None:
            self.writer.close()


class BucketAssignment:
    """Opens and releases buckets according to the placement. `opening`: buckets whose progress is being read, by
    number.
    """

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
        self._log, self._topics, self._clock, self._instance, self._records = log, topics, clock, instance, records
        self._placement, self._replica, self._buckets = placement, replica, buckets
        self._commits, self._enrolment, self._retained = commits, enrolment, retained
        self._preparation = Preparation(clock, lambda record: enrolment.learn_constants([record]))
        self.opening: dict[int, Opening] = {}

    def update(self, *, gains: bool) -> bool:
        """Open and release buckets as the placement requires. Returns False if there was nothing to do. `gains`:
        whether to begin to open further buckets.
        """
        mine = self._placement.buckets_of(self._instance)
        if mine is None:
            return False
        held = self._buckets.by_number.keys()
        for number in self.opening.keys() - mine:
            self.opening.pop(number).close()
        moved = self._wait_to_be_fenced(held - mine)
        gained = sorted(mine - held) if gains else []
        self._preparation.keep([number for number in gained if not self._fenced(number)])
        for number in gained:
            if number not in self.opening:
                self.begin(number)
                moved = True
        return self._continue() or moved

    def _fenced(self, number: int) -> bool:
        return number in self.opening and self.opening[number].writer is not None

    @property
    def holds_all(self) -> bool:
        """Whether the placement still assigns to this engine every bucket that the engine evaluates."""
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
        """Release each bucket that its next engine has opened. `gone`: the buckets to check, which the placement no
        longer assigns to this engine. This engine continues to evaluate the other buckets of `gone`. To detect that a
        bucket was opened, this engine commits the bucket's progress again, although there are no new results. The
        commit fails if the next engine has fenced this engine. Returns whether a bucket was released.
        """
        return bool(gone) and self._commits.confirm(FENCED_MS, gone)

    def begin(self, number: int) -> None:
        """Begin to read a bucket's progress. The bucket's previous engine still evaluates the bucket."""
        place = Partition(self._topics.progress, number)
        reader = self._log.reader({place: START})
        view = ProgressView(self._records, states=True)
        self.opening[number] = Opening(place, reader, LogEnd(reader, self._clock), view)

    def open(self, number: int) -> None:
        """Fence the bucket's previous engine. From now on, only this engine can append to the bucket's progress, so the
        end of the progress is known.

        The progress that was read before can be incomplete. The bucket is added once the progress is read to its end.
        """
        opening = self.opening[number]
        if opening.writer is None:
            opening.writer = self._log.transactional(f"{self._topics.names.prefix}.bucket.{number}", offsets=False)
            opening.epoch = self._placement.epoch
        opening.end = self._log.spans([opening.place])[opening.place].end

    def _continue(self) -> bool:
        """Continue to open buckets. Reads further progress records of the buckets in `opening`. If all progress of a
        bucket has been read, adds the bucket to the buckets that this engine evaluates. One call adds at most one
        bucket. Returns False if there was nothing to do.
        """
        moved = False
        for number, opening in list(self.opening.items()):
            moved |= opening.read()
            if opening.end is None and self._prepared(number, opening):
                self.open(number)
                moved = True
                opening.read()
            if opening.whole:
                self._add(number, self.opening.pop(number))
                return True
        return moved

    def _prepared(self, number: int, opening: Opening) -> bool:
        """Continue the preparation of a bucket. Returns whether the preparation is complete, so that the bucket can be
        opened.
        """
        if opening.writer is not None:
            return True
        return opening.log_end.near and self._preparation.step(number, self._enrolment.standing_in(number))

    def _add(self, number: int, opening: Opening) -> None:
        assert opening.writer is not None
        opening.reader.close()
        saved = opening.view.whole()
        incarnation = self._buckets.next_incarnation()
        progress_writer = ProgressWriter(self._topics.progress, number, opening.view.parts())
        bucket = Bucket(number, opening.writer, progress_writer, saved, incarnation, self._topics.buckets)
        self._buckets.by_number[number] = bucket
        bucket.opened = opening.epoch
        core = self._replica.runtime.core
        core.attempt = max(core.attempt, bucket.epoch)
        self._retained.record(number, bucket.committed, bucket.waits_for)
        self._enrolment.enrol_queries_of(bucket)
