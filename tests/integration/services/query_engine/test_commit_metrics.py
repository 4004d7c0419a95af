"""What an engine tells about itself: the metrics that operators look at."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("prometheus_client")
pytest.importorskip("structlog")

from prometheus_client import generate_latest

from penstock.log import Message
from penstock.log.clock import VirtualClock
from penstock.log.topics import TopicNames
from penstock.runtime.metrics import Metrics
from penstock.services.query_engine.measures.commit_metrics import CommitMetrics
from penstock.services.query_engine.service import EngineGauges, memory_of
from support.small_cluster import SmallCluster

IRI = "http://x/s"
COUNT = f"REGISTER QUERY q AS SELECT (COUNT(*) AS ?n) FROM STREAM <{IRI}> [RANGE 1s STEP 1s] WHERE {{ ?s ?p ?o }}"


def numbers(metrics: Metrics) -> dict[str, float]:
    lines = generate_latest(metrics.registry).decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def test_an_engine_tells_evaluations_latencies_ages_lag_and_memory():
    cluster = SmallCluster(engines=1)
    try:
        cluster.coordinator.declare(IRI, "s", batch_ms=500)
        cluster.coordinator.register("q", COUNT)
        cluster.run()
        cluster.push("s", 100_200, "<urn:a> <urn:p> <urn:b> .")
        cluster.advance("s", 103_000)
        cluster.run()
        engine, metrics = cluster.engines["e0"], Metrics("query-engine")
        made = SimpleNamespace(engine=engine, memory=memory_of(engine.replica.runtime))
        context = SimpleNamespace(clock=cluster.clock, log=cluster.log)
        gauges = EngineGauges(made, metrics, context)  # type: ignore[arg-type]
        gauges.observe()
        gauges.observe()  # committed evaluations are observed once
        found = numbers(metrics)
    finally:
        cluster.close()
    assert found["penstock_evaluations_total"] == len(cluster.results()) == 3
    assert found["penstock_result_latency_seconds_count"] == 3
    assert found["penstock_transactions_total"] > 0
    assert found["penstock_buckets"] == 2
    assert found["penstock_complete_evaluations_total"] == 3  # the windows are small
    assert found["penstock_updated_evaluations_total"] == found["penstock_state_bytes"] == 0
    assert found[f'penstock_batch_age_seconds{{stream="{IRI}"}}'] == cluster.clock.now_ms() / 1000 - 103
    assert found['penstock_lag_records{topic="penstock.shards"}'] == 0
    for region in ("stored graph", "windows", "terms", f"slices {IRI}"):
        assert found[f'penstock_memory_bytes{{region="{region}"}}'] > 0


def test_latency_is_from_the_first_record_that_is_not_done_to_the_commit():
    names, clock = TopicNames(), VirtualClock(1_000)
    metrics = CommitMetrics(clock)
    metrics.read([Message(names.shards, 0, i, 900 + i, None, b"") for i in range(3)])
    metrics.read([Message(names.shards, 0, 3, 990, None, b"")])
    metrics.committed(0)
    assert metrics.take() == []
    metrics.committed(2)
    assert metrics.take() == [(0.1, 2)]
    metrics.idle()
    metrics.read([Message(names.shards, 0, 4, 1_000, None, b"")])
    clock.advance(50)
    metrics.committed(1)
    assert metrics.take() == [(0.05, 1)]
    assert (metrics.evaluations, metrics.transactions) == (3, 3)
