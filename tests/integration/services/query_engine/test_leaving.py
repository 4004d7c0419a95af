"""A process that ends in order says so: what it serves is placed elsewhere at once, and served until then."""

from __future__ import annotations

import time
from threading import Event

import pytest

from penstock.log import LogError
from penstock.replication.heartbeats import FORGET_AFTER_MS, FailureDetector, HeartbeatSender
from penstock.replication.placement_view import PlacementView
from penstock.runtime.loop import OverdueError
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


def held(cluster: SmallCluster, *names: str) -> set[int]:
    return {number for name in names for number in cluster.engines[name].buckets}


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
    assert rounds * ROUND_MS < FORGET_AFTER_MS


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


def test_an_engine_evaluates_a_reassigned_bucket_until_its_next_engine_opens_it(cluster):
    for seconds in (2, 3, 4):  # a query in each bucket
        cluster.coordinator.register(
            f"q{seconds}", READ.replace("1s", f"{seconds}s").replace("QUERY q", f"QUERY q{seconds}")
        )
    cluster.advance("s", 1_000)
    cluster.run(4)
    joining = cluster.start_engine("e2")
    cluster.paused.append(joining)
    for _ in range(5):
        joining._heartbeat_sender.beat()
        cluster.run(2)
    placed = PlacementView(cluster.log, cluster.topics, cluster.clock).buckets_of("e2")
    assert placed
    assert placed <= held(cluster, "e0", "e1"), "the next holder stands still"
    cluster.advance("s", 2_000)
    cluster.run(2)
    assert times(cluster).count(2_000) == 4
    cluster.paused.clear()
    cluster.advance("s", 3_000)
    cluster.run(10)
    assert placed <= set(joining.buckets)
    assert not placed & held(cluster, "e0", "e1")
    assert sorted(times(cluster)) == sorted(4 * list(range(1_200, 3_001, ROUND_MS)))


def test_an_engine_that_joins_gets_no_bucket_before_it_has_come_near_the_end_of_the_log(cluster):
    late = cluster.start_engine("e2")
    late._reader.pause(late._reader.positions())
    late._reader.caught_up = lambda: False
    cluster.run(20)
    assert late._heartbeat_sender is not None
    assert not late.buckets
    assert sum(len(engine.buckets) for engine in cluster.engines.values()) == cluster.topics.buckets
    late._reader.resume(late._reader.positions())
    del late._reader.caught_up
    cluster.run(20)
    assert late.buckets


def test_a_step_of_an_engine_that_is_to_end_is_short(cluster):
    """Steps of the log that it leaves undone are done by the next step."""
    engine = cluster.engines[holder(cluster)]
    cluster.paused.append(engine)
    for k in range(10):
        cluster.advance("s", 1_000 + 200 * k)
        cluster.run(2)
    engine._interrupted = lambda: True
    engine._catch_up.slice_over = lambda: lambda: True
    before = engine.replica.history.step
    engine.step()
    assert engine.replica.history.step == before + 1
    for _ in range(30):
        engine.step()
    assert engine.caught_up()
    cluster.paused.clear()
    cluster.run(2)
    assert times(cluster) == list(range(times(cluster)[0], 2_801, ROUND_MS))


def test_an_engine_that_is_broken_off_commits_nothing_of_what_it_was_at(cluster):
    engine = cluster.engines[holder(cluster)]
    cluster.advance("s", 1_000)
    cluster.run(2)
    cluster.advance("s", 1_400)
    cluster.run(4)
    known = times(cluster)
    assert known

    def overdue() -> None:
        raise OverdueError

    engine._progress = overdue
    cluster.advance("s", 2_000)
    with pytest.raises(OverdueError):
        cluster.run(2)
    engine.close()
    assert times(cluster) == known
    del cluster.engines[next(name for name, each in cluster.engines.items() if each is engine)]
    cluster.run(30)
    assert times(cluster) == list(range(known[0], 2_001, ROUND_MS))


def test_a_shard_is_served_by_the_store_that_leaves_until_the_next_one_has_prepared_it(tmp_path):
    cluster = SmallCluster(engines=1, reads="tcp")
    try:
        leaver, other = (cluster.start_store(f"s{i}", tmp_path) for i in range(2))
        cluster.run(20)
        other.prepared = lambda: ()  # type: ignore[method-assign] - it takes its time
        leaver.leave()
        cluster.run(10)
        assert leaver.shards
        assert not leaver.alone
        assert set(other.shards) == set(range(cluster.topics.shards)), "prepared beside"
        del other.prepared
        cluster.run(4)
        assert leaver.left
    finally:
        cluster.close()


def test_a_store_that_ends_before_another_one_has_prepared_its_shards_says_so(tmp_path):
    cluster = SmallCluster(engines=1, reads="tcp")
    try:
        leaver, other = (cluster.start_store(f"s{i}", tmp_path) for i in range(2))
        cluster.run(20)
        mine = set(leaver.shards)
        other.prepared = lambda: ()  # type: ignore[method-assign] - it takes its time
        leaver.leave()
        cluster.run(4)
        cluster._lessors.pop("s0").close()
        cluster.stores.pop("s0").close()
        cluster.run(2)
        view = PlacementView(cluster.log, cluster.topics, cluster.clock)
        placement = view.refresh()
        assert placement is not None
        assert mine
        assert set(placement.shards.values()) == {"s1"}, "within 400 ms, where a crash takes 3 s"
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


def test_an_engine_that_has_read_nothing_yet_is_not_ready_by_its_first_heartbeat(cluster):
    failure_detector = FailureDetector(cluster.log, cluster.topics, cluster.clock)
    engine = cluster.start_engine("e2")
    engine._heartbeat_sender._send()  # the thread is faster than the first step
    failure_detector.listen()
    assert not failure_detector.heard("query-engine")["e2"].ready
    cluster.run(4)
    failure_detector.listen()
    assert failure_detector.heard("query-engine")["e2"].ready


class Refusing:
    """A writer whose first appends fail for good."""

    def __init__(self, refused: int = 1) -> None:
        self.tried, self.refused = 0, refused
        self.sent = Event()

    def append(self, _: object) -> None:
        self.tried += 1
        if self.tried <= self.refused:
            raise LogError("a record was refused")
        self.sent.set()

    def close(self) -> None:
        pass

    def writer(self) -> Refusing:
        return self


def test_a_heartbeat_that_cannot_be_written_ends_no_service_and_is_logged_once(cluster, caplog):
    log = Refusing(3)
    heartbeat_sender = HeartbeatSender(log, cluster.topics, cluster.clock, "store", "a")  # type: ignore[arg-type]
    heartbeat_sender.start()
    try:
        assert log.sent.wait(10)
    finally:
        heartbeat_sender.close()
    assert caplog.messages.count("heartbeats are refused: a record was refused") == 1


def test_a_loop_that_stands_still_is_not_said_to_live(cluster, monkeypatch):
    log = Refusing()
    monkeypatch.setattr("penstock.replication.heartbeats.STALL_S", 0.0)
    heartbeat_sender = HeartbeatSender(log, cluster.topics, cluster.clock, "store", "a")  # type: ignore[arg-type]
    heartbeat_sender.start()
    began = time.monotonic()
    heartbeat_sender.close()
    assert log.tried == 0
    assert time.monotonic() - began < 10
