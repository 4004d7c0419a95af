"""What can be registered, under which name, from when on."""

from __future__ import annotations

import pytest

import penstock
from penstock import QueryError
from support.bench import text, timeline


def test_a_query_gets_the_name_that_is_given_or_its_texts_or_a_made_one(bench):
    bench.declare("s")
    assert bench.engine.register(text(header="REGISTER QUERY own AS"), name="given").name == "given"
    assert bench.engine.register(text(header="REGISTER QUERY own AS")).name == "own"
    assert bench.engine.register(text()).name == "q1"
    assert bench.engine.register(text()).name == "q2"
    assert list(bench.engine.queries) == ["given", "own", "q1", "q2"]


def test_a_name_is_taken_until_its_query_stops(bench):
    bench.declare("s")
    query = bench.engine.register(text(), name="q")
    with pytest.raises(QueryError, match="already a query named q"):
        bench.engine.register(text(), name="q")
    query.stop()
    assert bench.engine.queries == {}
    bench.engine.register(text(), name="q")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * WHERE { ?s ?p ?o }", "Engine.query"),
        ("REGISTER QUERY q AS SELECT * WHERE { ?s ?p ?o }", "window"),
        ("INSERT DATA { <urn:a> <urn:b> <urn:c> }", "update"),
        (text("?s ?p ?o", "unknown RANGE 1s"), "unknown stream <urn:unknown>"),
        (text("GRAPH <urn:g> { ?s ?p ?o }"), "unknown graph <urn:g>"),
        (text("?s ?p ?o", "s RANGE 1s", "t TRIPLES 5"), "count"),
        ("SELECT", "line 1"),
    ],
)
def test_what_cannot_be_a_standing_query_is_refused_and_changes_nothing(bench, query, message):
    bench.declare("s", "t")
    with pytest.raises(QueryError, match=message):
        bench.engine.register(query)
    assert bench.engine.queries == {}
    assert bench.engine.stats()["groups"] == 0


def test_a_continuous_query_is_not_asked_and_an_update_is_no_query(bench):
    bench.declare("s")
    with pytest.raises(QueryError, match=r"Engine\.register"):
        bench.engine.query(text())
    with pytest.raises(QueryError, match=r"Engine\.update"):
        bench.engine.query("INSERT DATA { <urn:a> <urn:b> <urn:c> }")
    with pytest.raises(QueryError, match=r"Engine\.query"):
        bench.engine.update("SELECT * WHERE { ?s ?p ?o }")


def test_there_is_a_bound_on_queries_windows_and_streams(make_bench):
    bench = make_bench(limits=penstock.Limits(max_queries=1, max_windows=1, max_streams=2))
    bench.declare("s", "t")
    with pytest.raises(penstock.LimitError, match="max_streams"):
        bench.declare("u")
    with pytest.raises(QueryError, match="max_windows"):
        bench.register("?s ?p ?o", "s RANGE 1s", "t RANGE 1s")
    bench.register()
    with pytest.raises(penstock.LimitError, match="max_queries"):
        bench.register()


def test_a_graph_exists_once_it_is_loaded_or_a_stream_absorbs_into_it(bench):
    bench.declare("s", absorb_into="urn:absorbed")
    bench.engine.load(b"<urn:a> <urn:b> <urn:c> .", graph="urn:loaded", format="nt")
    for graph in ("absorbed", "loaded"):
        bench.register(f"GRAPH <urn:{graph}> {{ ?s ?p ?o }}")


# ---- the registration point
def test_the_point_is_the_latest_closed_boundary_of_the_querys_streams(bench):
    bench.declare("s")
    bench.declare("t", batch_ms=30)
    bench.advance("s", 250)
    bench.advance("t", 130)
    assert bench.register().registration_point == 200
    assert bench.register("?s ?p ?o", "t RANGE 1s").registration_point == 120
    assert bench.register("?s ?p ?o", "s RANGE 1s", "t RANGE 1s").registration_point == 200


def test_without_progress_the_point_is_the_start_of_the_first_tuples_batch(bench):
    bench.declare("s", lateness_ms=500)
    query = bench.register("?s ?p ?o", "s RANGE 300ms")
    assert query.registration_point is None
    bench.push("s", 550, "a p b")
    assert query.registration_point == 500
    bench.push("s", 450, "early p b")
    bench.advance("s", 900)
    assert timeline(query) == {600: [("a", "p", "b")], 900: []}


def test_without_progress_an_advance_gives_the_point(bench):
    bench.declare("s")
    query = bench.register("?s ?p ?o", "s RANGE 100ms")
    bench.advance("s", 250)
    assert query.registration_point == 250
    bench.push("s", 260, "a p b")
    bench.advance("s", 300)
    assert timeline(query) == {300: [("a", "p", "b")]}


def test_a_late_or_refused_event_gives_no_point(bench):
    bench.declare("s", "t")
    query = bench.register("?s ?p ?o", "s RANGE 1s", "t RANGE 1s")
    with pytest.raises(penstock.DataError):
        bench.push("s", 10**12, "a p b")
    assert query.registration_point is None


def test_an_event_without_triples_gives_a_point_and_moves_time(bench):
    bench.declare("s")
    query = bench.register("?s ?p ?o", "s RANGE 100ms")
    bench.push("s", 501)
    assert query.registration_point == 500
    bench.push("s", 701)
    assert list(timeline(query)) == [600, 700]


def test_a_partial_first_window_is_reported_with_its_nominal_bounds(bench):
    bench.declare("s")
    bench.push("s", 450, "before p b")
    bench.advance("s", 500)
    query = bench.register("?s ?p ?o", "s RANGE 1s STEP 200ms")
    bench.push("s", 550, "after p b")
    bench.advance("s", 600)
    (evaluation,) = query.poll()
    assert evaluation.windows == {"urn:s": (-400, 600)}
    assert len(evaluation.answer) == 1


def test_starting_at_sets_the_grid(bench):
    bench.declare("s")
    header = "REGISTER QUERY q STARTING AT 1050 AS"
    query = bench.register("?s ?p ?o", "s RANGE 300ms", header=header)
    bench.push("s", 10, "a p b")
    bench.advance("s", 1700)
    assert list(timeline(query)) == [1050, 1350, 1650]


def test_computed_every_replaces_the_steps(bench):
    bench.declare("s", "t")
    header = "REGISTER QUERY q COMPUTED EVERY 500ms AS"
    query = bench.register("?s ?p ?o", "s RANGE 1s STEP 100ms", "t RANGE 1s STEP 300ms", header=header)
    bench.advance(None, 0)
    bench.advance(None, 1000)
    assert list(timeline(query)) == [500, 1000]


# ---- explain
def test_explain_shows_operators_estimates_and_after_a_run_what_it_did(bench):
    bench.declare("s")
    plan = bench.engine.explain(text("?s :p ?o"))
    assert "scan" in plan
    assert "est." in plan
    assert "actual" not in plan
    query = bench.register("?s :p ?o")
    bench.advance("s", 0)
    bench.advance("s", 1000)
    assert "actual" in bench.engine.explain(query)
    assert "actual" in bench.engine.explain(text("?s :p ?o"))
    one_shot = "SELECT * WHERE { ?s <urn:p> ?o }"
    assert "actual" not in bench.engine.explain(one_shot)
    bench.engine.query(one_shot)
    assert "actual" in bench.engine.explain(one_shot)
    assert list(bench.engine.queries) == ["q1"]
