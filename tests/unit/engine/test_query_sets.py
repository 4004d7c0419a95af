"""Query sets: texts with parameters, tables of members, steps, faults of rows, limits."""

from __future__ import annotations

import asyncio
import datetime
import gc
import json
import threading
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rdflib import BNode, Literal, URIRef

import penstock
from penstock import ConflictError, DataError, LimitError, PenstockError, QueryError
from penstock.core import _native as native
from penstock.engine.answers.membership import Membership
from penstock.engine.sets.set_members import MemberColumns, SetMembership

XSD_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
NEAR = (
    "REGISTER QUERY near (?user ?limit) AS SELECT ?o FROM STREAM <urn:s> [RANGE 1s STEP 100ms]"
    " WHERE { ?user <urn:p> ?o FILTER(?o < ?limit) }"
)
WATCH = "REGISTER QUERY watch (?user) AS SELECT ?o FROM STREAM <urn:s> [RANGE 1s STEP 100ms] WHERE { ?user <urn:p> ?o }"


def registered(bench: Any, rows: Any = None, text: str = NEAR, report: Any = "nonempty", **more: Any) -> Any:
    bench.declare("s", timing="all")
    return bench.engine.register_set(text, rows, report=report, **more)


def push(bench: Any, time: int, *pairs: tuple[str, int]) -> None:
    triples = "".join(f'<urn:{s}> <urn:p> "{o}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n' for s, o in pairs)
    bench.engine.push("urn:s", triples, timestamp=time)


def cells(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(v["value"] if isinstance(v, dict) else v for v in row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"user": ["urn:a", "urn:b"], "limit": [5, 9], "more": [0, 0]}),
        pa.table({"user": pa.array(["urn:a", "urn:b"], pa.large_string()), "limit": pa.array([5, 9], pa.int8())}),
        pa.table({"limit": [5.5, 9.0], "user": pa.array(["urn:a", "urn:b"]).dictionary_encode()}),
        pa.record_batch({"user": pa.array(["urn:a", "urn:b"], pa.string_view()), "limit": [5, 9]}),
        [("urn:a", 5), ("urn:b", 9)],
        [{"user": URIRef("urn:a"), "limit": Literal(5)}, {"limit": Decimal(9), "user": "urn:b"}],
        iter([["urn:a", 5], [URIRef("urn:b"), 9]]),
    ],
)
def test_members_from_arrow_and_rows(bench, rows):
    alerts = registered(bench, rows, key="user")
    assert len(alerts) == 2
    assert bench.engine.dead_letters() == []
    push(bench, 50, ("a", 4), ("a", 6), ("b", 8), ("c", 1))
    bench.advance("s", 100)
    (step,) = alerts.poll()
    assert (step.time, len(step), step.query) == (100, 2, "near")
    assert sorted(cells(step.to_arrow())) == [("urn:a", "4"), ("urn:b", "8")]
    assert step.to_arrow().column_names == ["user", "o"]
    assert [row["o"] for row in step["urn:a"]] == [Literal(4)]
    assert step.windows == {"urn:s": (-900, 100)}
    assert "urn:b" in step
    assert "urn:c" not in step
    with pytest.raises(KeyError):
        step["urn:c"]
    assert alerts.poll() == []


def test_members_from_a_pandas_frame(bench):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"user": ["urn:a", "urn:b"], "limit": [5, 9]}, index=["x", "y"])
    assert len(registered(bench, frame, key="user")) == 2
    assert bench.engine.dead_letters() == []


def test_the_key_is_by_default_all_parameters_and_keeps_its_types(bench):
    alerts = registered(bench, [("urn:a", 5), ("urn:a", 7)])
    assert (alerts.key, alerts.columns) == (("user", "limit"), ("user", "limit"))
    push(bench, 50, ("a", 6))
    bench.advance("s", 100)
    (step,) = alerts.poll()
    assert step.members.schema == pa.schema({"user": pa.string(), "limit": pa.int64()})
    assert step.members.to_pylist() == [{"user": "urn:a", "limit": 7}]
    assert [row["o"] for row in step["urn:a", 7]] == [Literal(6)]
    assert ("urn:a", 5) not in step
    assert ("urn:a", 5) in alerts
    assert ("urn:a", 8) not in alerts
    assert "urn:a" not in alerts
    assert alerts.remove([("urn:a", 5), ("urn:x", 1)]) == 1
    assert len(alerts) == 1


@pytest.mark.parametrize(
    "keys",
    [["a", "ä"], [1, -(1 << 62)], [1.5, float("inf")], [True, False], [URIRef("urn:a"), Literal("x", lang="en")]],
)
def test_a_key_column_that_is_no_parameter(bench, keys):
    rows = [{"id": key, "user": "urn:a", "limit": 9} for key in keys]
    alerts = registered(bench, rows, key="id", report="every")
    assert alerts.columns == ("user", "limit", "id")
    push(bench, 50, ("a", 4))
    bench.advance("s", 100)
    (step,) = alerts.poll()
    assert all(len(step[key]) == 1 for key in keys)
    found = step.members.column("id").to_pylist()
    assert found == keys or {cell["value"] for cell in found} == {str(key) for key in keys}
    assert alerts.remove(step.members) == 2


def test_what_the_report_contains(bench):
    bench.declare("s", timing="all")
    every = bench.engine.register_set(NEAR, [("urn:a", 5), ("urn:b", 5)], report="every", name="e")
    nonempty = bench.engine.register_set(NEAR, [("urn:a", 5), ("urn:b", 5)], report="nonempty", name="n")
    push(bench, 50, ("a", 4))
    bench.advance("s", 100)
    bench.advance("s", 1200)
    assert [(step.time, len(step)) for step in every.poll()] == [(100 * i, 2) for i in range(1, 13)]
    assert [(step.time, len(step)) for step in nonempty.poll()] == [(100 * i, 1) for i in range(1, 11)]
    assert (every.report, nonempty.report) == ("every", "nonempty")
    with pytest.raises(DataError, match="nonempty"):
        bench.engine.register_set(NEAR, report="changes")


def test_a_report_of_changes(bench):
    alerts = registered(bench, [("urn:a", 5), ("urn:b", 5), ("urn:c", 5)], key="user", report="change")
    assert alerts.report == "change"
    push(bench, 50, ("a", 4), ("b", 1))
    bench.advance("s", 300)
    push(bench, 350, ("a", 3), ("b", 1))  # b's answer stays the same
    bench.advance("s", 2_000)
    first, second, third, fourth = alerts.poll()
    assert (first.time, sorted(cells(first.to_arrow()))) == (100, [("urn:a", "4"), ("urn:b", "1")])
    assert sorted(cells(first.added)) == sorted(cells(first.to_arrow()))
    assert first.removed.num_rows == 0
    assert (second.time, sorted(cells(second.to_arrow()))) == (400, [("urn:a", "3"), ("urn:a", "4")])
    assert (cells(second.added), len(second), "urn:b" in second) == ([("urn:a", "3")], 1, False)
    assert (third.time, cells(third.removed), cells(third.to_arrow())) == (1100, [("urn:a", "4")], [("urn:a", "3")])
    assert (fourth.time, sorted(cells(fourth.members))) == (
        1400,
        [("urn:a",), ("urn:b",)],
    )  # their answers become empty
    assert (fourth.to_arrow().num_rows, len(fourth["urn:a"])) == (0, 0)
    assert sorted(cells(fourth.removed)) == [("urn:a", "3"), ("urn:b", "1")]
    with pytest.raises(KeyError):
        fourth["urn:c"]


def test_a_new_member_has_reported_nothing_and_a_removed_one_does_not_report(bench):
    alerts = registered(bench, [("urn:a", 9), ("urn:b", 9)], key="user", report="change")
    push(bench, 50, ("a", 4), ("b", 5))
    bench.advance("s", 100)
    alerts.remove(["urn:b"])
    alerts.add([("urn:a", 8), ("urn:c", 9)])
    push(bench, 150, ("c", 1), ("b", 5))
    bench.advance("s", 200)
    alerts.add([("urn:b", 9)])
    push(bench, 250, ("b", 6))
    bench.advance("s", 300)
    found = [(step.time, cells(step.added), cells(step.removed)) for step in alerts.poll()[1:]]
    assert found == [(200, [("urn:c", "1")], []), (300, [("urn:b", "6")], [])]


def test_a_report_of_changes_of_ask_and_aggregates(bench):
    bench.declare("s", timing="all")
    window = "FROM STREAM <urn:s> [RANGE 200ms STEP 100ms]"
    text = f"REGISTER QUERY asks (?user) AS ASK {window} WHERE {{ ?user <urn:p> ?o }}"
    asks = bench.engine.register_set(text, ["urn:a", "urn:b"], report="change")
    text = f"REGISTER QUERY counts (?user) AS SELECT (COUNT(*) AS ?n) {window} WHERE {{ ?user <urn:p> ?o }}"
    counts = bench.engine.register_set(text, ["urn:a", "urn:b"], report="change")
    push(bench, 50, ("a", 4))
    bench.advance("s", 100)
    push(bench, 150, ("a", 5))
    bench.advance("s", 600)
    assert [(step.time, step["urn:a"], cells(step.to_arrow())) for step in asks.poll()] == [
        (100, True, [("urn:a",)]),
        (400, False, []),
    ]
    assert [(step.time, sorted(cells(step.to_arrow()))) for step in counts.poll()] == [
        (100, [("urn:a", "1"), ("urn:b", "0")]),
        (200, [("urn:a", "2")]),
        (300, [("urn:a", "1")]),
        (400, [("urn:a", "0")]),
    ]


def test_only_whole_answers_have_a_report_of_changes(bench):
    bench.declare("s", timing="all")
    with pytest.raises(QueryError, match="ISTREAM exclude each other"):
        bench.engine.register_set(WATCH.replace("REGISTER QUERY", "REGISTER ISTREAM"), report="change")
    alerts = bench.engine.register_set(WATCH, ["urn:a"], report="every")
    push(bench, 50, ("a", 4))
    bench.advance("s", 100)
    with pytest.raises(PenstockError, match='report="change"'):
        _ = alerts.poll()[-1].added


def test_ask_and_construct(bench):
    bench.declare("s", timing="all")
    window, rows = "FROM STREAM <urn:s> [RANGE 100ms STEP 100ms]", ["urn:a", "urn:b"]
    text = f"REGISTER QUERY asks (?user) AS ASK {window} WHERE {{ ?user <urn:p> 4 }}"
    asks = bench.engine.register_set(text, rows, report="every")
    text = f"REGISTER QUERY makes (?user) AS CONSTRUCT {{ ?o <urn:q> <urn:x> }} {window} WHERE {{ ?user <urn:r> ?o }}"
    makes = bench.engine.register_set(text, rows, report="nonempty")
    push(bench, 50, ("a", 4))
    bench.push("s", 60, "b r c")
    bench.advance("s", 100)
    (step,) = asks.poll()
    assert (step["urn:a"], step["urn:b"], cells(step.to_arrow())) == (True, False, [("urn:a",)])
    (step,) = makes.poll()
    assert step.to_arrow().column_names == ["user", "subject", "predicate", "object"]
    assert cells(step.to_arrow()) == [("urn:b", "urn:c", "urn:q", "urn:x")]
    assert len(step["urn:b"]) == 1


# ---- texts
@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("REGISTER QUERY q AS SELECT ?o FROM STREAM <urn:s> [RANGE 1s] {?u ?p ?o}", "needs parameters", 16),
        ("REGISTER QUERY q (?u ?u) AS SELECT ?o FROM STREAM <urn:s> [RANGE 1s] {?u ?p ?o}", "declared twice", 22),
        ("REGISTER QUERY q (?u ?v) AS SELECT ?o FROM STREAM <urn:s> [RANGE 1s] {?u ?p ?o}", "does not use", 22),
        ("REGISTER QUERY q (?u) AS SELECT ?u FROM STREAM <urn:s> [RANGE 1s] {?u ?p ?o}", "cannot stand", 33),
        ("REGISTER QUERY q (?u) AS SELECT ?o FROM STREAM <urn:s> [RANGE 1s] {?s ?u ?o}", "cannot stand", 71),
        ("REGISTER QUERY q (?u) AS SELECT ?o FROM STREAM <urn:s> [RANGE 1s] {GRAPH ?u {?s ?p ?o}}", "cannot", 74),
        ("REGISTER QUERY q (?u) AS SELECT ?o FROM STREAM <urn:s> [RANGE 1s] {?s ?p ?o BIND(1 AS ?u)}", "cannot", 87),
        ("REGISTER QUERY q (?u) AS SELECT ?o FROM STREAM <urn:s> [RANGE 1s] {?s ?p ?o VALUES ?u {1}}", "cannot", 84),
        ("REGISTER QUERY q (?u) AS DESCRIBE ?u FROM STREAM <urn:s> [RANGE 1s] {?s ?p ?o}", "cannot stand", 35),
        ("REGISTER QUERY q (?u) AS CONSTRUCT {?u ?p ?o} FROM STREAM <urn:s> [RANGE 1s] {?u ?p ?o}", "cannot", 37),
        ("REGISTER QUERY q () AS SELECT ?o FROM STREAM <urn:s> [RANGE 1s] {?u ?p ?o}", "expected a variable", 19),
        (
            "REGISTER STREAM <urn:d> (?u) AS CONSTRUCT {?o ?o ?o} FROM STREAM <urn:s> [RANGE 1s] {?u ?p ?o}",
            "publish",
            17,
        ),
    ],
)
def test_texts_that_are_no_query_set(bench, text, message, column):
    bench.declare("s", timing="all")
    with pytest.raises(QueryError, match=message) as caught:
        bench.engine.register_set(text, report="every")
    assert (caught.value.line, caught.value.column) == (1, column)
    assert bench.engine.stats()["groups"] == 0


def test_a_text_with_parameters_is_no_single_query(bench):
    bench.declare("s", timing="all")
    with pytest.raises(QueryError, match="register_set"):
        bench.engine.register(NEAR)
    with pytest.raises(QueryError):
        bench.engine.query(NEAR)


def test_names_are_those_of_queries_and_sets(bench):
    alerts = registered(bench)
    with pytest.raises(QueryError, match="already a query named near"):
        bench.engine.register(WATCH.replace(" (?user)", ""), name="near")
    assert bench.engine.queries == {}
    assert bench.engine.query_sets == {"near": alerts}
    with pytest.raises(DataError, match="is read by 1 queries"):
        bench.engine.drop_stream("urn:s")
    alerts.stop()
    assert bench.engine.query_sets == {}
    assert bench.engine.stats()["groups"] == 0
    bench.engine.drop_stream("urn:s")


@pytest.mark.parametrize(
    ("rows", "key", "message"),
    [
        ([], "o", "column o"),
        ([], [], "key"),
        ([], ["user", "user"], "key"),
        (pa.table({"user": ["urn:a"]}), None, "limit is missing"),
        ("urn:a", None, "not str"),
        (5, None, "not int"),
        ([("urn:a",)], None, "row 1 has 1 values"),
        (pa.table({"user": [b"a"], "limit": [5]}), None, "Arrow type binary"),
    ],
)
def test_tables_and_keys_that_cannot_be(bench, rows, key, message):
    with pytest.raises(DataError, match=message):
        registered(bench, rows, key=key)


# ---- rows
@pytest.mark.parametrize(
    ("user", "limit", "reason"),
    [
        (None, 5, "user has no value"),
        ("no iri", 5, "user is not an absolute IRI"),
        (7, 5, "user is a literal"),
        (Literal("urn:a"), 5, "user is a literal"),
        (BNode("b"), 5, "blank node"),
        ("urn:a", object(), "limit is not a term: <object"),
        ("urn:a", None, "limit has no value"),
        ("urn:" + "x" * 70_000, 5, "max_member_bytes"),
        ("urn:\ud800", 5, "not a term"),
        ("urn:a", Literal("x", datatype=URIRef("relative")), "not a term"),
    ],
    ids=["none", "text", "number", "literal", "blank", "object", "no-limit", "long", "surrogate", "datatype"],
)
def test_a_row_that_is_no_member_is_a_dead_letter_and_touches_no_other(bench, user, limit, reason):
    alerts = registered(bench)
    report = alerts.add([("urn:b", 5), (user, limit), ("urn:c", 5)])
    assert (report.added, report.rejected, len(alerts)) == (2, 1, 2)
    (letter,) = bench.engine.dead_letters()
    assert letter.stream == "near"
    assert reason in letter.reason
    assert set(json.loads(letter.data)) == {"user", "limit"}


def test_keys_have_one_type(bench):
    alerts = registered(bench, [{"user": "urn:a", "limit": 1, "id": "x"}], key="id")
    report = alerts.add([{"user": "urn:b", "limit": 1, "id": 5}, {"user": "urn:b", "limit": 1, "id": "y"}])
    assert (report.added, report.rejected) == (1, 1)
    assert "id has not the type of the other keys, which is string" in bench.engine.dead_letters()[0].reason
    assert alerts.add(pa.table({"user": ["urn:b"], "limit": [1], "id": [7]})).rejected == 1
    assert "x" in alerts
    assert 5 not in alerts


def test_values_are_terms(bench):
    text = NEAR.replace("?o < ?limit", "SAMETERM(?limit, ?limit) && BOUND(?o)").replace(
        "SELECT ?o", "SELECT (?limit AS ?l)"
    )
    values = {
        5: Literal(5),
        1.5: Literal(1.5),
        True: Literal(True),
        "x": Literal("x"),
        Decimal("2.50"): Literal(Decimal("2.50")),
        datetime.date(2020, 1, 2): Literal(datetime.date(2020, 1, 2)),
        Literal("y", lang="de"): Literal("y", lang="de"),
        URIRef("urn:v"): URIRef("urn:v"),
    }
    alerts = registered(bench, [{"user": "urn:a", "limit": v, "id": str(v)} for v in values], text=text, key="id")
    push(bench, 50, ("a", 4))
    bench.advance("s", 100)
    (step,) = alerts.poll()
    for value, term in values.items():
        assert [row["l"].n3() for row in step[str(value)]] == [term.n3()]


def test_members_are_replaced_and_repeated(bench):
    alerts = registered(bench, [("urn:a", 5)], key="user")
    assert alerts.add([("urn:a", 5)]) == penstock.MembersReport(unchanged=1)
    assert alerts.add([("urn:a", 6), ("urn:a", 7), ("urn:b", 1)]) == penstock.MembersReport(1, 1, 1, 0)
    assert alerts.add([("urn:a", 8), ("urn:a", 7)]) == penstock.MembersReport(unchanged=2)
    assert len(alerts) == 2
    push(bench, 50, ("a", 6))
    bench.advance("s", 100)
    assert [cells(step.to_arrow()) for step in alerts.poll()] == [[("urn:a", "6")]]


def test_later_members_see_later_tuples_only(bench):
    alerts = registered(bench, [("urn:a", 9)], key="user")
    push(bench, 50, ("a", 1), ("b", 2))
    bench.advance("s", 100)
    alerts.add([("urn:b", 9)])
    push(bench, 150, ("b", 3))
    bench.advance("s", 200)
    first, second = alerts.poll()
    assert cells(first.to_arrow()) == [("urn:a", "1")]
    assert sorted(cells(second.to_arrow())) == [("urn:a", "1"), ("urn:b", "3")]
    bench.advance("s", 2_000)
    assert bench.engine.stats()["queries"]["near"]["members"] == 2
    assert len(list(bench.engine._runtime.registry.cohorts)) == 1
    alerts.remove(["urn:a", "urn:b"])
    assert len(list(bench.engine._runtime.registry.cohorts)) == 0
    bench.advance("s", 2_100)


def test_tables_are_added_in_chunks(bench, monkeypatch):
    monkeypatch.setattr("penstock.engine.sets.set_changes.CHUNK_ROWS", 5)
    monkeypatch.setattr("penstock.engine.sets.set_changes.CHUNK_BYTES", 60)
    names = [f"urn:{'x' * (i % 7 * 10)}{i}" for i in range(23)]
    alerts = registered(bench, pa.table({"user": names}), text=WATCH)
    assert len(alerts) == 23
    assert all(name in alerts for name in names)
    assert alerts.remove(names[3:]) == 20


def test_a_large_set_looks_up_only_members_that_the_window_contains(bench):
    names = [f"urn:{i}" for i in range(9_000)]
    rows = [{"id": i, "user": name} for i, name in enumerate([*names, "urn:1", "urn:1"])]
    alerts = registered(bench, rows, text=WATCH, key="id")
    push(bench, 50, ("1", 4), ("8999", 5), ("x", 6))
    bench.advance("s", 300)
    assert [sorted(cells(step.to_arrow())) for step in alerts.poll()] == [
        [(1, "4"), (8_999, "5"), (9_000, "4"), (9_001, "4")]
    ] * 3
    assert "seed parameters  (est. 1 rows, actual 4 rows" in bench.engine.explain(alerts)
    alerts.remove([1, 9_001])
    alerts.add([{"id": 10_000, "user": "urn:1"}])
    push(bench, 350, ("1", 7))
    bench.advance("s", 600)
    # the new member does not see the earlier tuple
    expected = [(8_999, "5"), (9_000, "4"), (9_000, "7"), (10_000, "7")]
    assert sorted(cells(alerts.poll()[-1].to_arrow())) == expected


# ---- limits
def test_limits(make_bench):
    bench = make_bench(limits=penstock.Limits(max_members=3, max_unpolled=2))
    alerts = registered(bench, ["urn:a", "urn:b"], text=WATCH, report="every")
    with pytest.raises(LimitError, match="max_members") as caught:
        alerts.add(["urn:b", "urn:c", "urn:d"])
    assert caught.value.limit == "max_members"
    assert (len(alerts), bench.engine.dead_letters()) == (2, [])
    assert alerts.add(["urn:b", "urn:c"]).added == 1
    bench.push("s", 50, "a p b")
    bench.advance("s", 200)
    with pytest.raises(LimitError, match="watch") as caught:
        bench.advance("s", 300)
    assert caught.value.limit == "max_unpolled"
    assert [step.time for step in alerts.poll(1)] == [100]
    bench.advance("s", 300)
    assert alerts.unpolled() == 2
    assert [step.time for step in alerts.poll()] == [200, 300]


def test_members_that_exceed_a_limit_fail_alone(make_bench):
    bench = make_bench(limits=penstock.Limits(evaluation_memory_mb=8))
    text = WATCH.replace("?user <urn:p> ?o", "?user <urn:p> ?o . ?user <urn:p> ?x . ?user <urn:p> ?y FILTER(?x < ?y)")
    alerts = registered(bench, ["urn:a", "urn:b"], text=text.replace("SELECT ?o", "SELECT ?o ?x ?y"))
    push(bench, 50, *(("a", i) for i in range(300)), ("b", 1), ("b", 2))
    bench.advance("s", 100)
    (step,) = alerts.poll()
    assert [(key, type(error)) for key, error in step.errors] == [("urn:a", LimitError)]
    assert {row[0] for row in cells(step.to_arrow())} == {"urn:b"}
    assert len(step) == 2
    with pytest.raises(LimitError):
        step["urn:a"]


def test_a_member_that_fails_reports_and_keeps_its_last_answer(make_bench):
    bench = make_bench(limits=penstock.Limits(evaluation_memory_mb=8))
    text = WATCH.replace("?user <urn:p> ?o", "?user <urn:p> ?o . ?user <urn:p> ?x . ?user <urn:p> ?y FILTER(?x < ?y)")
    text = text.replace("SELECT ?o", "SELECT ?o ?x ?y").replace("RANGE 1s", "RANGE 100ms")
    alerts = registered(bench, ["urn:a", "urn:b"], text=text, report="change")
    for time in (50, 150, 250):
        push(bench, time, ("a", 1), ("a", 2), ("b", 1), ("b", 2))
        if time == 150:
            push(bench, 160, *(("a", i) for i in range(300)))
    bench.advance("s", 300)
    first, second = alerts.poll()
    assert (first.time, len(first), first.errors) == (100, 2, [])
    assert (second.time, len(second), [key for key, _ in second.errors]) == (200, 1, ["urn:a"])
    with pytest.raises(LimitError):
        second["urn:a"]


# ---- delivery
def test_subscribers_and_iteration(bench):
    alerts = registered(bench, ["urn:a"], text=WATCH)
    seen: list[Any] = []
    end = alerts.subscribe(lambda step: seen.append((step.time, cells(step.to_arrow()))))
    push(bench, 50, ("a", 4))
    bench.advance("s", 100)
    assert seen == [(100, [("urn:a", "4")])]
    end()

    async def consumed() -> list[int]:
        bench.advance("s", 300)
        threading.Timer(0.05, alerts.stop).start()
        return [step.time async for step in alerts]

    assert asyncio.run(consumed()) == [200, 300]
    assert alerts.stopped
    with pytest.raises(PenstockError, match="stopped"):
        alerts.add(["urn:b"])
    assert len(alerts) == 0


def test_explain_and_status(bench):
    alerts = registered(bench, ["urn:a", "urn:b"], text=WATCH)
    assert "queries in its group: 2, parameters: 1" in bench.engine.explain(alerts)
    assert "parameters: 1" in bench.engine.explain(WATCH)
    assert alerts.status().waits_for[0].stream == "urn:s"
    assert repr(alerts) == "<QuerySet watch: 2 members>"
    bench.advance("s", 100)
    assert alerts.status().next == 200
    alerts.remove(["urn:a", "urn:b"])
    assert "parameters: 1" in bench.engine.explain(alerts)


# ---- durability
def test_members_and_steps_survive_restarts(make_bench, tmp_path):
    bench = make_bench(data_dir=tmp_path)
    alerts = registered(
        bench, [{"user": "urn:a", "limit": 9, "id": 1}, {"user": "urn:b", "limit": 9, "id": 2}], key="id"
    )
    push(bench, 50, ("a", 4))
    bench.advance("s", 100)
    alerts.remove([1])
    alerts.add([{"user": "urn:a", "limit": 9, "id": 3}])
    bench.reopen()
    alerts = bench.engine.query_sets["near"]
    assert (alerts.key, alerts.report, len(alerts), 1 in alerts, 3 in alerts) == (("id",), "nonempty", 2, False, True)
    push(bench, 150, ("a", 5))
    bench.advance("s", 200)
    first, second = alerts.poll()
    assert cells(first.to_arrow()) == [(1, "4")]  # its member has gone, its step has not
    assert [row["o"] for row in first[1]] == [Literal(4)]
    assert cells(second.to_arrow()) == [(3, "5")]


def test_a_restart_keeps_what_was_reported(make_bench, tmp_path):
    bench = make_bench(data_dir=tmp_path)
    alerts = registered(bench, [("urn:a", 9), ("urn:b", 9)], key="user", report="change")
    push(bench, 50, ("a", 4), ("b", 5))
    bench.advance("s", 100)
    bench.reopen()
    alerts = bench.engine.query_sets["near"]
    assert alerts.report == "change"
    push(bench, 150, ("b", 6))
    bench.advance("s", 200)
    first, second = alerts.poll()
    assert sorted(cells(first.added)) == sorted(cells(first.to_arrow())) == [("urn:a", "4"), ("urn:b", "5")]
    assert (cells(second.added), len(second)) == ([("urn:b", "6")], 1)
    assert sorted(cells(second.to_arrow())) == [("urn:b", "5"), ("urn:b", "6")]


def test_keys_of_removed_members_live_as_long_as_their_steps(bench):
    alerts = registered(bench, [("urn:a-long-enough-name", 9)], key="user", report="every")
    push(bench, 50, ("a-long-enough-name", 4))
    bench.advance("s", 100)
    alerts.remove(["urn:a-long-enough-name"])
    for time in range(150, 40_000, 100):
        push(bench, time, (f"other-{time}", 4))
    gc.collect()
    (step, *_) = alerts.poll()
    assert step.members.to_pylist() == [{"user": "urn:a-long-enough-name"}]


def test_permanent_keys_are_marked_until_that_is_known():
    dictionary = native.Dictionary()
    keys = dictionary.intern_many([(1, f"urn:{i}", "", "") for i in range(4)])
    numbers = np.arange(1, 5, dtype=np.uint64)

    def marked(members: SetMembership, numbers: Any, tick: int) -> list[bool]:
        """Return which keys a sweep retains that drops the terms used before `tick`."""
        dictionary.set_tick(tick)
        assert members.touch_keys(dictionary, numbers)
        dictionary.sweep(tick)
        return [dictionary.find(1, f"urn:{i}", "", "") != 0 for i in range(4)]

    members = SetMembership(MemberColumns(numbers, (), (keys,)))
    assert marked(members, numbers[:3], 1) == [True, True, True, False]
    keys = dictionary.intern_many([(1, f"urn:{i}", "", "") for i in range(4)])
    dictionary.keep(keys[:2])
    members = SetMembership(MemberColumns(numbers, (), (keys,)))
    assert marked(members, None, 2) == [True] * 4
    assert marked(members, numbers[2:3], 3) == [True, True, True, False]
    dictionary.keep(keys[:3])
    members = SetMembership(MemberColumns(numbers[:3], (), (keys[:3],)))
    for tick in range(4, 8):
        assert marked(members, None, tick) == [True, True, True, False]
    assert not Membership([]).touch_keys(dictionary, None)


def test_terms_in_the_form_of_json_results(bench):
    rows = [
        {
            "user": {"type": "uri", "value": "urn:a"},
            "limit": {"type": "literal", "value": "5", "datatype": XSD_INTEGER},
        },
        {"user": {"type": "uri", "value": "urn:b"}, "limit": {"type": "literal", "value": "x", "xml:lang": "fr"}},
        {"user": {"type": "some", "value": "urn:c"}, "limit": 5},
        {"user": {"type": "uri", "value": "urn:d", "more": 1}, "limit": 5},
        {"user": {"type": "uri", "value": "\ud800"}, "limit": 5},
        {"user": {"type": "bnode", "value": "b"}, "limit": 5},
    ]
    alerts = registered(bench, rows, key="user")
    assert "urn:a" in alerts or URIRef("urn:a") in alerts
    assert len(alerts) == 2
    assert len(bench.engine.dead_letters()) == 4


def test_pages_of_members(bench, monkeypatch):
    watch = registered(bench, [("urn:a",), ("urn:b",)], WATCH)
    bench.advance("s", 100)
    watch.add([(f"urn:{n}",) for n in range(3)])  # a cohort of its own, with a later registration point
    watch.remove(["urn:b"])
    whole = watch.list_members()
    assert (whole.count, whole.next, [each.key for each in whole.members]) == (
        4,
        None,
        ["urn:a", "urn:0", "urn:1", "urn:2"],
    )
    first = watch.list_members(limit=3)
    assert [each.row for each in first.members] == [{"user": "urn:a"}, {"user": "urn:0"}, {"user": "urn:1"}]
    watch.remove(["urn:1"])
    watch.add(["urn:c"])
    rest = watch.list_members(after=first.next)
    assert ([each.key for each in rest.members], rest.count, rest.next) == (["urn:2", "urn:c"], 4, None)
    assert [each.key for each in watch.list_members(key="urn:2").members] == ["urn:2"]
    assert watch.list_members(key="urn:1").members == []
    with pytest.raises(DataError, match="MAX_LISTED"):
        watch.list_members(10_001)
    other = bench.engine.register_set(WATCH.replace("watch", "other"))
    with pytest.raises(ConflictError, match="begin with the first page"):
        other.list_members(after=first.next)


def test_rows_of_listed_members_can_be_added_again(bench):
    values = [5, -7, 0, True, 2.5, "text", Literal("fr", lang="fr"), Literal("05", datatype=URIRef(XSD_INTEGER))]
    values += [10**30, Decimal("1.50"), datetime.date(2026, 11, 28), URIRef("urn:iri")]
    near = registered(bench, [{"user": "urn:a", "limit": value, "id": n} for n, value in enumerate(values)], key="id")
    assert bench.engine.dead_letters() == []
    found = near.list_members()
    assert [each.key for each in found.members] == [str(n) for n in range(len(values))]
    rows = json.loads(json.dumps([each.row for each in found.members]))
    assert [row["limit"] for row in rows[:4]] == [5, -7, 0, True]
    assert [(row["user"], row["id"]) for row in rows] == [("urn:a", n) for n in range(len(values))]
    for row in rows:  # one by one, because a column of several types has terms only
        assert near.add([row]).unchanged == 1
    assert near.add(rows).unchanged == len(rows)


def test_keys_of_listed_members_identify_them(bench):
    keys = [("urn:a", 7), ("urn:b", -7)]
    near = registered(bench, keys)
    assert [each.key for each in near.list_members().members] == ['["urn:a", 7]', '["urn:b", -7]']
    assert [each.key for each in near.list_members(key=("urn:b", -7)).members] == ['["urn:b", -7]']
