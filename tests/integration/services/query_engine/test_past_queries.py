"""Queries in the past of a cluster: the same answers as in an embedded engine, each once, with kills in between."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

import penstock
from penstock.errors import QueryError
from penstock.services.coordinator.query_commands import can_be_refused
from penstock.services.query_engine import catch_up
from support.small_cluster import SmallCluster

if TYPE_CHECKING:
    from penstock.wire import QueryRegistration

STREAMS = {"s": "urn:s", "t": "urn:t", "u": "urn:u"}
SETTINGS: dict[str, Any] = {"lateness_ms": 30, "timing": "all", "idle_timeout_ms": 10**9}
TIMELESS = ("u",)  # streams without timing predicates
BODIES = (
    ("QUERY", "SELECT ?o", "FROM STREAM <urn:s> [RANGE 300ms STEP 100ms]", ""),
    ("ISTREAM", "SELECT ?s ?o", "FROM STREAM <urn:s> [RANGE 250ms STEP 50ms]", ""),
    ("DSTREAM", "SELECT ?o", "FROM STREAM <urn:t> [RANGE 200ms STEP 100ms]", ""),
    ("QUERY", "SELECT (COUNT(*) AS ?n)", "FROM STREAM <urn:s> [RANGE 1s STEP 100ms] FROM STREAM <urn:t> [NOW]", ""),
    ("QUERY", "SELECT ?p (COUNT(?o) AS ?n)", "FROM STREAM <urn:t> [ALL STEP 100ms]", "GROUP BY ?p"),
)


EVERYTHING = (
    ("QUERY", "SELECT ?p (COUNT(?o) AS ?n)", "FROM STREAM <urn:u> [ALL STEP 100ms]", "GROUP BY ?p"),
    ("ISTREAM", "SELECT ?s ?o", "FROM STREAM <urn:s> [TRIPLES 4 STEP 2]", ""),
    ("QUERY", "SELECT ?o (COUNT(?s) AS ?n)", "FROM STREAM <urn:u> [TRIPLES 10 STEP 3]", "GROUP BY ?o"),
)
"""Bodies that need all tuples since the first progress."""


def text(rng: random.Random, name: str) -> str:
    everything = rng.random() < 0.4
    kind, select, data, rest = rng.choice(EVERYTHING if everything else BODIES)
    clause = "FROM BEGINNING" if everything or rng.random() < 0.6 else f"STARTING AT {rng.randrange(-50, 2_000)}"
    return f"REGISTER {kind} {name} {clause} AS {select} {data} WHERE {{ ?s ?p ?o }} {rest}"


class Both:
    """A cluster and an embedded engine that get the same input, and queries at the same points."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.cluster = SmallCluster(engines=2, buckets=3)
        self.engine = penstock.Engine(clock=lambda: 0)
        self.handles: dict[str, Any] = {}
        for name, iri in STREAMS.items():
            retention_ms = rng.choice([250, 600, 10_000])
            settings = SETTINGS | {"retention_ms": retention_ms} | ({"timing": ()} if name in TIMELESS else {})
            self.cluster.coordinator.declare(iri, name, **settings)
            self.engine.declare_stream(iri, **settings)
        self.started, self.refused = 2, 0
        self.times = dict.fromkeys(STREAMS, 100)
        self.cluster.run()
        for name, iri in STREAMS.items():  # the first progress is at once in the log
            self.cluster.advance(name, 100)
            self.cluster.run()
            self.engine.advance(iri, 100)

    def step(self) -> None:
        rng, cluster = self.rng, self.cluster
        match rng.choice(["push", "push", "push", "advance", "register", "replace", "kill", "kill", "rounds"]):
            case "push":
                name = rng.choice(list(STREAMS))
                self.times[name] += rng.randrange(80)
                data = f"<urn:a> <urn:{rng.choice('pq')}> <urn:o{rng.randrange(5)}> ."
                cluster.push(name, self.times[name], data)
                self.engine.push(STREAMS[name], data, self.times[name])
            case "advance":
                for name, iri in STREAMS.items():
                    self.times[name] += rng.randrange(300)
                    cluster.advance(name, self.times[name])
                    self.engine.advance(iri, self.times[name])
            case "register":
                name = f"q{len(self.handles) + self.refused}"
                self.register(name, text(rng, name))
            case "replace" if self.handles:
                name = rng.choice(list(self.handles))
                self.handles[name].poll()  # an embedded engine replaces no query that has not caught up
                self.register(name, text(rng, name).replace(" FROM BEGINNING", ""), replace=True)
            case "kill":
                if cluster.engines:
                    cluster.kill(rng.choice(list(cluster.engines)))
                cluster.run(rng.randrange(3))
                cluster.start_engine(f"e{self.started}")
                self.started += 1
            case "rounds":
                cluster.run(rng.randrange(4))

    def register(self, name: str, given: str, *, replace: bool = False) -> None:
        """Register a query once the log has what was sent before: where the query begins depends on it."""
        self.cluster.run(15)
        found = self.handles[name].history if replace else []
        record = self.cluster.coordinator.register(name, given, replace=replace)
        try:
            handle = self.engine.register(given, name, replace=replace)
        except QueryError as error:
            self.check_refused(record, error)
        else:
            self.handles[name] = Collected(handle, found)

    def check_refused(self, record: QueryRegistration, error: QueryError) -> None:
        """The engine lacks tuples that a query needs. The cluster must refuse the query, too."""
        assert can_be_refused(record)
        if self.rng.random() < 0.5:  # the next engine refuses it
            for name in list(self.cluster.engines):
                self.cluster.kill(name)
            self.cluster.start_engine(f"e{self.started}")
            self.started += 1
        self.cluster.run(60)
        standing = self.cluster.coordinator.standing(record.name)
        assert standing is not None
        assert (standing.refused, standing.point_ms, standing.error) == (True, None, error.message)
        self.refused += 1
        if self.rng.random() < 0.5:
            self.cluster.coordinator.stop(record.name)

    def end(self) -> tuple[list[Any], list[Any]]:
        """Return the results of the cluster, and those of the engine."""
        for name, iri in STREAMS.items():
            self.cluster.advance(name, 6_000)
            self.engine.advance(iri, 6_000)
        self.cluster.start_engine("last")
        self.cluster.run(250)
        found = [(line["query"], line["time"], rows_of(line["results"]["bindings"])) for line in self.cluster.results()]
        expected = [line for name, handle in self.handles.items() for line in handle.all(name)]
        self.cluster.close()
        self.engine.close()
        return sorted(found), sorted(expected)


class Collected:
    """The evaluations of a query of the embedded engine, and of the texts that it has replaced."""

    def __init__(self, query: penstock.Query, history: list[Any]) -> None:
        self._query, self.history = query, history

    def poll(self) -> None:
        self.history += self._query.poll()

    def all(self, name: str) -> list[Any]:
        self.poll()
        rows = [(e, [tuple((v, str(t)) for v, t in sorted(row.items())) for row in e.answer]) for e in self.history]
        return [(name, evaluation.time, sorted(found)) for evaluation, found in rows]


def rows_of(bindings: list[Any]) -> list[Any]:
    return sorted(tuple((name, term["value"]) for name, term in sorted(row.items())) for row in bindings)


@pytest.mark.parametrize("seed", range(12))
def test_a_cluster_begins_where_an_engine_begins_and_loses_and_doubles_nothing(seed):
    rng = random.Random(seed)
    at_once, slice_instants = rng.choice([1, 5, 128]), rng.choice([3, 1_000])
    with patch.multiple(catch_up, AT_ONCE=at_once, SLICE_INSTANTS=slice_instants, TURN_INSTANTS=2):
        both = Both(rng)
        for _ in range(60):
            both.step()
        found, expected = both.end()
    assert len(expected) > 40
    assert [line[:2] for line in found] == [line[:2] for line in expected]
    assert found == expected


def test_a_query_in_the_past_publishes_its_past():
    cluster = SmallCluster(engines=1)
    cluster.coordinator.declare("urn:s", "s", **SETTINGS, retention_ms=100_000)
    for time in range(25, 30_000, 50):
        cluster.push("s", time, f"<urn:a> <urn:p> <urn:o{time // 1000}> .")
    cluster.advance("s", 30_000)
    cluster.run()
    window = "FROM STREAM <urn:s> [RANGE 100ms STEP 100ms]"
    maker = f"REGISTER STREAM <urn:d> FROM BEGINNING AS CONSTRUCT {{ ?o <urn:of> ?s }} {window} WHERE {{ ?s ?p ?o }}"
    cluster.coordinator.register("urn:d", maker)
    reader = "REGISTER QUERY r AS SELECT ?o FROM STREAM <urn:d> [RANGE 100ms STEP 100ms] WHERE { ?o ?p ?s }"
    cluster.coordinator.register("r", reader)
    cluster.run(2)
    cluster.kill("e0")
    cluster.start_engine("e1")
    cluster.run(150)
    made = {q: [line["time"] for line in cluster.results() if line["query"] == q] for q in ("urn:d", "r")}
    cluster.close()
    assert made["urn:d"] == list(range(100, 30_100, 100))
    assert made["r"] == list(range(100, 30_100, 100))


def test_results_of_live_queries_do_not_wait_for_the_backlog():
    with patch.multiple(catch_up, AT_ONCE=3, SLICE_INSTANTS=10, TURN_INSTANTS=2):
        cluster = SmallCluster(engines=1, buckets=1)
        cluster.coordinator.declare("urn:s", "s", **SETTINGS, retention_ms=100_000)
        for time in range(25, 10_000, 50):
            cluster.push("s", time, f"<urn:a> <urn:p> <urn:o{time}> .")
        window = "FROM STREAM <urn:s> [RANGE 100ms STEP 100ms]"
        for name, clause in (("live", ""), ("past", "FROM BEGINNING")):
            cluster.run()
            given = f"REGISTER QUERY {name} {clause} AS SELECT ?o {window} WHERE {{ ?s ?p ?o }}"
            cluster.coordinator.register(name, given)
        engine = cluster.engines["e0"]
        slice_, pending = engine._catch_up.slice, []

        def watched() -> bool:
            if engine._catch_up:
                pending.append(sum(bucket.pending_evaluations for bucket in engine.buckets.values()))
            return slice_()

        with patch.object(engine._catch_up, "slice", watched):
            for time in range(10_025, 11_000, 50):
                cluster.push("s", time, f"<urn:a> <urn:p> <urn:o{time}> .")
                cluster.run(2)
        cluster.close()
    assert len(pending) > 5
    assert set(pending) == {0}
