"""SIGTERM of an engine or a store under load, and its return: results go on, and none is lost or doubled."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("confluent_kafka")

from penstock.client import Client
from penstock.runtime.loop import LEAVE_S
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
PAIRS = (
    f"REGISTER QUERY pairs AS SELECT ?s ?u FROM STREAM <{IRI}> [RANGE 20s STEP 100ms] "
    "WHERE { ?s <http://x/p> ?v . ?u <http://x/p> ?w . FILTER(?v + ?w < 10) }"
)
AHEAD = 3_000
"""Events of the overload, of 21 s: as many squared are the pairs of one evaluation."""
PERIOD_S = 8.0
"""Longer than a silence may be, and than a process takes to start."""
BOUND_S = 1.0
"""Longest silence of a handover. On a busy machine: three times the longest one of undisturbed periods of this length."""
END_S = LEAVE_S + 5.0
"""Within which a process ends: the time for its handover, one evaluation, and what closing takes on a busy machine."""


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
    assert max(found.values()) <= max(BOUND_S, 3 * max(calm))


def test_an_engine_that_cannot_keep_up_ends_in_time(broker, topic_prefix, tmp_path):
    """Each evaluation is of millions of pairs, and ten are due each second: steps would never end."""
    servers = broker.bootstrap_servers
    load = Load(servers, topic_prefix, queries={"pairs": PAIRS}, event=own_thing)
    with (
        small(servers, topic_prefix, tmp_path, engines=1, stores=0) as cluster,
        Client(servers, cluster.url, cluster.sparql_url, prefix=topic_prefix) as client,
    ):
        load.prepare(client)
        load.push(AHEAD)
        load.beat(load.now)
        with Arrivals(load) as arrivals:
            load.wait(lambda: bool(arrivals.moments["pairs"]), "an answer")
            began = time.monotonic()
            terminate(cluster, "engine-0")
            ended(cluster, "engine-0")
            took = time.monotonic() - began
            due = load.now // 100 - len(arrivals.moments["pairs"])
        print(f"SIGTERM of an engine with {due} evaluations due: it ends after {took:.1f} s")
    assert due > 20, "it could not keep up"


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
