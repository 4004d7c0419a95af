"""Submits records to librdkafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import confluent_kafka
    from confluent_kafka import KafkaError, Producer

    from penstock.log.port import Record


def produce(
    producer: Producer,
    record: Record,
    on_delivery: Callable[[KafkaError | None, confluent_kafka.Message], None],
) -> None:
    """Submit a record to librdkafka. BufferError if its queue is full."""
    producer.produce(
        record.topic,
        value=record.value,
        key=record.key,
        partition=record.partition,
        headers=list(record.headers) or None,
        timestamp=0 if record.timestamp_ms is None else record.timestamp_ms,
        on_delivery=on_delivery,
    )
