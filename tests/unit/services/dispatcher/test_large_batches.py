"""Batches beyond one record, and transactions beyond a bound: split, and lossless across restarts."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from penstock.ingest.refused_records import DeadLetter
from penstock.log import Record
from penstock.log.faults import Point
from penstock.services.dispatcher.dispatcher import Dispatcher
from penstock.wire import Tuples, encode
from support.dispatching import GROUP, IRI, NAMES, SHARDS, CrashError, StateMachine, declaration, whole


def bulk(state_machine: StateMachine, offset: int, time: int, tuples: int, event_bytes: int = 0) -> None:
    """One event of so many tuples of one subject."""
    ids = np.ones(tuples, np.uint64)
    columns = np.array([offset]), np.array([time]), np.array([tuples]), ids, ids, np.arange(tuples, dtype=np.uint64)
    record = Tuples(IRI, 0, *columns, None, 0, event_bytes)
    state_machine.writer.append([Record(NAMES.tuples("s"), encode(record), None, 0)])


def test_millions_of_tuples_of_one_subject_in_one_batch_are_split_over_records():
    state_machine = StateMachine()
    state_machine.declare(declaration())
    dispatcher = state_machine.dispatcher()
    for offset in range(3):
        bulk(state_machine, offset, 1_050, 800_000)
    bulk(state_machine, 3, 1_150, 1)
    dispatcher.step()
    assert dispatcher.transactions == 2, "the batch, and the state behind it"
    found = [whole(state_machine.read(NAMES.shards, shard)) for shard in range(SHARDS)]
    assert [[batch.last for batch in batches] for batches in found] == [[10]] * SHARDS
    [large] = [batch for [batch] in found if len(batch.times)]
    assert len(large.times) == 2_400_000
    assert np.array_equal(large.positions, np.arange(2_400_000))
    assert np.array_equal(large.objects, np.tile(np.arange(800_000), 3))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("point", [Point.COMMIT, Point.COMMITTED])
def test_crashes_between_transactions_of_one_step_lose_and_double_nothing(monkeypatch, seed, point):
    monkeypatch.setattr("penstock.wire.parts.PART_TUPLES", 2)
    monkeypatch.setattr("penstock.services.dispatcher.dispatcher.TRANSACTION_BYTES", 900)

    def play(crashes: bool):
        rng, faults, state_machine = Random(seed), Random(seed), StateMachine()
        state_machine.declare(declaration(), declaration("http://x/t", "t", 2))
        state_machine.faults.point = point
        state_machine.faults.left = faults.randrange(6) if crashes else None
        dispatcher = state_machine.dispatcher()
        for round_ in range(6):
            for name, iri in (("s", IRI), ("t", "http://x/t")):
                times = [1_000 + 300 * round_ + rng.randrange(-150, 400) for _ in range(rng.randrange(25))]
                state_machine.produce(times, 0, name, iri)
            try:
                dispatcher.step()
            except CrashError:
                state_machine.faults.left = faults.randrange(6)
                dispatcher = state_machine.dispatcher()
        for _ in range(20):
            try:
                while dispatcher.step():
                    pass
            except CrashError:
                dispatcher = state_machine.dispatcher()
        refused = sorted((m.stream, m.partition, m.offset, m.time_ms) for m in state_machine.read(NAMES.late))
        contents = [{k: sorted(v) for k, v in state_machine.content(iri).items()} for iri in (IRI, "http://x/t")]
        return contents, refused, dispatcher

    expected, calm = play(False), play(True)
    assert calm[0] == expected[0]
    assert expected[2].transactions > 6
    accepted = [sum(map(len, found.values())) for found in expected[0]]
    assert sum(accepted) > 10


def test_a_step_is_several_transactions_where_streams_close_much_together(monkeypatch):
    monkeypatch.setattr("penstock.services.dispatcher.dispatcher.TRANSACTION_BYTES", 1_000)
    state_machine = StateMachine()
    state_machine.declare(declaration())
    dispatcher = state_machine.dispatcher()
    state_machine.produce(range(1_050, 3_000, 50))
    dispatcher.step()
    assert dispatcher.transactions >= 4
    assert [len(found) for found in state_machine.content().values()] == [2] * 19
    restarted = state_machine.dispatcher()
    restarted.step()
    assert restarted.transactions == 0


def test_copies_of_refused_events_are_bounded_in_a_transaction():
    """By what records of tuples say of their events: here they would be 40 times 40 MiB in one transaction."""
    state_machine = StateMachine()
    state_machine.declare(declaration())
    dispatcher = state_machine.dispatcher()
    state_machine.produce([5_000])
    dispatcher.step()
    for offset in range(1, 41):
        state_machine.writer.append([Record(NAMES.events("s"), b"late")])
        bulk(state_machine, offset, 1_000, 1, event_bytes=40 << 20)
    before = dispatcher.transactions
    while dispatcher.step():
        pass
    assert dispatcher.transactions - before == 20
    assert [event.offset for event in state_machine.read(NAMES.late)] == list(range(1, 41))


def test_a_partition_with_events_for_the_next_step_is_not_idle(monkeypatch):
    monkeypatch.setattr("penstock.services.dispatcher.dispatcher.TRANSACTION_BYTES", 1)
    state_machine = StateMachine(partitions=2)
    state_machine.declare(declaration(idle_timeout_ms=1_000))
    dispatcher = state_machine.dispatcher()
    state_machine.produce([5_000], 0)
    state_machine.produce([5_000], 1)
    dispatcher.step()
    for time in (4_000, 4_010, 5_050):
        state_machine.produce([time], 0)
    state_machine.clock.advance(2_000)
    while dispatcher.step():
        pass
    assert [event.time_ms for event in state_machine.read(NAMES.late)] == [4_000, 4_010]


def test_a_batch_takes_no_more_tuples_than_a_transaction_may_have():
    state_machine = StateMachine()
    state_machine.declare(declaration())

    def dispatcher():
        return Dispatcher(state_machine.log, NAMES, SHARDS, state_machine.clock, GROUP, max_batch_tuples=10)

    first = dispatcher()
    for offset, tuples in enumerate([6, 3, 2, 1, 1]):
        state_machine.writer.append([Record(NAMES.events("s"), b"event %d" % offset)])
        bulk(state_machine, offset, 1_050, tuples)
    bulk(state_machine, 5, 1_150, 10)
    first.step()
    second = dispatcher()
    bulk(state_machine, 6, 1_250, 1)
    second.step()
    letters = state_machine.read(NAMES.dead_letter)
    assert [(each.offset, each.data) for each in letters] == [(2, b"event 2"), (4, b"event 4")]
    assert all(isinstance(each, DeadLetter) and "its batch is full: 10 tuples" in each.reason for each in letters)
    assert {k: len(v) for k, v in state_machine.content().items()} == {10: 10, 11: 10}
