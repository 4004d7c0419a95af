"""The locked connector speaks with the locked broker: what producers wrote is what Spark reads."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.errors import StorageError
from penstock.spark.session import connector_jars
from support.brokers import broker, topic_prefix  # noqa: F401 - fixtures


@pytest.fixture
def connector():
    try:
        return connector_jars()
    except StorageError as error:
        pytest.skip(str(error))


def test_spark_reads_what_a_producer_wrote(spark, connector, broker, topic_prefix):  # noqa: F811
    assert len(connector) == 4
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(topic_prefix, 2)])[topic_prefix].result(60)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for i in range(1_000):
        producer.produce(topic_prefix, f"event {i}".encode(), headers={"timestamp": str(i)}, partition=i % 2)
    assert producer.flush(30) == 0
    frame = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", broker.bootstrap_servers)
        .option("subscribe", topic_prefix)
        .option("includeHeaders", "true")
        .load()
    )
    rows = frame.select("partition", "offset", "value", "headers").collect()
    found = sorted((row.partition, row.offset, bytes(row.value), bytes(row.headers[0].value)) for row in rows)
    expected = sorted((i % 2, i // 2, f"event {i}".encode(), str(i).encode()) for i in range(1_000))
    assert found == expected
