"""Batches of records that the client cannot decompress (docs/kafka.md).

A producer can compress records of many gigabytes into a batch that the brokers accept. librdkafka decompresses zstd and
snappy only to a size of `receive.message.max.bytes`. If a batch is larger, librdkafka reports an error with the first
offset of the batch, and fetches the batch again, for ever. A reader therefore skips the batch.
"""

from __future__ import annotations

import logging
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from penstock.log.errors import TransientError
from penstock.log.port import Message, Partition

if TYPE_CHECKING:
    import confluent_kafka

    from penstock.log.kafka.connection import KafkaConnection

_PROBE_S: Final = 10.0
_log = logging.getLogger("penstock.log.kafka")
_PROBING: Final = {
    "group.id": "-",
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": 10,
}


class UnreadableBatches:
    """The unreadable batches of the partitions that one reader reads."""

    def __init__(self, log: KafkaConnection) -> None:
        self._log = log
        self._ends: dict[Partition, tuple[int, int]] = {}  # the first offset and the end of the last batch

    def skipped(self, raw: confluent_kafka.Message) -> Message | None:
        """Return a message in place of an unreadable batch. `raw`: the consumer's error about the batch. The message
        has the last offset of the batch. None if this reader has already skipped the batch. None also if the brokers do
        not respond; the consumer then reports the error again.
        """
        name, first = Partition(raw.topic(), raw.partition()), raw.offset()
        known = self._ends.get(name)
        if known is not None and known[0] == first:
            return None
        try:
            end = _end_of_batch(self._log, name, first)
        except (TransientError, KafkaException) as error:
            _log.warning("%s[%d]: the end of the batch at offset %d is not known: %s", *name, first, error)
            return None
        self._ends[name] = first, end
        where = f"offset {first}" if end == first + 1 else f"offsets {first} to {end - 1}"
        error_text = f"{where}: the client cannot decompress the batch of records"
        return Message(*name, end - 1, -1, None, None, (), error_text)

    def forget(self) -> None:
        """Forget which batches were skipped, because the reader has moved. If the reader then reads such a batch again,
        the reader skips the batch again.
        """
        self._ends.clear()


def is_unreadable(raw: confluent_kafka.Message) -> bool:
    """Return whether `raw` is an error about a batch that the consumer cannot decompress."""
    error = raw.error()
    return error is not None and error.code() == KafkaError._BAD_COMPRESSION and raw.offset() >= 0


def _end_of_batch(log: KafkaConnection, name: Partition, first: int) -> int:
    """Return the offset after an unreadable batch. The size of the batch is not known. The function therefore reads
    offsets after `first`, at growing and then at shrinking distances. Each offset in the batch has the same error.
    TransientError if the brokers do not respond.
    """
    with closing(Consumer(log.client(**_PROBING))) as consumer:
        inside, step = first, 1
        while _is_in_batch(consumer, name, first, inside + step):
            inside += step
            step *= 2
        beyond = inside + step
        while beyond - inside > 1:
            middle = (inside + beyond) // 2
            if _is_in_batch(consumer, name, first, middle):
                inside = middle
            else:
                beyond = middle
    return beyond


def _is_in_batch(consumer: Consumer, name: Partition, first: int, offset: int) -> bool:
    consumer.assign([TopicPartition(name.topic, name.number, offset)])
    deadline = time.monotonic() + _PROBE_S
    while (left_s := deadline - time.monotonic()) > 0:
        raw = consumer.poll(left_s)
        if raw is None:
            continue
        error = raw.error()
        if error is None or error.code() in {KafkaError._PARTITION_EOF, KafkaError.OFFSET_OUT_OF_RANGE}:
            return False
        if error.code() == KafkaError._AUTO_OFFSET_RESET:  # the offset is beyond the end of the partition
            return False
        if is_unreadable(raw):
            return bool(raw.offset() == first)
    raise TransientError(f"{name.topic}[{name.number}]: offset {offset} was not read within {_PROBE_S} s")
