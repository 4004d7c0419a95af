"""A process that ends in order says so: what it serves is placed elsewhere at once, and served until then."""

from __future__ import annotations

import time
from threading import Event

import pytest

from penstock.log import LogError
from penstock.replication.heartbeats import SILENT_MS, FailureDetector, HeartbeatSender
from support.small_cluster import SmallCluster

IRI = "http://x/s"
READ = f"REGISTER QUERY q AS SELECT ?o FROM STREAM <{IRI}> [RANGE 1s STEP 200ms] WHERE {{ ?s <urn:p> ?o }}"
ROUND_MS = 200


@pytest.fixture
def cluster():
    made = SmallCluster(engines=2, buckets=4)
    made.coordinator.declare(IRI, "s", timing="all")
    made.coordinator.register("q", READ)
    made.run(4)
    yield made
    made.close()


def holder(cluster: SmallCluster) -> str:
    return next(name for name, engine in cluster.engines.items() if any(b.members for b in engine.buckets.values()))


def times(cluster: SmallCluster) -> list[int]:
    return [line["time"] for line in cluster.results()]


def test_an_engine_that_leaves_is_replaced_within_a_second_and_evaluates_until_then(cluster):
    leaver = cluster.engines[holder(cluster)]
    cluster.push("s", 1_000, "<urn:a> <urn:p> <urn:o> .")
    leaver.leave()
    rounds = 0
    while not leaver.left:
        rounds += 1
        before = len(times(cluster))
        cluster.advance("s", 1_000 + ROUND_MS * rounds)
        cluster.run(1)
        assert len(times(cluster)) > before or rounds == 1, "a silence"
        assert rounds < 5
    cluster.kill(next(name for name, engine in cluster.engines.items() if engine is leaver))
    cluster.advance("s", 3_000)
    cluster.run(2)
    assert times(cluster) == list(range(1_000, 3_001, ROUND_MS))
    assert rounds * ROUND_MS < SILENT_MS


def test_an_engine_that_leaves_takes_nothing_new(cluster):
    other, leaver = cluster.engines.values()
    leaver.leave()
    cluster.run(5)
    assert leaver.left
    assert not leaver.holds_all or not leaver.buckets
    assert set(other.buckets) == {0, 1, 2, 3}


def test_an_engine_without_another_keeps_its_buckets(cluster):
    for name in list(cluster.engines)[1:]:
        cluster.kill(name)
    cluster.run(30)
    [alone] = cluster.engines.values()
    alone.leave()
    cluster.run(5)
    assert not alone.left
    assert alone.holds_all


def test_a_store_that_leaves_is_replaced_within_a_second(tmp_path):
    cluster = SmallCluster(engines=1, reads="tcp")
    try:
        stores = [cluster.start_store(f"s{i}", tmp_path) for i in range(2)]
        cluster.run(20)
        assert all(store.shards for store in stores)
        stores[0].leave()
        cluster.run(4)
        assert stores[0].left
        assert set(stores[1].shards) == set(range(cluster.topics.shards))
    finally:
        cluster.close()


# ---- heartbeats
def test_who_leaves_is_not_among_the_living(cluster):
    failure_detector = FailureDetector(cluster.log, cluster.topics, cluster.clock)
    heartbeat_sender = HeartbeatSender(cluster.log, cluster.topics, cluster.clock, "store", "a")
    heartbeat_sender.beat()
    failure_detector.listen()
    assert "a" in failure_detector.alive("store")
    heartbeat_sender.leave()
    heartbeat_sender.beat()
    failure_detector.listen()
    assert "a" not in failure_detector.alive("store")


class Refusing:
    """A writer whose first append fails for good."""

    def __init__(self) -> None:
        self.tried = 0
        self.sent = Event()

    def append(self, _: object) -> None:
        self.tried += 1
        if self.tried == 1:
            raise LogError("a record was refused")
        self.sent.set()

    def close(self) -> None:
        pass

    def writer(self) -> Refusing:
        return self


def test_a_heartbeat_that_cannot_be_written_ends_no_service(cluster):
    log = Refusing()
    heartbeat_sender = HeartbeatSender(log, cluster.topics, cluster.clock, "store", "a")  # type: ignore[arg-type]
    heartbeat_sender.start()
    try:
        assert log.sent.wait(10)
    finally:
        heartbeat_sender.close()


def test_a_loop_that_stands_still_is_not_said_to_live(cluster, monkeypatch):
    log = Refusing()
    monkeypatch.setattr("penstock.replication.heartbeats.STALL_S", 0.0)
    heartbeat_sender = HeartbeatSender(log, cluster.topics, cluster.clock, "store", "a")  # type: ignore[arg-type]
    heartbeat_sender.start()
    began = time.monotonic()
    heartbeat_sender.close()
    assert log.tried == 0
    assert time.monotonic() - began < 10
