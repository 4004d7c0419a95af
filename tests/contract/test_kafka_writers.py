"""Writers on a real broker: what a fatal error of the client, or brokers that are away, mean to a caller."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from penstock.broker import Broker
from penstock.log import (
    START,
    Backpressure,
    FencedError,
    LogError,
    Partition,
    Record,
    Topic,
    TransientError,
    UnknownTopicError,
)
from penstock.log.kafka import KafkaLog
from penstock.log.kafka import writers as kafka_writers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from confluent_kafka import Producer

    from penstock.log.kafka.writers import KafkaTransactionalWriter

pytestmark = pytest.mark.xdist_group("broker")
_LOST = "a record was refused: .*Message size too large"


def many(topic: str) -> list[Record]:
    """Records in one request to the broker, of which one is too large: the client loses all of them."""
    rng = random.Random(1)
    return [Record(topic, rng.randbytes(100_000 if i == 25 else 10)) for i in range(100)]


def test_a_writer_that_has_lost_a_record_says_why_and_its_successor_writes(broker, topic_prefix):
    """librdkafka calls the callbacks of the other lost records with the fatal error pending: Python's SystemError."""
    with closing(KafkaLog(broker.bootstrap_servers)) as log:
        log.create([Topic(topic_prefix, 1, max_bytes=2_000)])
        writer = log.writer()
        for record in many(topic_prefix):
            writer.submit(record)
        for call in (writer.flush, writer.flush, lambda: writer.append([Record(topic_prefix, b"a")])):
            with pytest.raises(LogError, match=_LOST) as found:
                call()
            assert not isinstance(found.value, TransientError)
        writer.close()
        log.writer().append([Record(topic_prefix, b"b")])


def test_a_fatal_error_that_a_writer_meets_while_it_submits_is_no_bare_exception_of_the_client(broker, topic_prefix):
    with closing(KafkaLog(broker.bootstrap_servers)) as log:
        log.create([Topic(topic_prefix, 1, max_bytes=2_000)])
        writer = log.writer()
        deadline = time.monotonic() + 30.0

        def submit() -> None:
            while time.monotonic() < deadline:
                for record in many(topic_prefix):
                    with suppress(Backpressure):  # the broker has not answered yet
                        writer.submit(record)

        with pytest.raises(LogError, match=_LOST):
            submit()
        writer.close()


def committed(log: KafkaLog, topic: str) -> list[bytes | None]:
    reader, read = log.reader({Partition(topic, 0): START}), []
    while not reader.caught_up():
        read += [message.value for message in reader.poll(100, 0.1)]
    return read


@pytest.fixture
def own(broker_jars, tmp_path: Path):
    """A broker of this test's own, which may be killed."""
    del broker_jars  # only for its means
    with Broker(tmp_path / "node") as started:
        yield started


def patiently(call: Callable[[], object]) -> None:
    """Call as the loop of a service does."""
    deadline = time.monotonic() + 120.0
    while True:
        try:
            call()
        except TransientError:
            assert time.monotonic() < deadline
        else:
            return


def test_a_transaction_survives_brokers_that_are_unavailable_for_longer_than_a_request(own, monkeypatch):
    """A service with results to write ended after 60 s, whatever its `give_up_s` was."""
    with closing(KafkaLog(own.bootstrap_servers, give_up_s=120.0)) as log:
        log.create([Topic("t")])
        writer = log.transactional("id")
        writer.commit([Record("t", b"before")])
        monkeypatch.setattr(kafka_writers, "_TRANSACTION_S", 5.0)
        own.kill()
        with ThreadPoolExecutor(1) as pool:
            commit = pool.submit(patiently, lambda: writer.commit([Record("t", b"during")]))
            time.sleep(12.0)
            assert not commit.done()
            own.start()
            commit.result()
        assert committed(log, "t") == [b"before", b"during"]


def test_a_transaction_without_brokers_does_not_block_beyond_the_time_to_give_up(own, monkeypatch):
    with closing(KafkaLog(own.bootstrap_servers, give_up_s=6.0)) as log:
        log.create([Topic("t")])
        writer = log.transactional("id")
        writer.commit([Record("t", b"before")])
        monkeypatch.setattr(kafka_writers, "_TRANSACTION_S", 2.0)
        own.kill()
        began = time.monotonic()
        with pytest.raises(LogError):
            writer.commit([Record("t", b"during")])
        assert time.monotonic() - began < 60.0  # a request for topics may take 30 s


class NeverAborts:
    """A producer with a record that it can neither write nor drop, as librdkafka has it if a partition is deleted
    while a record is retried.
    """

    def __init__(self, producer: Producer) -> None:
        self._producer = producer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def __len__(self) -> int:
        return len(self._producer)

    def abort_transaction(self, timeout_s: float) -> None:
        time.sleep(timeout_s)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "1 message(s) remaining", retriable=True))


def test_an_abort_that_waits_for_a_record_of_a_deleted_topic_is_left_to_the_successor(broker, topic_prefix):
    other, deleted = topic_prefix, f"{topic_prefix}-deleted"
    with closing(KafkaLog(broker.bootstrap_servers)) as log:
        log.create([Topic(other), Topic(deleted)])
        writer = log.transactional(topic_prefix)
        writer.commit([Record(other, b"a"), Record(deleted, b"a")])
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.delete_topics([deleted])[deleted].result()
        writer._producer = NeverAborts(writer._producer)
        began = time.monotonic()

        def write() -> None:
            while time.monotonic() < began + 60.0:
                writer.commit([Record(other, b"b"), Record(deleted, b"b")])

        with pytest.raises(UnknownTopicError) as found:
            write()
        assert (found.value.topic, found.value.over) == (deleted, True)
        writer.close()
        log.transactional(topic_prefix).commit([Record(other, b"c")])
        assert time.monotonic() - began < 60.0  # was more than the 300 s after which a log gives up
        assert committed(log, other) in ([b"a", b"c"], [b"a", b"b", b"c"])


def test_a_writer_that_fences_a_busy_one_commits_soon(broker, topic_prefix):
    """Each of them commits without a pause until the next one is open. The median, since the machine may be busy."""
    places = [Record(topic_prefix, b"a", partition=i) for i in range(2)]
    with closing(KafkaLog(broker.bootstrap_servers)) as log, ThreadPoolExecutor(1) as thread:
        log.create([Topic(topic_prefix, 2)])
        writer, gaps, calm = log.transactional(topic_prefix), [], []

        def commit(writer: KafkaTransactionalWriter) -> float:
            """Commit until this writer is fenced; return when its last commit had ended."""
            while True:
                last = time.monotonic()
                try:
                    writer.commit(places)
                except FencedError:
                    return last

        for _ in range(9):
            busy = thread.submit(commit, writer)
            time.sleep(0.1)
            began = time.monotonic()
            log.transactional(f"{topic_prefix}.idle").commit(places)
            calm.append(time.monotonic() - began)
            writer = log.transactional(topic_prefix)
            writer.commit(places)
            gaps.append(time.monotonic() - busy.result(60))
    print(f"no commits for {median(gaps):.3f} s (median), {max(gaps):.3f} s (longest); calm: {median(calm):.3f} s")
    assert median(gaps) < max(0.4, 3 * median(calm)), "the client's own pause is .5 s"
