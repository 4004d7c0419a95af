"""The schedule of kills: the same for a seed, even over services and their instances, in order."""

from __future__ import annotations

from collections import Counter

from penstock.cli.cluster.kills import schedule, service_of

INSTANCES = ["dictionary-0", "dictionary-1", "coordinator-0", "coordinator-1", "engine-0", "engine-1", "adaptor-0"]


def test_a_seed_gives_the_same_schedule_again_and_another_seed_another():
    assert schedule(7, INSTANCES, 1000, 20) == schedule(7, INSTANCES, 1000, 20)
    assert schedule(7, INSTANCES, 1000, 20) != schedule(8, INSTANCES, 1000, 20)


def test_services_are_killed_equally_often_and_so_are_instances_of_one():
    planned = schedule(1, INSTANCES, 5000, 80)
    services = Counter(service_of(kill.victim) for kill in planned)
    assert set(services.values()) == {20}
    instances = Counter(kill.victim for kill in planned)
    assert all(instances[name] == 10 for name in INSTANCES if name != "adaptor-0")


def test_kills_come_in_order_at_different_events():
    planned = schedule(3, INSTANCES, 100, 50)
    points = [kill.event for kill in planned]
    assert points == sorted(set(points))
    assert points[0] >= 1
    assert points[-1] <= 100
    assert all(kill.before_s >= 0.0 <= kill.dead_s for kill in planned)


def test_there_are_no_more_kills_than_events():
    assert len(schedule(1, INSTANCES, 3, 10)) == 3
    assert schedule(1, INSTANCES, 3, 0) == []
