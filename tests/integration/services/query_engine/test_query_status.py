"""An engine's status of its queries, on a small cluster."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from penstock.http import query_statuses
from support.small_cluster import SmallCluster

S, HOT = "http://x/s", "http://x/hot"
PLAIN = f"REGISTER QUERY plain AS SELECT ?v FROM STREAM <{S}> [RANGE 2s STEP 1s] WHERE {{ ?s <http://x/p> ?v }}"
MADE = f"REGISTER STREAM <{HOT}> AS CONSTRUCT {{ ?s <http://x/q> ?v }} FROM STREAM <{S}> [RANGE 1s STEP 1s] WHERE {{ ?s <http://x/p> ?v }}"
READER = f"REGISTER QUERY reader AS SELECT ?v FROM STREAM <{HOT}> [RANGE 1s STEP 1s] WHERE {{ ?s <http://x/q> ?v }}"


@pytest.fixture
def cluster():
    made = SmallCluster(engines=2, buckets=2)
    made.coordinator.declare(S, "s", batch_ms=100, timing="all")
    made.run()
    yield made
    made.close()


def statuses(cluster, name):
    return [found for engine in cluster.engines.values() if (found := engine.status(name)) is not None]


def test_the_engine_of_the_query_knows_what_it_waits_for(cluster):
    cluster.push("s", 500, '<http://x/a> <http://x/p> "1" .')
    cluster.run()
    cluster.coordinator.register("plain", PLAIN)
    cluster.run()
    cluster.advance("s", 2_000)
    cluster.run()
    (status,) = statuses(cluster, "plain")
    (wait,) = status.waits_for
    assert (status.name, status.state, status.last, status.next) == ("plain", "waiting", 2_000, 3_000)
    assert (wait.stream, wait.watermark, wait.required) == (S, 2_000, 3_000)
    assert wait.release == f"an event on <{S}> later than 3000 ms, or advance to 3000 ms"


def test_a_derived_stream_is_released_by_its_query(cluster):
    cluster.coordinator.register("made", MADE)
    cluster.coordinator.register("reader", READER)
    cluster.run()
    (status,) = statuses(cluster, "reader")
    assert [(wait.stream, wait.publisher) for wait in status.waits_for] == [(HOT, "made")]
    assert status.waits_for[0].release == f"query made, which publishes <{HOT}>, reports further"


def test_other_engines_and_other_names_are_not_found(cluster):
    cluster.coordinator.register("plain", PLAIN)
    cluster.run()
    clients = [
        TestClient(Starlette(routes=query_statuses.routes(engine.status))) for engine in cluster.engines.values()
    ]
    found = [client.get("/queries/plain/status") for client in clients]
    assert sorted(response.status_code for response in found) == [200, 404]
    assert {client.get("/queries/other/status").status_code for client in clients} == {404}
    cluster.coordinator.stop("plain")
    cluster.run()
    assert statuses(cluster, "plain") == []
