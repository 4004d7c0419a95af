"""The active coordinator places shards and buckets, and its parts share one state."""

from __future__ import annotations

from penstock.wire import Heartbeat, Placement
from support.active_coordinator import ActiveCoordinator


def beat(service: str, name: str) -> dict[str, Heartbeat]:
    return {name: Heartbeat(service, name, "1", 0, f"tcp://{name}")}


def test_a_placement_is_written_when_processes_change_and_only_then():
    made = ActiveCoordinator()
    stores, engines = beat("store", "a"), beat("query-engine", "e")
    assert made.active.place(stores, engines)
    assert not made.active.place(stores, engines)
    placement = Placement(1, {"0": "a", "1": "a"}, {"0": "e", "1": "e"}, {"a": "tcp://a"})
    assert [value for key, value in made.control() if key == b"placement"] == [placement]
    assert made.active.writer.written == 1
    assert not made.take_over().place(stores, engines)
    assert made.active.place(stores, engines | beat("query-engine", "f"))
    assert made.active.state.placement.epoch == 2


def test_a_fresh_instance_has_processed_no_requests():
    made = ActiveCoordinator()
    assert made.active.requests == {}
    assert not made.active.writer.ahead
    made.active.close()
