"""The active coordinator places shards and buckets, and its parts share one state."""

from __future__ import annotations

from penstock.services.coordinator.active_state import SETTLE_MS
from penstock.wire import Heartbeat, Placement
from support.active_coordinator import ActiveCoordinator


def beat(service: str, name: str, **loads: int) -> dict[str, Heartbeat]:
    measured = {bucket.removeprefix("b"): load for bucket, load in loads.items()}
    return {name: Heartbeat(service, name, "1", 0, f"tcp://{name}", loads=measured)}


def test_a_placement_is_written_when_processes_change_and_only_then():
    made = ActiveCoordinator()
    stores, engines = beat("store", "a"), beat("query-engine", "e")
    assert made.active.place(stores, engines, 0)
    assert not made.active.place(stores, engines, 0)
    placement = Placement(1, {"0": "a", "1": "a"}, {"0": "e", "1": "e"}, {"a": "tcp://a"})
    assert [value for key, value in made.control() if key == b"placement"] == [placement]
    assert made.active.writer.written == 1
    assert not made.take_over().place(stores, engines, 0)
    assert made.active.place(stores, engines | beat("query-engine", "f"), 0)
    assert made.active.state.placement.epoch == 2


def test_a_fresh_instance_has_processed_no_requests():
    made = ActiveCoordinator()
    assert made.active.requests == {}
    assert not made.active.writer.ahead
    made.active.close()


def test_buckets_move_by_load_and_the_placement_says_why():
    made = ActiveCoordinator(buckets=4)
    engines = beat("query-engine", "e")
    assert made.active.place({}, engines, 0)
    both = engines | beat("query-engine", "f")
    assert made.active.place({}, both, 100)
    assert made.active.explained(both)["last_move"]["reason"] == "an engine had no bucket"
    held = made.active.state.placement.buckets
    one, two = (bucket for bucket, engine in held.items() if engine == "e")
    busy = beat("query-engine", "e", **{f"b{one}": 300_000, f"b{two}": 300_000})
    idle = beat("query-engine", "f", **{f"b{b}": 0 for b, engine in held.items() if engine == "f"})
    assert not made.active.place({}, busy | idle, 200), "buckets have just moved"
    assert made.active.place({}, busy | idle, 100 + SETTLE_MS)
    found = made.active.explained(busy | idle)
    assert found["engines"] == {"e": {"load": 300_000, "accepts": True}, "f": {"load": 300_000, "accepts": True}}
    assert found["last_move"]["time_ms"] == 100 + SETTLE_MS
    assert found["last_move"]["reason"] == "the loads of engines differed by 198% of their average"
    (moved,) = found["last_move"]["buckets"]
    assert moved in (one, two)
    assert found["last_move"]["buckets"][moved] == ("e", "f")
    assert found["buckets"][moved] == {"engine": "f", "load": 300_000}, "the last measured load"


def test_the_load_of_a_bucket_that_has_moved_is_not_taken_from_its_previous_engine():
    made = ActiveCoordinator(buckets=2)
    engines = beat("query-engine", "e") | beat("query-engine", "f")
    made.active.place({}, engines, 0)
    other = next(bucket for bucket, engine in made.active.state.placement.buckets.items() if engine == "f")
    made.active.place({}, engines | beat("query-engine", "e", **{f"b{other}": 900_000}), 1)
    assert made.active.explained(engines)["buckets"][other]["load"] is None
