"""What fires when: real streams and grids, a fake that only firings what it is told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from penstock import LimitError
from penstock.core import _native as native
from penstock.engine.answers.block_log import BlockLog
from penstock.engine.intake.declaration import Declaration
from penstock.engine.intake.streams import Streams
from penstock.engine.limits import Limits
from penstock.engine.stored_graph import LocalGraph
from penstock.engine.windows.reach import reach
from penstock.engine.windows.schedule import Schedule
from penstock.engine.windows.trigger import GridTrigger
from penstock.event_time.grid import Grid


class FakeQueue:
    subscribed = False

    def __init__(self, log: BlockLog) -> None:
        self.log = log

    def __len__(self) -> int:
        return len(self.log)


class FakeCohort:
    def __init__(self, group: FakeGroup, number: int, point: int | None) -> None:
        self.group, self.number, self.point = group, number, point
        self.trigger = None if point is None else GridTrigger(group.grid, point)
        self.dissolved = False
        self.log = BlockLog()
        self.first = SimpleNamespace(name=f"q{number}", result_queue=FakeQueue(self.log))

    def __iter__(self) -> Any:
        return iter((self.first,))

    @property
    def next(self) -> int | None:
        return None if self.trigger is None else self.trigger.next


class FakeGroup:
    def __init__(self, name: str, grid: Grid, streams: list[Any], point: int | None = 0, publishes: Any = None) -> None:
        self.name, self.grid, self.streams, self.publishes = name, grid, tuple(streams), publishes
        self.depth = 0
        self.query = SimpleNamespace(report_nonempty=False)
        self.cohorts = [FakeCohort(self, len(name), point)]


class FiringLog:
    """Does what a derived stream needs, and writes everything down."""

    def __init__(self) -> None:
        self.log: list[Any] = []

    def fire(self, cohort: FakeCohort) -> None:
        group = cohort.group
        assert all(stream.has_closed(cohort.next) for stream in group.streams)
        self.log.append((group.name, cohort.next))
        cohort.trigger.take()
        if group.publishes is not None:
            group.publishes.move(cohort.next - 1)

    def closed(self, stream: Any, batches: int) -> None:
        self.log.append((stream.iri, stream.closed_ms, batches))

    def counted(self, cohort: Any) -> None:
        raise AssertionError("no count windows here")

    def skipped(self, cohort: Any) -> None:
        if cohort.group.publishes is not None:
            cohort.group.publishes.move(cohort.next - 1)

    @property
    def fired(self) -> list[Any]:
        return [entry for entry in self.log if len(entry) == 2]


class StateMachine:
    def __init__(self, tmp_path: Any, max_unpolled: int = 1 << 30, **limits: int) -> None:
        limits = {"max_unpolled": max_unpolled, **limits}
        dictionary = native.Dictionary()
        self.ids = dictionary.intern_many([(1, f"urn:{c}", "", "") for c in "spo"])
        store = native.Store(str(tmp_path), 1)
        self.keep = dictionary, store
        self.streams = Streams(LocalGraph(store), dictionary, Limits())
        self.schedule = Schedule(Limits(**limits))
        self.firings = FiringLog()

    def stream(self, name: str, batch_ms: int) -> Any:
        return self.streams.declare(Declaration.checked(name, batch_ms=batch_ms))

    def push(self, stream: Any, *times: int) -> None:
        columns = [np.repeat(self.ids[i], len(times)) for i in range(3)]
        stream.append(np.array(times, np.int64), *columns)

    def group(self, name: str, grid: Grid, *streams: Any, **more: Any) -> FakeGroup:
        group = FakeGroup(name, grid, list(streams), **more)
        self.schedule.add(group)
        return group

    def move(self, **marks: int) -> list[Any]:
        self.firings.log.clear()
        streams = [self.streams.get(name) for name in marks]
        for stream in streams:
            stream.move(marks[stream.iri])
        self.schedule.run(streams, self.firings)
        return self.firings.log


A, B, D = "urn:a", "urn:b", "urn:d"


@pytest.fixture
def state_machine(tmp_path: Any) -> StateMachine:
    return StateMachine(tmp_path)


def test_every_instant_of_a_gap_fires_in_order(state_machine):
    a = state_machine.stream(A, 100)
    state_machine.group("g", Grid(0, (100,)), a)
    state_machine.move(**{A: 1000})
    assert state_machine.firings.fired == [("g", t) for t in range(100, 1001, 100)]


def test_an_instant_waits_for_the_batch_that_contains_it(state_machine):
    a = state_machine.stream(A, 100)
    state_machine.group("g", Grid(0, (70,)), a)
    state_machine.move(**{A: 139})
    assert state_machine.firings.fired == [("g", 70)]
    state_machine.move(**{A: 200})
    assert state_machine.firings.fired == [("g", 140)]


def test_an_instant_waits_for_every_stream(state_machine):
    a, b = state_machine.stream(A, 100), state_machine.stream(B, 30)
    state_machine.group("g", Grid(0, (100,)), a, b)
    state_machine.move(**{A: 1000})
    assert state_machine.firings.fired == []
    state_machine.move(**{B: 119})
    assert state_machine.firings.fired == []
    state_machine.move(**{B: 120})
    assert state_machine.firings.fired == [("g", 100)]


def test_groups_of_unequal_steps_fire_in_order_of_time(state_machine):
    a, b = state_machine.stream(A, 100), state_machine.stream(B, 100)
    state_machine.group("slow", Grid(0, (300,)), a)
    state_machine.group("quick", Grid(0, (200,)), b)
    state_machine.group("both", Grid(0, (500,)), a, b)
    state_machine.move(**{A: 600, B: 600})
    times = [time for _, time in state_machine.firings.fired]
    assert times == sorted(times) == [200, 300, 400, 500, 600, 600]


def test_batches_close_in_order_of_time_between_evaluations(state_machine):
    a, b = state_machine.stream(A, 100), state_machine.stream(B, 100)
    state_machine.group("g", Grid(0, (200,)), a, b)
    state_machine.push(a, 50, 150, 350)
    state_machine.push(b, 120, 390)
    log = state_machine.move(**{A: 400, B: 400})
    assert log == [
        (A, 100, 1),
        (A, 200, 1),
        (B, 200, 1),
        ("g", 200),
        (A, 400, 1),
        (B, 400, 1),
        ("g", 400),
    ]


def test_a_million_empty_batches_cost_one_closing(state_machine):
    a = state_machine.stream(A, 1)
    state_machine.push(a, 5)
    assert state_machine.move(**{A: 1_000_000}) == [(A, 5, 1), (A, 1_000_000, 0)]


def test_a_derived_stream_feeds_its_readers_in_the_same_pass(state_machine):
    a, d = state_machine.stream(A, 100), state_machine.stream(D, 200)
    state_machine.group("makes", Grid(0, (200,)), a, publishes=d)
    reader = state_machine.group("reads", Grid(0, (100,)), d)
    reader.depth = 1
    state_machine.move(**{A: 400})
    assert state_machine.firings.fired == [
        ("makes", 200),
        ("reads", 100),
        ("reads", 200),
        ("makes", 400),
        ("reads", 300),
        ("reads", 400),
    ]


def test_a_waiting_cohort_does_not_fire(state_machine):
    a = state_machine.stream(A, 100)
    state_machine.group("g", Grid(0, (100,)), a, point=None)
    state_machine.move(**{A: 1000})
    assert state_machine.firings.fired == []


def test_a_stream_that_has_ended_delays_no_query(state_machine):
    a, d = state_machine.stream(A, 100), state_machine.stream(D, 100)
    group = state_machine.group("g", Grid(0, (100,)), a, d)
    d.move(100)
    state_machine.move(**{A: 300})
    state_machine.move(**{D: 100})
    assert reach(group) == 100
    d.ended = True
    state_machine.move(**{A: 301})
    assert state_machine.firings.fired == [("g", 200), ("g", 300)]


def test_too_many_instants_are_refused_before_anything_changes(tmp_path):
    state_machine = StateMachine(tmp_path, max_catch_up=1000)
    a = state_machine.stream(A, 100)
    state_machine.group("g", Grid(0, (10,)), a)
    state_machine.schedule.check([a], 10_099, 0)
    with pytest.raises(LimitError, match="1010 times"):
        state_machine.schedule.check([a], 10_100, 0)


def test_too_many_instants_of_a_derived_streams_reader_are_refused_as_well(tmp_path):
    state_machine = StateMachine(tmp_path, max_catch_up=1000)
    a, d = state_machine.stream(A, 1000), state_machine.stream(D, 1000)
    state_machine.group("makes", Grid(0, (1000,)), a, publishes=d)
    reader = state_machine.group("reads", Grid(0, (1,)), d)
    reader.depth = 1
    state_machine.schedule.check([a], 1000, 0)
    with pytest.raises(LimitError, match="q5"):
        state_machine.schedule.check([a], 2000, 0)


def test_a_waiting_cohort_counts_from_the_point_that_it_would_get(tmp_path):
    state_machine = StateMachine(tmp_path, max_catch_up=10)
    a = state_machine.stream(A, 1)
    state_machine.group("g", Grid(0, (1,)), a, point=None)
    state_machine.schedule.check([a], 1_000_010, 1_000_000)
    with pytest.raises(LimitError):
        state_machine.schedule.check([a], 1_000_011, 1_000_000)


def test_unpolled_evaluations_are_refused_only_when_more_would_come(tmp_path):
    state_machine = StateMachine(tmp_path, max_unpolled=3)
    a = state_machine.stream(A, 100)
    group = state_machine.group("g", Grid(0, (100,)), a)
    group.cohorts[0].log._blocks = dict.fromkeys(range(3))
    state_machine.schedule.check([a], 99, 0)
    with pytest.raises(LimitError, match="poll"):
        state_machine.schedule.check([a], 100, 0)


def test_a_jump_leaves_gaps_and_goes_on_with_the_grid(state_machine):
    a, d = state_machine.stream(A, 100), state_machine.stream(D, 100)
    group = state_machine.group("makes", Grid(0, (100,)), a, publishes=d)
    reader = state_machine.group("reads", Grid(0, (50,)), d)
    reader.depth = 1
    a.move(1000)
    gaps = []
    for cohort, gap in state_machine.schedule.skip([a]):
        gaps.append((cohort.group.name, gap.after, gap.until, gap.count))
        state_machine.firings.skipped(cohort)
    assert gaps == [("makes", 0, 1000, 10), ("reads", 0, 1000, 20)]
    state_machine.schedule.run([a, d], state_machine.firings)
    assert state_machine.firings.fired == []
    assert (group.cohorts[0].next, reader.cohorts[0].next) == (1100, 1050)


def test_an_interrupted_pass_goes_on_where_it_was(state_machine):
    a = state_machine.stream(A, 100)
    state_machine.group("g", Grid(0, (100,)), a)
    fire, state_machine.firings.fire = (
        state_machine.firings.fire,
        lambda cohort: (_ for _ in ()).throw(KeyboardInterrupt),
    )
    a.move(300)
    with pytest.raises(KeyboardInterrupt):
        state_machine.schedule.run([a], state_machine.firings)
    assert state_machine.schedule.unfinished
    state_machine.firings.fire = fire
    state_machine.schedule.run([], state_machine.firings)
    assert state_machine.firings.fired == [("g", 100), ("g", 200), ("g", 300)]
    assert not state_machine.schedule.unfinished
