"""What the log on Kafka makes of librdkafka's errors, against its own stand-in for brokers (no transport, no disk)."""

from __future__ import annotations

import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka import Producer

from penstock.log import LogError, Partition, Record, TransientError, UnknownTopicError, kafka_writers
from penstock.log.kafka import MAX_RECORD_BYTES, KafkaLog


@pytest.fixture(scope="module")
def brokers():
    cluster = Producer({"test.mock.num.brokers": 1, "log_level": 2})
    yield ",".join(f"{b.host}:{b.port}" for b in cluster.list_topics(timeout=30.0).brokers.values())
    cluster.flush(0)  # they are gone with it


@pytest.fixture
def log(brokers):
    made = KafkaLog(brokers)
    made._known = {"t": 1}  # the stand-in makes topics when they are written to
    yield made
    made.close()


def test_a_record_that_is_too_large_is_the_logs_error(log):
    writer = log.writer()
    with pytest.raises(LogError, match="too large"):
        writer.append([Record("t", bytes(MAX_RECORD_BYTES + 1))])
    writer.append([Record("t", b"small")])


def test_brokers_that_are_away_while_a_writer_is_opened_are_a_transient_error(monkeypatch):
    monkeypatch.setattr(kafka_writers, "_TRANSACTION_S", 1.0)
    with pytest.raises(TransientError, match="opening w"):
        KafkaLog("127.0.0.1:1").transactional("w")


def test_a_reader_that_cannot_begin_is_let_go_of(log):
    with pytest.raises(UnknownTopicError):
        log.reader({Partition("t", 99): 0})
    assert log._opened == []
