"""The internal topics of the cluster, in addition to the topics in `penstock.log`."""

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
    """The names and partition counts of the topics. `shards`: number of partitions of the shards topic. `buckets`:
    number of buckets, and also of partitions of the progress topic. `result_partitions`: number of partitions of the
    results topic.
    """

    names: TopicNames
    shards: int = 4
    buckets: int = 8
    result_partitions: int = 4

    @property
    def progress(self) -> str:
        """The name of the progress topic, which has one partition per bucket (`progress_log`)."""
        return f"{self.names.prefix}.progress"

    @property
    def heartbeats(self) -> str:
        """The name of the heartbeats topic, to which coordinators, dictionaries, stores and query engines write."""
        return f"{self.names.prefix}.heartbeats"

    def election(self, service: str) -> str:
        """Return the name of a service's election topic. The topic has one partition. Kafka assigns the partition to
        one instance, which is the active instance.
        """
        return f"{self.names.prefix}.election.{service}"

    def check_results(self, topic: str) -> None:
        """Check that a query is allowed to write its results to a topic. DataError if the topic's name is invalid in
        Kafka or reserved. DataError also if the name has the cluster's prefix and is not the name of a results topic.
        """
        if not _TAKEN_BY_KAFKA.fullmatch(topic):
            raise DataError(f"{topic!r} is no name of a topic: 1 to 249 of A-Z, a-z, 0-9, '.', '_' and '-'")
        if topic.startswith("__"):
            raise DataError(f"topic {topic} is internal to Kafka: results cannot go there")
        if not self.takes_results(topic):
            results = self.names.results
            raise DataError(f"topic {topic} is the cluster's own: results can go to {results}.NAME or another prefix")

    def takes_results(self, topic: str) -> bool:
        """Return whether queries are allowed to write results to a topic. Among the topics with the cluster's prefix,
        only results topics are allowed.
        """
        results = self.names.results
        return not topic.startswith(f"{self.names.prefix}.") or topic == results or topic.startswith(f"{results}.")

    def all(self) -> list[Topic]:
        """Return the topics that exist in every cluster. The topics of a stream are created with the stream."""
        names = self.names
        return [
            Topic(names.shards, self.shards),
            Topic(names.dictionary, 1, "compact"),
            Topic(names.control, 1, "compact"),
            Topic(names.streams, 1, "compact", compression="uncompressed"),  # users write to this topic and the next
            Topic(names.queries, 1, "compact", compression="uncompressed"),
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
