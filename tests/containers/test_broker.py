"""A broker in a container serves the log as the broker from the jars does."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from penstock.log import START, Partition, Record, Topic
from penstock.log.kafka import KafkaLog

if TYPE_CHECKING:
    from support.containers import ContainerBroker

pytestmark = pytest.mark.xdist_group("containers")


def test_what_a_transaction_writes_is_read_in_order(broker_in_container: ContainerBroker, topic_prefix: str):
    with closing(KafkaLog(broker_in_container.bootstrap_servers)) as log:
        log.create([Topic(topic_prefix, 2)])
        assert log.topics()[topic_prefix] == 2
        writer = log.transactional(f"{topic_prefix}.x")
        with closing(writer):
            writer.commit([Record(topic_prefix, b"%d" % i, None, i % 2) for i in range(100)])
        reader = log.reader({Partition(topic_prefix, i): START for i in range(2)})
        found: dict[int, list[bytes]] = {0: [], 1: []}
        while not reader.caught_up():
            for message in reader.poll(1000, 0.2):
                found[message.partition].append(message.value)
        reader.close()
    assert found == {part: [b"%d" % i for i in range(part, 100, 2)] for part in range(2)}
