"""Batches of one partition, restarts at any moment, what is late or repeated (docs/semantics.md §2)."""

from __future__ import annotations

from random import Random

import pytest

from penstock.ingest.refused_records import DeadLetter, LateEvent
from penstock.log import Record
from penstock.log.faults import Point
from support.dispatching import IRI, NAMES, CrashError, StateMachine, declaration


def test_a_batch_closes_when_the_watermark_passes_its_end():
    state_machine = StateMachine()
    state_machine.declare(declaration())
    dispatcher = state_machine.dispatcher()
    state_machine.produce([1010, 1020, 1099, 1100])
    dispatcher.step()
    assert state_machine.content() == {}
    state_machine.produce([1101])
    dispatcher.step()
    assert state_machine.content() == {10: [1010, 1020, 1099, 1100]}
    assert state_machine.batches()[0].begin_ms == 1000


def test_runs_of_empty_batches_are_one_record():
    state_machine = StateMachine()
    state_machine.declare(declaration())
    dispatcher = state_machine.dispatcher()
    state_machine.produce([1050, 9_050, 9_150])
    dispatcher.step()
    assert [(b.first, b.last) for b in state_machine.batches()] == [(10, 10), (11, 90)]
    assert state_machine.content() == {10: [1050], 90: [9_050]}


def test_late_events_go_out_with_their_bytes_and_change_nothing():
    state_machine = StateMachine()
    state_machine.declare(declaration())
    dispatcher = state_machine.dispatcher()
    state_machine.produce([1050, 1040, 1250])
    dispatcher.step()
    [late] = state_machine.read(NAMES.late)
    assert isinstance(late, LateEvent)
    assert (late.time_ms, late.offset, late.data) == (1040, 1, b"event at 1040")
    assert late.watermark_ms >= 1040
    assert state_machine.content() == {10: [1050]}


def test_a_late_event_contains_the_watermark_that_it_met_not_that_of_its_record():
    state_machine = StateMachine()
    state_machine.declare(declaration())
    for time in (1_250, 1_060, 5_000):
        state_machine.writer.append([Record(NAMES.events("s"), b"event at %d" % time)])
    state_machine.adapt(0, [0, 1, 2], [1_250, 1_060, 5_000])
    state_machine.dispatcher().step()
    [late] = state_machine.read(NAMES.late)
    assert (late.time_ms, late.watermark_ms) == (1_060, 1_249)


def test_one_bad_clock_closes_no_window():
    state_machine = StateMachine()
    state_machine.declare(declaration())
    dispatcher = state_machine.dispatcher()
    state_machine.produce([1_000_050, 5_000_000, 1_000_150])
    dispatcher.step()
    [letter] = state_machine.read(NAMES.dead_letter)
    assert isinstance(letter, DeadLetter)
    assert (letter.time_ms, letter.data, letter.stream) == (5_000_000, b"event at 5000000", IRI)
    assert state_machine.content() == {10_000: [1_000_050]}


def test_a_producers_heartbeat_closes_batches():
    state_machine = StateMachine()
    state_machine.declare(declaration())
    dispatcher = state_machine.dispatcher()
    state_machine.produce([1050])
    state_machine.adapt(0, [], [], advance=1100)
    dispatcher.step()
    assert state_machine.content() == {10: [1050]}


def test_a_heartbeat_too_far_ahead_moves_nothing_and_is_counted():
    state_machine = StateMachine()
    state_machine.declare(declaration(max_ahead_ms=500))
    dispatcher = state_machine.dispatcher()
    state_machine.produce([1050, 1150])
    state_machine.adapt(0, [], [], advance=state_machine.clock.now_ms() + 501)
    dispatcher.step()
    assert state_machine.content() == {10: [1050]}
    assert dispatcher.tallies().far_advances == 1


def test_duplicates_are_dropped_before_the_lateness_test():
    state_machine = StateMachine()
    state_machine.declare(declaration())
    dispatcher = state_machine.dispatcher()
    state_machine.produce([1050, 1150, 1250])
    state_machine.adapt(0, [0, 1, 2, 3], [1050, 1150, 1250, 1260])
    state_machine.adapt(0, [1], [1150])
    state_machine.produce([1350], 0)
    dispatcher.step()
    assert state_machine.read(NAMES.late) == []
    assert dispatcher.tallies().duplicates == 5  # the event produced last has the offset 3 as well


def test_a_dropped_stream_begins_anew():
    state_machine = StateMachine()
    state_machine.declare(declaration())
    dispatcher = state_machine.dispatcher()
    state_machine.produce([1050, 1150])
    dispatcher.step()
    state_machine.writer.append([Record(NAMES.control, None, f"stream:{IRI}".encode())])
    dispatcher.step()
    assert dispatcher.streams == {}
    assert dispatcher.tallies().events == 2
    state_machine.declare(declaration(number=7, lateness_ms=50))
    dispatcher.step()
    assert dispatcher.streams[IRI].declaration.number == 7
    state_machine.produce([1010, 1120])  # times that the old one had closed, and none of its tuples
    dispatcher.step()
    restarted = state_machine.dispatcher()
    state_machine.produce([1300])
    restarted.step()
    assert state_machine.content(declared=1) == {10: [1050]}
    assert state_machine.content(declared=7) == {10: [1010], 11: [1120]}


def test_a_younger_dispatcher_goes_on_where_the_older_was():
    state_machine = StateMachine()
    state_machine.declare(declaration(lateness_ms=200))
    state_machine.produce([1050, 1350, 1120])
    older = state_machine.dispatcher()
    older.step()
    state_machine.produce([1020, 1180, 1500])
    younger = state_machine.dispatcher()
    younger.step()
    state_machine.produce([1210, 1901])
    with pytest.raises(Exception, match="a newer writer"):
        older.step()
    younger.step()
    reference = StateMachine()
    reference.declare(declaration(lateness_ms=200))
    alone = reference.dispatcher()
    reference.produce([1050, 1350, 1120, 1020, 1180, 1500, 1210, 1901])
    alone.step()
    assert state_machine.content() == reference.content()
    assert [e.time_ms for e in state_machine.read(NAMES.late)] == [e.time_ms for e in reference.read(NAMES.late)]


@pytest.mark.parametrize("seed", range(150))
def test_a_crash_at_any_transaction_loses_and_doubles_nothing(seed: int):
    """The same events with and without crashes: the same batches, the same late events."""
    random = Random(seed)
    lateness = random.choice([0, 30, 150, 1000])
    times, now = [], 1000
    for _ in range(60):
        now += random.choice([0, 5, 40, 300])
        times.append(max(1, now - random.choice([0, 0, 20, 100, 500])) + (10**9 if random.random() < 0.03 else 0))
    plain, broken = StateMachine(), StateMachine()
    results = []
    for state_machine in (plain, broken):
        state_machine.declare(declaration(lateness_ms=lateness))
        dispatcher = state_machine.dispatcher()
        for first in range(0, len(times), 6):
            state_machine.produce(times[first : first + 6])
            if state_machine is broken and random.random() < 0.5:
                state_machine.faults.left = 0
                state_machine.faults.point = random.choice([Point.COMMIT, Point.COMMITTED])
            try:
                dispatcher.step()
            except CrashError:
                dispatcher = state_machine.dispatcher()
            if state_machine is broken and random.random() < 0.3:
                offset = random.randrange(first + 6)
                state_machine.adapt(0, [offset], [times[offset]])  # an adaptor that restarts repeats itself
                dispatcher = state_machine.dispatcher()
        state_machine.faults.left = None
        dispatcher.step()
        late = [(e.offset, e.time_ms) for e in state_machine.read(NAMES.late)]
        dead = [(e.offset, e.time_ms) for e in state_machine.read(NAMES.dead_letter)]
        results.append((state_machine.content(), late, dead))
    assert results[0] == results[1]
