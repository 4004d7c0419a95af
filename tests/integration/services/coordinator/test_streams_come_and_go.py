"""Streams that are declared, dropped, and declared again while batches of them are on their way."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.log import Record, Topic
from penstock.wire import ShardBatch, encode
from support.small_cluster import SmallCluster

IRI = "http://x/s"
COUNT = f"REGISTER QUERY q AS SELECT (COUNT(*) AS ?n) FROM STREAM <{IRI}> [RANGE 1s STEP 1s] WHERE {{ ?s ?p ?o }}"
NO_IDS = np.empty(0, np.uint64)


@pytest.fixture
def cluster():
    made = SmallCluster(engines=2)
    yield made
    made.close()


def counts(cluster: SmallCluster) -> list[tuple[int, str]]:
    return [(line["time"], line["results"]["bindings"][0]["n"]["value"]) for line in cluster.results()]


def test_tuples_have_as_many_partitions_as_the_events_that_were_there_first(cluster):
    cluster.log.create([Topic(cluster.topics.names.events("s"), 3)])
    cluster.coordinator.declare(IRI, "s")
    assert cluster.log.topics()[cluster.topics.names.tuples("s")] == 3


def test_batches_of_a_stream_that_was_dropped_are_passed_over(cluster):
    cluster.coordinator.declare(IRI, "s")
    cluster.coordinator.drop(IRI)
    late = encode(ShardBatch(IRI, 0, 9, *([NO_IDS] * 5), 0, 1))
    records = [Record(cluster.topics.names.shards, late, None, shard) for shard in range(cluster.topics.shards)]
    cluster.log.transactional("a dispatcher").commit(records)
    cluster.run()
    assert all(engine.caught_up() for engine in cluster.engines.values())
    assert all(IRI not in engine.replica.runtime.streams for engine in cluster.engines.values())


def test_who_reads_in_one_go_and_who_reads_bit_by_bit_count_the_same_steps(cluster):
    """A batch that comes behind its stream's drop is no step, whatever was in force where it was read."""
    first, second = cluster.engines.values()
    cluster.coordinator.declare(IRI, "s")
    cluster.coordinator.drop(IRI)
    cluster.coordinator.declare(IRI, "s")
    while first.step():
        pass
    cluster.coordinator.drop(IRI)
    late = encode(ShardBatch(IRI, 0, 9, *([NO_IDS] * 5), 0, 1))
    records = [Record(cluster.topics.names.shards, late, None, shard) for shard in range(cluster.topics.shards)]
    cluster.log.transactional("a dispatcher").commit(records)
    cluster.run()
    assert first.replica.commands == second.replica.commands
    assert first.replica.history.step == second.replica.history.step


def test_a_stream_declared_again_has_nothing_of_the_one_before(cluster):
    cluster.coordinator.declare(IRI, "s")
    cluster.coordinator.register("q", COUNT)
    cluster.push("s", 100_500, "<urn:a> <urn:p> <urn:b> .")
    cluster.advance("s", 101_000)
    cluster.run()
    assert counts(cluster) == [(101_000, "1")]
    cluster.push("s", 101_500, "<urn:a> <urn:p> <urn:b> .")
    cluster.run()
    cluster.coordinator.stop("q")
    cluster.coordinator.drop(IRI)
    cluster.coordinator.declare(IRI, "s", batch_ms=250)
    cluster.coordinator.register("q", COUNT)
    cluster.push("s", 101_600, "<urn:c> <urn:p> <urn:d> .")
    cluster.advance("s", 102_000)
    cluster.run()
    assert counts(cluster) == [(101_000, "1"), (102_000, "1")]


def test_what_a_stopped_query_still_had_to_report_is_reported_before_its_stream_goes(cluster):
    cluster.coordinator.declare(IRI, "s")
    cluster.coordinator.register("q", COUNT)
    cluster.run()
    [holder] = [name for name, engine in cluster.engines.items() if any(b.members for b in engine.buckets.values())]
    cluster.kill(holder)
    cluster.push("s", 100_500, "<urn:a> <urn:p> <urn:b> .")
    cluster.advance("s", 101_000)
    for _ in range(5):
        cluster.adaptor.step()
        cluster.dispatcher.step()
    cluster.coordinator.stop("q")
    cluster.coordinator.drop(IRI)
    cluster.run(60)
    assert counts(cluster) == [(101_000, "1")]
    [left] = cluster.engines.values()
    assert left.caught_up()
    assert IRI not in left.replica.runtime.streams


@pytest.mark.parametrize("reads", [None, "shm"])
@pytest.mark.parametrize("again", [False, True])
def test_what_a_dropped_stream_absorbed_later_is_not_seen_by_instants_that_were_due_before(tmp_path, reads, again):
    """An engine that takes a query over behind the drop answers as the one before would have."""
    cluster = SmallCluster(engines=2, buckets=1, reads=reads)
    if reads is not None:
        cluster.start_store("s0", tmp_path)
    cluster.run()
    other = "http://x/t"
    cluster.coordinator.declare(IRI, "s", timing="all")
    cluster.coordinator.declare(other, "t")
    text = f"REGISTER QUERY q AS SELECT ?z FROM STREAM <{IRI}> [RANGE 2s STEP 1s] FROM <urn:x-penstock:stored> "
    cluster.coordinator.register("q", text + "WHERE { ?s <urn:p> ?o . ?s <urn:k> ?z }")
    cluster.run()
    [holder] = [name for name, engine in cluster.engines.items() if engine.buckets]
    cluster.push("t", 10_100, "<urn:a> <urn:k> <urn:z1> .")
    cluster.advance("t", 11_000)
    cluster.run(3)
    cluster.paused.append(cluster.engines[holder])
    cluster.push("s", 10_100, "<urn:a> <urn:p> <urn:b> .")
    cluster.advance("s", 12_000)
    cluster.run(3)
    cluster.push("t", 13_100, "<urn:a> <urn:k> <urn:z2> .")
    cluster.advance("t", 15_000)
    cluster.run(3)
    cluster.coordinator.drop(other)
    if again:
        cluster.coordinator.declare(other, "t")
    cluster.run(3)
    cluster.kill(holder)
    cluster.run(60)
    found = [(line["time"], len(line["results"]["bindings"])) for line in cluster.results()]
    cluster.close()
    assert found[:2] == [(11_000, 1), (12_000, 1)]


@pytest.mark.parametrize("absorbed", [False, True])
def test_a_query_outlives_the_stream_that_absorbed_into_a_graph_that_it_names(cluster, absorbed):
    graph, other = "http://x/g", "http://x/t"
    cluster.coordinator.declare(IRI, "s", timing="all")
    cluster.coordinator.declare(other, "t", absorb_into=graph)
    text = f"REGISTER QUERY q AS SELECT ?s FROM STREAM <{IRI}> [RANGE 2s STEP 1s] WHERE {{ ?s <urn:p> ?o "
    text += f"FILTER NOT EXISTS {{ GRAPH <{graph}> {{ ?s <urn:k> ?z }} }} }}"
    cluster.coordinator.register("q", text)
    if absorbed:
        cluster.push("t", 1_000, "<urn:a> <urn:k> <urn:z> .")
        cluster.advance("t", 2_000)
        cluster.run()
    cluster.coordinator.drop(other)
    cluster.run()
    cluster.coordinator.close()
    cluster.restart_coordinator()
    for name in list(cluster.engines):
        cluster.kill(name)
    cluster.start_engine("e9")
    cluster.run()
    cluster.push("s", 10_100, "<urn:a> <urn:p> <urn:b> .\n<urn:c> <urn:p> <urn:b> .")
    cluster.advance("s", 11_000)
    cluster.run()
    [line] = cluster.results()
    assert len(line["results"]["bindings"]) == 2 - absorbed
    cluster.coordinator.register("q2", text.replace("QUERY q ", "QUERY q2 "))


def test_an_engine_hears_that_a_stopped_query_is_done_though_it_thinks_its_bucket_its_own(cluster):
    """Another one has opened the bucket and committed; that it read before the placement that says so."""
    cluster.coordinator.declare(IRI, "s")
    group = cluster.coordinator.register("q", COUNT).group
    cluster.push("s", 100_500, "<urn:a> <urn:p> <urn:b> .")
    cluster.advance("s", 101_000)
    cluster.run()
    [former] = [engine for engine in cluster.engines.values() if group % 2 in engine.buckets]
    cluster.paused.append(former)
    cluster.run()
    assert sum(group % 2 in engine.buckets for engine in cluster.engines.values()) == 2
    cluster.coordinator.stop("q")
    cluster.coordinator.drop(IRI)
    cluster.run()
    refresh, before = former._placement.refresh, former._placement._current
    former._placement.refresh = lambda: before
    former.step()
    former._placement.refresh = refresh
    cluster.paused.remove(former)
    cluster.run()
    assert former.caught_up()
    assert IRI not in former.replica.runtime.streams


@pytest.mark.parametrize("restarted", [False, True])
def test_a_stream_declared_again_by_another_name_is_read_from_the_beginning_of_its_topics(cluster, restarted):
    cluster.coordinator.declare(IRI, "s")
    cluster.push("s", 100_500, "<urn:a> <urn:p> <urn:b> .")
    cluster.push("s", 100_600, "<urn:a> <urn:p> <urn:c> .")
    cluster.run(5)
    cluster.coordinator.drop(IRI)
    cluster.run(5)
    if restarted:
        cluster.dispatcher.close()
        cluster.dispatcher = cluster.start_dispatcher()
    cluster.coordinator.declare(IRI, "other")
    cluster.coordinator.register("q", COUNT)
    cluster.push("other", 100_500, "<urn:a> <urn:p> <urn:b> .")
    cluster.advance("other", 101_000)
    cluster.run()


def test_who_evaluates_late_does_not_see_what_a_dropped_stream_has_stored_since(cluster):
    """The engine that takes the query over has applied the drop already: it must still tell the stream's
    batches apart.
    """
    other = "http://x/t"
    body = "FROM <urn:x-penstock:stored> WHERE { ?s <urn:q> ?o }"
    text = f"REGISTER QUERY q AS SELECT (COUNT(*) AS ?n) FROM NAMED STREAM <{IRI}> [RANGE 1s STEP 1s] {body}"
    cluster.coordinator.declare(IRI, "s", timing="all")
    cluster.coordinator.declare(other, "t")
    cluster.coordinator.register("q", text)
    cluster.push("t", 100_100, "<urn:a> <urn:q> <urn:b> .")
    cluster.advance("t", 100_200)
    cluster.run()
    [holder] = [name for name, engine in cluster.engines.items() if any(b.members for b in engine.buckets.values())]
    cluster.kill(holder)
    [left] = cluster.engines.values()
    for stream in ("s", "t"):
        cluster.push(stream, 100_500, "<urn:c> <urn:q> <urn:d> .")
        cluster.advance(stream, 101_000)
        take(cluster)
    cluster.coordinator.drop(other)
    take(cluster)
    assert other not in left.replica.runtime.streams
    assert counts(cluster) == []
    cluster.run(60)
    assert counts(cluster) == [(101_000, "1")]
    cluster.advance("s", 102_000)
    cluster.run()
    assert counts(cluster)[1:] == [(102_000, "2")]
    assert left.replica.history.gone == []  # nobody looks at the graph before the drop any more


def take(cluster: SmallCluster) -> None:
    """Let all take in what has come, in so little time that nobody is taken for dead."""
    for _ in range(5):
        cluster.adaptor.step()
        cluster.dispatcher.step()
        for engine in cluster.engines.values():
            engine.step()


def test_what_is_sent_once_a_stream_was_declared_again_is_its_own_though_the_dispatcher_has_not_heard(
    cluster, monkeypatch
):
    cluster.coordinator.declare(IRI, "s")
    cluster.push("s", 100_100, "<urn:a> <urn:p> <urn:b> .")
    cluster.run()
    cluster.coordinator.drop(IRI)
    cluster.coordinator.declare(IRI, "s", batch_ms=250)
    cluster.coordinator.register("q", COUNT)
    with monkeypatch.context() as deaf:
        deaf.setattr(cluster.dispatcher._declared, "refresh", lambda: False)
        cluster.push("s", 100_500, "<urn:a> <urn:p> <urn:b> .")
        take(cluster)
    assert cluster.dispatcher.tallies().events == 2
    cluster.run()
    cluster.advance("s", 101_000)
    cluster.run()
    assert counts(cluster) == [(101_000, "1")]
