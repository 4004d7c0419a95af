"""A cluster whose dictionaries hold few terms in memory (ADR 104), on a real broker: the answers are those of the
embedded engine, and memory stays where it was.
"""

from __future__ import annotations

import random
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")

from typing import TYPE_CHECKING

from penstock.cli.cluster.local_cluster import LocalCluster
from penstock.client import Client
from penstock.services.dictionary.term_archive import FILE
from support.cluster_load import BOUND_S, EVENT_MS, IRI, Load, Producing

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.xdist_group("broker")
IN_MEMORY = 500
NEW = 25  # terms in an event that no earlier event has
BACK = 100 * EVENT_MS  # how old the event is whose terms occur again
COUNTS = (
    f"REGISTER QUERY counts AS SELECT (COUNT(*) AS ?n) FROM STREAM <{IRI}> [RANGE 1s STEP 1s] "
    "WHERE { ?s <http://x/says> ?t FILTER CONTAINS(?t, 'no 7') }"
)
QUERIES = {
    "said": f"REGISTER QUERY said AS SELECT ?s ?t FROM STREAM <{IRI}> [RANGE 500ms STEP 500ms] WHERE {{ ?s <http://x/says> ?t }}",
    "fresh": f"REGISTER ISTREAM fresh AS SELECT ?s ?t FROM STREAM <{IRI}> [RANGE 1s STEP 500ms] WHERE {{ ?s <http://x/says> ?t }}",
    "counts": COUNTS,
}


def said(new: int) -> Callable[[int], bytes]:
    """Return a function that gives an event at a time: new terms, and some of an earlier event."""

    def event(time_ms: int) -> bytes:
        thing = b"<http://x/%d>" % (time_ms % 5)
        texts = [b"event %d says no %d" % (time_ms, i) for i in range(new)]
        texts += [b"event %d says no %d" % (time_ms - BACK, i) for i in range(2)]
        return b"".join(b'%s <http://x/says> "%s" .\n' % (thing, text) for text in texts)

    return event


def test_dictionaries_that_are_killed_continue_with_their_archives(broker, topic_prefix, tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_TERMS_IN_MEMORY", str(IN_MEMORY))
    load = Load(broker.bootstrap_servers, topic_prefix, queries=QUERIES, event=said(NEW))
    small = {"engines": 1, "coordinators": 1, "stores": 1, "buckets": 2, "shards": 2, "prefix": topic_prefix}
    rng = random.Random(104)
    with LocalCluster(broker.bootstrap_servers, tmp_path, **small) as cluster:
        with Client(broker.bootstrap_servers, cluster.url, cluster.sparql_url, prefix=topic_prefix) as client:
            load.prepare(client)
            with Producing(load) as producing:
                for name in ("dictionary-0", "engine-0", "dictionary-1", "adaptor-0"):
                    producing.wait_for(len(load.sent) + 50)
                    time.sleep(rng.random())
                    cluster.kill(name)
                    time.sleep(rng.random() * 3)
                    cluster.watch()
        assert load.check(cluster) > 6
        assert len(load.sent) * NEW > 10 * IN_MEMORY
        assert all((tmp_path / f"dictionary-{i}" / FILE).exists() for i in range(2))


def archived(folder: Path) -> int:
    """Return the number of terms in an archive."""
    with closing(sqlite3.connect(folder / FILE)) as file:
        ((count,),) = file.execute("SELECT COUNT(*) FROM terms").fetchall()
    return int(count)


SHORT = {name: text.replace("1s", "200ms").replace("500ms", "100ms") for name, text in QUERIES.items()}
"""The same queries with windows that terms leave between two kills."""


def removing_cluster(broker, topic_prefix, tmp_path, monkeypatch, kills: int) -> None:
    """Kill services of a cluster that removes terms (ADR 50). The answers are those of the embedded engine, and most
    terms are gone in the end.
    """

    def left() -> int:
        return min(archived(tmp_path / f"dictionary-{i}") for i in range(2))

    def are_removed(within_s: float) -> bool:
        known, until = left(), time.monotonic() + within_s
        while time.monotonic() < until:
            time.sleep(0.2)
            if (now := left()) < known:
                return True
            known = now
        return False

    removals = 0
    monkeypatch.setenv("PENSTOCK_TERMS_IN_MEMORY", str(IN_MEMORY))
    monkeypatch.setenv("PENSTOCK_FORGET_AFTER_S", "1")
    monkeypatch.setenv("PENSTOCK_CHECKPOINT_S", "1")
    load = Load(broker.bootstrap_servers, topic_prefix, queries=SHORT, event=said(NEW))
    small = {"engines": 2, "coordinators": 2, "stores": 1, "buckets": 2, "shards": 2, "prefix": topic_prefix}
    rng = random.Random(50)
    with LocalCluster(broker.bootstrap_servers, tmp_path, **small) as cluster:
        with Client(broker.bootstrap_servers, cluster.url, cluster.sparql_url, prefix=topic_prefix) as client:
            load.prepare(client)
            with Producing(load) as producing:
                for i in range(kills):
                    name = ("adaptor-0", "engine-0", "coordinator-0", "dictionary-0", "engine-1", "dictionary-1")[i % 6]
                    producing.wait_for(len(load.sent) + 100)
                    time.sleep(rng.random())
                    cluster.kill(name)
                    time.sleep(rng.random() * 3)
                    cluster.watch()
                    removals += are_removed(15.0)
                    print(f"killed {name}; {len(load.sent) * NEW} terms were sent, {left()} are left", flush=True)
                deadline = time.monotonic() + BOUND_S
                while left() > len(load.sent) * NEW / 4:
                    assert time.monotonic() < deadline, "few terms are removed"
                    producing.wait_for(len(load.sent) + 200)
        evaluations = load.check(cluster)
        print(f"{len(load.sent) * NEW} terms were sent, {left()} are left; {evaluations} evaluations", flush=True)
        print(f"terms were removed after {removals} of {kills} kills", flush=True)
        assert evaluations > 6


def test_terms_are_removed_while_services_are_killed(broker, topic_prefix, tmp_path, monkeypatch):
    removing_cluster(broker, topic_prefix, tmp_path, monkeypatch, 3)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_terms_are_removed_while_services_are_killed_often(broker, topic_prefix, tmp_path, monkeypatch):
    removing_cluster(broker, topic_prefix, tmp_path, monkeypatch, 40)


def resident_mb(cluster: LocalCluster) -> dict[str, float]:
    """Return the resident memory of each service."""
    found = {}
    for name, service in cluster.services.items():
        text = Path(f"/proc/{service.process.pid}/status").read_text(encoding="ascii")
        (line,) = (line for line in text.splitlines() if line.startswith("VmRSS:"))
        found[name] = int(line.split()[1]) / 1024
    return found


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize(("in_memory", "forget_s"), [(20_000, 2), (20_000, 0), (0, 0)])
def test_a_million_new_terms_leave_the_memory_of_a_cluster_where_it_was(
    broker, topic_prefix, tmp_path, monkeypatch, in_memory, forget_s
):
    """Without the archive, the dictionary's memory grows. Without removal, its file grows (ADR 50)."""
    monkeypatch.setenv("PENSTOCK_TERMS_IN_MEMORY", str(in_memory))
    monkeypatch.setenv("PENSTOCK_FORGET_AFTER_S", str(forget_s))
    new, events, part = 500, 2_400, 400
    load = Load(broker.bootstrap_servers, topic_prefix, queries={"counts": SHORT["counts"]}, event=said(new))
    counts = {"dictionaries": 1, "coordinators": 1, "engines": 1, "stores": 1, "buckets": 2, "shards": 2}
    with (
        LocalCluster(broker.bootstrap_servers, tmp_path, prefix=topic_prefix, **counts) as cluster,
        Client(broker.bootstrap_servers, cluster.url, cluster.sparql_url, prefix=topic_prefix) as client,
    ):
        load.prepare(client)
        memory = []
        for _ in range(events // part):
            load.push(part, 1.0)
            last = (load.now - 200) // 200 * 200
            load.results(cluster, lambda got, last=last: ("counts", last) in got)
            memory.append(resident_mb(cluster))
            print({name: round(mb) for name, mb in memory[-1].items()}, flush=True)
            if in_memory:
                file = tmp_path / "dictionary-0" / FILE
                size_mb = file.stat().st_size / (1 << 20)
                print(
                    f"{len(load.sent) * new} terms: {archived(file.parent)} in a file of {size_mb:.0f} MB", flush=True
                )
        grown = {name: memory[-1][name] - memory[2][name] for name in memory[2]}  # by then, caches are full
        print("grown by MB:", {name: round(mb) for name, mb in grown.items()})
        if forget_s:
            assert archived(tmp_path / "dictionary-0") < events * new / 4
        if in_memory:
            assert grown["dictionary-0"] < 30, grown
        else:
            assert grown["dictionary-0"] > 45, grown
