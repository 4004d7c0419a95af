"""The topics of the cluster's own records, beside those that `penstock.log` names."""

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
    """Names and shapes. `shards`: partitions of the shards topic; `buckets`: shares of the standing queries."""

    names: TopicNames
    shards: int = 4
    buckets: int = 8
    result_partitions: int = 4

    @property
    def progress(self) -> str:
        """What each bucket has committed, one partition a bucket."""
        return f"{self.names.prefix}.progress"

    @property
    def heartbeats(self) -> str:
        """Who lives."""
        return f"{self.names.prefix}.heartbeats"

    def election(self, service: str) -> str:
        """One partition: whoever reads it in the service's group is the active instance."""
        return f"{self.names.prefix}.election.{service}"

    def check_results(self, topic: str) -> None:
        """DataError where a query's results cannot go there: Kafka takes no such name or keeps the topic for itself, or
        the topic has the cluster's prefix and is none for results.
        """
        if not _TAKEN_BY_KAFKA.fullmatch(topic):
            raise DataError(f"{topic!r} is no name of a topic: 1 to 249 of A-Z, a-z, 0-9, '.', '_' and '-'")
        if topic.startswith("__"):
            raise DataError(f"topic {topic} is internal to Kafka: results cannot go there")
        if not self.takes_results(topic):
            results = self.names.results
            raise DataError(f"topic {topic} is the cluster's own: results can go to {results}.NAME or another prefix")

    def takes_results(self, topic: str) -> bool:
        """Whether results may go there: all topics of the cluster's prefix but those for results are its own."""
        results = self.names.results
        return not topic.startswith(f"{self.names.prefix}.") or topic == results or topic.startswith(f"{results}.")

    def all(self) -> list[Topic]:
        """Every topic that the services themselves need."""
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
