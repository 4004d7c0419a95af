"""The log on Kafka, by confluent-kafka (librdkafka). The module is imported separately, because it needs the `cluster`
extra.

Users can set any librdkafka property (`security.protocol`, `sasl.*`, `ssl.*` …). The log itself sets the properties for
isolation, idempotence and offset commits, because the contract of the log depends on these properties. The values of
the log take precedence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.log.errors import LogError
from penstock.log.kafka.connection import KafkaConnection
from penstock.log.kafka.readers import KafkaGroupReader, KafkaReader
from penstock.log.kafka.writers import KafkaTransactionalWriter, KafkaWriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.log.port import Partition


class KafkaLog(KafkaConnection):
    """A log whose topics are the topics of a Kafka cluster."""

    def writer(self) -> KafkaWriter:
        """Open a writer."""
        return self.keep(KafkaWriter(self))

    def transactional(self, transactional_id: str, *, offsets: bool = True) -> KafkaTransactionalWriter:
        """Open a writer. Fences the previous writer with the same transactional id, and settles that writer's
        transaction.
        """
        return self.keep(KafkaTransactionalWriter(self, transactional_id, offsets=offsets))

    def reader(self, positions: Mapping[Partition, int] | None = None) -> KafkaReader:
        """Open a reader of these partitions."""
        reader = self.keep(KafkaReader(self))
        try:
            reader.assign(positions or {})
        except LogError:
            reader.close()
            raise
        return reader

    def join(self, group: str, topics: Sequence[str]) -> KafkaGroupReader:
        """Join a consumer group."""
        return self.keep(KafkaGroupReader(self, group, topics))
