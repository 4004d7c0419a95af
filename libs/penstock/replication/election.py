"""Which of several instances of a service is active: the member of the service's group that reads its partition.

Kafka's group protocol finds out who lives. It may be late: a deposed instance may still think that it leads.
What it writes is
fenced by its transactional id, so being wrong costs time only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.log import Partition

if TYPE_CHECKING:
    from penstock.log import Log
    from penstock.replication.cluster_topics import ClusterTopics


class Election:
    """An instance's part in the election of a service."""

    def __init__(self, log: Log, topics: ClusterTopics, service: str) -> None:
        topic = topics.election(service)
        self._reader = log.join(f"{topics.names.prefix}.{service}", [topic])
        self._partition = Partition(topic)

    def leads(self, timeout_s: float = 0.0) -> bool:
        """Whether this instance is the active one, as far as it knows. Waits so long for changes."""
        self._reader.poll(1, timeout_s)
        return self._partition in self._reader.assigned()

    def close(self) -> None:
        """Step back."""
        self._reader.close()
