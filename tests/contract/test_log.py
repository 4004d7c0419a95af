"""What every back end of the log promises (libs/penstock/log/port.py)."""

from __future__ import annotations

import random
import time
from itertools import count
from statistics import median
from typing import TYPE_CHECKING

import pytest

from penstock.log import (
    END,
    START,
    FencedError,
    LogError,
    MemoryLog,
    Partition,
    RebalancedError,
    Record,
    RecordRefusedError,
    RecordTooLargeError,
    Topic,
    UnknownTopicError,
)
from penstock.log.port import MAX_RECORD_BYTES
from penstock.log.sizes import wire_bytes
from penstock.log.view import CompactedView, Lookup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.log import Log, Message, Reader

_numbers = count()
_BOUND_S = 30.0


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.xdist_group("broker"))])
def log(request: pytest.FixtureRequest) -> Iterator[Log]:
    if request.param == "memory":
        log: Log = MemoryLog()
    else:
        broker = request.getfixturevalue("broker")
        kafka = pytest.importorskip("penstock.log.kafka")
        log = kafka.KafkaLog(broker.bootstrap_servers)
    yield log
    log.close()


@pytest.fixture
def topic(log: Log) -> str:
    name = f"contract-{next(_numbers)}-{time.time_ns()}"
    log.create([Topic(name, 2)])
    return name


def read_to_end(reader: Reader, until: Callable[[], bool] | None = None, at_least: int = 0) -> list[Message]:
    """What there is up to the end; a transaction may become visible a moment after its commit, hence `at_least`."""
    done = until or reader.caught_up
    messages: list[Message] = []
    deadline = time.monotonic() + _BOUND_S
    while True:
        messages += reader.poll(100, 0.1)
        if done() and len(messages) >= at_least:
            return messages
        assert time.monotonic() < deadline, "the log did not come to its end"


def eventually(look: Callable[[], object], expected: object) -> None:
    deadline = time.monotonic() + _BOUND_S
    while (found := look()) != expected:
        assert time.monotonic() < deadline, found


def values(messages: list[Message]) -> list[bytes | None]:
    return [message.value for message in messages]


def test_records_come_back_in_order_with_all_they_carry(log: Log, topic: str) -> None:
    writer = log.writer()
    records = [
        Record(topic, b"a", b"k", 0, (("content-type", b"text/turtle"), ("x", b"\xff")), 1234),
        Record(topic, None, b"k", 0, (), 1235),
        Record(topic, b"", None, 0, (), 1236),
    ]
    writer.append(records)
    read = read_to_end(log.reader({Partition(topic, 0): START}))
    assert [(m.key, m.value, m.headers, m.timestamp_ms) for m in read] == [
        (r.key, r.value, r.headers, r.timestamp_ms) for r in records
    ]
    assert [m.offset for m in read] == sorted({m.offset for m in read})


def test_partitions_are_apart(log: Log, topic: str) -> None:
    log.writer().append([Record(topic, b"%d" % i, partition=i % 2) for i in range(10)])
    assert values(read_to_end(log.reader({Partition(topic, 1): START}))) == [b"1", b"3", b"5", b"7", b"9"]
    both = read_to_end(log.reader({Partition(topic, 0): START, Partition(topic, 1): START}))
    assert sorted(values(both)) == sorted(b"%d" % i for i in range(10))


def test_reading_begins_at_the_given_offset(log: Log, topic: str) -> None:
    writer, name = log.writer(), Partition(topic, 0)
    writer.append([Record(topic, b"%d" % i) for i in range(5)])
    assert values(read_to_end(log.reader({name: 3}))) == [b"3", b"4"]
    at_end = log.reader({name: END})
    assert read_to_end(at_end) == []
    writer.append([Record(topic, b"new")])
    assert values(read_to_end(at_end, lambda: at_end.positions()[name] >= 6)) == [b"new"]
    at_end.assign({name: 1})
    assert values(read_to_end(at_end))[:1] == [b"1"]


def test_a_paused_partition_returns_nothing_and_loses_nothing(log: Log, topic: str) -> None:
    names = [Partition(topic, 0), Partition(topic, 1)]
    reader = log.reader(dict.fromkeys(names, START))
    reader.pause([names[0]])
    log.writer().append([Record(topic, b"0", partition=0), Record(topic, b"1", partition=1)])
    assert values(read_to_end(reader, lambda: reader.positions()[names[1]] > 0)) == [b"1"]
    assert reader.poll(10, 0.2) == []
    reader.resume([names[0]])
    assert values(read_to_end(reader, at_least=1)) == [b"0"]


def test_an_unassigned_partition_is_read_no_more(log: Log, topic: str) -> None:
    names = [Partition(topic, 0), Partition(topic, 1)]
    reader = log.reader(dict.fromkeys(names, START))
    reader.unassign([names[0]])
    log.writer().append([Record(topic, b"0", partition=0), Record(topic, b"1", partition=1)])
    assert values(read_to_end(reader, at_least=1)) == [b"1"]
    assert set(reader.positions()) == {names[1]}


def test_a_transaction_is_seen_whole_with_its_progress(log: Log, topic: str) -> None:
    writer = log.transactional(f"{topic}-id")
    source = Partition(topic, 1)
    records = [Record(topic, b"a"), Record(topic, b"b", partition=1), Record(topic, b"c")]
    offsets = writer.commit(records, {source: 17}, f"{topic}-group")
    assert log.committed(f"{topic}-group", [source, Partition(topic, 0)]) == {source: 17}
    assert log.committed(f"{topic}-group", []) == {}
    read = read_to_end(log.reader({Partition(topic, 0): START, source: START}), at_least=3)
    assert {(m.partition, m.offset): m.value for m in read} == {
        (r.partition, offset): r.value for r, offset in zip(records, offsets, strict=True)
    }


def test_transactions_follow_one_another(log: Log, topic: str) -> None:
    writer, name = log.transactional(f"{topic}-id"), Partition(topic, 0)
    for i in range(5):
        writer.commit([Record(topic, b"%d" % i)], {name: i}, f"{topic}-group")
    assert writer.commit([], {name: 9}, f"{topic}-group") == []
    reader = log.reader({name: START})
    assert values(read_to_end(reader, at_least=5)) == [b"%d" % i for i in range(5)]
    assert reader.positions()[name] >= 5
    assert log.committed(f"{topic}-group", [name]) == {name: 9}


def test_a_younger_writer_fences_the_older(log: Log, topic: str) -> None:
    older = log.transactional(f"{topic}-id")
    older.commit([Record(topic, b"1")])
    younger = log.transactional(f"{topic}-id")
    with pytest.raises(FencedError):
        older.commit([Record(topic, b"2")])
    younger.commit([Record(topic, b"3")])
    with pytest.raises(FencedError):
        older.commit([Record(topic, b"4")])
    assert values(read_to_end(log.reader({Partition(topic, 0): START}), at_least=2)) == [b"1", b"3"]


def test_a_fenced_transaction_leaves_no_progress(log: Log, topic: str) -> None:
    older = log.transactional(f"{topic}-id")
    log.transactional(f"{topic}-id")
    with pytest.raises(FencedError):
        older.commit([Record(topic, b"1")], {Partition(topic, 0): 5}, f"{topic}-group")
    assert log.committed(f"{topic}-group", [Partition(topic, 0)]) == {}


def test_spans_tell_where_partitions_begin_and_end(log: Log, topic: str) -> None:
    names = [Partition(topic, 0), Partition(topic, 1)]
    log.writer().append([Record(topic, b"x")] * 3)
    assert log.spans(names) == {names[0]: (0, 3), names[1]: (0, 0)}


def test_creating_again_changes_nothing(log: Log, topic: str) -> None:
    log.create([Topic(topic, 5), Topic(f"{topic}-more", 3, "compact")])
    assert log.topics()[topic] == 2
    assert log.topics()[f"{topic}-more"] == 3


def test_a_topic_gains_partitions_and_never_loses_any(log: Log, topic: str) -> None:
    log.writer().append([Record(topic, b"before", None, 1)])
    for partitions in (4, 3):
        log.grow(topic, partitions)
        assert log.topics()[topic] == 4
    log.writer().append([Record(topic, b"after", None, 3)])
    spans = log.spans([Partition(topic, i) for i in range(4)])
    assert [span.end - span.start for span in spans.values()] == [0, 1, 0, 1]
    with pytest.raises(UnknownTopicError):
        log.grow("unknown-topic", 2)


def test_unknown_topics_are_an_error(log: Log, topic: str) -> None:
    for use in (
        lambda: log.spans([Partition("unknown-topic")]),
        lambda: log.reader({Partition("unknown-topic"): START}),
        lambda: log.reader({Partition(topic, 7): START}),
        lambda: log.writer().append([Record("unknown-topic", b"")]),
        lambda: log.transactional(f"{topic}-unknown").commit([Record("unknown-topic", b"")]),
    ):
        with pytest.raises(UnknownTopicError):
            use()


def test_the_compacted_view_holds_the_last_of_each_key(log: Log, topic: str) -> None:
    name = f"{topic}-compact"
    log.create([Topic(name, 1, "compact")])
    writer = log.transactional(f"{topic}-id")
    writer.commit([Record(name, b"1", b"a"), Record(name, b"2", b"b"), Record(name, b"3", b"c")])
    writer.commit([Record(name, b"4", b"a"), Record(name, None, b"b")])
    view = CompactedView(log, [Partition(name)])
    eventually(lambda: {key: m.value for key, m in view.catch_up().items()}, {b"a": b"4", b"c": b"3"})
    writer.commit([Record(name, None, b"a"), Record(name, b"5", b"d")])
    eventually(lambda: {key: m.value for key, m in view.catch_up().items()}, {b"c": b"3", b"d": b"5"})
    view.close()


def test_single_records_are_fetched_by_offset(log: Log, topic: str) -> None:
    writer, name = log.transactional(f"{topic}-id"), Partition(topic, 0)
    offsets = [writer.commit([Record(topic, b"%d" % i)])[0] for i in range(5)]
    eventually(lambda: log.spans([name])[name].end > offsets[-1], expected=True)
    lookup = Lookup(log)
    found = lookup.fetch({name: [offsets[4], offsets[1], offsets[1] + 1, 10_000]})[name]
    assert {offset: m.value for offset, m in found.items() if offset in offsets[1::3]} == {
        offsets[1]: b"1",
        offsets[4]: b"4",
    }
    assert lookup.fetch({name: [offsets[0]]})[name][offsets[0]].value == b"0"
    lookup.close()


def test_records_of_many_topics_are_fetched_together(log: Log, topic: str) -> None:
    topics = [f"{topic}-{i}" for i in range(30)]
    log.create([Topic(name) for name in topics])
    log.writer().append([Record(name, b"%d" % i) for name in topics for i in range(3)])
    lookup = Lookup(log)
    requested = {Partition(name): [1 + i % 2, 77] for i, name in enumerate(topics)}
    began = time.monotonic()
    found = lookup.fetch(requested)
    assert time.monotonic() - began < _BOUND_S / 2, "not one after the other"
    assert {name: [m.value for m in of.values()] for name, of in found.items()} == {
        name: [b"%d" % offsets[0]] for name, offsets in requested.items()
    }
    assert lookup.fetch({}) == {}
    lookup.close()


def test_a_topic_that_was_not_read_before_is_found_at_once(log: Log, topic: str) -> None:
    """The dispatcher looks up late events between two batches of all streams."""
    topics = [f"{topic}-{i}" for i in range(6)]
    log.create([Topic(name) for name in topics])
    log.writer().append([Record(name, b"1") for name in topics])
    lookup, seconds = Lookup(log), []
    for name in topics:
        began = time.monotonic()
        assert lookup.fetch({Partition(name): [0]})[Partition(name)][0].value == b"1"
        seconds.append(time.monotonic() - began)
    lookup.close()
    assert median(seconds) < 0.25, seconds  # the client by itself takes up to a second


def incompressible(size: int) -> bytes:
    return random.Random(1).randbytes(size)


def test_a_record_that_is_too_large_is_refused_before_it_is_produced(log: Log, topic: str) -> None:
    empty = Record(topic, b"", b"key", headers=(("name", b"value"), ("näme", b"")))
    room = MAX_RECORD_BYTES - wire_bytes(empty)
    small, large = Record(topic, b"small"), empty._replace(value=bytes(room + 1))
    writer, transactional = log.writer(), log.transactional(f"{topic}-writer")
    for write in (writer.append, transactional.commit):
        with pytest.raises(
            RecordTooLargeError, match=rf"{topic}\[0\]: .* {MAX_RECORD_BYTES + 1} .*\({MAX_RECORD_BYTES}\)"
        ):
            write([small, large])
    with pytest.raises(RecordTooLargeError):
        writer.submit(large)
    writer.flush()
    assert log.spans([Partition(topic)])[Partition(topic)].end == 0, "nothing of the calls took effect"
    writer.append([small])
    largest = empty._replace(value=incompressible(room))
    transactional.commit([largest])
    found = read_to_end(log.reader({Partition(topic): START}), at_least=2)
    assert [m.value for m in found] == [b"small", largest.value], "the limit itself is taken, whatever it holds"


def test_a_group_goes_on_where_it_stopped(log: Log, topic: str) -> None:
    log.writer().append([Record(topic, b"%d" % i, partition=i % 2) for i in range(6)])
    names = {Partition(topic, 0), Partition(topic, 1)}
    first = log.join(f"{topic}-group", [topic])
    read: list[Message] = []
    deadline = time.monotonic() + _BOUND_S
    while len(read) < 6 and time.monotonic() < deadline:
        read += first.poll(10, 0.2)
    assert first.assigned() == names
    first.commit({Partition(topic, 0): 2, Partition(topic, 1): 3})
    first.close()
    second = log.join(f"{topic}-group", [topic])
    again: list[Message] = []
    while not again and time.monotonic() < deadline:
        again += second.poll(10, 0.2)
    assert values(again) == [b"4"]
    second.close()


def test_a_member_may_name_its_topics_later(log: Log, topic: str) -> None:
    member = log.join(f"{topic}-group", [])
    assert member.poll(10, 0.1) == []
    log.writer().append([Record(topic, b"x")])
    member.subscribe([topic])
    deadline = time.monotonic() + _BOUND_S
    read: list[Message] = []
    while not read and time.monotonic() < deadline:
        read += member.poll(10, 0.2)
    assert values(read) == [b"x"]
    assert member.positions()[Partition(topic, 0)] == 1
    member.commit(member.positions())
    assert log.committed(f"{topic}-group", [Partition(topic, 0)]) == {Partition(topic, 0): 1}
    member.subscribe([])
    member.poll(10, 0.1)
    member.close()


def test_members_of_a_group_share_partitions(log: Log, topic: str) -> None:
    first, second = log.join(f"{topic}-group", [topic]), log.join(f"{topic}-group", [topic])
    deadline = time.monotonic() + _BOUND_S
    while len(first.assigned()) != 1 or len(second.assigned()) != 1:
        first.poll(10, 0.1)
        second.poll(10, 0.1)
        assert time.monotonic() < deadline, "the group did not settle"
    assert first.assigned() | second.assigned() == {Partition(topic, 0), Partition(topic, 1)}
    with pytest.raises(RebalancedError):
        first.commit(dict.fromkeys(second.assigned(), 1))
    generation = first.generation
    second.close()
    while len(first.assigned()) != 2:
        first.poll(10, 0.1)
        assert time.monotonic() < deadline, "the group did not settle"
    assert first.generation > generation
    first.close()


def test_a_transaction_with_a_record_that_its_topic_refuses_names_the_topic_and_the_writer_goes_on(
    log: Log, topic: str
) -> None:
    small = f"{topic}-small"
    log.create([Topic(small, 1, max_bytes=1_000)])
    assert log.limits([topic, small, "nowhere"]) == {topic: MAX_RECORD_BYTES, small: 1_000}
    writer = log.transactional(topic)
    noise = random.Random(1).randbytes(2_000)
    for _ in range(2):
        with pytest.raises(RecordTooLargeError) as refused:
            writer.commit([Record(topic, b"never"), Record(small, noise), Record(topic, b"never")])
        assert refused.value.topic == small
    with pytest.raises(UnknownTopicError) as unknown:
        writer.commit([Record(topic, b"never"), Record(f"{topic}-none", b"x")])
    assert unknown.value.topic == f"{topic}-none"
    writer.commit([Record(topic, b"taken"), *(Record(small, noise[:500]) for _ in range(8))])
    read = read_to_end(log.reader({Partition(topic, 0): START, Partition(small, 0): START}), at_least=9)
    assert sorted(values(read), key=len) == [b"taken", *[noise[:500]] * 8]
    if isinstance(log, MemoryLog):
        log.deny(small)
        denied = small
    else:
        denied = "__consumer_offsets"
        log.join(f"{topic}-group", [topic]).poll(1, 5.0)  # the brokers make it now, where it is not there yet
        eventually(lambda: denied in log.topics(), expected=True)
    with pytest.raises(RecordRefusedError) as forbidden:
        writer.commit([Record(topic, b"never"), Record(denied, b"x"), Record(topic, b"never")])
    assert forbidden.value.topic == denied
    if forbidden.value.over:
        with pytest.raises(LogError):
            writer.commit([Record(topic, b"never")])
        writer = log.transactional(topic)
    writer.commit([Record(topic, b"again")])
    read = read_to_end(log.reader({Partition(topic, 0): START}), at_least=2)
    assert values(read) == [b"taken", b"again"]
