"""Updates that the core binds, evaluates and commits in one call (docs/adr/0088-prepared-texts.md)."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import penstock
from penstock.engine.oneshot import generic_plans
from penstock.engine.oneshot.asked_query import REPLAN_EVERY
from penstock.engine.oneshot.normalization import LONGEST
from penstock.engine.oneshot.updating import UpdateRun
from penstock.errors import LimitError, QueryError

if TYPE_CHECKING:
    from pathlib import Path

MOVE = "DELETE {{ <urn:s{0}> <urn:p> ?o }} INSERT {{ <urn:s{0}> <urn:was> ?o }} WHERE {{ <urn:s{0}> <urn:p> ?o }}"
BEFORE = 3  # executions of a pattern before its update is compiled


def make(**options) -> penstock.Engine:
    engine = penstock.Engine(**options)
    triples = (f"<urn:s{i}> <urn:p> {i} ; <urn:q> <urn:s{i + 1}> ; <urn:name> 'n{i}'" for i in range(200))
    engine.update("INSERT DATA { " + " . ".join(triples) + " }")
    return engine


@pytest.fixture
def engine():
    with make() as made:
        yield made


def rows(engine: penstock.Engine, pattern: str) -> list[tuple[str, ...]]:
    return sorted(tuple(map(str, row.values())) for row in engine.query(f"SELECT * {{ {pattern} }}"))


def only_compiled(monkeypatch) -> None:
    """From now on, updates that are not compiled fail."""
    monkeypatch.setattr(UpdateRun, "evaluate", None)


@pytest.mark.parametrize(
    ("text", "constants", "expected"),
    [
        (MOVE, (7,), [("urn:s7", "urn:was", "7")]),
        (
            "PREFIX u: <urn:> DELETE {{ u:s{0} u:p ?o }} INSERT {{ u:s{0} u:was {1} }} WHERE {{ u:s{0} u:p ?o }}",
            (7, 70),
            [("urn:s7", "urn:was", "70")],
        ),
        (
            "INSERT {{ ?s <urn:was> '{0}' }} WHERE {{ ?s <urn:name> ?n FILTER(?n = 'n{1}') }}",
            ("a longer text", 8),
            [("urn:s8", "urn:was", "a longer text")],
        ),
        (
            "INSERT {{ <urn:s{0}> <urn:was> '{1}'@en }} WHERE {{ <urn:s{0}> <urn:p> {0} }}",
            (9, "nine"),
            [("urn:s9", "urn:was", "nine")],
        ),
        (
            "INSERT {{ <urn:s{0}> <urn:was> ?x }} WHERE {{ <urn:s{0}> <urn:name> ?n BIND(CONCAT(?n, ' of ten people') AS ?x) }}",
            (9,),
            [("urn:s9", "urn:was", "n9 of ten people")],
        ),
        (
            "INSERT {{ <urn:s{0}> <urn:was> ?x }} WHERE {{ <urn:s{0}> <urn:name> ?n BIND(MD5(?n) AS ?x) }}",
            (1,),
            [("urn:s1", "urn:was", "8c7af6ea21a7a99a5b7c8a7e0a6a0f01")],
        ),
        ("DELETE {{ <urn:s{0}> <urn:was> ?o }} WHERE {{ <urn:s{0}> <urn:p> ?o }}", (7,), []),
        ("INSERT {{ ?o <urn:was> <urn:s{0}> }} WHERE {{ <urn:s{0}> <urn:p> ?o }}", (7,), []),  # not RDF
        ("DELETE WHERE {{ <urn:s{0}> <urn:q> <urn:s{1}> }}", (7, 8), []),
    ],
)
def test_a_later_text_is_executed_by_the_core(engine, monkeypatch, text, constants, expected) -> None:
    for i in range(BEFORE):
        engine.update(text.format(*[100 + i for _ in constants]))
    engine.update("DELETE WHERE { ?s <urn:was> ?o }")
    before = engine.stats()["triples"]
    only_compiled(monkeypatch)
    report = engine.update(text.format(*constants))
    assert engine.stats()["triples"] == before + report.added - report.removed
    found = rows(engine, "?s ?p ?o FILTER(?p = <urn:was>)")
    if "MD5" in text:
        found, expected = [row[:2] for row in found], [row[:2] for row in expected]
    assert found == expected


def test_the_report_counts_changes(engine, monkeypatch) -> None:
    for i in range(BEFORE):
        engine.update(MOVE.format(i))
    only_compiled(monkeypatch)
    assert engine.update(MOVE.format(7)) == penstock.UpdateReport(1, 1)
    assert engine.update(MOVE.format(7)) == penstock.UpdateReport(0, 0)
    assert engine.update(MOVE.format("-none")) == penstock.UpdateReport(0, 0)
    again = "INSERT {{ <urn:s{0}> <urn:p> ?o }} WHERE {{ <urn:s{0}> <urn:p> ?o }}"
    monkeypatch.undo()
    for i in range(10, 10 + BEFORE):
        engine.update(again.format(i))
    only_compiled(monkeypatch)
    assert engine.update(again.format(20)) == penstock.UpdateReport(0, 0)


def test_named_graphs_and_new_terms(engine, monkeypatch) -> None:
    text = "INSERT {{ GRAPH <urn:g> {{ <urn:new{0}> <urn:p> ?o }} }} WHERE {{ <urn:s{0}> <urn:p> ?o }}"
    for i in range(BEFORE):
        engine.update(text.format(i))
    only_compiled(monkeypatch)
    engine.update(text.format(7))
    assert rows(engine, "GRAPH <urn:g> { <urn:new7> <urn:p> ?o }") == [("7",)]


def test_texts_that_differ_in_a_predicate_have_updates_of_their_own(engine, monkeypatch) -> None:
    text = "DELETE {{ <urn:s{0}> <urn:{1}> ?o }} WHERE {{ <urn:s{0}> <urn:{1}> ?o }}"
    for i in range(BEFORE):
        engine.update(text.format(i, "p"))
        engine.update(text.format(i, "q"))
    engine.update(text.format(9, "q"))
    engine.update(text.format(9, "p"))
    only_compiled(monkeypatch)
    engine.update(text.format(7, "p"))
    engine.update(text.format(8, "q"))
    assert len(rows(engine, "<urn:s7> ?p ?o")) == 2
    assert rows(engine, "<urn:s8> <urn:q> ?o") == []
    assert len(rows(engine, "<urn:s8> ?p ?o")) == 2


def test_the_statistics_are_checked_regularly(engine, monkeypatch) -> None:
    evaluated, checked = [], []
    evaluate, holds = UpdateRun.evaluate, generic_plans.AskedQuery.holds
    monkeypatch.setattr(UpdateRun, "evaluate", lambda run: evaluated.append(run.update.text) or evaluate(run))

    def held(asked, core, streams, view, number=None):
        found = holds(asked, core, streams, view, number)
        checked.append(asked.uses % REPLAN_EVERY)
        return found

    monkeypatch.setattr(generic_plans.AskedQuery, "holds", held)
    for i in range(2 * REPLAN_EVERY + BEFORE):
        engine.update(MOVE.format(i))
    assert len(evaluated) == BEFORE + 2
    assert checked[-2:] == [0, 0]
    assert len(rows(engine, "?s <urn:was> ?o")) == 2 * REPLAN_EVERY + BEFORE


def test_a_constant_with_many_neighbours_gets_a_plan_of_its_own(engine, monkeypatch) -> None:
    many = " . ".join(f"<urn:hub> <urn:q> <urn:s{i}>" for i in range(150))
    engine.update(f"INSERT DATA {{ {many} . {many.replace('urn:s', 'urn:t')} . {many.replace('urn:s', 'urn:u')} }}")
    text = "INSERT {{ <urn:{0}> <urn:r> ?o }} WHERE {{ <urn:{0}> <urn:q> ?x . ?x <urn:p> ?o }}"
    for i in range(BEFORE):
        engine.update(text.format(f"s{i}"))
    planned = []
    made = generic_plans.make_plan
    monkeypatch.setattr(generic_plans, "make_plan", lambda *a, **k: planned.append(k["sample"]) or made(*a, **k))
    engine.update(text.format("s9"))
    assert not planned
    assert engine.update(text.format("hub")).added == 150
    assert len(planned) == 1


def test_a_limit_ends_an_update_without_a_change() -> None:
    with make(limits=penstock.Limits(query_timeout_s=0.05)) as engine:
        text = (
            "INSERT {{ <urn:s{0}> <urn:r> ?n }} WHERE {{ <urn:s{0}> <urn:p> ?o . "
            "{{ SELECT (COUNT(*) AS ?n) {{ ?a ?b ?c . ?d ?e ?f . ?g ?h ?i FILTER(?c + ?f + ?i > {1}) }} }} }}"
        )
        before = engine.stats()["triples"]
        for i in range(BEFORE + 2):
            with pytest.raises(LimitError, match="time limit"):
                engine.update(text.format(i, i))
        assert engine.stats()["triples"] == before
        assert engine.update(MOVE.format(1)) == penstock.UpdateReport(1, 1)


def test_the_memory_limit_holds_in_the_core(monkeypatch) -> None:
    with make(limits=penstock.Limits(evaluation_memory_mb=1)) as engine:
        text = "INSERT {{ ?a <urn:r> ?d }} WHERE {{ <urn:{0}> <urn:member> ?a , ?d }}"
        engine.update(
            "INSERT DATA { " + " ".join(f"<urn:g{i}> <urn:member> <urn:s{i}> ." for i in range(BEFORE)) + " }"
        )
        engine.update("INSERT DATA { " + " ".join(f"<urn:many> <urn:member> <urn:m{i}> ." for i in range(250)) + " }")
        for i in range(BEFORE):
            engine.update(text.format(f"g{i}"))
        before = engine.stats()["triples"]
        only_compiled(monkeypatch)
        with pytest.raises(LimitError, match="memory limit"):
            engine.update(text.format("many"))
        assert engine.stats()["triples"] == before


def test_unused_updates_are_evicted(monkeypatch) -> None:
    with make(limits=penstock.Limits(text_cache=2)) as engine:
        texts = [MOVE.replace("urn:was", f"urn:was{i}") for i in range(4)]
        for turn in range(5):
            for number, text in enumerate(texts):
                for i in range(BEFORE):
                    engine.update(text.format(20 * turn + 4 * i + number))
        only_compiled(monkeypatch)
        engine.update(texts[-1].format(150))
        assert len(rows(engine, "?s ?p ?o FILTER(STRSTARTS(STR(?p), 'urn:was'))")) == 61


def test_texts_that_cannot_be_normalized_are_parsed(engine) -> None:
    for i in range(BEFORE + 1):
        engine.update(MOVE.format(i))
    assert engine.update(MOVE.format(9) + " # a comment").added == 1
    assert engine.update(MOVE.format(10) + " " * LONGEST).added == 1
    with pytest.raises(QueryError):
        engine.update(MOVE.format("\ud800"))
    with pytest.raises(QueryError):
        engine.update(MOVE.format(9) + " }")


def test_a_log_receives_the_quads(tmp_path: Path) -> None:
    engine = make(data_dir=tmp_path / "data", durability="commit")
    for i in range(20):
        engine.update(MOVE.format(i))
    shutil.copytree(tmp_path / "data", tmp_path / "crashed")
    engine.close()
    with penstock.Engine(data_dir=tmp_path / "crashed", durability="commit") as again:
        assert len(rows(again, "?s <urn:was> ?o")) == 20


def test_standing_queries_see_the_changes(engine) -> None:
    engine.declare_stream("urn:stream", batch_ms=1_000, timing="all")
    query = engine.register(
        "REGISTER QUERY counted AS SELECT (COUNT(*) AS ?n) FROM <urn:x-penstock:stored> "
        "FROM STREAM <urn:stream> [RANGE 1s STEP 1s] "
        "WHERE { ?s <urn:was> ?o }"
    )
    engine.advance(None, 1_000)
    for i in range(BEFORE + 5):
        engine.update(MOVE.format(i))
    engine.advance(None, 2_000)
    assert [str(row["n"]) for row in query.poll()[-1].answer] == [str(BEFORE + 5)]
