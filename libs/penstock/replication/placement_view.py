"""Who serves what: the placement in force as a process sees it."""

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
"""The placement's key in the control topic."""
LOST_MS = 1_000
"""For how long a bucket that another engine has opened is left to it where no newer placement says so."""


class PlacementView:
    """Follows the control topic. A share that was found to be another's is not taken again before a newer placement, or
    for some time: the other one may only have been behind, and let it go again.
    """

    def __init__(self, log: Log, topics: ClusterTopics, clock: Clock) -> None:
        self._clock = clock
        self._records = InternalRecords(log, topics.names)
        self._reader = log.reader({Partition(topics.names.control): START})
        self._current: Placement | None = None
        self._lost: dict[int, int] = {}  # until when

    def refresh(self) -> Placement | None:
        """Return the placement in force, None where none was ever made."""
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
        """Return the buckets of an engine, None where nothing was ever placed."""
        placement = self.refresh()
        if placement is None:
            return None
        now_ms = self._clock.now_ms()
        return {bucket for bucket in _held(placement.buckets, instance) if self._lost.get(bucket, now_ms) <= now_ms}

    def shards_of(self, instance: str) -> set[int] | None:
        """Return the shards that a store serves or prepares, None where nothing was ever placed."""
        placement = self.refresh()
        if placement is None:
            return None
        return _held(placement.shards, instance) | _held(placement.preparing, instance)

    def replaced(self, instance: str) -> bool:
        """Whether other stores serve, or prepare, every shard that was placed at this one."""
        placement = self.refresh()
        return placement is not None and _held(placement.shards, instance) <= {int(n) for n in placement.preparing}

    @property
    def epoch(self) -> int:
        """Number of the placement in force, 0 before the first."""
        return 0 if self._current is None else self._current.epoch

    def lost(self, bucket: int, opened: int) -> None:
        """Note that another engine has opened a bucket that was opened here under the placement `opened`.

        Where no newer placement is known, one is on its way; or the other engine did not know this one yet, and nobody
        would have the bucket for ever. Where a newer one is known, what it says holds: the bucket may have gone and
        come back meanwhile.
        """
        self.refresh()
        if self.epoch == opened:
            self._lost[bucket] = self._clock.now_ms() + LOST_MS


def _held(shares: Mapping[str, str], instance: str) -> set[int]:
    return {int(share) for share, holder in shares.items() if holder == instance}
