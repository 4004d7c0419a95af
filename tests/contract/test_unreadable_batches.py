"""Batches of records that librdkafka refuses to decompress are skipped, and nothing else is lost (docs/kafka.md)."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka import KafkaError, Producer

from penstock.log import START, Partition, Topic
from penstock.log.kafka import KafkaLog

if TYPE_CHECKING:
    from penstock.broker import Broker
    from penstock.log import Message

pytestmark = pytest.mark.xdist_group("broker")
BOMB = b"x" * (110 << 20)  # librdkafka decompresses zstd up to 100 MB


def produce(broker: Broker, topic: str, *batches: list[bytes]) -> None:
    """Write each batch as one batch of the log, compressed, as any producer can."""
    # each `flush` ends the wait for more records, so a slow machine does not split a batch
    settings = {"compression.type": "zstd", "message.max.bytes": 1_000_000_000, "linger.ms": 60_000}
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "batch.size": 900_000_000, **settings})
    for batch in batches:
        for value in batch:
            producer.produce(topic, value, partition=0)
        assert producer.flush(60.0) == 0


def read(reader, count: int) -> list[Message]:
    found: list[Message] = []
    deadline = time.monotonic() + 60
    while len(found) < count and time.monotonic() < deadline:
        found += reader.poll(1_000, 0.5)
    return found + reader.poll(1_000, 1.0)


EXPECTED = [(0, b"a", ""), (11, None, "offsets 1 to 11"), (12, None, "offset 12"), (13, b"b", ""), (14, b"c", "")]


@pytest.fixture
def topic(broker: Broker, topic_prefix: str) -> str:
    name = f"{topic_prefix}unreadable"
    with closing(KafkaLog(broker.bootstrap_servers)) as log:
        log.create([Topic(name)])
    large = BOMB[: 40 << 20]
    produce(
        broker,
        name,
        [b"a"],
        [b"1", b"2", large, large, b"3", large, b"4", large, b"5", b"6", b"7"],
        [BOMB],
        [b"b", b"c"],
    )
    return name


def verify(found: list[Message]) -> None:
    assert [(m.offset, m.value) for m in found] == [each[:2] for each in EXPECTED]
    for message, (_, value, where) in zip(found, EXPECTED, strict=True):
        assert message.error == ("" if value else f"{where}: the client cannot decompress the batch of records")


def test_a_reader_skips_them_each_time(broker, topic):
    partition = Partition(topic)
    with closing(KafkaLog(broker.bootstrap_servers)) as log:
        reader = log.reader({partition: START})
        verify(read(reader, 5))
        assert reader.positions() == {partition: 15}
        reader.assign({partition: 5})  # in the middle of the first one
        assert [m.offset for m in read(reader, 4)] == [11, 12, 13, 14]
        deadline = time.monotonic() + 10
        while not reader.caught_up() and time.monotonic() < deadline:
            assert reader.poll(10, 0.2) == []
        assert reader.caught_up()


def test_a_member_of_a_group_skips_them_and_commits(broker, topic):
    partition = Partition(topic)
    with closing(KafkaLog(broker.bootstrap_servers)) as log:
        reader = log.join(f"{topic}-group", [topic])
        verify(read(reader, 5))
        assert reader.positions() == {partition: 15}
        reader.commit({partition: 12})
        reader.close()
        again = log.join(f"{topic}-group", [topic])
        assert [m.offset for m in read(again, 3)] == [12, 13, 14]


def test_a_topic_that_stores_batches_uncompressed_refuses_them(broker, topic_prefix):
    name = f"{topic_prefix}uncompressed"
    with closing(KafkaLog(broker.bootstrap_servers)) as log:
        log.create([Topic(name, compression="uncompressed")])
    refused = []
    settings = {"compression.type": "gzip", "message.max.bytes": 1_000_000_000, "message.timeout.ms": 60_000}
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **settings})
    producer.produce(name, BOMB, on_delivery=lambda error, _: refused.append(error.code()))
    assert producer.flush(60.0) == 0
    assert refused == [KafkaError.MSG_SIZE_TOO_LARGE]
