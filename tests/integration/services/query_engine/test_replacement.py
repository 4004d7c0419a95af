"""Replacement of a query in a cluster: the same answers as in an embedded engine, each once, with kills in between."""

from __future__ import annotations

import random
from typing import Any

import pytest

import penstock
from property.test_replacement import TEXTS, text
from support.small_cluster import SmallCluster

STREAMS = {"s": "urn:s", "t": "urn:t"}
SETTINGS = {"lateness_ms": 30, "timing": ("urn:q",), "idle_timeout_ms": 10**9}


class Both:
    """A cluster and an embedded engine that get the same input."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.cluster = SmallCluster(engines=2, buckets=3)
        self.engine = penstock.Engine(clock=lambda: 0)
        retention_ms = rng.choice([0, 250, 10_000])
        for name, iri in STREAMS.items():
            self.cluster.coordinator.declare(iri, name, **SETTINGS, retention_ms=retention_ms)
            self.engine.declare_stream(iri, **SETTINGS, retention_ms=retention_ms)
        self.texts = [name for name in TEXTS if name != "everything" or retention_ms]
        self.started = 2
        self.times = dict.fromkeys(STREAMS, 0)
        self.cluster.run()

    def step(self) -> None:
        rng, cluster = self.rng, self.cluster
        match rng.choice(["push", "push", "advance", "replace", "kill", "kill", "rounds"]):
            case "push":
                name = rng.choice(list(STREAMS))
                self.times[name] += rng.randrange(80)
                data = f"<urn:a> <urn:{rng.choice('pq')}> <urn:o{rng.randrange(5)}> ."
                cluster.push(name, self.times[name], data)
                self.engine.push(STREAMS[name], data, self.times[name])
            case "advance":
                name = rng.choice([*STREAMS, *STREAMS, None])
                for each in STREAMS if name is None else [name]:
                    self.times[each] += rng.randrange(400)
                    cluster.advance(each, self.times[each])
                    self.engine.advance(STREAMS[each], self.times[each])
            case "replace":
                cluster.run(15)  # what was sent before is in the log: the handover depends on it
                if cluster.engines and rng.random() < 0.3:
                    cluster.kill(rng.choice(list(cluster.engines)))
                name, query = rng.choice(["x", "y"]), text(rng.choice(self.texts))
                cluster.coordinator.register(name, query, replace=True)
                self.engine.register(query, name, replace=True)
            case "kill":
                if cluster.engines:
                    cluster.kill(rng.choice(list(cluster.engines)))
                cluster.run(rng.randrange(3))
                cluster.start_engine(f"e{self.started}")
                self.started += 1
            case "rounds":
                cluster.run(rng.randrange(4))

    def end(self) -> tuple[list[Any], list[Any]]:
        """Return the results of the cluster, and those of the engine."""
        for name, iri in STREAMS.items():
            self.cluster.advance(name, 10_000)
            self.engine.advance(iri, 10_000)
        self.cluster.start_engine("last")
        self.cluster.run(250)
        found = [(line["query"], line["time"], rows_of(line["results"]["bindings"])) for line in self.cluster.results()]
        expected = [
            (name, e.time, sorted(tuple((v, str(t)) for v, t in sorted(row.items())) for row in e.answer))
            for name, query in sorted(self.engine.queries.items())
            for e in query.poll()
        ]
        self.cluster.close()
        self.engine.close()
        return found, expected


def rows_of(bindings: list[Any]) -> list[Any]:
    return sorted(tuple((name, term["value"]) for name, term in sorted(row.items())) for row in bindings)


@pytest.mark.parametrize("seed", range(12))
def test_a_cluster_replaces_queries_like_an_engine_and_loses_and_doubles_nothing(seed):
    both = Both(random.Random(seed))
    for _ in range(60):
        both.step()
    found, expected = both.end()
    assert len(expected) > 100
    assert [line[:2] for line in found] == [line[:2] for line in expected]
    assert found == expected
