"""Engines that read the stored graph in stores over TCP, on a real broker: what streams absorb, whoever is killed."""

from __future__ import annotations

import re
import time
from urllib.error import URLError
from urllib.request import urlopen

import pytest

pytest.importorskip("confluent_kafka")

from typing import TYPE_CHECKING

from penstock.client import Client
from penstock.errors import UnavailableError
from support.cluster_load import IRI, Load, small

if TYPE_CHECKING:
    from penstock.cli.cluster.local_cluster import LocalCluster

pytestmark = pytest.mark.xdist_group("broker")
GRAPH = "http://x/stored"
SETTINGS = {"timing": ("http://x/p",), "absorb_into": GRAPH, "max_ahead_ms": 1 << 52, "idle_timeout_ms": 3_600_000}
QUERIES = {
    "said": f"REGISTER QUERY said AS SELECT ?s ?v ?t FROM STREAM <{IRI}> [RANGE 1s STEP 500ms] FROM <{GRAPH}> "
    "WHERE { ?s <http://x/p> ?v . ?s <http://x/says> ?t }",
    "new": f"REGISTER ISTREAM new AS SELECT ?t (COUNT(*) AS ?n) FROM STREAM <{IRI}> [RANGE 2s STEP 1s] FROM <{GRAPH}> "
    "WHERE { ?s <http://x/p> ?v . ?s <http://x/says> ?t } GROUP BY ?t",
    "both": f"REGISTER QUERY both AS SELECT ?s (COUNT(*) AS ?n) FROM NAMED STREAM <{IRI}> [RANGE 1s STEP 1s] FROM <{GRAPH}> "
    f"WHERE {{ GRAPH <{IRI}> {{ ?s <http://x/p> ?v }} ?s <http://x/says> ?t . ?s <http://x/says> ?u }} GROUP BY ?s",
    "entailed": f"REGISTER QUERY entailed AS SELECT ?s ?v ?t FROM STREAM <{IRI}> [RANGE 1s STEP 500ms] FROM <{GRAPH}> "
    "WITH ENTAILMENT RDFS WHERE { ?s a <http://x/Thing> ; <http://x/value> ?v ; <http://x/tells> ?t }",
}
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
SCHEMA = "\n".join(
    (
        f"<http://x/p> <{RDFS}subPropertyOf> <http://x/value> .",
        f"<http://x/says> <{RDFS}subPropertyOf> <http://x/tells> .",
        f"<http://x/value> <{RDFS}domain> <http://x/Sensor> .",
        f"<http://x/Sensor> <{RDFS}subClassOf> <http://x/Thing> .",
    )
).encode()


@pytest.mark.parametrize(("transport", "execution"), [("tcp", "in-place"), ("auto", "auto"), ("tcp", "fork-join")])
def test_killed_stores_and_engines_lose_and_double_nothing(broker, topic_prefix, tmp_path, transport, execution):
    load = Load(broker.bootstrap_servers, topic_prefix, queries=QUERIES, settings=SETTINGS, graphs={None: SCHEMA})
    with (
        small(
            broker.bootstrap_servers, topic_prefix, tmp_path, engines=2, transport=transport, execution=execution
        ) as cluster,
        Client(broker.bootstrap_servers, cluster.url, cluster.sparql_url, prefix=topic_prefix) as client,
    ):
        load.prepare(client)
        for victim in ("store-0", "engine-0", "store-1", "engine-1"):
            load.push(40, 1.0)
            cluster.kill(victim)
            load.push(20, 0.5)
            cluster.watch()
        load.push(40, 1.0)
        load.check(cluster)
        assert (_forks(cluster) > 0) == (execution == "fork-join"), "rows are too few for any other reason to fork"
        ask = f"SELECT (COUNT(*) AS ?n) FROM <{GRAPH}> WITH ENTAILMENT RDFS WHERE {{ ?s <http://x/tells> ?t }}"
        deadline = time.monotonic() + 30.0
        while (count := _count(client, ask)) != len(load.sent):
            assert time.monotonic() < deadline, (count, len(load.sent))
            time.sleep(0.2)


def _forks(cluster: LocalCluster) -> float:
    text = "".join(_metrics(f"{url}/metrics") for url in cluster.sparql_url.split(","))
    return sum(float(count) for count in re.findall(r"^penstock_forks_total (\S+)$", text, re.MULTILINE))


def _metrics(url: str) -> str:
    """What an engine tells, once it is there again."""
    deadline = time.monotonic() + 60.0
    while True:
        try:
            with urlopen(url) as answer:
                return str(answer.read().decode())
        except URLError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def _count(client: Client, ask: str) -> int:
    try:
        return int(next(iter(client.query(ask)))["n"])
    except UnavailableError:  # the engine that was asked has yet to reach its stores
        return -1
