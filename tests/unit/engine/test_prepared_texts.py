"""Texts that an engine answers without parsing and planning them (docs/adr/0088-prepared-texts.md)."""

from __future__ import annotations

import pytest

import penstock
from penstock.engine.oneshot import generic_plans
from penstock.errors import QueryError


@pytest.fixture
def engine():
    with penstock.Engine() as made:
        made.update(
            "INSERT DATA { " + " . ".join(f"<urn:s{i}> <urn:p> {i} ; <urn:q> <urn:s{i + 1}>" for i in range(20)) + " }"
        )
        yield made


def values(answer) -> list[int]:
    return sorted(int(value) for row in answer for value in row.values())


def without_parser(monkeypatch) -> None:
    monkeypatch.setattr("penstock.engine.oneshot.texts.parse", None)
    monkeypatch.setattr(generic_plans, "make_plan", None)


def test_the_fourth_text_of_a_pattern_is_neither_parsed_nor_planned(engine, monkeypatch) -> None:
    text = "SELECT ?o {{ <urn:s{0}> <urn:p> ?o FILTER(?o < {1}) }}"
    for i in range(3):
        assert values(engine.query(text.format(i, 100))) == [i]
    without_parser(monkeypatch)
    assert values(engine.query(text.format(7, 100))) == [7]
    assert values(engine.query(text.format(7, 5))) == []
    assert values(engine.query(text.format("-none", 5))) == []


def test_an_aggregate_without_rows_still_has_its_row(engine, monkeypatch) -> None:
    text = "SELECT (COUNT(*) AS ?n) {{ <urn:s{}> <urn:q>/<urn:p> ?o }}"
    for i in range(3):
        assert values(engine.query(text.format(i))) == [1]
    without_parser(monkeypatch)
    assert values(engine.query(text.format("-none"))) == [0]


def test_ask_and_construct_are_prepared_too(engine, monkeypatch) -> None:
    ask, construct = "ASK {{ <urn:s{}> ?p ?o }}", "CONSTRUCT {{ ?o a <urn:C> }} WHERE {{ <urn:s{}> <urn:q> ?o }}"
    for i in range(3):
        assert engine.query(ask.format(i)) is True
        assert len(engine.query(construct.format(i))) == 1
    without_parser(monkeypatch)
    assert engine.query(ask.format(9)) is True
    assert engine.query(ask.format("-none")) is False
    assert [str(s) for s, _, _ in engine.query(construct.format(9))] == ["urn:s10"]


def test_updates_change_what_their_own_constants_name(engine, monkeypatch) -> None:
    text = "DELETE {{ <urn:s{0}> <urn:p> ?o }} INSERT {{ <urn:s{0}> <urn:p> {1} }} WHERE {{ <urn:s{0}> <urn:p> ?o }}"
    data = "INSERT DATA {{ <urn:s{}> <urn:p> {} }}"
    for i in range(3):
        engine.update(text.format(i, 100 + i))
        engine.update(data.format(i, 200 + i))
    without_parser(monkeypatch)
    report = engine.update(text.format(7, 107))
    assert (report.removed, report.added) == (1, 1)
    engine.update(text.format("-none", 5))
    engine.update(data.format(8, 208))
    monkeypatch.undo()
    assert values(engine.query("SELECT ?o { VALUES ?s { <urn:s6> <urn:s7> <urn:s8> } ?s <urn:p> ?o }")) == [
        6,
        8,
        107,
        208,
    ]


def test_a_constant_with_many_neighbours_gets_a_plan_of_its_own(engine, monkeypatch) -> None:
    many = " . ".join(f"<urn:hub> <urn:q> <urn:s{i}>" for i in range(2_000))
    engine.update(f"INSERT DATA {{ {many} }}")
    text = "SELECT ?o {{ <urn:{}> <urn:q> ?x . ?x <urn:p> ?o }}"
    for i in range(3):
        engine.query(text.format(f"s{i}"))
    planned = []
    made = generic_plans.make_plan
    monkeypatch.setattr(generic_plans, "make_plan", lambda *a, **k: planned.append(k["sample"]) or made(*a, **k))
    assert values(engine.query(text.format("s9"))) == [10]
    assert not planned
    assert len(engine.query(text.format("hub"))) == 20
    assert [constant.value for (constant,) in planned] == ["urn:hub"]


def test_the_position_of_an_error_is_one_of_the_text_itself(engine) -> None:
    text = "SELECT * {{ ?s ?p {} FILTER(<urn:none>(?s)) }}"
    for i in (1, 20, 300, 4_000):
        with pytest.raises(QueryError) as found:
            engine.query(text.format(i))
        assert found.value.column == text.format(i).index("<urn:none>") + 1


def test_explain_of_a_text_that_was_asked_once_shows_its_plan(engine) -> None:
    text = "SELECT ?o {{ <urn:s{}> <urn:p> ?o }}"
    for i in range(4):
        engine.query(text.format(i))
    assert "<urn:p>" in engine.explain(text.format(3))
