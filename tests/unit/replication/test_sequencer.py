from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from penstock.errors import LimitError
from penstock.replication import sequencer
from penstock.replication.sequencer import Sequencer
from penstock.services.coordinator.shares import share_out
from penstock.wire import QueryStop, ShardBatch
from penstock.wire.parts import split

NONE = np.empty(0, np.uint64)


def batch(stream: str, k: int) -> ShardBatch:
    return ShardBatch(stream, k, k, NONE.astype(np.uint32), NONE.astype(np.int64), NONE, NONE, NONE)


def test_a_step_waits_until_all_partitions_have_its_part():
    found = Sequencer(2, lambda _: False)
    found.take(0, 0, batch("a", 1))
    assert found.next() is None
    found.take(1, 0, batch("a", 1))
    step = found.next()
    assert step is not None
    assert [part.last for part in step] == [1, 1]
    assert found.next() is None


def test_partition_0_decides_where_two_writers_interleave_differently():
    found = Sequencer(2, lambda _: False)
    found.take(0, 0, batch("a", 1))
    found.take(0, 1, QueryStop(1, "q"))
    found.take(1, 0, QueryStop(1, "q"))
    assert found.next() is None
    found.take(1, 1, batch("a", 1))
    assert [type(found.next()[0]), type(found.next()[0])] == [ShardBatch, QueryStop]


def test_what_was_applied_is_passed_over_wherever_it_comes_again():
    applied: set[int] = set()
    found = Sequencer(2, lambda record: record.last in applied)
    for partition in (0, 1):
        found.take(partition, 0, batch("a", 1))
        found.take(partition, 1, batch("a", 1))
    assert found.next() is not None
    applied.add(1)
    found.take(0, 2, batch("a", 1))
    assert found.next() is None


def test_a_restart_reads_on_before_the_first_part_that_was_not_given_out():
    found = Sequencer(2, lambda _: False)
    found.take(0, 5, batch("a", 1))
    found.take(1, 7, batch("a", 1))
    found.take(1, 8, batch("a", 2))
    found.next()
    assert list(found.positions()) == [6, 8]


def test_partitions_that_have_come_apart_are_an_error(monkeypatch):
    monkeypatch.setattr(sequencer, "MAX_WAITING", 3)
    found = Sequencer(2, lambda _: False)
    for k in range(3):
        found.take(1, k, batch("a", k))
    with pytest.raises(LimitError, match="ahead of the others"):
        found.take(1, 3, batch("a", 3))


@pytest.mark.parametrize("count", [1, 4, 7])
def test_shares_stay_where_they_are_as_far_as_fairness_allows(count):
    before = share_out(count, {}, ["a", "b"])
    assert abs(list(before.values()).count("a") - list(before.values()).count("b")) <= 1
    assert share_out(count, before, ["a", "b"]) == before
    alone = share_out(count, before, ["b"])
    assert set(alone.values()) == {"b"}
    assert share_out(count, before, []) == before
    grown = share_out(count, before, ["a", "b", "c"])
    assert sum(grown[s] != before[s] for s in before) <= -(-count // 3)


def test_a_restart_that_has_read_nothing_yet_reads_on_where_it_was_left():
    found = Sequencer(2, lambda _: False)
    found.resume([6, 8])
    assert list(found.positions()) == [6, 8]
    found.take(0, 6, batch("a", 1))
    assert list(found.positions()) == [6, 8]


def test_what_has_become_stale_while_its_parts_were_coming_holds_nothing_up():
    """A batch of a stream that was dropped before it: some partitions show it sooner than others."""
    dropped: set[str] = set()
    found = Sequencer(2, lambda record: isinstance(record, ShardBatch) and record.stream in dropped)
    found.take(0, 0, batch("a", 1))
    found.take(0, 1, batch("b", 1))
    dropped.add("a")
    for offset, stream in enumerate("ab"):
        found.take(1, offset, batch(stream, 1))
    step = found.next()
    assert step is not None
    assert step[0].stream == "b"
    assert list(found.positions()) == [2, 2]


def parts(k: int, count: int, rows: int = 0) -> list[ShardBatch]:
    places = np.arange(rows)
    columns = places.astype(np.uint32), places, *(places.astype(np.uint64) for _ in range(3))
    found = split([ShardBatch("a", k, k, *columns)], max(1, -(-rows // count)))[0]
    return found if rows else [replace(found[0], part=i, parts=count) for i in range(count)]


def test_a_batch_of_several_records_is_one_step_once_all_have_come_everywhere():
    found = Sequencer(2, lambda _: False)
    large, empty = parts(1, 3, rows=5), parts(1, 3)
    for offset in range(3):
        found.take(0, offset, large[offset])
    found.take(0, 3, batch("b", 1))
    found.take(1, 0, batch("b", 1))
    for offset in (0, 1):
        found.take(1, 1 + offset, empty[offset])
        assert found.next() is None
        assert list(found.positions()) == [0, 0], "a restart reads the whole batch again"
    found.take(1, 3, empty[2])
    first, second = found.next(), found.next()
    assert [len(part.times) for part in first] == [5, 0]
    assert first[0].positions.tolist() == [0, 1, 2, 3, 4]
    assert first[0].times.tolist() == [0, 1, 2, 3, 4]
    assert second[0].stream == "b", "it has its place by its first record"
    assert list(found.positions()) == [4, 4]


def test_records_of_a_batch_that_come_again_are_passed_over():
    found = Sequencer(1, lambda _: False)
    for offset, part in enumerate([0, 1, 0, 1, 2, 2]):
        found.take(0, offset, parts(1, 3, rows=6)[part])
    assert found.next()[0].times.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.next() is None


def test_a_stream_that_is_dropped_while_records_of_its_batch_are_coming_holds_nothing_up():
    dropped: set[str] = set()
    found = Sequencer(1, lambda record: isinstance(record, ShardBatch) and record.stream in dropped)
    found.take(0, 0, parts(1, 2)[0])
    dropped.add("a")
    found.take(0, 1, parts(1, 2)[1])
    found.take(0, 2, batch("b", 1))
    assert found.next()[0].stream == "b"
    assert list(found.positions()) == [3]
