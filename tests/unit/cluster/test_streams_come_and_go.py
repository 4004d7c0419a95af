"""Streams that are declared, dropped, and declared again while batches of them are on their way."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.log import Record, Topic
from penstock.wire import ShardBatch, encode
from support.small_cluster import SmallCluster

IRI = "http://x/s"
COUNT = f"REGISTER QUERY q AS SELECT (COUNT(*) AS ?n) FROM STREAM <{IRI}> [RANGE 1s STEP 1s] WHERE {{ ?s ?p ?o }}"
NOBODY = np.empty(0, np.uint64)


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
    late = encode(ShardBatch(IRI, 0, 9, *([NOBODY] * 5), 0, 1))
    records = [Record(cluster.topics.names.shards, late, None, shard) for shard in range(cluster.topics.shards)]
    cluster.log.transactional("a dispatcher").commit(records)
    cluster.run()
    assert all(engine.caught_up() for engine in cluster.engines.values())
    assert all(IRI not in engine.replica.runtime.streams for engine in cluster.engines.values())


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
