"""Every door of a cluster and of `penstock serve` takes hostile input while good events go on being answered, once each.

PENSTOCK_POISON_SECONDS (600) says for how long, PENSTOCK_POISON_SEED makes the same inputs again. Of each door the last
inputs are printed when the test fails, as (door, number): `Inputs.rng(door, number)` makes them.
"""

from __future__ import annotations

import os
import random
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.cluster_load import Load, small
from tests.support.poison import Inputs
from tests.support.poison_doors import (
    POISON,
    Siege,
    over_flight,
    over_http,
    over_http2,
    over_tcp,
    produce,
    slowly,
    to_events,
    to_requests,
)
from tests.support.poison_watch import Served, Watch, listening

from penstock.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.cli.cluster.local_cluster import LocalCluster

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("broker")]
SECONDS = float(os.environ.get("PENSTOCK_POISON_SECONDS", "600"))
SEED = int(os.environ.get("PENSTOCK_POISON_SEED", str(random.SystemRandom().randrange(1 << 32))))
LARGE = max(2, int(SECONDS / 40))
SETTINGS = {"timing": "all", "idle_timeout_ms": 3_600_000}
DICTIONARIES = 2


def siege(load: Load, cluster: LocalCluster, served: Served, watch: Watch) -> Siege:
    """Begin to attack every door, each from a thread of its own."""
    made = Siege(Inputs(SEED, LARGE), time.monotonic() + SECONDS)
    for stream in ("s", "p"):
        made.attack(f"events.{stream}", produce(load, to_events(load, inputs(), stream)))
    for topic in (load.names.streams, load.names.queries):
        made.attack(topic.rpartition(".")[2], produce(load, to_requests(load, inputs(), topic)))
    made.attack("http serve", over_http(inputs(), lambda: served.url))
    for name in cluster.services:
        made.attack(f"http {name}", over_http(inputs(), of_service(watch, name)))
    for number in range(DICTIONARIES):
        port = int(cluster.services[f"dictionary-{number}"].settings["PENSTOCK_LISTEN"].rpartition(":")[2])
        made.attack(f"flight {number}", over_flight(inputs(), port))
        made.attack(f"http/2 {number}", over_http2(inputs(), port))
    made.attack("tcp", over_tcp(inputs(), lambda: listening(list(watch.pids().values()))))
    made.attack("slow", slowly(watch.http_ports))
    return made


def inputs() -> Inputs:
    """Inputs of one door: each has its own large ones."""
    return Inputs(SEED, LARGE)


def of_service(watch: Watch, name: str) -> Callable[[], str]:
    return lambda: f"http://127.0.0.1:{watch.http_port(name)}"


def said(made: Siege, watch: Watch) -> Iterator[str]:
    yield f"PENSTOCK_POISON_SEED={SEED} PENSTOCK_POISON_SECONDS={SECONDS:g}"
    yield f"sent {sum(made.sent.values())}: {dict(made.sent)}"
    yield f"last (number, bytes) by door: { {door: list(each) for door, each in made.last.items()} }"
    yield from watch.said()


@pytest.mark.timeout(SECONDS + 1_200)
def test_poison_at_every_door_leaves_good_events_answered(broker, topic_prefix, tmp_path) -> Any:
    load = Load(broker.bootstrap_servers, topic_prefix, settings=SETTINGS)
    with ExitStack() as stack:
        counts = {"stores": 1, "dictionaries": DICTIONARIES}
        cluster = stack.enter_context(small(broker.bootstrap_servers, topic_prefix, tmp_path / "c", **counts))
        cluster.supervisor.report = print
        client = stack.enter_context(Client(broker.bootstrap_servers, prefix=topic_prefix, url=cluster.url))
        load.prepare(client)
        client.declare_stream(POISON, "p", timing="all")
        served = Served(tmp_path / "serve")
        stack.callback(served.close)
        load.push(20, 2.0)
        watch = Watch(cluster, served)
        made = siege(load, cluster, served, watch)
        try:
            while time.monotonic() < made.end and not made.errors and not watch.beyond():
                load.push(5, 1.0)
                served.push()
                watch.look()
            made.end = 0.0
            for thread in made.threads:
                thread.join(60)
            assert made.errors == []
            assert watch.beyond() == {}
            assert served.answered()
            evaluations = load.check(cluster)
            print(
                f"{len(load.sent)} good events, {evaluations} evaluations, each once; {served.now // 1000} instants of serve"
            )
            assert served.ask("GET", "/health/live")[0] == 200
            watch.look()
            assert watch.beyond() == {}
        finally:
            print("\n".join(said(made, watch)))
