"""The stream adaptor on a real Spark and a real broker: the plain adaptor's records, restarts, streams that
come later.
"""

from __future__ import annotations

import time

import pytest

from penstock.errors import StorageError
from penstock.log import FencedError, Partition, Record, TransientError
from penstock.log.kafka import KafkaLog
from penstock.log.topics import TopicNames
from penstock.services.adaptor.adaptor import Adaptor
from penstock.spark.session import connector_jars
from penstock.spark.stream_adaptor import StreamAdaptor, StreamSettings
from support import adaptors
from support.brokers import broker, topic_prefix  # noqa: F401 - fixtures

BOUND_S = 400.0  # a busy machine compiles Spark for minutes


@pytest.fixture(scope="module")
def dictionary():
    with adaptors.dictionary() as running:
        yield running


class StateMachine:
    """A cluster's topics on the broker, under names of their own; adaptors of it."""

    def __init__(self, bootstrap_servers, prefix, spark, dictionary, checkpoint):
        self.bootstrap_servers, self.names = bootstrap_servers, TopicNames(prefix)
        self.spark, self.dictionary, self.checkpoint = spark, dictionary, str(checkpoint)
        self.log, self.group = KafkaLog(bootstrap_servers), f"{prefix}-adaptor"
        adaptors.create(self.log, self.names)
        self.sources = [Partition(self.names.events(s), n) for s in adaptors.STREAMS.values() for n in range(2)]

    def produce(self, records):
        self.log.writer().append(records)

    def adaptor(self, **settings):
        given = {"bootstrap_servers": self.bootstrap_servers, "dictionaries": (self.dictionary.address,)}
        given |= {"checkpoint": self.checkpoint, "group": self.group, **settings}
        return StreamAdaptor(self.spark, self.log, self.names, StreamSettings(**given))

    def all_done(self):
        """Whether the group's progress is at the end of all events."""
        spans, done = self.log.spans(self.sources), self.log.committed(self.group, self.sources)
        return all(done.get(source, 0) >= spans[source].end for source in self.sources)

    def written(self):
        return adaptors.read(self.log, self.names, self.dictionary.terms)


@pytest.fixture
def state_machine(spark, broker, topic_prefix, dictionary, tmp_path):  # noqa: F811
    try:
        connector_jars()
    except StorageError as error:
        pytest.skip(str(error))
    made = StateMachine(broker.bootstrap_servers, topic_prefix, spark, dictionary, tmp_path / "checkpoint [1]")
    yield made
    made.log.close()


def until(condition, adaptor):
    deadline = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {BOUND_S} s"
        adaptor.step(0.1)


def once(written):
    """Without what was written again: as the dispatcher reads it, by source offset."""
    for name, events in written.events.items():
        remaining, last = [], -1
        for event in events:
            if event[1] == "heartbeat" or event[1] > last:
                assert event[1] == "heartbeat" or event[1] <= last + 1 + len(adaptors.CORPUS), "a gap"
                remaining.append(event)
                last = last if event[1] == "heartbeat" else event[1]
        written.events[name] = remaining
    return written


@pytest.mark.parametrize("checkpoint_ms", [0, 1_000])
def test_it_writes_what_the_plain_adaptor_writes(state_machine, checkpoint_ms):
    produced = adaptors.messages(state_machine.names)
    adaptors.declare(state_machine.log, state_machine.names)
    state_machine.produce(produced)
    adaptor = state_machine.adaptor(checkpoint_ms=checkpoint_ms)
    until(state_machine.all_done, adaptor)
    assert sum(adaptor.lag().values()) == 0
    adaptor.close()
    expected, plain = adaptors.by_plain(state_machine.names, state_machine.dictionary, produced)
    assert state_machine.written() == expected
    made = plain.adapting
    assert (adaptor.events, adaptor.tuples, adaptor.dead) == (made.events, made.tuples, made.dead)


def test_streams_declared_later_and_restarts_lose_nothing(state_machine):
    """One stream, then both, each time a new query over the same checkpoint, small batches; a restart in
    silence, too.
    """
    every = adaptors.messages(state_machine.names)
    first, second = every[::3], [record for i, record in enumerate(every) if i % 3]
    state_machine.produce(first)
    adaptors.declare(state_machine.log, state_machine.names, "b")
    adaptor = state_machine.adaptor(max_events=100)
    done = Partition(state_machine.names.events("b"), 0)
    until(lambda: state_machine.log.committed(state_machine.group, [done]).get(done), adaptor)
    assert not state_machine.log.committed(state_machine.group, [Partition(state_machine.names.events("a"), 0)])
    adaptors.declare(state_machine.log, state_machine.names)
    until(lambda: adaptor.events > 100, adaptor)
    adaptor.close()
    adaptor = state_machine.adaptor()
    state_machine.produce(second)
    until(state_machine.all_done, adaptor)
    adaptor.close()
    adaptor = state_machine.adaptor()
    adaptor.step(0.1)
    assert state_machine.all_done()
    adaptor.close()
    expected, _ = adaptors.by_plain(state_machine.names, state_machine.dictionary, [*first, *second])
    assert once(state_machine.written()) == expected


def test_the_filter_grows_during_a_run(state_machine):
    """What comes behind the change has it; the records, and a mark in each partition, tell by which version
    they are cut.
    """
    every = adaptors.messages(state_machine.names)
    first, second = every[::3], [record for i, record in enumerate(every) if i % 3]
    adaptors.declare(state_machine.log, state_machine.names)
    adaptors.pass_only(state_machine.log, state_machine.names, 1, "http://x/q")
    state_machine.produce(first)
    adaptor = state_machine.adaptor()
    until(state_machine.all_done, adaptor)
    before = once(state_machine.written())
    assert before.versions == {1}
    assert all("http://x/p" not in str(event) for events in before.events.values() for event in events)
    adaptors.pass_only(state_machine.log, state_machine.names, 2, "http://x/q", "http://x/p")
    until(lambda: 2 in state_machine.written().versions, adaptor)  # although nothing comes
    state_machine.produce(second)
    until(state_machine.all_done, adaptor)
    adaptor.close()
    found = once(state_machine.written())
    whole, _ = adaptors.by_plain(
        state_machine.names, state_machine.dictionary, [*first, *second], ["http://x/q", "http://x/p"]
    )
    for name, events in found.events.items():
        known = len(before.events[name])
        assert events[:known] == before.events[name]
        assert events[known:] == whole.events[name][known:]
        assert sum("http://x/p" in str(event) for event in events[known:]) > 50


def test_plain_and_spark_take_over_from_one_another(state_machine):
    produced = adaptors.messages(state_machine.names)
    third = len(produced) // 3
    adaptors.declare(state_machine.log, state_machine.names)

    def by_spark(records):
        state_machine.produce(records)
        adaptor = state_machine.adaptor()
        until(state_machine.all_done, adaptor)
        adaptor.close()

    by_spark(produced[:third])
    state_machine.produce(produced[third : 2 * third])
    plain = Adaptor(state_machine.log, state_machine.names, state_machine.dictionary.service, state_machine.group)
    until(state_machine.all_done, plain)
    plain.close()
    by_spark(produced[2 * third :])
    assert state_machine.written() == adaptors.by_plain(state_machine.names, state_machine.dictionary, produced)[0]


def test_a_second_driver_takes_over_and_the_first_ends(state_machine):
    adaptors.declare(state_machine.log, state_machine.names)
    first = state_machine.adaptor()
    second = state_machine.adaptor()
    state_machine.produce(adaptors.messages(state_machine.names)[:10])
    with pytest.raises(FencedError):
        until(lambda: False, first)
    first.close()
    until(state_machine.all_done, second)
    second.close()


def test_a_query_that_fails_again_and_again_ends_the_adaptor_with_the_reason(state_machine):
    adaptors.declare(state_machine.log, state_machine.names)
    state_machine.dictionary, original = (
        adaptors.Dictionary("grpc://127.0.0.1:1", state_machine.dictionary.service),
        state_machine.dictionary,
    )
    state_machine.produce([Record(state_machine.names.events("a"), adaptors.LINE)])
    adaptor = state_machine.adaptor(give_up_s=0.1)
    for _ in range(4):
        with pytest.raises(TransientError, match="no dictionary responds"):
            until(lambda: False, adaptor)
    with pytest.raises(StorageError, match=r"no dictionary responds.*5 times"):
        until(lambda: False, adaptor)
    adaptor.close()
    state_machine.dictionary = original
    adaptor = state_machine.adaptor()
    until(lambda: adaptor.events == 1, adaptor)
    adaptor.close()
