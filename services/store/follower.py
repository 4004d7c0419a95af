"""A follower: applies the log to some shards of the stored graph. All shards of a follower are at the same step."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from penstock.log import Partition, TransientError
from penstock.quarantine import InternalRecords
from penstock.replication.log_end import LogEnd
from penstock.replication.registration import declaration_of
from penstock.replication.replica import Replica
from penstock.services.store.shard_set import ShardSet
from penstock.wire import ShardLoad, StreamDeclaration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.errors import UnavailableError
    from penstock.log import Log, Message
    from penstock.log.clock import Clock
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.replication.retention import Commitments
    from penstock.replication.sequencer import Step
    from penstock.services.store.shard_store import ShardStore
    from penstock.term_ids.outgoing_terms import TermEncoder

_POLL = 256  # maximum number of records per poll
READ_MS = 100
"""Time in ms after which a call of `read` begins no further step. The next call continues."""


class Follower:
    """Applies the steps of the log to the shards of one replica. `positions`: the offset at which to begin in each
    partition of the shards topic, from the shards' checkpoint.
    """

    def __init__(
        self,
        log: Log,
        topics: ClusterTopics,
        replica: Replica[ShardSet],
        positions: Sequence[int],
        terms: TermEncoder,
        clock: Clock,
    ) -> None:
        self.replica = replica
        self._terms = terms
        self._records = InternalRecords(log, topics.names)
        self._applying: Iterator[UnavailableError | None] | None = None
        partitions = [Partition(topics.names.shards, i) for i in range(topics.shards)]
        self._clock = clock
        self._reader = log.reader(dict(zip(partitions, positions, strict=True)))
        self._polled: Sequence[Message] = ()  # the records of the last poll
        self._unread: deque[Message] = deque()  # the records that the sequencer has not received yet
        self._cut = False  # the last `read` reached its time limit; complete steps possibly remain
        self._end = LogEnd(self._reader, clock)

    @property
    def graph(self) -> ShardSet:
        """The state machine of the replica. The state machine contains the shards and the streams."""
        return self.replica.runtime

    @property
    def step(self) -> int:
        """The number of applied steps."""
        return self.replica.history.step

    @property
    def near_end(self) -> bool:
        """Whether the shards have been near the end of the log at least once."""
        return self._end.near

    def positions(self) -> dict[Partition, int]:
        """Return the offset of the next record to poll, for each partition."""
        return self._reader.positions()

    def caught_up(self) -> bool:
        """Return whether every record that the log contained at the last poll is applied."""
        return self._reader.caught_up() and self._all_applied

    def read(self, commitments: Commitments, timeout_s: float, until: int | None = None) -> bool:
        """Read records and apply steps for about `READ_MS`. `until`: the last step to apply; None means no limit. Waits
        at most `timeout_s` seconds for records. Returns False if there was nothing to read or apply.

        TransientError if the log, the dictionary or a file of a bulk load is unavailable; call again.
        """
        if self._all_applied:
            self._polled = self._reader.poll(_POLL, timeout_s)
            self._unread.extend(self._polled)
        self._cut = False
        unread, moved, over_ms = len(self._unread), False, self._clock.now_ms() + READ_MS
        while (step := self._next(until)) is not None:
            self.replica.held = step
            if self._applying is None:
                if not commitments.ready(self.replica, step):
                    break
                self._prepare(step)
                self._applying = self.replica.apply(step)
            if not self._apply(step, self._applying):
                return True
            self._applying = self.replica.held = None
            self.replica.tidy()
            moved = True
            if self._clock.now_ms() >= over_ms:
                self._cut = True
                break
        if self._all_applied:
            self._end.look(self._polled)
        moved |= len(self._unread) < unread
        if moved:
            self.apply_retention_floor(commitments)
        return moved

    @property
    def _all_applied(self) -> bool:
        """Whether all complete steps of the polled records are applied."""
        return not self._unread and not self._cut and self.replica.held is None

    def _next(self, until: int | None) -> Step | None:
        """Return the next step. None if the polled records contain no further step, or if the next step is after step
        `until`.
        """
        if self._applying is None and until is not None and self.step >= until:
            return None
        found = self.replica.held or self.replica.sequencer.next()
        while found is None and self._unread:
            self.replica.sequencer.read([self._unread[0]], self._records)
            self._unread.popleft()
            found = self.replica.sequencer.next()
        return found

    @staticmethod
    def _apply(step: Step, applying: Iterator[UnavailableError | None]) -> bool:
        """Apply a step. If the step is a bulk load, one call applies only one file, so that the service's loop reports
        progress between files. Returns whether the step is complete.
        """
        for error in applying:
            if error is not None:
                raise TransientError(str(error)) from error
            if isinstance(step[0], ShardLoad):
                return False
        return True

    def _prepare(self, step: Step) -> None:
        if isinstance(step[0], StreamDeclaration):
            self.graph.streams.learn(declaration_of(step[0]), self._terms)

    def apply_retention_floor(self, commitments: Commitments) -> None:
        """Release data that no query of the cluster can read any more."""
        self.replica.news.clear()  # query engines report registration points
        commitments.forget_stopped(self.replica)
        floor = commitments.retention_floor(self.replica)
        self.graph.release(floor, self.step)
        self.replica.history.prune(floor.step)

    def take(self, shard: ShardStore) -> None:
        """Add a shard that has applied the same steps as this follower's shards."""
        self.graph.shards[shard.number] = shard

    def close(self) -> None:
        """Close the reader."""
        self._reader.close()


def empty_replica(partitions: int) -> Replica[ShardSet]:
    """Return a store's replica at step 0. `partitions`: number of partitions of the shards topic."""
    return Replica(ShardSet(), partitions)
