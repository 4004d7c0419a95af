"""Queries with entailment give the answers of the same queries over the entailed graph (docs/semantics.md §4)."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

import penstock
from support.entailed_cases import bag, data_triple, graph, group, pattern, query_text, schema_triple
from support.entailed_graphs import entailed, text

if TYPE_CHECKING:
    from pathlib import Path

    from support.entailed_graphs import Graph

S = "urn:x:s"


def load(engine: penstock.Engine, data: Graph, place: Path, into: str | None = None) -> None:
    place.write_text(text(data))
    engine.load(place, graph=into)


@pytest.mark.parametrize("number", range(80))
def test_one_shot_queries_match_the_entailed_graph(number: int, tmp_path: Path) -> None:
    rng = random.Random(number)
    data = graph(rng)
    with penstock.Engine() as engine, penstock.Engine() as plain:
        load(engine, data, tmp_path / "data.nt")
        load(plain, entailed(data, data), tmp_path / "all.nt")
        for _ in range(6):
            select, where = query_text(rng)
            got = bag(engine.query(f"{select} WITH ENTAILMENT RDFS {where}"))
            assert got == bag(plain.query(f"{select} {where}")), f"{select} {where}\n{text(data)}"


@pytest.mark.parametrize("number", range(20))
def test_named_graphs_are_entailed_one_by_one_with_the_schema_of_the_default_graph(number: int, tmp_path: Path) -> None:
    rng = random.Random(1000 + number)
    data, named = graph(rng), [graph(rng, 6, 2) for _ in range(2)]
    with penstock.Engine() as engine, penstock.Engine() as plain:
        load(engine, data, tmp_path / "data.nt")
        load(plain, entailed(data, data), tmp_path / "data.nt")
        for i, part in enumerate(named):
            load(engine, part, tmp_path / "data.nt", f"urn:g{i}")
            load(plain, entailed(part, data), tmp_path / "data.nt", f"urn:g{i}")
        for _ in range(4):
            where = f"{{ GRAPH {rng.choice(['?g', '<urn:g0>'])} {{ {group(rng)} }} {pattern(rng)} }}"
            got = bag(engine.query(f"SELECT * WITH ENTAILMENT RDFS {where}"))
            assert got == bag(plain.query(f"SELECT * {where}")), where


def _registered(number: int, where: str) -> str:
    merged = f"FROM <urn:x-penstock:stored> FROM STREAM <{S}> [RANGE 2s STEP 1s]"
    alone = f"FROM STREAM <{S}> [RANGE 2s STEP 1s]"
    clauses = merged if number % 2 else alone
    return f"REGISTER QUERY q{number} AS SELECT * {clauses} WITH ENTAILMENT RDFS WHERE {{ {where} }}"


@pytest.mark.parametrize("number", range(30))
def test_standing_queries_follow_the_schema(number: int, tmp_path: Path) -> None:
    rng = random.Random(2000 + number)
    stored = graph(rng, 6, 4)
    with penstock.Engine() as engine:
        load(engine, stored, tmp_path / "data.nt")
        engine.declare_stream(S, timing="all")
        wheres = [group(rng) for _ in range(4)]
        queries = [engine.register(_registered(i, where)) for i, where in enumerate(wheres)]
        batches: list[Graph] = []
        for second in range(6):
            event = frozenset(data_triple(rng) for _ in range(rng.randint(1, 4)))
            batches.append(event)
            engine.push(S, text(event), second * 1000 + 500)
            change = schema_triple(rng) if rng.random() < 0.7 else data_triple(rng)
            if change not in stored:
                engine.update(f"INSERT DATA {{ {' '.join(change)} }}")
                stored |= {change}
            elif rng.random() < 0.5:
                engine.update(f"DELETE DATA {{ {' '.join(change)} }}")
                stored -= {change}
            if rng.random() < 0.5 and stored:
                gone = rng.choice(sorted(stored))
                engine.update(f"DELETE DATA {{ {' '.join(gone)} }}")
                stored -= {gone}
            engine.advance(S, (second + 1) * 1000)
            window = frozenset().union(*batches[-2:])
            for i, (query, where) in enumerate(zip(queries, wheres, strict=True)):
                (evaluation,) = query.poll()
                content = entailed(window | stored if i % 2 else window, stored)
                with penstock.Engine() as plain:
                    load(plain, content, tmp_path / "all.nt")
                    expected = bag(plain.query(f"SELECT * WHERE {{ {where} }}"))
                assert bag(evaluation.answer) == expected, f"{where}\nwindow:\n{text(window)}stored:\n{text(stored)}"
