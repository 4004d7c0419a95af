"""Entailment in a cluster: engines answer as over the entailed graph, whoever holds the graph and whatever fails."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import penstock
from support.entailed_cases import bag, data_triple, graph, group, pattern, query_text, schema_triple
from support.entailed_graphs import DOMAIN, SAME, SUBCLASS, SUBPROPERTY, TYPE, entailed, text
from support.small_cluster import SmallCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.entailed_graphs import Graph, Triple

S = "urn:x:s"
SECONDS = 5
ENGINES: list[tuple[Any, Any]] = [(None, "auto"), ("shm", "auto"), ("tcp", "auto"), ("tcp", "fork-join")]
"""How engines read the stored graph, and where their steps run."""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[..., SmallCluster]]:
    clusters = []

    def make(reads: Any, execution: Any = "auto", engines: int = 1, stored: Graph = frozenset()) -> SmallCluster:
        cluster = SmallCluster(engines=engines, shards=4, buckets=4, reads=reads, execution=execution)
        clusters.append(cluster)
        for name in () if reads is None else ("s0", "s1"):
            cluster.start_store(name, tmp_path / str(len(clusters)))
        cluster.coordinator.declare(S, "s", batch_ms=500, timing="all", idle_timeout_ms=1 << 40)
        if stored:
            change(cluster, "INSERT", *stored)
        cluster.run(5)
        return cluster

    yield make
    for cluster in clusters:
        cluster.close()


def change(cluster: SmallCluster, verb: str, *triples: Triple) -> None:
    cluster.coordinator.update(f"{verb} DATA {{ {' . '.join(map(' '.join, triples))} }}")


def asked(cluster: SmallCluster, text: str) -> Any:
    """Answer a one-shot query by the first engine."""
    return bag(next(iter(cluster.engines.values())).one_shot.query(text, None, None, None))


def answers(cluster: SmallCluster) -> dict[tuple[str, int], list[dict[str, str]]]:
    """Return the rows of each evaluation, in any order."""
    return {
        (line["query"], line["time"]): sorted(
            ({name: term["value"] for name, term in row.items()} for row in line["results"]["bindings"]), key=str
        )
        for line in cluster.results()
    }


def over(content: Graph, where: str) -> list[dict[str, str]]:
    """Return the rows of a pattern over a graph, as `answers` does."""
    with penstock.Engine() as plain:
        plain.load(text(content).encode(), format="nt")
        rows = plain.query(f"SELECT * WHERE {{ {where} }}")
        return sorted(({n: str(term) for n, term in row.items() if term is not None} for row in rows), key=str)


@pytest.mark.parametrize(("reads", "execution"), ENGINES)
@pytest.mark.parametrize("number", range(3))
def test_one_shot_queries_match_the_entailed_graph(made, number: int, reads: Any, execution: Any) -> None:
    rng = random.Random(number)
    stored = graph(rng)
    cluster = made(reads, execution, stored=stored)
    for _ in range(5):
        new = {schema_triple(rng), data_triple(rng)} - stored
        if new:
            change(cluster, "INSERT", *new)
        gone = rng.choice(sorted(stored))
        change(cluster, "DELETE", gone)
        stored = (stored | new) - {gone}
        cluster.run(3)
        for _ in range(6):
            select, where = query_text(rng)
            with penstock.Engine() as plain:
                plain.load(text(entailed(stored, stored)).encode(), format="nt")
                expected = bag(plain.query(f"{select} {where}"))
            assert asked(cluster, f"{select} WITH ENTAILMENT RDFS {where}") == expected, f"{select} {where}"


@pytest.mark.parametrize(("reads", "execution"), ENGINES)
def test_triples_that_follow_in_several_ways_are_one_triple(made, reads: Any, execution: Any) -> None:
    """Forks number their rows. These numbers do not make equal rows different."""
    a, b, p, q = (f"<urn:{name}>" for name in "abpq")
    stored = frozenset({(a, SAME, b), (p, SUBPROPERTY, q), (q, DOMAIN, b), (a, p, b), (b, p, a), (b, q, b)})
    cluster = made(reads, execution, stored=stored)
    rows = asked(cluster, "SELECT * WITH ENTAILMENT RDFS { ?s ?p ?o }")
    assert rows.total() == len(rows) == len(entailed(stored, stored))
    engine = next(iter(cluster.engines.values()))
    if execution == "fork-join":
        assert engine.graph.links.forking.forks > 0


@pytest.mark.parametrize(("reads", "execution"), ENGINES)
@pytest.mark.parametrize("number", range(2))
def test_standing_queries_follow_the_schema(made, number: int, reads: Any, execution: Any) -> None:
    rng = random.Random(100 + number)
    stored = graph(rng, 10, 7)
    cluster = made(reads, execution, engines=2, stored=stored)
    wheres = [pattern(rng) for _ in range(6)] + [group(rng) for _ in range(3)]
    for i, where in enumerate(wheres):
        graphs = "FROM <urn:x-penstock:stored> " if i % 2 else ""
        window = f"{graphs}FROM STREAM <{S}> [RANGE 2s STEP 1s] WITH ENTAILMENT RDFS"
        cluster.coordinator.register(f"q{i}", f"REGISTER QUERY q{i} AS SELECT * {window} WHERE {{ {where} }}")
    cluster.advance("s", 0)
    cluster.run(5)
    batches: list[Graph] = []
    expected = {}
    for second in range(SECONDS):
        batches.append(frozenset(data_triple(rng) for _ in range(rng.randint(1, 4))))
        cluster.push("s", second * 1000 + 500, text(batches[-1]))
        new = {schema_triple(rng)} - stored
        gone = rng.choice(sorted(stored))
        for verb, triples in (("INSERT", new), ("DELETE", {gone})):
            if triples:
                change(cluster, verb, *triples)
        stored = (stored | new) - {gone}
        cluster.run(3)
        if second == 2:  # its buckets go to another engine, which has not read the schema before
            cluster.kill("e0")
            cluster.start_engine("e2")
        cluster.advance("s", (second + 1) * 1000)
        cluster.run(40 if second == 2 else 5)
        window = frozenset().union(*batches[-2:])
        for i, where in enumerate(wheres):
            content = entailed(window | stored if i % 2 else window, stored)
            expected[f"q{i}", (second + 1) * 1000] = over(content, where)
    cluster.run()
    assert answers(cluster) == expected
    assert sum(map(bool, expected.values())) > SECONDS


@pytest.mark.parametrize("reads", [None, "tcp"])
def test_a_late_evaluation_uses_the_schema_of_its_instant(made, reads: Any) -> None:
    """An engine that takes over evaluates instants that were due before the schema changed."""
    bus: Triple = ("<urn:Bus>", SUBCLASS, "<urn:Vehicle>")
    cluster = made(reads, engines=1, stored=frozenset({bus}))
    window = f"FROM STREAM <{S}> [RANGE 1s STEP 1s] WITH ENTAILMENT RDFS"
    cluster.coordinator.register("q", f"REGISTER QUERY q AS SELECT ?x {window} WHERE {{ ?x a <urn:Vehicle> }}")
    cluster.advance("s", 0)
    cluster.run(5)
    cluster.paused.append(cluster.engines["e0"])
    for second in range(6):
        change(cluster, "DELETE" if second % 2 else "INSERT", bus)
        cluster.push("s", second * 1000 + 500, f"<urn:x{second}> {TYPE} <urn:Bus> .")
        cluster.advance("s", (second + 1) * 1000)
        cluster.run(5)
    cluster.kill("e0")
    cluster.start_engine("e1")
    cluster.run()
    found = {time: [row["x"] for row in rows] for (_, time), rows in answers(cluster).items()}
    assert found == {(n + 1) * 1000: [] if n % 2 else [f"urn:x{n}"] for n in range(6)}


def test_an_engine_without_stores_waits_for_the_schema(made, tmp_path: Path) -> None:
    cluster = SmallCluster(shards=4, buckets=4, reads="tcp")
    try:
        cluster.coordinator.declare(S, "s", batch_ms=500, timing="all", idle_timeout_ms=1 << 40)
        window = f"FROM STREAM <{S}> [RANGE 1s STEP 1s] WITH ENTAILMENT RDFS"
        cluster.coordinator.register("q", f"REGISTER QUERY q AS SELECT ?x {window} WHERE {{ ?x a <urn:Vehicle> }}")
        change(cluster, "INSERT", ("<urn:Bus>", SUBCLASS, "<urn:Vehicle>"))
        cluster.advance("s", 0)
        cluster.push("s", 500, f"<urn:x> {TYPE} <urn:Bus> .")
        cluster.advance("s", 1000)
        cluster.run()
        [engine] = cluster.engines.values()
        assert "no store has shard 0" in (engine.last_error or "")
        assert cluster.results() == []
        cluster.start_store("s0", tmp_path)
        cluster.run()
        assert answers(cluster) == {("q", 1000): [{"x": "urn:x"}]}
    finally:
        cluster.close()


def test_evaluations_fail_while_the_schema_exceeds_the_limit(made) -> None:
    """A registration does not read the schema, so it is not refused."""
    chain: list[Triple] = [(f"<urn:C{i}>", SUBCLASS, f"<urn:C{i + 1}>") for i in range(9)]
    cluster = made("tcp", stored=frozenset(chain))
    [engine] = cluster.engines.values()
    engine.replica.core.limits = replace(engine.replica.core.limits, max_entailment_pairs=50)
    window = f"FROM STREAM <{S}> [RANGE 1s STEP 1s] WITH ENTAILMENT RDFS"
    cluster.coordinator.register("q", f"REGISTER QUERY q AS SELECT ?x {window} WHERE {{ ?x a <urn:C9> }}")
    cluster.advance("s", 0)
    cluster.run(5)
    for second in range(2):
        if second:
            change(cluster, "DELETE", chain[4])
        cluster.push("s", second * 1000 + 500, f"<urn:x> {TYPE} <urn:C5> .")
        cluster.advance("s", (second + 1) * 1000)
        cluster.run(5)
    failed, answered = cluster.results()
    assert "max_entailment_pairs" in failed["error"]
    assert [row["x"]["value"] for row in answered["results"]["bindings"]] == ["urn:x"]


def test_the_members_of_a_query_set_name_classes(made) -> None:
    """The plan then has a table of all pairs of classes."""
    cluster = made("tcp", stored=frozenset({("<urn:Bus>", SUBCLASS, "<urn:Vehicle>")}))
    window = f"FROM STREAM <{S}> [RANGE 1s STEP 1s] WITH ENTAILMENT RDFS"
    body = f"SELECT ?x {window} WHERE {{ ?x a ?class }}"
    cluster.coordinator.register("q", f"REGISTER QUERY q (?class) AS {body}", report="every")
    cluster.run(5)
    for name in ("Bus", "Vehicle"):
        cluster.send(cluster.topics.names.parameters("q"), name, json.dumps({"class": f"urn:{name}"}))
    cluster.advance("s", 0)
    cluster.run(5)
    for second, verb in enumerate(("INSERT", "DELETE")):
        change(cluster, verb, ("<urn:Coach>", SUBCLASS, "<urn:Bus>"))
        cluster.push("s", second * 1000 + 500, f"<urn:a> {TYPE} <urn:Bus> .\n<urn:b> {TYPE} <urn:Coach> .")
        cluster.advance("s", (second + 1) * 1000)
        cluster.run(5)
    found = {
        (line["time"], line["member"]): {row["x"]["value"] for row in line["results"]["bindings"]}
        for line in cluster.results()
    }
    assert found == {
        (1000, "Bus"): {"urn:a", "urn:b"},
        (1000, "Vehicle"): {"urn:a", "urn:b"},
        (2000, "Bus"): {"urn:a"},
        (2000, "Vehicle"): {"urn:a"},
    }
