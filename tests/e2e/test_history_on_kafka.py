"""Queries in the past of a cluster of processes on a real broker. All query engines are killed while the queries catch up,
and continue from a checkpoint that was written before the queries were registered, or from the log.

The embedded engine has the same queries from the start, and must give the same answers (ADR 107). One of the queries
reads the stored graph, which query engines have in their own process or read from a store.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("confluent_kafka")

from penstock.client import Client
from penstock.engine.answers.record_lines import lines_of
from penstock.log import START, Partition
from support.cluster_load import BEGIN, BOUND_S, EVENT_MS, IRI, Load, Producing, small
from support.cluster_load import SETTINGS as DEFAULTS

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.cli.cluster.local_cluster import LocalCluster
    from penstock.log import Reader

pytestmark = pytest.mark.xdist_group("broker")
HISTORY = 3_000  # events before the queries are registered
BEGINNING = "FROM BEGINNING "
EARLY = f"REGISTER QUERY early AS SELECT (COUNT(*) AS ?n) FROM STREAM <{IRI}> [RANGE 1s STEP 1s] WHERE {{ ?s <http://x/p> ?v }}"
LATE = {
    "joined": f"REGISTER QUERY joined {BEGINNING}AS SELECT ?s (COUNT(?t) AS ?n) FROM STREAM <{IRI}> [RANGE 50ms STEP 40ms] "
    "FROM <urn:x-penstock:stored> WHERE { ?s <http://x/p> ?v . ?s <http://x/says> ?t } GROUP BY ?s",
    "fresh": f"REGISTER ISTREAM fresh {BEGINNING}AS SELECT ?s ?v FROM STREAM <{IRI}> [RANGE 50ms STEP 10ms] "
    "WHERE { ?s <http://x/p> ?v }",
    "late": f"REGISTER QUERY late {BEGINNING}AS SELECT ?s (COUNT(*) AS ?n) FROM STREAM <{IRI}> [RANGE 1s STEP 4ms] "
    "WHERE { ?s <http://x/p> ?v } GROUP BY ?s",
}


def committed(load: Load) -> Counter[str]:
    """Return how many evaluations of each query the cluster has committed."""
    found: Counter[str] = Counter()
    reader = load.log.reader({Partition(load.names.results, i): START for i in range(4)})
    while not reader.caught_up():
        for message in reader.poll(1000, 0.2):
            found.update(line["query"] for line in lines_of(message.value, message.headers))
    reader.close()
    return found


def kill_engines(load: Load, cluster: LocalCluster, reader: Reader, most: int) -> int:
    """Kill all query engines once `reader` has a quarter of the answers of the last query. Returns how many instants the
    query has answered, which must be fewer than `most`.
    """
    seen, deadline = 0, time.monotonic() + BOUND_S
    while seen < most // 4:
        assert time.monotonic() < deadline, "too few answers in the past"
        seen += sum((message.key or b"").startswith(b"late@") for message in reader.poll(1000, 0.1))
    for name in [name for name in cluster.services if name.startswith("engine")]:
        cluster.kill(name)
    found = committed(load)["late"]
    assert 0 < found < most, "the engines were killed too late"
    cluster.watch()
    return found


SETTINGS = {**DEFAULTS, "timing": ["http://x/p"], "retention_ms": 3_600_000, "graph_history": True}


def play(servers: str, prefix: str, directory: Path, rng: random.Random, stores: int = 0) -> None:
    load = Load(servers, prefix, queries={"early": EARLY}, settings=SETTINGS)
    with (
        small(servers, prefix, directory, engines=2, stores=stores) as cluster,
        Client(servers, cluster.url, cluster.sparql_url, prefix=prefix) as client,
    ):
        load.prepare(client)
        load.push_together(HISTORY)
        instants = (load.now - 1 - BEGIN) // 1_000
        load.wait(lambda: committed(load)["early"] >= instants, "the answers of the live query")
        reader = load.log.reader({Partition(load.names.results, i): START for i in range(4)})
        with Producing(load) as producing:
            for name, text in LATE.items():
                client.register(text, name)
                load.queries[name] = text.replace(BEGINNING, "")
            found = kill_engines(load, cluster, reader, HISTORY * EVENT_MS // 4)
            producing.wait_for(len(load.sent) + rng.randrange(50, 200))
        reader.close()
        print(f"killed after {found} instants, {load.check(cluster)} evaluations")


@pytest.mark.parametrize("stores", [0, 1])
def test_queries_in_the_past_answer_each_instant_once_although_engines_are_killed(
    broker, topic_prefix, tmp_path, stores
):
    play(broker.bootstrap_servers, topic_prefix, tmp_path, random.Random(1), stores)


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(2, 12))
def test_queries_in_the_past_answer_each_instant_once_often(broker, topic_prefix, tmp_path, seed):
    play(broker.bootstrap_servers, topic_prefix, tmp_path, random.Random(seed), seed % 2)
