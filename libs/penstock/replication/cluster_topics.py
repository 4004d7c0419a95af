"""The internal topics of the cluster, in addition to those of `penstock.log`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import DataError
from penstock.log import Topic

if TYPE_CHECKING:
    from penstock.log.topics import TopicNames

_HOUR_MS = 3_600_000
_TAKEN_BY_KAFKA = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class ClusterTopics:
    """Names and partition counts of topics. `shards`: partitions of the shards topic. `buckets`: number of buckets, and
    partitions of the progress topic. `result_partitions`: partitions of the results topic.
    """

    names: TopicNames
    shards: int = 4
    buckets: int = 8
    result_partitions: int = 4

    @property
    def progress(self) -> str:
        """The progress topic: committed progress, one partition per bucket."""
        return f"{self.names.prefix}.progress"

    @property
    def heartbeats(self) -> str:
        """The heartbeats topic: heartbeats of all processes."""
        return f"{self.names.prefix}.heartbeats"

    def election(self, service: str) -> str:
        """Return the name of a service's election topic. It has one partition; the group member that is assigned the
        partition is active.
        """
        return f"{self.names.prefix}.election.{service}"

    def check_results(self, topic: str) -> None:
        """Check that a query may write its results to a topic. DataError if Kafka rejects the name or reserves the
        topic, or if the topic has the cluster's prefix and is not a results topic.
        """
        if not _TAKEN_BY_KAFKA.fullmatch(topic):
            raise DataError(f"{topic!r} is no name of a topic: 1 to 249 of A-Z, a-z, 0-9, '.', '_' and '-'")
        if topic.startswith("__"):
            raise DataError(f"topic {topic} is internal to Kafka: results cannot go there")
        if not self.takes_results(topic):
            results = self.names.results
            raise DataError(f"topic {topic} is the cluster's own: results can go to {results}.NAME or another prefix")

    def takes_results(self, topic: str) -> bool:
        """Return whether a topic accepts results. Among topics with the cluster's prefix, only results topics do."""
        results = self.names.results
        return not topic.startswith(f"{self.names.prefix}.") or topic == results or topic.startswith(f"{results}.")

    def all(self) -> list[Topic]:
        """Return all topics that the services need."""
        names = self.names
        return [
            Topic(names.shards, self.shards),
            Topic(names.dictionary, 1, "compact"),
            Topic(names.control, 1, "compact"),
            Topic(names.streams, 1, "compact"),
            Topic(names.queries, 1, "compact"),
            Topic(names.status, 1, "compact"),
            Topic(names.results, self.result_partitions),
            Topic(names.dead_letter),
            Topic(names.late),
            Topic(names.quarantine, 1, "compact"),
            Topic(self.progress, self.buckets, "compact"),
            Topic(self.heartbeats, 1, retention_ms=_HOUR_MS),
            Topic(self.election("coordinator")),
            Topic(self.election("dictionary")),
        ]
