"""Standing queries that an engine registers without parsing and planning their texts (docs/adr/0088-prepared-texts.md)."""

from __future__ import annotations

import pytest

import penstock
from support.bench import rows

TEXT = (
    "REGISTER QUERY {0} AS PREFIX : <urn:> SELECT ?o FROM STREAM <urn:s> [RANGE 100ms STEP 100ms]"
    " WHERE {{ :{1} :p ?o FILTER(?o < {2}) }}"
)


@pytest.fixture
def engine(bench):
    bench.declare("s", timing="all")
    for i in range(2):
        bench.engine.register(TEXT.format(f"q{i}", f"v{i}", 100))
    return bench.engine


def without_parser(monkeypatch) -> None:
    monkeypatch.setattr("penstock.engine.oneshot.texts.parse", None)
    monkeypatch.setattr("penstock.engine.standing.groups.make_plan", None)


def pushed(bench, *values: tuple[str, int]) -> dict[str, list[str]]:
    for who, value in values:
        data = f'<urn:{who}> <urn:p> "{value}"^^<http://www.w3.org/2001/XMLSchema#integer> .'
        bench.engine.push("urn:s", data, timestamp=50)
    bench.advance("s", 100)
    return {e.query: rows(e.answer) for e in bench.engine.poll()}


def test_the_third_text_of_a_pattern_is_neither_parsed_nor_planned(bench, engine, monkeypatch):
    without_parser(monkeypatch)
    query = engine.register(TEXT.format("third", "v7", 5))
    engine.register(TEXT.format("fourth-1", "v7", 50))
    engine.register(TEXT.format("ignored", "v8", 50), name="urn:own")
    bench.advance("s", 0)
    assert pushed(bench, ("v0", 1), ("v7", 4), ("v7", 40), ("v8", 9)) == {
        "q0": ["1"], "q1": [], "third": ["4"], "fourth-1": ["4", "40"], "urn:own": ["9"],
    }  # fmt: skip
    assert query is engine.queries["third"]
    assert (query.name, query.text, query.base) == ("third", TEXT.format("third", "v7", 5), None)
    assert (query.changes, query.warnings, query.stopped) == (False, (), False)
    assert len(list(engine._runtime.registry.groups)) == 1
    assert engine.stats()["queries"]["third"]["members"] == 5


def test_texts_without_a_name_get_one(bench, monkeypatch):
    bench.declare("s", timing="all")
    text = "SELECT ?o FROM STREAM <urn:s> [RANGE 100ms STEP 100ms] WHERE {{ <urn:v{}> <urn:p> ?o }}"
    for i in range(2):
        bench.engine.register(text.format(i))
    without_parser(monkeypatch)
    assert [bench.engine.register(text.format(i)).name for i in (2, 3)] == ["q3", "q4"]


def test_changes_have_a_group_of_their_own(bench, engine):
    queries = [engine.register(TEXT.format(f"c{i}", f"v{i}", 100), changes=True) for i in range(3)]
    assert [query.changes for query in queries] == [True] * 3
    assert [query.changes for query in engine.queries.values()] == [False, False, True, True, True]
    assert len(list(engine._runtime.registry.groups)) == 2
    bench.advance("s", 0)
    bench.push("s", 50, "v2 p x")
    bench.advance("s", 100)
    [evaluation] = queries[2].poll()
    assert len(evaluation.added) == 0


@pytest.mark.parametrize(
    ("name", "match", "column"),
    [("q1", "already a query named q1", 16), ("a", "a keyword cannot be a name", 16), ("Select", "keyword", 16)],
)
def test_errors_are_those_of_a_parsed_text(engine, name, match, column):
    with pytest.raises(penstock.QueryError, match=match) as caught:
        engine.register(TEXT.format(name, "v7", 5))
    assert (caught.value.line, caught.value.column) == (1, column)
    assert len(engine.queries) == 2


def test_a_limit_is_that_of_a_parsed_text(make_bench):
    bench = make_bench(limits=penstock.Limits(max_queries=3))
    bench.declare("s", timing="all")
    for i in range(3):
        bench.engine.register(TEXT.format(f"q{i}", f"v{i}", 100))
    with pytest.raises(penstock.LimitError, match="max_queries"):
        bench.engine.register(TEXT.format("q3", "v3", 100))
    bench.engine.queries["q1"].stop()
    bench.engine.register(TEXT.format("q3", "v3", 100))


def test_a_group_that_has_ended_is_made_again(bench, engine):
    for query in list(engine.queries.values()):
        query.stop()
    bench.engine.drop_stream("urn:s")
    with pytest.raises(penstock.QueryError, match="unknown stream"):
        engine.register(TEXT.format("q3", "v3", 100))
    bench.declare("s", timing="all")
    engine.register(TEXT.format("q4", "v4", 100))
    engine.register(TEXT.format("q5", "v5", 100))
    bench.advance("s", 0)
    assert pushed(bench, ("v5", 5)) == {"q4": [], "q5": ["5"]}


@pytest.mark.parametrize(
    "text",
    [
        "REGISTER QUERY q{0} AS SELECT ?o FROM STREAM <urn:s> [RANGE 100ms] FROM <urn:g> WHERE {{ <urn:v{0}> ?p ?o }}",
        (
            "REGISTER QUERY q{0} AS SELECT ?o FROM STREAM <urn:s> [RANGE 100ms]"
            " WHERE {{ <urn:v{0}> ?p ?o GRAPH <urn:g> {{ ?o ?q ?r }} }}"
        ),
        (
            "REGISTER STREAM <urn:d{0}> AS CONSTRUCT {{ ?s ?p ?o }} FROM STREAM <urn:s> [RANGE 100ms]"
            " WHERE {{ ?s ?p ?o . <urn:v{0}> ?p ?o }}"
        ),
        "REGISTER QUERY q{0} FROM BEGINNING AS SELECT ?o FROM STREAM <urn:s> [RANGE 100ms] WHERE {{ <urn:v{0}> ?p ?o }}",
        (
            'REGISTER QUERY q{0} STARTING AT "1970-01-01T00:00:01Z" AS SELECT ?o FROM STREAM <urn:s> [RANGE 100ms]'
            " WHERE {{ <urn:v{0}> ?p ?o }}"
        ),
        "SELECT ?o WHERE {{ <urn:v{0}> ?p ?o }}",
    ],
    ids=["a stored graph", "a graph in the pattern", "a published stream", "from beginning", "starting at", "one-shot"],
)
def test_texts_of_which_more_must_be_checked_are_parsed(bench, text):
    bench.declare("s", timing="all", retention_ms=10_000)
    bench.engine.update("INSERT DATA { GRAPH <urn:g> { <urn:x> <urn:p> 1 } }")
    for i in range(3):
        if "STREAM" in text:
            bench.engine.register(text.format(i))
        assert bench.engine._texts.bound_standing(text.format(i), None) is None


@pytest.mark.parametrize("durability", ["checkpoint", "commit"])
def test_they_survive_a_restart(make_bench, tmp_path, durability):
    bench = make_bench(data_dir=tmp_path / "data", durability=durability)
    bench.declare("s", timing="all")
    for i in range(5):
        bench.engine.register(TEXT.format(f"q{i}", f"v{i}", 100))
    bench.advance("s", 0)
    bench.reopen()
    bench.engine.register(TEXT.format("q5", "v5", 100))
    bench.engine.queries["q1"].stop()
    bench.reopen()
    assert pushed(bench, ("v3", 3), ("v5", 5)) == {"q0": [], "q2": [], "q3": ["3"], "q4": [], "q5": ["5"]}
