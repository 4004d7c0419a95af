"""The members of all query sets that an engine evaluates."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.log import Log
    from penstock.log.clock import Clock
    from penstock.log.topics import TopicNames
    from penstock.replication.replica import EngineReplica
    from penstock.services.query_engine.buckets import Bucket, BucketSet
    from penstock.services.query_engine.result_collector import ResultCollector
    from penstock.services.query_engine.sets.member_feed import MemberFeed


class MemberFeeds:
    """Reads the members of the query sets in an engine's buckets."""

    def __init__(
        self,
        log: Log,
        names: TopicNames,
        clock: Clock,
        replica: EngineReplica,
        buckets: BucketSet,
        collector: ResultCollector,
    ) -> None:
        self._log, self._names, self._clock = log, names, clock
        self._replica, self._buckets, self._collector = replica, buckets, collector

    @property
    def busy(self) -> bool:
        """Whether there are records that have not taken effect."""
        return any(feed.busy for bucket in self._buckets for feed in bucket.feeds.values())

    def step(self) -> bool:
        """Read records, and let the records take effect. Does nothing while a step of the total order is partially
        applied. Returns whether anything changed. TransientError or UnavailableError if the dictionary or a store is
        unavailable; call again.
        """
        if self._replica.held is not None or self._replica.runtime.schedule.unfinished:
            return False
        moved = False
        for bucket in self._buckets:
            for number, feed in bucket.feeds.items():
                moved |= feed.read(self._log, self._names, self._clock)
                moved |= self._restore(bucket, number, feed) if feed.restoring else self._take(bucket, number, feed)
        return moved

    def _restore(self, bucket: Bucket, number: int, feed: MemberFeed) -> bool:
        """Restore the members of the last commit, and evaluate the instants that have become due since."""
        runtime = self._replica.runtime
        if not feed.restore(runtime, self._replica.terms, bucket.last_ms.get(number)):
            return False
        runtime.schedule.run(list(feed.member.set_group.streams), runtime.firing)
        runtime.firing.tidy()
        self._collector.collect(self._buckets)
        self._advance(bucket, number, feed)
        return True

    def _take(self, bucket: Bucket, number: int, feed: MemberFeed) -> bool:
        letters = feed.take(self._replica.runtime, self._replica.terms, self._names)
        if letters is not None:
            bucket.pending += letters
            bucket.fired.add(number)
            self._advance(bucket, number, feed)
            return True
        since = feed.idle_since(bucket.last_ms.get(number))
        if since is not None:
            bucket.last_ms[number] = since
            bucket.fired.add(number)
        return False

    @staticmethod
    def _advance(bucket: Bucket, number: int, feed: MemberFeed) -> None:
        """Include in the progress the instants that no member needs."""
        until = feed.complete_until()
        if until is not None:
            bucket.last_ms[number] = max(until, bucket.last_ms.get(number, until))
