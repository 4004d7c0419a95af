"""Submits records to librdkafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    import confluent_kafka
    from confluent_kafka import KafkaError, Producer

    from penstock.log.port import Record

    Delivery: TypeAlias = Callable[[KafkaError | None, confluent_kafka.Message], None]


def produce(producer: Producer, record: Record, on_delivery: Delivery) -> None:
    """Submit a record to librdkafka. BufferError if librdkafka's queue is full."""
    topic, value, key, partition, headers, timestamp_ms = record
    if not headers and timestamp_ms is None:
        producer.produce(topic, value, key, partition, on_delivery)  # by position: this runs once for each record
        return
    producer.produce(
        topic,
        value=value,
        key=key,
        partition=partition,
        headers=list(headers) or None,
        timestamp=0 if timestamp_ms is None else timestamp_ms,
        on_delivery=on_delivery,
    )
