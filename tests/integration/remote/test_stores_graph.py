"""Engines that read the stored graph in stores: they answer as those that hold it do, or wait."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from penstock.engine.checkpoint.data_directory import DataDirectory
from penstock.engine.limits import Limits
from penstock.errors import UnavailableError
from penstock.remote.fragments import Fragments
from penstock.replication.placement_view import PlacementView
from penstock.services.query_engine.query_engine import QueryEngine
from penstock.services.query_engine.replica_checkpoint import ReplicaFactory
from support.small_cluster import SmallCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

EX = "http://ex.org/"
SHARDS = 4
QUERIES = {
    "friends": f"""REGISTER QUERY friends AS SELECT ?x ?y ?at FROM STREAM <{EX}s> [RANGE 1s STEP 1s] FROM <{EX}g>
        WHERE {{ ?x <{EX}at> ?at . ?x <{EX}knows> ?y }}""",
    "newest": f"""REGISTER ISTREAM newest AS SELECT ?x (COUNT(?y) AS ?n) FROM STREAM <{EX}s> [RANGE 2s STEP 1s] FROM <{EX}g>
        FROM <{EX}h> WHERE {{ ?x <{EX}at> ?at . ?x ?p ?y }} GROUP BY ?x""",
    "other": f"""REGISTER QUERY other AS SELECT ?y FROM STREAM <{EX}t> [RANGE 1s STEP 1s] FROM <{EX}g>
        WHERE {{ ?x <{EX}at> ?at . ?x <{EX}knows> ?y }}""",
    "stored": f"""REGISTER QUERY stored AS SELECT ?x ?y ?z FROM NAMED STREAM <{EX}s> [RANGE 2s STEP 1s] FROM <{EX}g>
        FROM NAMED <{EX}h> WHERE {{ GRAPH <{EX}s> {{ ?x <{EX}at> ?at }} ?x <{EX}knows> ?y . GRAPH <{EX}h> {{ ?x <{EX}of> ?z }} }}""",
    "lone": f"""REGISTER QUERY lone AS SELECT ?x ?at FROM STREAM <{EX}t> [RANGE 1s STEP 1s] WHERE {{ ?x <{EX}at> ?at }}""",
}


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[..., SmallCluster]]:
    clusters = []

    def make(reads: Any, stores: int = 2, engines: int = 1, execution: Any = "auto") -> SmallCluster:
        cluster = SmallCluster(engines=engines, shards=SHARDS, buckets=4, reads=reads, execution=execution)
        clusters.append(cluster)
        for i in range(stores):
            cluster.start_store(f"s{i}", tmp_path / str(len(clusters)))
        for name in ("s", "t"):
            cluster.coordinator.declare(EX + name, name, batch_ms=500, timing=(EX + "at",), absorb_into=EX + "g")
        cluster.coordinator.update(f"INSERT DATA {{ GRAPH <{EX}h> {{ <{EX}x> <{EX}of> <{EX}h> }} }}")
        for name, text in QUERIES.items():
            cluster.coordinator.register(name, text)
        cluster.advance("s", 0)
        cluster.advance("t", 0)
        cluster.run()
        return cluster

    yield make
    for cluster in clusters:
        cluster.close()


def feed(cluster: SmallCluster, first: int, last: int) -> None:
    """Seconds of events that store triples, on one stream ahead of the other; an insertion in between."""
    for second in range(first, last):
        for name, lead in (("s", 300), ("t", 0)):
            x = f"<{EX}x{second % 3}>"
            at = f"{x} <{EX}at> {second} .".replace(str(second) + " .", f'"{second}" .')
            cluster.push(name, second * 1000 + lead, f"{at}\n{x} <{EX}knows> <{EX}{name}{second}> .")
        cluster.coordinator.update(
            f"INSERT DATA {{ GRAPH <{EX}h> {{ <{EX}x{second % 3}> <{EX}of> <{EX}h{second}> }} }}"
        )
        cluster.run(3)
    cluster.advance("s", last * 1000)
    cluster.run(5)
    cluster.advance("t", last * 1000)
    cluster.run()


def reported(cluster: SmallCluster) -> list[Any]:
    return [(line["query"], line["time"], sorted(map(repr, line["results"]["bindings"]))) for line in cluster.results()]


@pytest.fixture
def expected(made: Callable[..., SmallCluster]) -> list[Any]:
    cluster = made(None, stores=0)
    for first, last in ((1, 4), (4, 8), (8, 12)):  # where the streams meet, decides what they see of each other
        feed(cluster, first, last)
    assert {query for query, _, rows in reported(cluster) if rows} == set(QUERIES)
    return reported(cluster)


@pytest.mark.parametrize("reads", ["shm", "tcp"])
@pytest.mark.parametrize("engines", [1, 2])
def test_engines_answer_from_stores_what_one_that_holds_the_graph_answers(made, expected, reads, engines):
    cluster = made(reads, engines=engines)
    feed(cluster, 1, 4)
    feed(cluster, 4, 8)
    feed(cluster, 8, 12)
    assert reported(cluster) == expected
    for engine in cluster.engines.values():
        assert engine.caught_up()
        assert engine.graph.labels_only.edge_count() == 0
        assert engine.graph.edge_count() == cluster_edges(cluster)


@pytest.mark.parametrize("reads", ["shm", "tcp"])
def test_steps_that_run_in_stores_give_the_same_answers(made, expected, reads):
    cluster = made(reads, engines=2, execution="fork-join")
    feed(cluster, 1, 4)
    feed(cluster, 4, 8)
    feed(cluster, 8, 12)
    assert reported(cluster) == expected
    assert sum(engine.graph.links.forking.forks for engine in cluster.engines.values()) > 0


def cluster_edges(cluster: SmallCluster) -> int:
    return sum(shard.store.edge_count() for store in cluster.stores.values() for shard in store.shards.values())


@pytest.mark.parametrize("execution", ["in-place", "fork-join"])
@pytest.mark.parametrize("back", [False, True])
def test_engines_wait_for_a_failed_store_until_its_shards_are_reassigned(made, expected, tmp_path, back, execution):
    cluster = made("shm", engines=2, execution=execution)
    feed(cluster, 1, 4)
    cluster.kill_store("s1")
    feed(cluster, 4, 8)
    if back:
        cluster.start_store("s1", tmp_path / "2")
    feed(cluster, 8, 12)
    assert reported(cluster) == expected


def test_without_stores_evaluations_wait_and_are_made_up_for(made, expected, tmp_path):
    cluster = made("shm", stores=0)
    feed(cluster, 1, 4)
    [engine] = cluster.engines.values()
    assert "no store has shard 0" in (engine.last_error or "")
    assert not engine.caught_up()
    assert {query for query, _, _ in reported(cluster)} <= {"lone"}
    for name in ("s0", "s1"):
        cluster.start_store(name, tmp_path / "late")
    feed(cluster, 4, 8)
    feed(cluster, 8, 12)
    assert engine.last_error is None
    assert reported(cluster) == expected


LATER = f"""SELECT ?x ?z FROM <{EX}g> FROM NAMED <{EX}h>
    WHERE {{ ?x <{EX}knows> ?y . GRAPH <{EX}h> {{ ?x <{EX}later> ?z }} }}"""


def test_steps_in_stores_know_terms_that_came_after_the_query_was_first_asked(made):
    cluster = made("tcp", execution="fork-join")
    feed(cluster, 1, 4)
    [engine] = cluster.engines.values()
    assert not list(engine.one_shot.query(LATER, None, None, None))
    cluster.coordinator.update(f"INSERT DATA {{ GRAPH <{EX}h> {{ <{EX}x1> <{EX}later> <{EX}new> }} }}")
    cluster.run()
    forks = engine.graph.links.forking.forks
    assert {str(row["z"]) for row in engine.one_shot.query(LATER, None, None, None)} == {f"{EX}new"}
    assert engine.graph.links.forking.forks > forks


def test_a_fork_at_a_store_that_stands_still_ends_with_the_link_to_it(made, monkeypatch):
    cluster = made("tcp", execution="fork-join")
    feed(cluster, 1, 4)
    [engine] = cluster.engines.values()
    run, began, still = Fragments.run, Event(), Event()

    def held_up(self: Fragments, *asked: Any) -> Any:
        if not began.is_set():
            began.set()
            still.wait(60.0)
        return run(self, *asked)

    monkeypatch.setattr(Fragments, "run", held_up)
    text = LATER.replace("later", "of")
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(lambda: len(list(engine.one_shot.query(text, None, None, None))))
        assert began.wait(60.0)
        for lessor in cluster._lessors.values():
            engine.graph.links.forking.interrupt(lessor.address)
        assert asked.result(60.0) > 0
    still.set()


def test_a_one_shot_query_reads_stores_or_reports_that_they_are_unavailable(made, tmp_path):
    cluster = made("shm", stores=0)
    [engine] = cluster.engines.values()
    ask = f"SELECT ?x ?y FROM <{EX}g> WHERE {{ ?x <{EX}knows> ?y }}"
    with pytest.raises(UnavailableError, match="no store has shard 0"):
        engine.one_shot.query(ask, None, None, None)
    for name in ("s0", "s1"):
        cluster.start_store(name, tmp_path / "late")
    feed(cluster, 1, 4)
    assert len(list(engine.one_shot.query(ask, None, None, None))) == 6


def test_an_engine_that_stood_still_finds_out_that_it_was_fenced(made, expected):
    """Its bucket went to another one and came back meanwhile, and stores keep for nobody the graph that it
    waits for.
    """
    cluster = made("shm", engines=2)
    feed(cluster, 1, 4)
    still = cluster.engines["e0"]
    buckets = set(still.buckets)
    assert buckets
    cluster.paused.append(still)
    feed(cluster, 4, 8)
    assert set(cluster.engines["e1"].buckets) > buckets
    cluster.kill("e1")
    for _ in range(30):  # it is heard of again, before it looks at anything
        still._heartbeat_sender.beat()
        cluster.run(1)
    assert set(PlacementView(cluster.log, cluster.topics, cluster.clock).buckets_of("e0") or ()) > buckets
    assert set(still.buckets) == buckets
    cluster.paused.clear()
    feed(cluster, 8, 12)
    assert reported(cluster) == expected
    assert still.caught_up()


def test_a_restarted_engine_counts_commits_as_the_stores_do(made, expected, tmp_path):
    cluster = made("shm")
    before = cluster.engines["e0"]
    feed(cluster, 1, 4)
    directory = DataDirectory(tmp_path / "engine", read_only=False)

    def factory(links: Any) -> ReplicaFactory:
        limits, now_ms = Limits(), cluster.clock.now_ms
        return ReplicaFactory(directory, cluster.terms, SHARDS, limits, now_ms, random.Random(0), links, 0.0)

    assert factory(before.graph.links).save(before.replica)
    feed(cluster, 4, 8)
    cluster.kill("e0")
    made = factory(before.graph.links)
    cluster.engines["e0"] = QueryEngine(cluster.log, cluster.topics, "e0", made, cluster.clock)
    feed(cluster, 8, 12)
    assert reported(cluster) == expected
