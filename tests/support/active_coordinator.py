"""The state of an active coordinator on the memory log, without elections, clocks and other services."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.log import START, MemoryLog, Partition
from penstock.log.clock import VirtualClock
from penstock.log.topics import TopicNames
from penstock.replication.cluster_topics import ClusterTopics
from penstock.services.coordinator.active_state import Active
from penstock.services.coordinator.control_state import Opening
from penstock.wire import decode

if TYPE_CHECKING:
    from penstock.wire.codec import Wire

SHARDS = 2


class ActiveCoordinator:
    """An active coordinator (`active`) with its own log. `take_over` replaces it by one that starts from the control
    topic.
    """

    def __init__(self, discard_after_ms: int | None = None, buckets: int = 2) -> None:
        self.log = MemoryLog(VirtualClock(1_000))
        self.topics = ClusterTopics(TopicNames(), shards=SHARDS, buckets=buckets)
        self.log.create(self.topics.all())
        self._discard_after_ms = discard_after_ms
        self.active = self.take_over()

    def take_over(self) -> Active:
        opening = Opening(self.log, self.topics)
        while not opening.read():
            pass
        self.active = Active(self.log, self.topics, opening, self._discard_after_ms)
        return self.active

    def records(self, topic: str, partition: int = 0) -> list[tuple[bytes | None, Wire | None]]:
        """Return the keys and decoded values of a partition, in order."""
        reader = self.log.reader({Partition(topic, partition): START})
        found = reader.poll()
        reader.close()
        return [(message.key, None if message.value is None else decode(message.value)) for message in found]

    def commands(self, partition: int = 0) -> list[Wire | None]:
        """Return the commands in a partition of the shards topic."""
        return [value for _, value in self.records(self.topics.names.shards, partition)]

    def control(self) -> list[tuple[bytes | None, Wire | None]]:
        """Return the records of the control topic."""
        return self.records(self.topics.names.control)
