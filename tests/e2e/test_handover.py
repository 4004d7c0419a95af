"""SIGTERM of an engine or a store under load, and its return: results go on, and none is lost or doubled."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("confluent_kafka")

from penstock.client import Client
from support.cluster_load import INTEGER, IRI, Load, small
from support.silences import Arrivals, Pushing

if TYPE_CHECKING:
    from penstock.cli.up import LocalCluster

pytestmark = [pytest.mark.xdist_group("broker"), pytest.mark.long]
GRAPH = "http://x/stored"
SETTINGS = {"timing": ("http://x/p",), "absorb_into": GRAPH, "max_ahead_ms": 1 << 52, "idle_timeout_ms": 3_600_000}
STEP_S = 0.1
QUERIES = {
    f"q{i}": f"REGISTER QUERY q{i} AS SELECT ?s ?v ?t FROM STREAM <{IRI}> [RANGE {i}s STEP 100ms] FROM <{GRAPH}> "
    "WHERE { ?s <http://x/p> ?v . ?s <http://x/says> ?t }"
    for i in (1, 2)
}
PERIOD_S = 8.0
"""Longer than a silence may be, and than a process takes to start."""
BOUND_S = 1.0
"""Silence that a handover may add to the longest one of undisturbed periods of the same run and length."""
END_S = 10.0


def own_thing(time_ms: int) -> bytes:
    """A reading of a thing of its own: answers are bounded by the window, and need what the stores have just stored."""
    thing = b"<http://x/1/%d>" % time_ms
    value = b'"%d"^^<%s>' % (time_ms, INTEGER)
    return b'%s <http://x/p> %s .\n%s <http://x/says> "reading %d" .' % (thing, value, thing, time_ms)


def test_results_go_on_within_a_second_of_sigterm_and_of_a_return(broker, topic_prefix, tmp_path):
    servers = broker.bootstrap_servers
    load = Load(servers, topic_prefix, queries=QUERIES, settings=SETTINGS, event=own_thing)
    with (
        small(servers, topic_prefix, tmp_path, engines=2, stores=2) as cluster,
        Client(servers, cluster.url, cluster.sparql_url, prefix=topic_prefix) as client,
    ):
        load.prepare(client)
        with Arrivals(load) as arrivals:
            with Pushing(load):
                load.wait(lambda: all(len(each) > 50 for each in arrivals.moments.values()), "answers")
                calm, found = [silence(arrivals)], {}
                for name in ("engine-0", "store-0"):
                    terminate(cluster, name)
                    found[f"{name} leaves"] = silence(arrivals)
                    ended(cluster, name)
                    cluster.watch()
                    found[f"{name} joins"] = silence(arrivals)
                    calm.append(silence(arrivals))
            print("longest silence, s:", {what: round(each, 2) for what, each in found.items()})
            print("undisturbed, s:", [round(each, 2) for each in calm])
        load.check(cluster)
    assert max(found.values()) <= BOUND_S + max(calm)


def silence(arrivals: Arrivals) -> float:
    """Return the longest silence of a period that begins now."""
    began = time.monotonic()
    time.sleep(PERIOD_S)
    return arrivals.silence(began, began + PERIOD_S, STEP_S)


def terminate(cluster: LocalCluster, name: str) -> None:
    process = cluster.supervisor.services[name].process
    assert process is not None
    process.send_signal(signal.SIGTERM)


def ended(cluster: LocalCluster, name: str) -> None:
    process = cluster.supervisor.services[name].process
    assert process is not None
    assert process.wait(END_S) == 0, "it ends in order"
