"""The grid of instants is arithmetic on clauses, never on arrivals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.event_time.grid import Grid, batch_end, batch_of, batch_start, closed_until

STEPS = st.lists(st.integers(1, 40), min_size=1, max_size=4).map(lambda steps: tuple(sorted(set(steps))))


def instants(grid: Grid, after: int, until: int) -> list[int]:
    found, time = [], after
    while (time := grid.next_after(time)) <= until:
        found.append(time)
    return found


def brute(grid: Grid, after: int, until: int) -> list[int]:
    return [
        t
        for t in range(after + 1, until + 1)
        if any((t - grid.t0) % step == 0 for step in grid.steps) and (not grid.bounded or t >= grid.t0)
    ]


@given(STEPS, st.integers(-100, 100), st.booleans(), st.integers(-150, 150), st.integers(0, 200))
def test_instants_and_their_number_are_those_of_the_definition(steps, t0, bounded, after, length):
    grid = Grid(t0, steps, bounded)
    expected = brute(grid, after, after + length)
    assert instants(grid, after, after + length) == expected
    assert grid.count(after, after + length) == len(expected)


def test_counting_a_gap_of_years_takes_no_time():
    assert Grid(0, (1, 7, 1000)).count(0, 10**15) == 10**15


def test_very_many_different_steps_give_an_upper_bound():
    steps = tuple(p for p in range(2, 60) if all(p % q for q in range(2, p)))
    assert len(steps) > 10
    assert Grid(0, steps).count(0, 10_000) >= len(brute(Grid(0, steps), 0, 10_000))


def test_unequal_steps_share_their_start():
    assert instants(Grid(0, (300, 500)), 0, 1500) == [300, 500, 600, 900, 1000, 1200, 1500]
    assert Grid(0, (300, 500)).latest(500, 900) == 500


def test_a_grid_that_starts_at_an_instant_has_none_before_it():
    grid = Grid(1000, (700,), bounded=True)
    assert instants(grid, -5000, 2500) == [1000, 1700, 2400]
    assert grid.count(-5000, 2500) == 3


@pytest.mark.parametrize(
    ("time", "batch"), [(1, 0), (100, 0), (101, 1), (0, -1), (-99, -1), (-100, -2), (1_000_000_000_000, 9_999_999_999)]
)
def test_a_batch_holds_its_end_but_not_its_start(time, batch):
    assert batch_of(time, 100) == batch
    assert batch_start(time, 100) == batch * 100
    assert batch_end(time, 100) == (batch + 1) * 100


def test_a_watermark_closes_a_batch_only_when_it_reaches_its_end():
    assert [closed_until(w, 100) for w in (99, 100, 199, -1)] == [0, 100, 100, -100]
