"""Streams that remove, in a cluster: its results are those of the embedded engine, whatever fails in between."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.engine.answers.json_lines import json_line
from penstock.rdf.entity_mutations import decode_difference
from support.small_cluster import SmallCluster

ROOT = Path(__file__).parents[3]
S, T = "urn:s", "urn:t"
WINDOW = "[RANGE 300ms STEP 100ms]"
QUERIES = {
    "stored": f"SELECT ?s ?o FROM NAMED STREAM <{S}> {WINDOW} FROM <urn:x-penstock:stored> {{ ?s <urn:p> ?o }}",
    "in_graph": f"SELECT ?s ?o FROM NAMED STREAM <{T}> {WINDOW} {{ GRAPH <urn:g> {{ ?s <urn:p> ?o }} }}",
    "windowed": f"SELECT ?s ?o FROM STREAM <{S}> {WINDOW} {{ ?s ?p ?o }}",
    "gone": f"SELECT ?s ?o REMOVED FROM STREAM <{S}> {WINDOW} {{ ?s <urn:p> ?o }}",
    "replaced": f"SELECT ?s ?old ?new REMOVED FROM NAMED WINDOW <urn:w> ON <{S}> {WINDOW}"
    " FROM <urn:x-penstock:stored> { WINDOW <urn:w> { ?s <urn:p> ?old } ?s <urn:p> ?new }",
    "both": f"SELECT ?s ?o FROM NAMED STREAM <{S}> {WINDOW} FROM NAMED STREAM <{T}> [RANGE 200ms STEP 200ms]"
    " FROM <urn:x-penstock:stored> { ?s <urn:p> ?o FILTER NOT EXISTS { GRAPH <urn:g> { ?s <urn:p> ?o } } }",
}
SETTINGS: dict[str, dict[str, Any]] = {S: {"timing": ["urn:t"]}, T: {"timing": [], "absorb_into": "urn:g"}}


def patches(seed: int) -> list[tuple[str, int, str]]:
    """Return events (stream, time, patch); some are invalid, some late."""
    rng, made = random.Random(seed), []
    for time in range(20, 2_000, 30):
        for stream in (S, T):
            rows = []
            for _ in range(rng.choice([0, 1, 2, 4])):
                node, value = rng.randrange(6), rng.choice([1, 2, "a value that is too long for an inline term"])
                predicate = rng.choice(["p", "p", "p", "t"]) if stream == S else "p"
                letter = "A" if predicate == "t" and rng.random() < 0.8 else rng.choice("AADD")
                rows.append(f'{letter} <urn:n{node}> <urn:{predicate}> "{value}" .')
            if rng.random() < 0.04:
                rows.append("D _:b <urn:p> <urn:b> .")
            made.append((stream, time - (200 if rng.random() < 0.1 else 0), "\n".join(rows)))
    return made


def expected(events: list[tuple[str, int, str]]) -> tuple[list[dict[str, Any]], int]:
    """Return the lines of all evaluations, and the number of dead letters."""
    with penstock.Engine(clock=lambda: 1_000) as engine:
        for iri, settings in SETTINGS.items():
            engine.declare_stream(iri, **settings)
        queries = [engine.register(text, name=name) for name, text in QUERIES.items()]
        for stream, time, patch in events:
            engine.push_events(stream, [(time, patch)], "rdf-patch")
        engine.advance(None, 2_200)
        lines = [json.loads(json_line(evaluation)) for query in queries for evaluation in query.poll()]
        return lines, len(engine.dead_letters())


def essence(lines: list[dict[str, Any]]) -> dict[tuple[str, int], list[str]]:
    return {(e["query"], e["time"]): sorted(map(json.dumps, e["results"]["bindings"])) for e in lines}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("reads", [None, "shm", "tcp"])
def test_results_are_those_of_the_embedded_engine(tmp_path: Path, reads: Any, seed: int) -> None:
    """The graph in the engine, and in stores. In between, an engine and a store are killed, and the dispatcher starts
    again.
    """
    events = patches(seed)
    lines, dead = expected(events)
    cluster = SmallCluster(engines=1, reads=reads)
    try:
        for i in range(2 if reads else 0):
            cluster.start_store(f"s{i}", tmp_path)
        for iri, settings in SETTINGS.items():
            cluster.coordinator.declare(iri, iri[-1], **settings)
        for name, text in QUERIES.items():
            cluster.coordinator.register(name, f"REGISTER QUERY {name} AS {text}")
        cluster.run()
        for part in range(4):
            quarter = events[part * len(events) // 4 : (part + 1) * len(events) // 4]
            for stream, time, patch in quarter:
                headers = {"timestamp": str(time), "content-type": "application/rdf-patch"}
                cluster.send(cluster.topics.names.events(stream[-1]), None, patch, **headers)
            cluster.run()
            if part == 1:
                cluster.dispatcher = cluster.start_dispatcher()
                cluster.kill("e0")
                cluster.start_engine("e1")
            if part == 2 and reads:
                cluster.kill_store("s0")
                cluster.start_store("s2", tmp_path)
            cluster.run()
        for iri in SETTINGS:
            cluster.advance(iri[-1], 2_200)
        cluster.run(80)
        assert essence(cluster.results()) == essence(lines)
        assert all(any(rows for (name, _), rows in essence(lines).items() if name == query) for query in QUERIES)
        assert len(cluster.messages(cluster.topics.names.dead_letter)) == dead > 0
    finally:
        cluster.close()


def test_an_adaptor_decodes_mutations() -> None:
    """Imports and differences in the format of Wikidata's mutation stream; the other operations are dead letters."""
    events = (ROOT / "examples/wikidata/mutations.jsonl").read_bytes().splitlines()[:150]
    texts = {
        "arrived": f"SELECT ?s ?p ?o FROM STREAM <{S}> [RANGE 1h STEP 1h] {{ ?s ?p ?o }}",
        "gone": f"SELECT ?s ?p ?o REMOVED FROM STREAM <{S}> [RANGE 1h STEP 1h] {{ ?s ?p ?o }}",
    }
    end, dead = 0, 0
    with penstock.Engine() as engine:
        engine.declare_stream(S, timing=[], batch_ms=60_000)
        queries = [engine.register(text, name=name) for name, text in texts.items()]
        for event in events:
            try:
                mutation = decode_difference(event)
            except penstock.DataError:
                dead += 1
                continue
            engine.push_events(S, [(mutation.time_ms, mutation.patch)], "rdf-patch")
            end = mutation.time_ms // 3_600_000 * 3_600_000 + 3_600_000
        engine.advance(None, end)
        lines = [json.loads(json_line(evaluation)) for query in queries for evaluation in query.poll()]
    cluster = SmallCluster(engines=1)
    try:
        cluster.coordinator.declare(S, "s", timing=[], batch_ms=60_000, max_ahead_ms=10**13)
        for name, text in texts.items():
            cluster.coordinator.register(name, f"REGISTER QUERY {name} AS {text}")
        cluster.run()
        for event in events:
            headers = {"content-type": "application/x-entity-mutation+json"}
            cluster.send(cluster.topics.names.events("s"), None, event.decode(), **headers)
        cluster.run()
        cluster.advance("s", end)
        cluster.run(80)
        found = essence(cluster.results())
        assert found == essence(lines)
        assert {name for (name, _), rows in found.items() if rows} == set(texts)
        assert len(cluster.messages(cluster.topics.names.dead_letter)) == dead > 0
    finally:
        cluster.close()
