"""Each service of a cluster killed (SIGKILL) again and again at random points under load: no result lost, doubled, different.

Which instance dies after how many events, how long after, and when it is started again comes from a seed, which stands in
every failure; what the processes are doing just then does not.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter

import pytest

pytest.importorskip("confluent_kafka")

from typing import TYPE_CHECKING

from penstock.cli.cluster.kills import schedule, service_of
from penstock.cli.cluster.local_cluster import AdaptorKind, LocalCluster
from penstock.client import Client
from support.cluster_load import IRI, QUERIES, Load, Producing

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.xdist_group("broker")
BETWEEN = 90  # events a kill
ALL = QUERIES | {
    "said": f"REGISTER QUERY said AS SELECT ?s ?t FROM STREAM <{IRI}> [RANGE 500ms STEP 500ms] WHERE {{ ?s <http://x/says> ?t }}",
    "http://x/d": f"REGISTER STREAM <http://x/d> AS CONSTRUCT {{ ?s <http://x/of> ?g }} FROM STREAM <{IRI}> [RANGE 1s STEP 1s] "
    "FROM <http://x/groups> WHERE { ?s <http://x/p> ?v . ?s <http://x/in> ?g }",
    "held": f"REGISTER QUERY held AS SELECT ?s ?v FROM STREAM <{IRI}> [RANGE 2s STEP 500ms] WHERE {{ ?s <http://x/p> ?v }}",
    "groups": "REGISTER QUERY groups AS SELECT ?g (COUNT(*) AS ?n) FROM STREAM <http://x/d> [RANGE 3s STEP 1s] "
    "WHERE { ?s <http://x/of> ?g } GROUP BY ?g",
    "seen": f"REGISTER QUERY seen AS CONSTRUCT {{ ?s <http://x/is> ?v }} FROM STREAM <{IRI}> [RANGE 1s STEP 500ms] "
    "WHERE { ?s <http://x/p> ?v }",
    "any": f"REGISTER QUERY any AS ASK FROM STREAM <{IRI}> [RANGE 500ms STEP 500ms] WHERE {{ <http://x/3> <http://x/p> ?v }}",
}
CHANGING = ("busy", "held", "groups", "seen", "any")  # registered with `changes`
STORED = "".join(f"<http://x/{i}> <http://x/in> <http://x/group/{i % 2}> .\n" for i in range(5)).encode()


def kill_under_load(
    bootstrap_servers, prefix, directory, seed: int, each: int, *, late: Sequence[str] = (), adaptor=AdaptorKind.plain
) -> Load:
    """Play a schedule that kills every service so often, and check every result. `late` queries come in the middle."""
    queries = {name: text for name, text in ALL.items() if name not in late}
    graphs = {"http://x/groups": STORED}
    load = Load(bootstrap_servers, prefix, partitions=2, queries=queries, graphs=graphs, changing=CHANGING)
    killed: Counter[str] = Counter()
    with LocalCluster(bootstrap_servers, directory, prefix=prefix, adaptor=adaptor) as cluster:
        with Client(bootstrap_servers, cluster.url, cluster.sparql_url, prefix=prefix) as client:
            load.prepare(client)
            with Producing(load) as producing:
                kills = each * len({service_of(name) for name in cluster.services})
                for i, kill in enumerate(schedule(seed, cluster.services, kills * BETWEEN, kills)):
                    producing.wait_for(kill.event)
                    time.sleep(kill.before_s)
                    cluster.kill(kill.victim)
                    killed[kill.victim] += 1
                    time.sleep(kill.dead_s)
                    cluster.watch()
                    if i == kills // 2:
                        for name in late:
                            load.wait(
                                lambda: any(r.filter_version and len(r.offsets) for r in load.tuples()),
                                "filtered tuples",
                            )
                            load.register(client, name, ALL[name])
        load.check(cluster)
        print(
            f"seed {seed}: killed {dict(sorted(killed.items()))}; {len(load.sent)} events, 0 lost, 0 doubled, 0 different"
        )
    services: Counter[str] = Counter()
    for name, times in killed.items():
        services[service_of(name)] += times
    assert set(services.values()) == {each}
    return load


def kill_while_adaptors_filter(bootstrap_servers, prefix, directory, seed, each, adaptor=AdaptorKind.plain) -> None:
    """Half of each event is looked at by nobody, until in the middle of the kills somebody asks for it (ADR 45)."""
    load = kill_under_load(bootstrap_servers, prefix, directory, seed, each, late=["said"], adaptor=adaptor)
    written = [record for record in load.tuples() if record.filter_version and len(record.offsets)]
    last = max(record.filter_version for record in written)  # since the late query
    before, behind = (
        [int(r.counts.sum()) / len(r.offsets) for r in written if (r.filter_version == last) == late]
        for late in (False, True)
    )
    assert set(before) == {1.0}, "nothing was discarded"
    assert set(behind) == {2.0}


def test_each_service_is_killed_three_times_under_load(broker, topic_prefix, tmp_path):
    kill_under_load(broker.bootstrap_servers, topic_prefix, tmp_path, seed=1, each=3)


@pytest.mark.long
@pytest.mark.timeout(1_500)
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_each_service_is_killed_while_adaptors_filter(broker, topic_prefix, tmp_path, monkeypatch, seed):
    monkeypatch.setenv("PENSTOCK_DISCARD_AFTER_S", "0.5")
    kill_while_adaptors_filter(broker.bootstrap_servers, topic_prefix, tmp_path, seed, each=2)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_each_service_is_killed_twenty_times_under_load(broker, topic_prefix, tmp_path):
    seed = secrets.randbelow(1 << 32)
    print(f"seed {seed}")
    kill_under_load(broker.bootstrap_servers, topic_prefix, tmp_path, seed, each=20)
