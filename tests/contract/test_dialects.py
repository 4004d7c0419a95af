"""docs/language.md's forms, registered as their users write them, and answered: one meaning behind all of them."""

from __future__ import annotations

from typing import Any

import pytest

import penstock
from support.brief import S

LAB = "http://x-lab/"
EVENTS = [(100, "a po t1"), (2_500, "a po t2"), (2_600, "b po t2")]
STORED = "<http://x-lab/a> <http://x-lab/fo> <http://x-lab/b> .\n"


def triple(words: str) -> str:
    return " ".join(f"<{LAB}{word}>" for word in words.split()) + " ."


def rows(text: str, *, until: int = 3_000, **declaration: Any) -> dict[int, Any]:
    """Answers of a text over EVENTS by time, empty ones left out."""
    with penstock.Engine() as engine:
        engine.load(STORED.encode(), graph=f"{LAB}X-Lab", format="nt")
        engine.declare_stream(S, timing="all", **declaration)
        query = engine.register(text, base=LAB)
        for time, words in EVENTS:
            engine.push(S, triple(words), timestamp=time)
        engine.advance(S, until)
        found = {
            e.time: sorted(tuple(str(v).removeprefix(LAB) for v in r.values()) for r in e.answer) for e in query.poll()
        }
    return {time: answer for time, answer in found.items() if answer}


A, B, C = ("a", "t1"), ("a", "t2"), ("b", "t2")
TWO_SECONDS = {1_000: [A], 2_000: [A], 3_000: [B, C]}

FORMS = {
    "C-SPARQL": f"REGISTER QUERY q AS SELECT ?x ?z FROM STREAM <{S}> [RANGE 2s STEP 1s] WHERE {{ ?x po ?z }}",
    "any case": f"register query q as select ?x ?z from stream <{S}> [range 2s step 1s] where {{ ?x po ?z }}",
    "no REGISTER": f"SELECT ?x ?z FROM STREAM <{S}> [RANGE 2 s SLIDE 1 s] {{ ?x po ?z }}",
    "the paper's short form": f"SELECT ?x ?z FROM <{S}> [RANGE 2s STEP 1s] {{ ?x po ?z }}",
    "short and named": f"SELECT ?x ?z FROM NAMED <{S}> [RANGE 2s STEP 1s] {{ GRAPH <{S}> {{ ?x po ?z }} }}",
    "RSP-QL": f"SELECT ?x ?z FROM NAMED WINDOW w ON <{S}> [RANGE PT2S STEP PT1S] {{ WINDOW w {{ ?x po ?z }} }}",
    "ISO 8601 literals": (
        f'SELECT ?x ?z FROM STREAM <{S}> [RANGE "PT2S"^^<http://www.w3.org/2001/XMLSchema#duration> STEP 1s] {{ ?x po ?z }}'
    ),
    "COMPUTED EVERY": f"REGISTER QUERY q COMPUTED EVERY 1s AS SELECT ?x ?z FROM STREAM <{S}> [RANGE 2s] {{ ?x po ?z }}",
    "CQELS-QL": f"SELECT ?x ?z WHERE {{ STREAM <{S}> [RANGE 2s SLIDE 1s] {{ ?x po ?z }} }}",
    "CQELS-QL, compound and nanoseconds": (
        f"SELECT ?x ?z WHERE {{ STREAM <{S}> [RANGE 1s1000ms SLIDE 999999999ns] {{ ?x po ?z }} }}"
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_window_means_the_same(form: str) -> None:
    assert rows(FORMS[form]) == TWO_SECONDS


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("RANGE 1s", {1_000: [A], 3_000: [B, C]}),
        ("RANGE 1s TUMBLING", {1_000: [A], 3_000: [B, C]}),
        ("NOW", {100: [A], 2_500: [B], 2_600: [C]}),
        ("TRIPLES 2", {2_500: [A, B]}),
        ("ELEMENTS 2 STEP 1", {100: [A], 2_500: [A, B], 2_600: [B, C]}),
        ("ALL STEP 1s", {1_000: [A], 2_000: [A], 3_000: [A, B, C]}),
    ],
)
@pytest.mark.parametrize("block", [False, True], ids=["clause", "CQELS-QL's block"])
def test_every_kind_of_window(window: str, expected: Any, *, block: bool) -> None:
    pattern = "{ ?x po ?z }"
    text = f"{{ STREAM <{S}> [{window}] {pattern} }}" if block else f"FROM STREAM <{S}> [{window}] {pattern}"
    assert rows(f"SELECT ?x ?z {text}", retention_ms=60_000) == expected


def test_all_over_timing_predicates_holds_what_is_retained() -> None:
    text = f"SELECT ?x ?z FROM STREAM <{S}> [ALL STEP 1s] {{ ?x po ?z }}"
    assert rows(text, retention_ms=2_000, until=5_000) == {**TWO_SECONDS, 4_000: [B, C]}
    with pytest.raises(penstock.QueryError, match="retention"):
        rows(text)


def test_the_papers_query_joins_its_streams_with_stored_data() -> None:
    text = """REGISTER QUERY QC AS SELECT ?X ?Y ?Z
        FROM Tweet_Stream [RANGE 10s STEP 1s] FROM Like_Stream [RANGE 5s STEP 1s] FROM X-Lab
        WHERE { GRAPH Tweet_Stream { ?X po ?Z } GRAPH X-Lab { ?X fo ?Y } GRAPH Like_Stream { ?Y li ?Z } }"""
    with penstock.Engine() as engine:
        engine.load(STORED.encode(), graph=f"{LAB}X-Lab", format="nt")
        for stream in ("Tweet_Stream", "Like_Stream"):
            engine.declare_stream(LAB + stream)
        query = engine.register(text, base=LAB)
        engine.push(f"{LAB}Tweet_Stream", triple("a po t1"), timestamp=500)
        engine.push(f"{LAB}Like_Stream", triple("b li t1"), timestamp=1_500)
        engine.advance(None, 7_000)
        found = {e.time: len(e.answer) for e in query.poll()}
    assert found == {1_000: 0, 2_000: 1, 3_000: 1, 4_000: 1, 5_000: 1, 6_000: 1, 7_000: 0}
    with penstock.Engine() as engine, pytest.raises(penstock.QueryError, match="bare name"):
        engine.register(text)


def test_cqels_blocks_join_stored_graphs() -> None:
    text = f"SELECT ?x ?y FROM NAMED X-Lab WHERE {{ STREAM <{S}> [RANGE 2s SLIDE 1s] {{ ?x po ?z }} GRAPH X-Lab {{ ?x fo ?y }} }}"
    assert rows(text) == {1_000: [("a", "b")], 2_000: [("a", "b")], 3_000: [("a", "b")]}


def test_the_timestamp_function_of_the_csparql_engine() -> None:
    prefix = "PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#>"
    where = "{ ?x po ?z FILTER(f:timestamp(?x, po, ?z) > 2500) }"
    assert rows(f"{prefix} SELECT ?x ?z FROM STREAM <{S}> [RANGE 2s STEP 1s] {where}") == {3_000: [C]}


def test_a_one_shot_text_is_asked_and_not_registered() -> None:
    with penstock.Engine() as engine:
        with pytest.raises(penstock.QueryError, match="needs a window"):
            engine.register("SELECT * { ?s ?p ?o }")
        assert engine.query("ASK { ?s ?p ?o }") is False
