"""docs/semantics.md §5: streaming operators, reports, derived streams, the extra functions, answers' forms."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET
from typing import Any

import pytest
import rdflib

import penstock
from support.brief import PREFIX, S, T, nt, timeline

W = "[RANGE 1s STEP 1s]"
D = "urn:x:stream/derived"
FN = "PREFIX penstock: <urn:x-penstock:fn/> "


def window(spec: str = W, stream: str = S) -> str:
    return f"FROM STREAM <{stream}> {spec}"


def evaluate(system: Any, text: str, *events: tuple[int, str], until: int = 3000) -> Any:
    q = system.register(text)
    for time, triple in events:
        system.push(S, time, nt(*triple.split(" . ")))
    system.advance(S, until)
    return timeline(system.poll(q))


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("RSTREAM", {1000: ["a", "b"], 2000: ["b", "c"], 3000: []}),
        ("ISTREAM", {1000: ["a", "b"], 2000: ["c"], 3000: []}),
        ("DSTREAM", {1000: [], 2000: ["a"], 3000: ["b", "c"]}),
    ],
)
def test_streaming_operators(system: Any, operator: str, expected: Any) -> None:
    system.declare(S)
    text = f"REGISTER {operator} q AS {PREFIX} SELECT ?s {window()} WHERE {{ ?s :p ?o }}"
    events = [(100, "a p x"), (200, "b p x"), (1100, "b p x"), (1200, "c p x")]
    assert evaluate(system, text, *events) == expected


def test_construct_differs_as_sets(system: Any) -> None:
    system.declare(S)
    text = f"REGISTER ISTREAM q AS {PREFIX} CONSTRUCT {{ ?o :of :all }} {window()} WHERE {{ ?s :p ?o }}"
    found = evaluate(system, text, (100, "a p x"), (200, "b p x"), (1100, "c p x . c p y"))
    assert found == {1000: [("x", "of", "all")], 2000: [("y", "of", "all")], 3000: []}


def test_empty_evaluations_are_reported_unless_the_query_says_nonempty(system: Any) -> None:
    system.declare(S)
    for name, form in (("x", "SELECT ?s"), ("y", "ASK"), ("z", "CONSTRUCT { ?s :q ?o }")):
        system.register(f"REGISTER QUERY {name} REPORT NONEMPTY AS {PREFIX} {form} {window()} WHERE {{ ?s :p ?o }}")
        system.register(f"REGISTER QUERY {name}{name} REPORT EVERY AS {PREFIX} {form} {window()} WHERE {{ ?s :p ?o }}")
    system.push(S, 100, nt("other q x"))
    system.push(S, 1500, nt("a p x"))
    system.advance(S, 3000)
    for name in ("x", "y", "z"):
        assert [e.time for e in system.poll(name)] == [2000]
        assert [e.time for e in system.poll(name * 2)] == [1000, 2000, 3000]


def test_nonempty_istream_compares_with_the_last_answer_even_if_unreported(system: Any) -> None:
    system.declare(S)
    text = f"REGISTER ISTREAM q REPORT NONEMPTY AS {PREFIX} SELECT ?s {window()} WHERE {{ ?s :p ?o }}"
    events = [(100, "a p x"), (1100, "a p x"), (3100, "a p x")]
    assert evaluate(system, text, *events, until=4000) == {1000: ["a"], 4000: ["a"]}


# ---- derived streams
def derive(operator: str = "STREAM", step: str = "1s") -> str:
    where = f"{window(f'[RANGE 1s STEP {step}]')} WHERE {{ ?s :v ?o FILTER(?o > 5) }}"
    return f"REGISTER {operator} <{D}> AS {PREFIX} CONSTRUCT {{ ?s :alarm ?o }} {where}"


def test_a_derived_stream_feeds_another_query(system: Any) -> None:
    system.declare(S)
    system.register(derive())
    text = f"REGISTER QUERY q AS {PREFIX} SELECT ?s ?o {window('[RANGE 2s STEP 1s]', D)} WHERE {{ ?s :alarm ?o }}"
    system.register(text)
    for time, value in ((100, 7), (1200, 3), (2300, 9)):
        system.push(S, time, nt(f"a v {value}"))
    system.advance(S, 4000)
    assert timeline(system.poll("q")) == {
        1000: [("a", "7")],
        2000: [("a", "7")],
        3000: [("a", "9")],
        4000: [("a", "9")],
    }


def test_derived_tuples_carry_the_instant_and_are_not_stored(system: Any) -> None:
    system.declare(S)
    system.register(derive())
    text = f"REGISTER QUERY q AS {PREFIX} SELECT ?s {window('[RANGE 1ms STEP 500ms]', D)} WHERE {{ ?s :alarm ?o }}"
    system.register(text)
    system.push(S, 100, nt("a v 7"))
    system.advance(S, 2000)
    assert timeline(system.poll("q"))[1000] == ["a"]
    assert system.ask(f"{PREFIX} ASK {{ ?s :alarm ?o }}") is False


def test_a_derived_stream_is_not_the_callers_to_move() -> None:
    with penstock.Engine() as engine:
        engine.declare_stream(S)
        engine.register(derive())
        with pytest.raises(penstock.PenstockError):
            engine.push(D, nt("a alarm b"), timestamp=1)
        engine.advance(None, 5000)
        reader = engine.register(f"SELECT * {window(stream=D)} WHERE {{ ?s ?p ?o }}")
        assert list(reader.poll()) == []


def test_a_cycle_of_queries_is_refused() -> None:
    with penstock.Engine() as engine:
        engine.declare_stream(S)
        engine.register(derive())
        one = f"REGISTER STREAM <urn:x:two> AS CONSTRUCT {{ ?s ?p ?o }} {window(stream=D)} WHERE {{ ?s ?p ?o }}"
        engine.register(one)
        closing = (
            f"REGISTER STREAM <urn:x:two> AS CONSTRUCT {{ ?s ?p ?o }} {window(stream='urn:x:two')} WHERE {{ ?s ?p ?o }}"
        )
        with pytest.raises(penstock.PenstockError):
            engine.register(closing)


# ---- errors at registration
@pytest.mark.parametrize(
    "text",
    [
        f"REGISTER ISTREAM q AS ASK {window()} WHERE {{ ?s ?p ?o }}",
        f"REGISTER ISTREAM q AS SELECT ?s {window()} WHERE {{ ?s ?p ?o }} ORDER BY ?s",
        f"REGISTER DSTREAM q AS SELECT ?s {window()} WHERE {{ ?s ?p ?o }} LIMIT 3",
        f"REGISTER QUERY q AS SELECT ?s {window()} {window()} WHERE {{ ?s ?p ?o }}",
        f"REGISTER QUERY q AS SELECT ?s {window()} FROM NAMED STREAM <{S}> {W} WHERE {{ ?s ?p ?o }}",
        f"REGISTER QUERY q AS SELECT ?s FROM NAMED WINDOW <urn:w> ON <{S}> {W} FROM NAMED WINDOW <urn:w> ON <{S}> {W} WHERE {{ ?s ?p ?o }}",
        f"REGISTER QUERY q AS SELECT ?s {window('[RANGE 0s STEP 1s]')} WHERE {{ ?s ?p ?o }}",
        f"REGISTER QUERY q AS SELECT ?s {window('[RANGE 1s STEP 0ms]')} WHERE {{ ?s ?p ?o }}",
        f"REGISTER QUERY q AS SELECT ?s {window('[RANGE -1s STEP 1s]')} WHERE {{ ?s ?p ?o }}",
        f"REGISTER QUERY q AS SELECT ?s {window('[RANGE 99999999999999999999d STEP 1s]')} WHERE {{ ?s ?p ?o }}",
        f"REGISTER QUERY q AS SELECT ?s {window('[TRIPLES 0]')} WHERE {{ ?s ?p ?o }}",
        f"REGISTER QUERY q AS SELECT ?s {window('[ALL]')} WHERE {{ ?s ?p ?o }}",
        f"REGISTER QUERY q AS SELECT ?s {window('[RANGE 1 parsec]')} WHERE {{ ?s ?p ?o }}",
        f"REGISTER QUERY q AS SELECT ?s {window()} FROM STREAM <{T}> [TRIPLES 3] WHERE {{ ?s ?p ?o }}",
        f"REGISTER QUERY q AS SELECT ?s {window()} WHERE {{ GRAPH <urn:x:nowhere> {{ ?s ?p ?o }} }}",
        f"REGISTER QUERY q AS SELECT ?s {window()} FROM <urn:x:nowhere> WHERE {{ ?s ?p ?o }}",
        f"REGISTER QUERY q AS SELECT ?s {window()} WHERE {{ WINDOW <urn:x:nowhere> {{ ?s ?p ?o }} }}",
        f"REGISTER QUERY q AS SELECT ?s {window()} WHERE {{ SERVICE <urn:x:far> {{ ?s ?p ?o }} }}",
        f"REGISTER QUERY q AS SELECT ?s {window()} WHERE {{ ?s ?p ?o FILTER(<urn:x:unknown>(?s)) }}",
        f"REGISTER QUERY q AS SELECT ?s FROM Tweets {W} WHERE {{ ?s ?p ?o }}",
        f"REGISTER QUERY q AS SELECT ?s {window()} WHERE {{ ?s ?p ?o",
        "REGISTER QUERY q AS",
        "",
    ],
)
def test_errors_come_at_registration_with_a_place(text: str) -> None:
    with penstock.Engine() as engine:
        engine.declare_stream(S)
        engine.declare_stream(T)
        with pytest.raises(penstock.QueryError) as refused:
            engine.register(text)
        error = refused.value
        assert error.message
        place = (text.splitlines() or [""])[error.line - 1][error.column - 1 :]
        assert place.replace(" ", "").startswith(error.construct)
        assert not list(engine.queries)


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        (f"SELECT ?s\r\n{window(stream='urn:x:never')} WHERE {{ ?s ?p ?o }}", "<urn:x:never>"),
        (f"SELECT ?s FROM NAMED WINDOW <urn:x:w> ON Never {W} {{ ?s ?p ?o }}", "Never"),
        (f"SELECT ?s {window()} FROM x:never {{ ?s ?p ?o }}", "x:never"),
        (f"SELECT ?s {window()} {{ GRAPH x:never {{ ?s ?p ?o }} }}", "x:never"),
        (f"REGISTER QUERY taken AS SELECT ?s {window()} {{ ?s ?p ?o }}", "taken"),
        (f"REGISTER STREAM <{S}> AS CONSTRUCT {{ ?s ?p ?o }} {window(stream=T)} {{ ?s ?p ?o }}", f"<{S}>"),
    ],
)
def test_what_the_engine_does_not_have_is_pointed_at(text: str, construct: str) -> None:
    with penstock.Engine() as engine:
        for stream in (S, T):
            engine.declare_stream(stream)
            engine.advance(stream, 0)
        engine.register(f"REGISTER QUERY taken AS SELECT ?s {window()} {{ ?s ?p ?o }}")
        with pytest.raises(penstock.QueryError) as refused:
            engine.register(f"PREFIX x: <urn:x:>\r\n{text}", base="urn:x:base/")
    error = refused.value
    assert error.construct == construct
    assert error.text.splitlines()[error.line - 1][error.column - 1 :].startswith(construct)


def test_an_error_points_at_its_construct() -> None:
    text = "SELECT ?s\nWHERE {\n  ?s ?p ?o .\n  SERVICE <urn:x:far> { ?s ?q ?r }\n}"
    with penstock.Engine() as engine, pytest.raises(penstock.QueryError) as refused:
        engine.query(text)
    assert (refused.value.line, refused.value.column) == (4, 3)
    assert "SERVICE" in str(refused.value)
    assert str(refused.value).splitlines()[-1] == "  " + "  ^"


# ---- the extra functions, and NOW()
def test_now_is_the_instant(system: Any) -> None:
    system.declare(S)
    text = f"REGISTER QUERY q AS {PREFIX} SELECT (YEAR(NOW()) AS ?y) (SECONDS(NOW()) AS ?sec) {window()} WHERE {{}}"
    system.register(text)
    system.advance(S, 0)
    system.advance(S, 3000)
    found = timeline(system.poll("q"))
    assert [float(rows[0][1]) for rows in found.values()] == [1.0, 2.0, 3.0]
    assert {rows[0][0] for rows in found.values()} == {"1970"}


def test_functions_of_the_windows() -> None:
    clauses = f"FROM NAMED WINDOW <urn:x:w> ON <{S}> [RANGE 2s STEP 1s]"
    select = (
        "SELECT ?o (penstock:timestamp(?s, ?p, ?o) AS ?at) (penstock:windowStart(<urn:x:w>) AS ?start) "
        "(penstock:windowEnd(<urn:x:w>) AS ?end) (penstock:evaluationTime() AS ?now)"
    )
    text = f"REGISTER QUERY q AS {FN} {select} {clauses} WHERE {{ WINDOW <urn:x:w> {{ ?s ?p ?o }} }}"
    with penstock.Engine() as engine:
        engine.declare_stream(S)
        query = engine.register(text)
        engine.push(S, nt("a p x"), timestamp=100)
        engine.push(S, nt("a p x"), timestamp=400)
        engine.push(S, nt("a p y"), timestamp=1500)
        engine.advance(S, 2000)
        found = {
            evaluation.time: sorted(
                [str(row[k])[-5:] for k in ("o", "at", "start", "end", "now")] for row in evaluation.answer
            )
            for evaluation in query.poll()
        }
    assert [[row[0][-1], *map(int, row[1:])] for row in found[1000]] == [["x", 400, -1000, 1000, 1000]]
    assert [[row[0][-1], *map(int, row[1:])] for row in found[2000]] == [
        ["x", 400, 0, 2000, 2000],
        ["y", 1500, 0, 2000, 2000],
    ]


# ---- what an answer offers
@pytest.fixture
def solutions() -> Any:
    data = b"""<urn:s> <urn:p> "a \\"b\\", c\\nd"@en , <urn:o> , 54.0 , _:b .
               <urn:s> <urn:q> "007"^^<http://www.w3.org/2001/XMLSchema#integer> ."""
    engine = penstock.Engine()
    engine.load(data, format="turtle")
    yield engine.query("SELECT ?p ?o ?none WHERE { ?s ?p ?o } ORDER BY ?p ?o")
    engine.close()


def test_solutions_are_rows_of_rdflib_terms(solutions: Any) -> None:
    rows = list(solutions)
    assert list(solutions.variables) == ["p", "o", "none"]
    assert len(solutions) == len(rows) == 5
    assert all(set(row) == {"p", "o"} for row in rows)
    kinds = {type(row["o"]) for row in rows}
    assert kinds == {rdflib.URIRef, rdflib.BNode, rdflib.Literal}
    last = next(row["o"] for row in rows if str(row["p"]) == "urn:q")
    assert (str(last), last.datatype) == ("007", rdflib.XSD.integer)


def test_solutions_print_in_the_w3c_formats(solutions: Any) -> None:
    parsed = json.loads(solutions.to_json())
    assert parsed["head"]["vars"] == ["p", "o", "none"]
    assert len(parsed["results"]["bindings"]) == 5
    assert {b["o"]["type"] for b in parsed["results"]["bindings"]} == {"uri", "literal", "bnode"}
    text = next(b["o"] for b in parsed["results"]["bindings"] if "xml:lang" in b["o"])
    assert text["value"] == 'a "b", c\nd'
    root = ET.fromstring(solutions.to_xml())
    assert len(root.findall(".//{http://www.w3.org/2005/sparql-results#}result")) == 5
    rows = list(csv.reader(io.StringIO(solutions.to_csv())))
    assert rows[0] == ["p", "o", "none"]
    assert len(rows) == 6
    assert 'a "b", c\nd' in [row[1] for row in rows]
    tsv = solutions.to_tsv().splitlines()
    assert tsv[0] == "?p\t?o\t?none"
    assert len(tsv) == 6
    assert any("<urn:o>" in line for line in tsv)


def test_solutions_are_columns_too(solutions: Any) -> None:
    table = solutions.to_arrow()
    assert table.num_rows == 5
    assert table.column_names == ["p", "o", "none"]
    assert len(solutions.ids) == 3


def test_each_evaluation_says_what_it_read() -> None:
    with penstock.Engine() as engine:
        engine.declare_stream(S)
        query = engine.register(f"REGISTER QUERY q AS SELECT * {window()} WHERE {{ ?s ?p ?o }}")
        engine.push(S, nt("a p b"), timestamp=500)
        engine.advance(S, 2000)
        first, second = query.poll()
    assert (first.query, first.time, first.windows) == ("q", 1000, {S: (0, 1000)})
    assert second.snapshot >= first.snapshot
    assert S in first.vts
    assert first.attempt >= 1
