"""What the dispatcher's state says of refused events: enough for a restart, and bounded whatever producers send."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from penstock.log import START, Partition
from penstock.services.dispatcher import refused_runs
from penstock.services.dispatcher.refused_runs import RefusedRuns, places
from support.dispatching import IRI, NAMES, StateMachine, declaration


@pytest.mark.parametrize("seed", range(200))
def test_a_restart_knows_every_refused_event_of_an_open_batch_and_no_accepted_one(seed):
    rng = Random(seed)
    runs, events, closed_ms, offset, oldest = RefusedRuns(), [], 0, 0, 0
    for position in range(40):
        record = []
        for _ in range(rng.randrange(6)):
            offset += rng.choice([0, 1, 1, 3]) if record else 1  # a message with several events
            record.append((offset, closed_ms + rng.randrange(1, 100), rng.random() < 0.5, position))
        events += record
        if record:
            offsets, times, refused, _ = zip(*record, strict=True)
            runs.record(places(np.array(offsets)), np.array(times), np.array(refused), position)
        if rng.random() < 0.3:
            closed_ms += rng.randrange(60)
        accepted = [at for _, time, refused, at in events if not refused and time > closed_ms]
        oldest = min(accepted, default=position + 1)  # the oldest record that an open batch has tuples of
        if rng.random() < 0.5:
            runs.settle(oldest, closed_ms)
            assert len(runs) <= len(accepted) + 1
        if rng.random() < 0.2:
            runs.settle(oldest, closed_ms)
            again = RefusedRuns(runs.saved())
            for at in range(oldest, position + 1):
                record = [event for event in events if event[3] == at]
                offsets = np.array([event[0] for event in record], np.int64)
                times = np.array([event[1] for event in record], np.int64)
                known = again.known(places(offsets))
                again.record(places(offsets), times, known, at)
                for (_, time, refused, _), found in zip(record, known.tolist(), strict=True):
                    assert time <= closed_ms or found == refused
            again.replayed()
            runs = again


def play(state_machine: StateMachine, times: list[int], *, restarts: bool) -> None:
    dispatcher = state_machine.dispatcher()
    for i, time in enumerate(times):
        state_machine.produce([time])
        dispatcher.step()
        if restarts and i % 3 == 1:
            dispatcher = state_machine.dispatcher()


def largest_state(state_machine: StateMachine) -> int:
    return max(len(state.refused_first) for state in state_machine.read(NAMES.dispatcher))


def test_refused_events_without_accepted_ones_between_them_are_one_run():
    state_machine = StateMachine()
    state_machine.declare(declaration())
    play(state_machine, [1_010, *[1_001] * 50, *[10_000_000] * 50], restarts=True)
    assert largest_state(state_machine) == 1
    assert len(state_machine.read(NAMES.late)) == len(state_machine.read(NAMES.dead_letter)) == 50


@pytest.mark.parametrize("restarts", [False, True])
def test_a_stream_with_too_many_runs_accepts_nothing_until_a_batch_closes(monkeypatch, restarts):
    monkeypatch.setattr(refused_runs, "MAX_RUNS", 4)
    state_machine = StateMachine()
    state_machine.declare(declaration())
    alternating = [time for i in range(20) for time in (1_010 + i, 1_001)]
    play(state_machine, [*alternating, 1_150, 1_160, 1_250, 1_350], restarts=restarts)
    assert largest_state(state_machine) <= 5
    assert state_machine.content() == {10: [1_010, 1_011, 1_012, 1_013], 11: [1_160], 12: [1_250]}
    letters = state_machine.read(NAMES.dead_letter)
    assert [letter.time_ms for letter in letters] == [*range(1_014, 1_030), 1_150]
    assert all("4 runs of refused events in open batches" in letter.reason for letter in letters)
    assert len(state_machine.read(NAMES.late)) == 20


def test_each_partition_has_its_share_of_the_runs(monkeypatch):
    monkeypatch.setattr(refused_runs, "MAX_RUNS", 8)
    state_machine = StateMachine(partitions=2)
    state_machine.declare(declaration())
    dispatcher = state_machine.dispatcher()
    for i in range(10):
        for partition in (0, 1):
            state_machine.produce([1_010 + i, 10_000_000], partition)
    dispatcher.step()
    assert largest_state(state_machine) == 8
    assert dispatcher.streams[IRI].open.tuples == 8


def test_late_events_of_a_message_are_one_record_with_their_number():
    state_machine = StateMachine()
    state_machine.declare(declaration())
    dispatcher = state_machine.dispatcher()
    state_machine.produce([2_000])
    state_machine.produce_message([1_001, 2_050, 1_002, 10_000_000, 1_003, 20_000_000])
    while dispatcher.step():
        pass
    late = state_machine.log.reader({Partition(NAMES.late, 0): START}).poll(10)
    dead = state_machine.log.reader({Partition(NAMES.dead_letter, 0): START}).poll(10)
    assert [(dict(m.headers)["time"], dict(m.headers)["events"]) for m in late] == [(b"1001", b"3")]
    assert [(dict(m.headers)["time"], dict(m.headers)["events"]) for m in dead] == [(b"10000000", b"2")]
    assert late[0].value.startswith(b"events at [1001, 2050")
    assert [event.time_ms for event in state_machine.read(NAMES.late)] == [1_001]


@pytest.mark.parametrize("seed", range(40))
def test_restarts_change_nothing_about_messages_with_several_events(seed):
    rng = Random(seed)
    messages, now = [], 1_000
    for _ in range(25):
        now += rng.randrange(60)
        messages.append([now - rng.choice([0, 0, 0, 150, -9_000_000]) + i for i in range(rng.randrange(1, 5))])
    found = []
    for restarts in (False, True):
        state_machine, again = StateMachine(), Random(seed)
        state_machine.declare(declaration())
        dispatcher = state_machine.dispatcher()
        for message in [*messages, [now + 1_000]]:
            state_machine.produce_message(message)
            dispatcher.step()
            if restarts and again.random() < 0.4:
                dispatcher = state_machine.dispatcher()
        refused = [
            [
                (m.key, dict(m.headers).get("events"))
                for m in state_machine.log.reader({Partition(topic, 0): START}).poll(1000)
            ]
            for topic in (NAMES.late, NAMES.dead_letter)
        ]
        found.append((state_machine.content(), refused))
    assert found[0] == found[1]
    assert found[0][0]
