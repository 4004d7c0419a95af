"""What only the memory log does: faults, virtual time, compaction and retention on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.log import START, Backpressure, MemoryLog, Partition, Record, Topic, TransientError
from penstock.log.clock import VirtualClock
from penstock.log.faults import NoFaults, Point
from penstock.log.topics import TopicNames, segment

if TYPE_CHECKING:
    from penstock.log.port import Message


class CrashError(Exception):
    pass


class Breaks(NoFaults):
    """Raises at the n-th passing of a point."""

    def __init__(self, point: Point, after: int, error: Exception) -> None:
        self.point, self.left, self.error = point, after, error

    def at(self, point: Point, owner: str) -> None:
        if point is self.point:
            self.left -= 1
            if self.left < 0:
                raise self.error


class Delays(NoFaults):
    def delay_ms(self, message: Message) -> int:
        return 100 if message.value == b"slow" else 0


def made(log: MemoryLog) -> Partition:
    log.create([Topic("t")])
    return Partition("t")


def read(log: MemoryLog, name: Partition) -> list[bytes | None]:
    return [m.value for m in log.reader({name: START}).poll()]


def test_a_crash_in_the_middle_of_a_flush_loses_a_suffix() -> None:
    log = MemoryLog(faults=Breaks(Point.APPEND, 2, CrashError()))
    name = made(log)
    with pytest.raises(CrashError):
        log.writer().append([Record("t", b"%d" % i) for i in range(5)])
    assert read(log, name) == [b"0", b"1"]


def test_an_append_that_failed_goes_on_where_it_stopped() -> None:
    for failing_after in range(5):
        faults = Breaks(Point.APPEND, failing_after, TransientError("brokers are unavailable"))
        log = MemoryLog(faults=faults)
        name, writer, records = made(log), log.writer(), [Record("t", b"%d" % i) for i in range(5)]
        for _ in range(3):
            with pytest.raises(TransientError):
                writer.append(records)
        faults.left = 100
        writer.append(list(records))
        assert read(log, name) == [b"%d" % i for i in range(5)]
        writer.append(records)
        assert len(read(log, name)) == 10, "a call behind one that succeeded is another one"


def test_other_records_do_not_wait_for_a_call_that_failed() -> None:
    faults = Breaks(Point.APPEND, 0, TransientError("brokers are unavailable"))
    log = MemoryLog(faults=faults)
    name, writer = made(log), log.writer()
    with pytest.raises(TransientError):
        writer.append([Record("t", b"first")])
    faults.left = 100
    writer.append([Record("t", b"second")])
    assert read(log, name) == [b"first", b"second"], "in order, what was in flight included"


def test_a_crash_before_a_commit_leaves_nothing_and_one_after_it_leaves_all() -> None:
    for point, left in ((Point.COMMIT, []), (Point.COMMITTED, [b"a", b"b"])):
        log = MemoryLog(faults=Breaks(point, 0, CrashError()))
        name = made(log)
        with pytest.raises(CrashError):
            log.transactional("id").commit([Record("t", b"a"), Record("t", b"b")], {name: 1}, "g")
        assert read(log, name) == left
        assert log.committed("g", [name]) == ({name: 1} if left else {})


def test_an_aborted_commit_can_be_made_again() -> None:
    faults = Breaks(Point.COMMIT, 0, TransientError("aborted"))
    log = MemoryLog(faults=faults)
    name = made(log)
    writer = log.transactional("id")
    with pytest.raises(TransientError):
        writer.commit([Record("t", b"a")])
    faults.left = 10
    writer.commit([Record("t", b"a")])
    assert read(log, name) == [b"a"]


def test_a_delayed_record_holds_up_those_behind_it() -> None:
    clock = VirtualClock(1000)
    log = MemoryLog(clock, Delays())
    name = made(log)
    log.writer().append([Record("t", b"fast"), Record("t", b"slow"), Record("t", b"next")])
    reader = log.reader({name: START})
    assert [m.value for m in reader.poll()] == [b"fast"]
    clock.advance(99)
    assert reader.poll() == []
    assert not reader.caught_up()
    clock.advance(1)
    assert [m.value for m in reader.poll()] == [b"slow", b"next"]
    assert reader.caught_up()


def test_transactions_leave_gaps_in_the_offsets() -> None:
    log = MemoryLog()
    name = made(log)
    writer = log.transactional("id")
    assert [writer.commit([Record("t", b"x")]) for _ in range(3)] == [[0], [2], [4]]
    assert log.spans([name])[name] == (0, 6)


def test_compaction_keeps_the_last_of_each_key_at_its_offset() -> None:
    log = MemoryLog()
    name = made(log)
    log.writer().append(
        [Record("t", b"1", b"a"), Record("t", b"2", b"b"), Record("t", b"3", b"a"), Record("t", None, b"b")]
    )
    log.compact("t")
    assert [(m.offset, m.value) for m in log.reader({name: START}).poll()] == [(2, b"3"), (3, None)]
    log.compact("t", delete_retention_ms=-1)
    reader = log.reader({name: START})
    assert [(m.offset, m.value) for m in reader.poll()] == [(2, b"3")]
    assert reader.caught_up()


def test_what_retention_removed_is_not_read() -> None:
    log = MemoryLog()
    name = made(log)
    log.writer().append([Record("t", b"%d" % i) for i in range(4)])
    log.trim(name, 3)
    assert log.spans([name])[name] == (3, 4)
    assert [m.value for m in log.reader({name: 0}).poll()] == [b"3"]


def test_a_full_log_pushes_back_until_it_is_trimmed() -> None:
    log = MemoryLog(max_bytes=1000)
    name = made(log)
    writer = log.writer()
    with pytest.raises(Backpressure):
        writer.append([Record("t", b"x" * 300)] * 4)
    assert log.spans([name])[name] == (0, 0)
    writer.append([Record("t", b"x" * 300)] * 2)
    with pytest.raises(Backpressure):
        log.transactional("id").commit([Record("t", b"x" * 300)])
    log.trim(name, 2)
    log.transactional("id").commit([Record("t", b"x" * 300)])


def test_polls_take_turns_among_partitions() -> None:
    log = MemoryLog()
    log.create([Topic("t", 2)])
    log.writer().append([Record("t", b"x", partition=p) for p in (0, 1) for _ in range(100)])
    reader = log.reader({Partition("t", 0): START, Partition("t", 1): START})
    assert {reader.poll(10)[0].partition for _ in range(2)} == {0, 1}


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("traffic_1", True),
        ("AarhusTraffic-182955", True),
        ("http://ex.org/posts", False),
        ("a.b", False),
        ("-x", False),
        ("", False),
        ("ü", False),
        ("x" * 128, True),
        ("x" * 129, False),
    ],
)
def test_names_become_topic_segments_or_their_hashes(name: str, plain: bool) -> None:
    made = segment(name)
    assert (made == name) == plain
    assert len(TopicNames().events(name)) < 249
    assert all(c.isascii() and (c.isalnum() or c in "_-") for c in made)
