"""A cluster's answers, as the embedded engine gives them."""

from __future__ import annotations

import json

import pytest
import rdflib

from penstock import Engine, LimitError
from penstock.client import ClusterEvaluation
from penstock.client.answers import answer_of
from penstock.engine.answers.json_lines import json_line

DATA = b"""@prefix : <http://x/> .
:a :p 1 , "1.50"^^<http://www.w3.org/2001/XMLSchema#decimal> , "chat"@fr-BE , "plain" , :b , _:n .
"""
ASKED = [
    "SELECT ?s ?o ?u WHERE { ?s <http://x/p> ?o OPTIONAL { ?o <http://x/none> ?u } } ORDER BY STR(?o)",
    "SELECT ?s WHERE { ?s <http://x/none> ?o }",
    "SELECT (COUNT(*) AS ?n) (SUM(?o) AS ?sum) WHERE { ?s <http://x/p> ?o FILTER(isNumeric(?o)) }",
]


@pytest.fixture
def engine():
    with Engine() as made:
        made.load(DATA, format="turtle")
        yield made


@pytest.mark.parametrize("text", ASKED)
def test_solutions_come_back_from_json_as_they_were(engine, text):
    there = engine.query(text)
    here = answer_of(json.loads(there.to_json()))
    assert (here.variables, len(here)) == (there.variables, len(there))
    assert list(here) == list(there)
    assert here.to_json() == there.to_json()
    assert here.to_tsv() == there.to_tsv()
    assert here.to_arrow() == there.to_arrow()
    assert {name: (column > 0).tolist() for name, column in here.ids.items()} == {
        name: (column > 0).tolist() for name, column in there.ids.items()
    }


def test_an_evaluation_is_what_its_line_says(engine):
    engine.declare_stream("http://x/s", timing="all")
    window = "FROM STREAM <http://x/s> [RANGE 1s STEP 1s]"
    rows = engine.register(f"REGISTER QUERY rows AS SELECT ?s ?o {window} WHERE {{ ?s ?p ?o }}")
    boolean = engine.register(f"REGISTER QUERY boolean AS ASK {window} WHERE {{ ?s ?p ?o }}")
    made = engine.register(f"REGISTER QUERY made AS CONSTRUCT {{ ?o <http://x/of> ?s }} {window} WHERE {{ ?s ?p ?o }}")
    engine.push("http://x/s", "<http://x/a> <http://x/q> <http://x/b> .", 500)
    engine.advance("http://x/s", 2_000)
    for query in (rows, boolean, made):
        for there in query.poll():
            here = ClusterEvaluation(json.loads(json_line(there)))
            assert (here.query, here.time, here.windows) == (there.query, there.time, there.windows)
            assert (here.snapshot, here.attempt, here.error) == (there.snapshot, there.attempt, None)
            if isinstance(there.answer, rdflib.Graph):
                assert set(here.answer) == set(there.answer)
            elif isinstance(there.answer, bool):
                assert here.answer is there.answer
            else:
                assert list(here.answer) == list(there.answer)


def test_an_evaluation_without_an_answer_raises_its_error():
    line = {"query": "q", "time": 5, "windows": {}, "snapshot": 1, "attempt": 1, "error": "too much memory"}
    with pytest.raises(LimitError, match="too much memory"):
        _ = ClusterEvaluation(line).answer
