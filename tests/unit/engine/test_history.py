"""Queries that begin in the past: where they begin, how they catch up, and what is refused."""

from __future__ import annotations

from unittest.mock import patch

import pytest

import penstock
import penstock.engine.engine as engine_module
from penstock import LimitError, QueryError

S, T = "urn:s", "urn:t"
WINDOW = "FROM STREAM <urn:s> [RANGE 300ms STEP 100ms]"
STORED = "FROM <urn:x-penstock:stored>"


def text(clause: str, window: str = WINDOW, operator: str = "QUERY", where: str = "?s ?p ?o") -> str:
    return f"REGISTER {operator} q {clause} AS SELECT ?o {window} WHERE {{ {where} }}"


def make(retention_ms: int = 0, until: int = 1000, **settings: object) -> penstock.Engine:
    """An engine with an event every 50 ms up to `until`, at 25 ms, 75 ms and so on."""
    engine = penstock.Engine(clock=lambda: 0, **settings)
    for iri in (S, T):
        engine.declare_stream(iri, timing=["urn:q"], retention_ms=retention_ms)
    for time in range(25, until, 50):
        engine.push(S, f"<urn:a> <urn:p> <urn:o{time}> .", time)
    engine.advance(None, until)
    return engine


def times(query: penstock.Query) -> list[int]:
    return [evaluation.time for evaluation in query.poll()]


def test_a_query_begins_with_the_first_tuple_if_everything_is_retained():
    with make(10_000) as engine:
        query = engine.register(text("FROM BEGINNING"))
        assert query.registration_point == 0
        assert times(query) == [100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]


def test_a_query_begins_with_the_first_complete_window_otherwise():
    with make(500) as engine:
        query = engine.register(text("FROM BEGINNING"))
        assert query.registration_point == 500
        first, *others = query.poll()
        assert first.windows == {S: (500, 800)}
        assert len(first.answer) == 6
        assert [evaluation.time for evaluation in others] == [900, 1000]


def test_without_a_retention_the_first_complete_window_is_still_to_come():
    with make() as engine:
        query = engine.register(text("FROM BEGINNING"))
        assert (query.status().last, query.status().next) == (None, 1300)
        engine.advance(None, 1500)
        assert times(query) == [1300, 1400, 1500]


def test_without_progress_there_is_no_past():
    with make(500, until=0) as engine:
        query = engine.register(text("FROM BEGINNING"))
        engine.push(S, "<urn:a> <urn:p> <urn:b> .", 50)
        engine.advance(None, 200)
        assert times(query) == [100, 200]


@pytest.mark.parametrize(
    ("retention_ms", "start", "expected"),
    [
        (10_000, 410, [410, 510, 610, 710, 810, 910]),
        (10_000, -90, [10, 110, 210, 310, 410, 510, 610, 710, 810, 910]),
        (500, 410, [810, 910]),
        (0, 410, []),  # nothing is retained: the clause only sets the grid
        (10_000, 1050, []),
    ],
)
def test_starting_at_begins_there_or_at_the_first_complete_window_after_it(retention_ms, start, expected):
    with make(retention_ms) as engine:
        query = engine.register(text(f"STARTING AT {start}"))
        assert times(query) == expected
        engine.advance(None, 1200)
        assert times(query) == [time for time in range(start, 1201, 100) if time > 1000]


@pytest.mark.parametrize("window", ["FROM STREAM <urn:s> [TRIPLES 3]", "FROM STREAM <urn:s> [TRIPLES 3 STEP 1]"])
def test_count_windows_need_everything(window):
    with make(500) as engine:
        with pytest.raises(QueryError, match="needs stream <urn:s> from its beginning"):
            engine.register(text("FROM BEGINNING", window))
        assert not engine.queries
        assert engine.stats()["groups"] == 0


def test_count_windows_count_from_the_beginning():
    with make(10_000) as engine:
        query = engine.register(text("FROM BEGINNING", "FROM STREAM <urn:s> [TRIPLES 3 STEP 4]"))
        assert times(query) == [175, 375, 575, 775, 975]


def test_a_stream_with_less_retention_delays_the_beginning_only_by_its_own_window():
    engine = penstock.Engine(clock=lambda: 0)
    with engine:
        engine.declare_stream(S, timing="all", retention_ms=10_000)
        engine.declare_stream(T, timing="all", retention_ms=300)
        for time in range(25, 1000, 50):
            engine.push(S, f"<urn:a> <urn:p> <urn:o{time}> .", time)
            engine.push(T, f"<urn:a> <urn:p> <urn:t{time}> .", time)
        engine.advance(None, 1000)
        both = "FROM STREAM <urn:s> [RANGE 600ms STEP 100ms] FROM STREAM <urn:t> [RANGE 100ms STEP 100ms]"
        query = engine.register(text("FROM BEGINNING", both))
        first = query.poll()[0]
        assert (first.time, len(first.answer)) == (800, 12 + 2)


def test_the_stored_graph_is_read_as_of_each_instant():
    with make(10_000, until=200) as engine:
        engine.update("INSERT DATA { <urn:x> <urn:u> 1 }")
        engine.advance(None, 300)
        engine.update("DELETE DATA { <urn:x> <urn:u> 1 } ; INSERT DATA { <urn:x> <urn:u> 2 }")
        engine.advance(None, 400)
        engine.update("DELETE WHERE { <urn:x> <urn:u> ?any }")
        query = engine.register(text("FROM BEGINNING", f"{WINDOW} {STORED}", where="<urn:x> <urn:u> ?o"))
        found = [[str(row["o"]) for row in evaluation.answer] for evaluation in query.poll()]
        assert found == [[], [], ["1"], ["2"]]


def test_what_later_batches_absorb_is_not_seen():
    with make(10_000) as engine:
        query = engine.register(text("FROM BEGINNING", f"{WINDOW} {STORED}", where="<urn:a> <urn:p> ?o"))
        assert [len(evaluation.answer) for evaluation in query.poll()] == [2 * k for k in range(1, 11)]


def test_old_commits_are_released_with_the_retention():
    with make(500) as engine:
        sizes = []
        for time in range(1025, 100_000, 50):
            engine.push(S, f"<urn:a> <urn:p> <urn:o{time}> .", time)
            sizes.append(engine.stats()["log_bytes"])
        assert max(sizes[1000:]) <= 2 * max(sizes[:200])


def test_a_query_catches_up_in_parts_and_goes_on_live():
    with make(10_000) as engine, patch.object(engine_module, "_CATCH_UP_S", 0):
        query = engine.register(text("FROM BEGINNING"))
        assert query.unpolled() < 3
        assert query.status().state == "catching up"
        engine.advance(None, 1200)
        assert [evaluation.time for evaluation in query.poll(4)] == [100, 200, 300, 400]
        assert times(query) == [500, 600, 700, 800, 900, 1000, 1100, 1200]
        assert query.status().state == "waiting"
        engine.advance(None, 1300)
        assert times(query) == [1300]


def test_a_query_without_polls_stops_at_half_of_the_limit():
    with make(10_000, limits=penstock.Limits(max_unpolled=8)) as engine:
        query = engine.register(text("FROM BEGINNING"))
        engine.advance(None, 1500)  # other changes are not refused
        assert query.unpolled() == 4
        assert times(query) == list(range(100, 1501, 100))


def test_a_subscriber_gets_everything():
    with make(10_000) as engine, patch.object(engine_module, "_CATCH_UP_S", 0):
        seen: list[int] = []
        engine.register(text("FROM BEGINNING")).subscribe(lambda evaluation: seen.append(evaluation.time))
        engine.advance(None, 1200)
        assert seen == list(range(100, 1201, 100))


def test_the_past_is_no_leap_but_a_later_leap_is():
    with make(10_000, limits=penstock.Limits(max_catch_up=5)) as engine, patch.object(engine_module, "_CATCH_UP_S", 0):
        query = engine.register(text("FROM BEGINNING"))
        with pytest.raises(LimitError, match="max_catch_up"):
            engine.advance(None, 1600)
        engine.advance(None, 1500)
        engine.advance(None, 9000, skip="leaps")
        assert [(gap.after, gap.until, gap.count) for gap in query.gaps] == [(1500, 9000, 75)]
        engine.advance(None, 9100)
        assert times(query) == [*range(100, 1501, 100), 9100]


def test_a_derived_stream_begins_in_the_past_too():
    with make(10_000) as engine:
        made = "REGISTER STREAM <urn:d> FROM BEGINNING AS CONSTRUCT { ?s <urn:r> ?o } FROM STREAM <urn:s> [NOW]"
        reader = engine.declare_stream("urn:d", timing="all")
        del reader
        query = engine.register(
            "REGISTER QUERY r AS SELECT ?o FROM STREAM <urn:d> [RANGE 100ms STEP 100ms] WHERE { ?s ?p ?o }"
        )
        engine.register(made + " WHERE { ?s ?p ?o }")
        assert [len(evaluation.answer) for evaluation in query.poll()] == [2] * 10


@pytest.mark.parametrize("durability", ["checkpoint", "commit"])
def test_a_restart_continues_where_the_query_was(tmp_path, durability):
    with patch.object(engine_module, "_CATCH_UP_S", 0):
        with make(10_000, data_dir=tmp_path, durability=durability) as engine:
            engine.register(text("FROM BEGINNING", f"{WINDOW} {STORED}", where="<urn:a> <urn:p> ?o"))
            found = [len(evaluation.answer) for evaluation in engine.queries["q"].poll(3)]
        with penstock.Engine(tmp_path, durability=durability) as engine:
            engine.push(S, "<urn:a> <urn:p> <urn:late> .", 1050)
            engine.advance(None, 1100)
            found += [len(evaluation.answer) for evaluation in engine.queries["q"].poll()]
    assert found == [*(2 * k for k in range(1, 11)), 21]


def test_a_query_in_the_past_can_be_stopped():
    with make(10_000) as engine, patch.object(engine_module, "_CATCH_UP_S", 0):
        engine.register(text("FROM BEGINNING")).stop()
        engine.advance(None, 1500)
        assert engine.register(text("FROM BEGINNING")).poll(1)[0].time == 100


def test_a_query_set_does_not_begin_in_the_past():
    with make(10_000) as engine, pytest.raises(QueryError, match="not available in a query set"):
        engine.register_set(
            f"REGISTER QUERY q (?o) FROM BEGINNING AS SELECT ?s {WINDOW} WHERE {{ ?s ?p ?o }}", report="every"
        )
