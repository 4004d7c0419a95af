"""The current placement: the store of each shard, and the engine of each bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.log import START, Partition
from penstock.quarantine import InternalRecords
from penstock.quarantine.kinds import CONTROL
from penstock.wire import Placement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.log import Log
    from penstock.log.clock import Clock
    from penstock.replication.cluster_topics import ClusterTopics

KEY = b"placement"
"""The key of the placement in the control topic."""
LOST_MS = 1_000
"""Time in ms after another engine has opened a bucket of this engine. During this time, this engine does not open the
bucket again. A newer placement ends this time early.
"""


class PlacementView:
    """The placement, read from the control topic.

    After `lost` has recorded that another engine opened a bucket, `buckets_of` excludes the bucket for `LOST_MS` or
    until a newer placement. If the other engine has acted on an old placement, that engine releases the bucket.
    """

    def __init__(self, log: Log, topics: ClusterTopics, clock: Clock) -> None:
        self._clock = clock
        self._records = InternalRecords(log, topics.names)
        self._reader = log.reader({Partition(topics.names.control): START})
        self._current: Placement | None = None
        self._lost: dict[int, int] = {}  # by bucket: end of the exclusion in ms

    def refresh(self) -> Placement | None:
        """Read new records, and return the current placement. None before the first placement."""
        while messages := self._reader.poll():
            for message in messages:
                if message.key == KEY and message.value is not None:
                    found = self._records.read(message, CONTROL)
                    if not isinstance(found, Placement):
                        continue
                    if self._current is None or found.epoch > self._current.epoch:
                        self._current = found
                        self._lost.clear()
        return self._current

    def buckets_of(self, instance: str) -> set[int] | None:
        """Return the buckets that the placement assigns to an engine, without buckets that are excluded at present (see
        the class). None before the first placement.
        """
        placement = self.refresh()
        if placement is None:
            return None
        now_ms = self._clock.now_ms()
        return {bucket for bucket in _held(placement.buckets, instance) if self._lost.get(bucket, now_ms) <= now_ms}

    def shards_of(self, instance: str) -> set[int] | None:
        """Return the shards that a store serves or prepares according to the placement; None before the first
        placement.
        """
        placement = self.refresh()
        if placement is None:
            return None
        return _held(placement.shards, instance) | _held(placement.preparing, instance)

    @property
    def spread(self) -> bool:
        """Whether each shard is served by a store that serves no other shard. Further stores then get no shards. False
        before the first placement.
        """
        placement = self.refresh()
        return placement is not None and 0 < len(placement.shards) == len(set(placement.shards.values()))

    def replaced(self, instance: str) -> bool:
        """Return whether, according to the placement, other stores prepare all shards that store `instance` serves.
        Also True if the store serves no shard. False before the first placement.
        """
        placement = self.refresh()
        return placement is not None and _held(placement.shards, instance) <= {int(n) for n in placement.preparing}

    @property
    def epoch(self) -> int:
        """The number of the current placement, 0 before the first placement."""
        return 0 if self._current is None else self._current.epoch

    def lost(self, bucket: int, opened: int) -> None:
        """Record that another engine has opened a bucket of this engine. `opened`: the number of the placement under
        which this engine had opened the bucket.

        If `opened` is the current placement, the bucket is excluded for `LOST_MS`. The other engine has acted either on
        a newer placement or on an older placement. In the first case, this engine soon reads the newer placement. In
        the second case, the other engine releases the bucket, and this engine opens the bucket again after the
        exclusion.

        If `opened` is not the current placement, there is no exclusion, because the current placement has possibly
        assigned the bucket to this engine again.
        """
        self.refresh()
        if self.epoch == opened:
            self._lost[bucket] = self._clock.now_ms() + LOST_MS


def _held(shares: Mapping[str, str], instance: str) -> set[int]:
    return {int(share) for share, holder in shares.items() if holder == instance}
