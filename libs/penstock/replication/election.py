"""Leader election among the instances of a service.

The active instance is the member of the service's consumer group to which Kafka assigns the election partition. Kafka's
group protocol detects failed members with a delay. The previous active instance can therefore still consider itself
active. The previous instance cannot write, because the new instance has fenced the transactional id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.log import Partition

if TYPE_CHECKING:
    from penstock.log import Log
    from penstock.replication.cluster_topics import ClusterTopics


class Election:
    """One instance's participation in the election of a service."""

    def __init__(self, log: Log, topics: ClusterTopics, service: str) -> None:
        topic = topics.election(service)
        self._reader = log.join(f"{topics.names.prefix}.{service}", [topic])
        self._partition = Partition(topic)

    def leads(self, timeout_s: float = 0.0) -> bool:
        """Return whether this instance is active, as far as it knows. Waits at most `timeout_s` seconds for a change of
        the assignment.
        """
        self._reader.poll(1, timeout_s)
        return self._partition in self._reader.assigned()

    def close(self) -> None:
        """Leave the election."""
        self._reader.close()
