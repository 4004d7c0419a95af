"""ORDER BY: values that are equal under `<` tie, however they are spelled, and the next key decides (SPARQL
1.1 §15.1).
"""

from __future__ import annotations

import itertools

import pytest

import penstock

XSD = "http://www.w3.org/2001/XMLSchema#"
TIES = {
    "numbers": ["15", "15.0", "15.00", "1.5e1", f'"15"^^<{XSD}float>', f'"15"^^<{XSD}byte>', f'"015"^^<{XSD}integer>'],
    "booleans": ["true", f'"1"^^<{XSD}boolean>'],
    "instants": [
        f'"2024-01-01T12:00:00Z"^^<{XSD}dateTime>',
        f'"2024-01-01T13:00:00+01:00"^^<{XSD}dateTime>',
        f'"2024-01-01T12:00:00.000Z"^^<{XSD}dateTime>',
    ],
    "dates": [f'"2024-01-01Z"^^<{XSD}date>', f'"2024-01-01+00:00"^^<{XSD}date>'],
    "NaN": [f'"NaN"^^<{XSD}double>', f'"NaN"^^<{XSD}float>'],
    "zeros": ["0", "-0", "0.0", "0e0", '"-0"^^<http://www.w3.org/2001/XMLSchema#double>'],
    "tags": ['"a"@en', '"a"@EN'],
    "durations": [f'"P1D"^^<{XSD}dayTimeDuration>', f'"PT24H"^^<{XSD}dayTimeDuration>'],
}


@pytest.fixture(scope="module")
def engine() -> object:
    with penstock.Engine() as made:
        yield made


def subjects(engine: penstock.Engine, rows: list[tuple[str, str]], order: str) -> list[str]:
    values = " ".join(f"('{name}' {value})" for name, value in rows)
    return [str(row["s"]) for row in engine.query(f"SELECT ?s {{ VALUES (?s ?v) {{ {values} }} }} ORDER BY {order}")]


@pytest.mark.parametrize("kind", TIES)
@pytest.mark.parametrize("direction", ["ASC", "DESC"])
def test_the_next_key_decides_between_equal_values(engine: penstock.Engine, kind: str, direction: str) -> None:
    for values in itertools.islice(itertools.permutations(TIES[kind]), 24):
        rows = [(f"s{k}", value) for k, value in enumerate(values)]
        expected = sorted(name for name, _ in rows)
        assert subjects(engine, rows[::-1], f"{direction}(?v) ?s") == expected
        assert subjects(engine, rows, f"{direction}(?v) DESC(?s)") == expected[::-1]
        assert subjects(engine, rows[::-1], f"{direction}(?v) ?s LIMIT 1") == expected[:1]


def test_values_that_differ_come_before_the_next_key(engine: penstock.Engine) -> None:
    rows = [("s3", "2"), ("s1", "15.0"), ("s2", "15"), ("s0", '"15"')]
    assert subjects(engine, rows, "DESC(?v) ?s") == ["s0", "s1", "s2", "s3"]
    tagged = [("s1", '"a"@fr'), ("s2", '"a"@en'), ("s0", '"b"')]
    assert subjects(engine, tagged, "?v ?s") == ["s2", "s1", "s0"]


def test_a_limit_over_more_rows_than_are_sorted_at_once_keeps_the_right_ones(engine: penstock.Engine) -> None:
    spellings = ["15", "15.0", "15.00", "1.5e1"]
    triples = "\n".join(
        f'<urn:s{k:05}> <urn:tie> "{text}"^^<{XSD}{kind}> .'
        for k in range(9000)
        for text, kind in [(spellings[k * 7919 % 4], ("integer", "decimal", "decimal", "double")[k * 7919 % 4])]
    )
    engine.load(triples.encode(), format="nt")
    answer = engine.query("SELECT ?s { ?s <urn:tie> ?v } ORDER BY DESC(?v) DESC(?s) LIMIT 5")
    assert [str(row["s"]) for row in answer] == [f"urn:s{k:05}" for k in range(8999, 8994, -1)]


def test_groups_and_distinct_rows_are_of_terms_and_extremes_are_of_values(engine: penstock.Engine) -> None:
    values = "VALUES ?v { 15.0 15 1.5e1 15 }"
    assert len(engine.query(f"SELECT DISTINCT ?v {{ {values} }}")) == 3
    assert len(engine.query(f"SELECT ?v (COUNT(*) AS ?n) {{ {values} }} GROUP BY ?v")) == 3
    (row,) = engine.query(f"SELECT (MIN(?v) AS ?a) (MAX(?v) AS ?b) {{ {values} }}")
    assert row["a"].value == row["b"].value == 15
