"""What the log on Kafka makes of librdkafka's errors, against its own stand-in for brokers (no transport, no disk)."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace

import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka import KafkaError, KafkaException, Producer

from penstock.log import Partition, Record, RecordTooLargeError, TransientError, UnknownTopicError
from penstock.log.kafka import KafkaLog, connection, transactional_client
from penstock.log.kafka import writers as kafka_writers
from penstock.log.port import MAX_RECORD_BYTES


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
    with pytest.raises(RecordTooLargeError, match=r"t\[0\]"):
        writer.append([Record("t", bytes(MAX_RECORD_BYTES))])
    writer.append([Record("t", b"small")])


class SlowBrokers:
    """A producer whose acknowledgements come too late for the first flushes."""

    def __init__(self, producer, late: int) -> None:
        self._producer, self._late, self.produced = producer, late, []

    def __getattr__(self, name):
        return getattr(self._producer, name)

    def produce(self, topic, value, *rest, **record):
        self.produced.append(value)
        self._producer.produce(topic, value, *rest, **record)

    def flush(self, timeout_s):
        self._late -= 1
        return 1 if self._late >= 0 else self._producer.flush(timeout_s)


def test_an_append_that_is_not_acknowledged_in_time_is_waited_for_by_the_same_call(log):
    writer, records = log.writer(), [Record("t", b"%d" % i) for i in range(3)]
    writer._producer = brokers = SlowBrokers(writer._producer, 2)
    for _ in range(2):
        with pytest.raises(TransientError, match="not acknowledged"):
            writer.append(records)
    writer.append(records)
    assert brokers.produced == [b"0", b"1", b"2"], "each has one sequence number"


def test_unavailable_brokers_while_a_writer_is_opened_are_a_transient_error(monkeypatch):
    monkeypatch.setattr(kafka_writers, "_TRANSACTION_S", 1.0)
    with pytest.raises(TransientError, match="opening w"):
        KafkaLog("127.0.0.1:1").transactional("w")


def test_what_interrupts_a_transaction_that_no_broker_answers_ends_it(log, monkeypatch):
    """The records are never acknowledged."""
    writer = log.transactional("w")
    writer._producer = SlowBrokers(writer._producer, 1_000)
    calls: list[int] = []
    monkeypatch.setattr(writer, "_deleted", lambda _: None)

    def interrupt() -> None:
        calls.append(len(calls))
        if len(calls) == 3:
            raise InterruptedError

    monkeypatch.setattr(log, "interrupt", interrupt)
    with pytest.raises(InterruptedError):
        writer.commit([Record("t", b"a")])
    assert calls == [0, 1, 2]


def test_a_client_that_does_not_open_a_writer_soon_is_replaced_by_another_one(log, monkeypatch):
    """librdkafka tries again after 500 ms only, in which neither the previous writer nor this one can commit."""
    waits: list[float] = []

    class Refused:
        """A client that the brokers refuse while they abort the transaction of the previous one."""

        def __init__(self, settings: dict[str, object]) -> None:
            assert settings["transactional.id"] == "w"
            self.opened = False

        def list_topics(self, timeout: float) -> None:
            pass

        def init_transactions(self, timeout: float) -> None:
            assert not self.opened, "each is used once"
            self.opened = True
            waits.append(timeout)
            if len(waits) < 8:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "timed out", retriable=True))

        def purge(self) -> None:
            pass

        def flush(self, timeout: float) -> None:
            pass

    monkeypatch.setattr(transactional_client, "Producer", Refused)
    log.transactional("w").close()
    assert waits == pytest.approx([0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.4, 0.8])


def test_a_reader_that_cannot_begin_is_closed(log, monkeypatch):
    monkeypatch.setattr(connection, "_ANSWER_S", 1.0)
    with pytest.raises(UnknownTopicError):
        log.reader({Partition("t", 99): 0})
    assert log._opened == []


class Unconnected:
    """An admin client that does not connect again after an outage."""

    requests = 0

    def list_topics(self, **_):
        self.requests += 1
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))

    def poll(self, _):
        """There are no events."""


def test_a_client_that_does_not_get_metadata_is_replaced(log):
    unconnected = Unconnected()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "_admin", unconnected)
        with pytest.raises(TransientError, match="the brokers do not answer"):
            log.topics()
        assert log._replaced is unconnected
        log.topics()
        patch.setattr(log, "_admin", unconnected)
        assert log.last_error() is not None
        assert log.last_error() is None
    assert unconnected.requests == 2


class LoadingBrokers:
    """An admin client whose group coordinator is still loading when the first requests come."""

    def __init__(self, failures: int) -> None:
        self._failures, self.requests = failures, 0

    def list_topics(self, **_):
        """The brokers answer."""

    def describe_consumer_groups(self, groups, **_):
        self.requests += 1
        answer = Future()
        if self.requests <= self._failures:
            answer.set_exception(KafkaException(KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS)))
        else:
            answer.set_result(SimpleNamespace(authorized_operations=[SimpleNamespace(name="READ")]))
        return dict.fromkeys(groups, answer)


def test_a_request_that_fails_for_a_moment_is_made_again(log):
    """A future that has failed never gets another result, so waiting for it again would help nothing."""
    brokers = LoadingBrokers(failures=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "_admin", brokers)
        assert log.group_operations("g") == {"Read"}
    assert brokers.requests == 3
