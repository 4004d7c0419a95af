"""The load of a bucket is the work for its groups, per second."""

from __future__ import annotations

from itertools import count

from penstock.log.clock import VirtualClock
from penstock.services.query_engine.measures.load_meter import PERIOD_MS, LoadMeter


class Work:
    """Stands for a group."""


def test_a_load_is_the_work_of_evaluations_and_of_collecting_per_second():
    clock, seconds = VirtualClock(0), count(step=1_000_000_000)  # each look at the timer is a second later
    meter, group = LoadMeter(clock, lambda: next(seconds)), Work()
    assert meter.loads([1]) == {}
    clock.advance(PERIOD_MS)
    assert meter.loads([1]) == {}, "the first period began before the bucket was held"
    meter.begin()
    meter.evaluated(group)
    meter.begin()
    meter.collected(1, [group])
    meter.begin()
    meter.collected(2, [])
    clock.advance(PERIOD_MS)
    assert meter.loads([1, 2]) == {1: 200_000}, "bucket 2 was not held from the beginning of the period"
    clock.advance(PERIOD_MS)
    assert meter.loads([1, 2]) == {1: 100_000, 2: 0}, "the mean with the previous period"
    clock.advance(PERIOD_MS)
    assert meter.loads([2]) == {2: 0}, "bucket 1 is not held any more"
