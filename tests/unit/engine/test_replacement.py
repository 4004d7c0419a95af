"""The replacement of a standing query's text under its name (docs/semantics.md §3)."""

from __future__ import annotations

import pytest

import penstock
import penstock.engine.engine as engine_module
from penstock import LimitError, QueryError
from penstock.errors import UnavailableError

S, T = "urn:s", "urn:t"
OLD = "REGISTER QUERY q AS SELECT ?o FROM STREAM <urn:s> [RANGE 300ms STEP 100ms] WHERE { ?s ?p ?o }"


def text(
    window: str = "RANGE 300ms STEP 100ms", stream: str = S, operator: str = "QUERY", where: str = "?s ?p ?o"
) -> str:
    return f"REGISTER {operator} q AS SELECT ?s ?o FROM STREAM <{stream}> [{window}] WHERE {{ {where} }}"


def make(until: int = 1000, **settings: object) -> penstock.Engine:
    """An engine with an event every 50 ms up to `until`, at 25 ms, 75 ms and so on, in each of two streams."""
    engine = penstock.Engine(clock=lambda: 0, **settings)
    for iri in (S, T):
        engine.declare_stream(iri, timing="all")
    engine.register(OLD)
    feed(engine, 0, until)
    return engine


def feed(engine: penstock.Engine, begin: int, until: int, streams: tuple[str, ...] = (S, T)) -> None:
    for time in range(begin + 25, until, 50):
        for iri in streams:
            engine.push(iri, f"<urn:a> <urn:p> <urn:o{time}> .", time)
    for iri in streams:
        engine.advance(iri, until)


def found(query: penstock.Query) -> list[tuple[int, int]]:
    return [(evaluation.time, len(evaluation.answer)) for evaluation in query.poll()]


@pytest.mark.parametrize("reached", [1000, 3000])
@pytest.mark.parametrize("waits_first", [True, False])
def test_a_query_that_waits_for_a_stream_begins_beside_one_that_has_replaced_another(reached, waits_first):
    """Both have the same registration point. With 3000, the replacing text goes on after its earlier text."""
    later = "AS SELECT ?s FROM STREAM <urn:t> [RANGE 3s STEP 1s] WHERE { ?s ?p ?o }"
    with penstock.Engine() as engine:
        for iri in (S, T):
            engine.declare_stream(iri, timing="all")
        engine.register("REGISTER QUERY q AS SELECT ?s FROM STREAM <urn:s> [RANGE 1s STEP 1s] WHERE { ?s ?p ?o }")
        for time in range(1000, reached + 1, 1000):
            engine.advance(S, time)
        texts = [f"REGISTER QUERY new {later}", f"REGISTER QUERY q {later}"]
        for made in texts if waits_first else reversed(texts):
            engine.register(made, replace="QUERY q" in made)
        engine.advance(T, 1000)
        engine.push(T, "<urn:a> <urn:p> <urn:o> .", 3500)
        engine.advance(T, 4000)
        assert found(engine.queries["new"]) == [(2000, 0), (3000, 0), (4000, 1)]
        after = [evaluation.time for evaluation in engine.queries["q"].poll()]
        assert [time for time in after if time > reached] == [t for t in (2000, 3000, 4000) if t > reached]


def test_the_old_text_answers_until_the_replacement_and_the_new_one_from_the_next_instant_on():
    with make(500) as engine:
        query = engine.queries["q"]
        new = engine.register(text("RANGE 200ms STEP 50ms"), replace=True)
        assert new is query
        assert query.text == text("RANGE 200ms STEP 50ms")
        feed(engine, 500, 600)
        evaluations = query.poll()
        assert [e.time for e in evaluations] == [100, 200, 300, 400, 500, 550, 600]
        assert [len(e.answer) for e in evaluations] == [2, 4, 6, 6, 6, 4, 4]
        assert [set(e.answer.variables) for e in evaluations][-3:] == [{"o"}, {"s", "o"}, {"s", "o"}]
        assert not query.gaps


def test_windows_are_complete_as_far_as_the_earlier_text_has_retained_them():
    with make() as engine:
        query = engine.register(text("RANGE 400ms STEP 100ms"), replace=True)
        assert query.registration_point == 800  # the earlier text has kept (800, 1000] for its next instant
        query.poll()
        feed(engine, 1000, 1300)
        assert found(query) == [(1100, 6), (1200, 8), (1300, 8)]


def test_the_registration_point_stays_if_no_window_reads_released_tuples():
    with make() as engine:
        query = engine.register(text("RANGE 100ms STEP 100ms"), replace=True)
        assert query.registration_point == 0


def test_the_same_text_is_no_replacement():
    with make() as engine:
        query = engine.queries["q"]
        assert engine.register(OLD, replace=True) is query
        assert query.registration_point == 0
        with pytest.raises(QueryError, match="already a query named q"):
            engine.register(OLD)


def test_without_an_earlier_text_the_option_registers():
    with make() as engine:
        query = engine.register(OLD, name="other", replace=True)
        assert query is not engine.queries["q"]
        assert query.registration_point == 1000


def test_subscribers_receive_the_answers_of_both_texts():
    with make(200) as engine:
        times = []
        engine.queries["q"].subscribe(lambda evaluation: times.append(evaluation.time))
        engine.register(text("RANGE 100ms STEP 50ms"), replace=True)
        feed(engine, 200, 300)
        assert times == [100, 200, 250, 300]


def test_a_text_that_waits_for_fewer_streams_goes_on_where_the_earlier_one_has_stopped():
    with make(500) as engine:
        both = (
            "REGISTER QUERY q AS SELECT ?o FROM STREAM <urn:s> [RANGE 300ms STEP 100ms]"
            " FROM STREAM <urn:t> [RANGE 100ms STEP 100ms] WHERE { ?s ?p ?o }"
        )
        query = engine.register(both, replace=True)
        feed(engine, 500, 1000, (S,))
        assert [e.time for e in query.poll()] == [100, 200, 300, 400, 500]
        engine.register(OLD, replace=True)
        assert found(query) == [(600, 6), (700, 6), (800, 6), (900, 6), (1000, 6)]
        feed(engine, 500, 1100, (T,))
        feed(engine, 1000, 1100, (S,))
        assert found(query) == [(1100, 6)]


@pytest.mark.parametrize("graph", ["", "FROM <urn:x-penstock:stored> "])
def test_a_finer_text_reads_the_stored_graph_as_of_instants_before_the_next_one_of_the_earlier_text(graph):
    """One stream lags; the other one, which absorbs, is ahead of the next instant of the earlier text."""
    streams = "FROM STREAM <urn:s> [RANGE {0}ms STEP {0}ms] FROM STREAM <urn:t> [RANGE {0}ms STEP {0}ms] "
    query = "REGISTER QUERY q AS SELECT ?o " + streams + graph + "WHERE {{ ?s <urn:p> ?o }}"
    with penstock.Engine(clock=lambda: 0) as engine:
        engine.declare_stream(S, timing="all")
        engine.declare_stream(T, timing=("urn:never",))
        held = engine.register(query.format(500))
        feed(engine, 0, 500)
        feed(engine, 500, 1200, (T,))
        engine.register(query.format(100), replace=True)
        held.poll()
        feed(engine, 500, 800, (S,))
        # a window has two events, the stored graph one in 50 ms
        assert found(held) == [(t, t // 50 if graph else 2) for t in (600, 700, 800)]
        assert not held.gaps


def test_a_text_that_reads_another_stream_which_is_ahead_begins_there_and_has_a_gap():
    with make(500) as engine:
        feed(engine, 500, 800, (T,))
        query = engine.register(text(stream=T), replace=True)
        assert query.registration_point == 800
        assert [(gap.after, gap.until, gap.count) for gap in query.gaps] == [(500, 800, 3)]
        feed(engine, 800, 1000, (T,))
        assert found(query)[5:] == [(900, 2), (1000, 4)]


def test_count_windows_count_from_the_replacement():
    with make(500) as engine:
        query = engine.register(text("TRIPLES 4 STEP 2"), replace=True)
        feed(engine, 500, 700)
        assert found(query)[5:] == [(575, 2), (675, 4)]
        engine.register(text("TRIPLES 2 STEP 1"), replace=True)
        feed(engine, 700, 800)
        assert found(query) == [(725, 1), (775, 2)]
        engine.register(OLD, replace=True)
        feed(engine, 800, 1000)
        assert found(query) == [(900, 2), (1000, 4)]


def test_the_first_answer_of_the_new_text_is_relative_to_the_empty_one():
    istream = "REGISTER ISTREAM q AS SELECT ?o FROM STREAM <urn:s> [RANGE 300ms STEP 100ms] WHERE {{ ?s {} ?o }}"
    with make(500) as engine:
        engine.register(istream.format("?p"), name="other")
        for name in ("q", "other"):
            query = engine.register(istream.format("<urn:p>"), name, replace=True)
        feed(engine, 500, 600)
        assert found(query)[-1] == (600, 2)
        for constant, seen in (("<urn:none>", 0), ("<urn:p>", 6)):  # the same plan: only constants differ
            engine.register(istream.format(constant), name="other", replace=True)
            feed(engine, 600 if not seen else 700, 700 if not seen else 800)
            assert found(query)[-1][1] == seen


def test_the_first_evaluation_of_a_text_has_all_rows_as_added():
    with make(500) as engine:
        query = engine.register(text(), name="c", changes=True)
        feed(engine, 500, 700)
        engine.register(text(where="?s <urn:p> ?o"), name="c", changes=True, replace=True)
        feed(engine, 700, 900)
        found = [(e.time, e.complete, len(e.added), len(e.removed), len(e.answer)) for e in query.poll()]
        assert found == [(600, True, 2, 0, 2), (700, False, 2, 0, 4), (800, True, 6, 0, 6), (900, False, 2, 2, 6)]


def test_queries_with_one_plan_stay_independent():
    with make(500) as engine:
        other = engine.register(text(), name="other")
        query = engine.register(text(), replace=True)
        third = engine.register(text(where="?s <urn:none> ?o"), name="third")
        engine.register(text(where="?s <urn:p> ?o"), name="third", replace=True)
        feed(engine, 500, 1000)
        assert [n for _, n in found(other)] == [2, 4, 6, 6, 6]
        assert [n for _, n in found(third)] == [2, 4, 6, 6, 6]
        assert [n for _, n in found(query)][5:] == [6, 6, 6, 6, 6]
        assert engine.stats()["groups"] == 2


def test_stored_data_is_read_as_of_each_instant():
    stored = (
        "REGISTER QUERY q AS SELECT ?o FROM NAMED STREAM <urn:s> [RANGE 100ms STEP {}ms]"
        " FROM NAMED STREAM <urn:u> [RANGE 100ms STEP 100ms] FROM <urn:x-penstock:stored> WHERE {{ ?s <urn:p> ?o }}"
    )
    single = (
        "REGISTER QUERY q AS SELECT ?o FROM NAMED STREAM <urn:u> [RANGE 100ms STEP 100ms]"
        " FROM <urn:x-penstock:stored> WHERE { ?s <urn:p> ?o }"
    )
    with penstock.Engine(clock=lambda: 0) as engine:
        engine.declare_stream(S, timing="all")
        engine.declare_stream("urn:u", timing=["urn:q"])
        query = engine.register(stored.format(100))
        feed(engine, 0, 200, (S, "urn:u"))
        feed(engine, 200, 500, ("urn:u",))
        engine.register(single, replace=True)
        assert found(query) == [(100, 2), (200, 4), (300, 6), (400, 8), (500, 10)]


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ("REGISTER QUERY q AS SELECT", "end of the query"),
        ("REGISTER QUERY q FROM BEGINNING AS SELECT ?o FROM STREAM <urn:s> [NOW] WHERE { ?s ?p ?o }", "FROM BEGINNING"),
        ("REGISTER QUERY q AS SELECT ?o FROM STREAM <urn:none> [NOW] WHERE { ?s ?p ?o }", "urn:none"),
        (
            "REGISTER STREAM <urn:d> AS CONSTRUCT { ?s ?p ?o } FROM STREAM <urn:s> [NOW] WHERE { ?s ?p ?o }",
            "a stream is published",
        ),
    ],
)
def test_an_invalid_text_leaves_the_earlier_one(new, message):
    with make(500) as engine:
        with pytest.raises(penstock.PenstockError, match=message):
            engine.register(new, name="q", replace=True)
        query = engine.queries["q"]
        assert query.text == OLD
        feed(engine, 500, 600)
        assert [time for time, _ in found(query)] == [100, 200, 300, 400, 500, 600]
        assert engine.stats()["groups"] == 1


def test_a_query_that_publishes_cannot_be_replaced():
    with make(500) as engine:
        engine.register(
            "REGISTER STREAM <urn:d> AS CONSTRUCT { ?s ?p ?o } FROM STREAM <urn:s> [NOW] WHERE { ?s ?p ?o }"
        )
        with pytest.raises(QueryError, match="a stream is published"):
            engine.register(OLD, name="urn:d", replace=True)


def test_a_query_set_cannot_be_replaced():
    with make(500) as engine:
        engine.register_set(
            "REGISTER QUERY near (?s) AS SELECT ?o FROM STREAM <urn:s> [NOW] WHERE { ?s ?p ?o }", report="every"
        )
        with pytest.raises(QueryError, match="is a query set"):
            engine.register(OLD, name="near", replace=True)


def test_a_query_that_catches_up_cannot_be_replaced_yet(monkeypatch):
    monkeypatch.setattr(engine_module, "_CATCH_UP_S", 0)
    with penstock.Engine(clock=lambda: 0) as engine:
        engine.declare_stream(S, timing="all", retention_ms=10_000)
        feed(engine, 0, 1000, (S,))
        query = engine.register(OLD.replace("q AS", "q FROM BEGINNING AS"))
        with pytest.raises(UnavailableError, match="has not caught up"):
            engine.register(OLD, replace=True)
        assert len(query.poll()) == 10
        engine.register(text("RANGE 200ms STEP 50ms"), replace=True)
        feed(engine, 1000, 1100, (S,))
        assert found(query) == [(1050, 4), (1100, 4)]


def test_too_many_instants_that_become_due_at_once_are_refused():
    limits = penstock.Limits(max_catch_up=100, max_unpolled=50)
    with make(500, limits=limits) as engine:
        both = OLD.replace(" WHERE", " FROM STREAM <urn:t> [RANGE 100ms STEP 100ms] WHERE")
        query = engine.register(both, replace=True)
        feed(engine, 500, 1000, (S,))
        for step, name in ((1, "max_catch_up"), (10, "max_unpolled")):
            with pytest.raises(LimitError) as caught:
                engine.register(OLD.replace("STEP 100", f"STEP {step}"), replace=True)
            assert caught.value.limit == name
        assert query.text == both


@pytest.mark.parametrize("durability", ["checkpoint", "commit"])
@pytest.mark.parametrize("polled", [False, True])
def test_a_replacement_survives_a_restart(tmp_path, durability, polled):
    settings = {"data_dir": tmp_path, "durability": durability}
    with make(500, **settings) as engine:
        if polled:
            engine.queries["q"].poll()
        engine.register(text("RANGE 200ms STEP 50ms"), replace=True)
        feed(engine, 500, 550)
    with penstock.Engine(clock=lambda: 0, **settings) as engine:
        query = engine.queries["q"]
        feed(engine, 550, 600)
        before = [] if polled else [(100, 2), (200, 4), (300, 6), (400, 6), (500, 6)]
        assert found(query) == [*before, (550, 4), (600, 4)]
