"""docs/semantics.md §3: grids, the registration point, bounds, unequal steps, count windows."""

from __future__ import annotations

from typing import Any

import pytest

from support.brief import PREFIX, S, T, bag, nt, timeline, words

SELECT = "SELECT ?s WHERE { ?s :p ?o }"


def query(name: str, spec: str, header: str = "", body: str = SELECT, clause: str = "FROM STREAM") -> str:
    select, where = body.split(" WHERE ", 1)
    return f"REGISTER QUERY {name}{header} AS {PREFIX} {select} {clause} <{S}> [{spec}] WHERE {where}"


def push(system: Any, *times: int, stream: str = S) -> None:
    """Push `t<time> p b` at each time."""
    for time in times:
        system.push(stream, time, nt(f"t{time} p b"))


def at(*times: int) -> list[str]:
    return sorted(f"t{time}" for time in times)


def test_a_window_is_open_at_its_start_and_closed_at_its_end(system: Any) -> None:
    system.declare(S)
    q = system.register(query("q", "RANGE 1s STEP 1s"))
    push(system, 999, 1000, 1001, 2000, 2001)
    system.advance(S, 3000)
    evaluations = system.poll(q)
    assert timeline(evaluations) == {1000: at(999, 1000), 2000: at(1001, 2000), 3000: at(2001)}
    assert [e.windows[S] for e in evaluations] == [(0, 1000), (1000, 2000), (2000, 3000)]


@pytest.mark.parametrize("batch", [1, 7, 100, 333, 1000, 60_000])
def test_windows_are_exact_whatever_the_batch(system: Any, batch: int) -> None:
    system.declare(S, batch_ms=batch)
    q = system.register(query("q", "RANGE 250ms STEP 170ms"))
    push(system, 1, 90, 91, 170, 171, 340, 341)
    system.advance(S, 60_000)
    found = timeline(system.poll(q))
    assert {t: rows for t, rows in found.items() if rows} == {
        170: at(1, 90, 91, 170),
        340: at(91, 170, 171, 340),
        510: at(340, 341, *[t for t in (171, 170) if t > 260]),
    }
    assert min(found) == 170


def test_step_is_the_range_where_it_is_left_out(system: Any) -> None:
    system.declare(S)
    tumbling = system.register(query("x", "RANGE 500ms TUMBLING"))
    omitted = system.register(query("y", "RANGE 500ms"))
    push(system, 100, 600)
    system.advance(S, 1000)
    expected = {500: at(100), 1000: at(600)}
    assert timeline(system.poll(tumbling)) == expected
    assert timeline(system.poll(omitted)) == expected


def test_now_is_one_batch(system: Any) -> None:
    system.declare(S, batch_ms=250)
    q = system.register(query("q", "NOW"))
    push(system, 100, 250, 251, 700)
    system.advance(S, 1000)
    assert timeline(system.poll(q)) == {250: at(100, 250), 500: at(251), 750: at(700), 1000: []}


def test_all_holds_everything_since_registration(system: Any) -> None:
    system.declare(S)
    q = system.register(query("q", "ALL STEP 400ms"))
    push(system, 100, 500, 900)
    system.advance(S, 1200)
    assert timeline(system.poll(q)) == {400: at(100), 800: at(100, 500), 1200: at(100, 500, 900)}


def test_computed_every_replaces_the_step(system: Any) -> None:
    system.declare(S)
    q = system.register(query("q", "RANGE 300ms STEP 300ms", " COMPUTED EVERY 200ms"))
    push(system, 50, 150, 350)
    system.advance(S, 600)
    assert timeline(system.poll(q)) == {200: at(50, 150), 400: at(150, 350), 600: at(350)}


@pytest.mark.parametrize("instant", ["250", '"1970-01-01T00:00:00.250Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'])
def test_starting_at_moves_the_grid_and_nothing_comes_before_it(system: Any, instant: str) -> None:
    system.declare(S)
    q = system.register(query("q", "RANGE 400ms STEP 200ms", f" STARTING AT {instant}"))
    push(system, 10, 240, 300)
    system.advance(S, 700)
    assert timeline(system.poll(q)) == {250: at(10, 240), 450: at(240, 300), 650: at(300)}


def test_the_first_evaluation_is_the_first_instant_after_registration(system: Any) -> None:
    system.declare(S)
    push(system, 950)
    system.advance(S, 1250)  # batches up to 1200 are closed
    push(system, 1260)
    q = system.register(query("q", "RANGE 1s STEP 500ms"))
    push(system, 1300, 1501)
    system.advance(S, 2000)
    evaluations = system.poll(q)
    assert timeline(evaluations) == {1500: at(1260, 1300), 2000: at(1260, 1300, 1501)}
    assert evaluations[0].windows[S] == (500, 1500)


def test_registration_takes_the_latest_boundary_of_its_streams(system: Any) -> None:
    system.declare(S)
    system.declare(T, batch_ms=250)
    system.advance(S, 420)
    system.advance(T, 1100)  # closed up to 1000
    text = f"REGISTER QUERY q AS {PREFIX} SELECT ?s FROM STREAM <{S}> [RANGE 2s STEP 500ms] FROM STREAM <{T}> [RANGE 2s STEP 500ms] WHERE {{ ?s :p ?o }}"
    q = system.register(text)
    push(system, 900, 1001)
    push(system, 1101, stream=T)
    for stream in (S, T):
        system.advance(stream, 1500)
    assert timeline(system.poll(q)) == {1500: at(1001, 1101)}


def test_without_progress_registration_waits_for_the_first_tuple(system: Any) -> None:
    system.declare(S, batch_ms=300)
    q = system.register(query("q", "RANGE 10s STEP 500ms"))
    push(system, 100_000)  # the batch (99900, 100200]
    system.advance(S, 101_000)
    assert [e.time for e in system.poll(q)] == [100_000, 100_500]


def test_without_progress_the_first_advance_is_the_registration_point(system: Any) -> None:
    system.declare(S)
    q = system.register(query("q", "RANGE 10s STEP 500ms"))
    system.advance(S, 100_000)
    push(system, 100_001)
    system.advance(S, 101_000)
    assert timeline(system.poll(q)) == {100_500: at(100_001), 101_000: at(100_001)}


def test_a_later_member_of_a_group_sees_only_its_own_time(system: Any) -> None:
    system.declare(S)
    first = system.register(query("x", "RANGE 1s STEP 500ms", body="SELECT ?o WHERE { :x :p ?o }"))
    system.push(S, 100, nt("x p early", "y p early"))
    system.advance(S, 250)
    second = system.register(query("y", "RANGE 1s STEP 500ms", body="SELECT ?o WHERE { :y :p ?o }"))
    system.push(S, 300, nt("x p late", "y p late"))
    system.advance(S, 1500)
    both, late = ["early", "late"], ["late"]
    assert timeline(system.poll(first)) == {500: both, 1000: both, 1500: []}
    assert timeline(system.poll(second)) == {500: late, 1000: late, 1500: []}


# ---- count windows
def test_a_count_window_reports_after_every_mth_tuple_in_order_of_time(system: Any) -> None:
    system.declare(S, lateness_ms=500)
    q = system.register(query("q", "TRIPLES 3 STEP 2"))
    push(system, 100, 300, 200, 450, 400)
    system.advance(S, 1000)
    evaluations = system.poll(q)
    assert timeline(evaluations) == {200: at(100, 200), 400: at(200, 300, 400)}
    assert [e.windows[S] for e in evaluations] == [(99, 200), (199, 400)]


def test_a_count_window_without_step_tumbles(system: Any) -> None:
    system.declare(S)
    q = system.register(query("q", "ELEMENTS 2"))
    push(system, 100, 200, 300, 400, 500)
    system.advance(S, 1000)
    assert timeline(system.poll(q)) == {200: at(100, 200), 400: at(300, 400)}


def test_of_several_reports_at_one_time_the_last_stands(system: Any) -> None:
    system.declare(S)
    q = system.register(query("q", "TRIPLES 2 STEP 1", body="SELECT ?s WHERE { ?s ?p ?o }"))
    for k in range(4):
        system.push(S, 100, nt(f"a{k} p b"))
    system.push(S, 150, nt("a9 p b"))
    system.advance(S, 200)
    assert timeline(system.poll(q)) == {100: ["a2", "a3"], 150: ["a3", "a9"]}


def test_duplicates_count_in_the_counting_not_in_the_content(system: Any) -> None:
    system.declare(S)
    q = system.register(query("q", "TRIPLES 3 STEP 3"))
    for time in (100, 110, 120):
        system.push(S, time, nt("a p b"))
    system.advance(S, 200)
    assert timeline(system.poll(q)) == {120: ["a"]}


def test_two_count_windows_keep_their_own_last_report(system: Any) -> None:
    system.declare(S)
    system.declare(T)
    clauses = f"FROM NAMED STREAM <{S}> [TRIPLES 1] FROM NAMED STREAM <{T}> [TRIPLES 2]"
    where = f"{{ GRAPH <{S}> {{ ?s :p ?o }} }} UNION {{ GRAPH <{T}> {{ ?s :p ?o }} }}"
    q = system.register(f"REGISTER QUERY q AS {PREFIX} SELECT ?s {clauses} WHERE {{ {where} }}")
    push(system, 100, 300)
    push(system, 110, 210, stream=T)
    for stream in (S, T):
        system.advance(stream, 400)
    assert timeline(system.poll(q)) == {100: at(100), 210: at(100, 110, 210), 300: at(110, 210, 300)}


# ---- trigger
def test_an_evaluation_waits_for_the_batch_that_contains_it(system: Any) -> None:
    system.declare(S, batch_ms=1000)
    q = system.register(query("q", "RANGE 300ms STEP 300ms"))
    push(system, 100)
    system.advance(S, 999)
    assert system.poll(q) == []
    system.advance(S, 1000)
    assert [e.time for e in system.poll(q)] == [300, 600, 900]


def test_a_push_moves_the_watermark_to_just_before_it(system: Any) -> None:
    system.declare(S)
    q = system.register(query("q", "RANGE 1s STEP 100ms"))
    push(system, 50, 101)
    assert timeline(system.poll(q)) == {100: at(50)}
    push(system, 200)
    assert system.poll(q) == []
    push(system, 200, 201)
    assert timeline(system.poll(q)) == {200: at(50, 101, 200)}


def test_lateness_keeps_the_watermark_behind(system: Any) -> None:
    system.declare(S, lateness_ms=150)
    q = system.register(query("q", "RANGE 1s STEP 100ms"))
    system.advance(S, 0)
    push(system, 251, 150, 101)
    assert timeline(system.poll(q)) == {100: []}
    push(system, 100)  # w = 100: late
    assert system.late(S) == 1
    push(system, 351)
    assert timeline(system.poll(q)) == {200: at(101, 150)}


def test_the_watermark_never_goes_back(system: Any) -> None:
    system.declare(S)
    q = system.register(query("q", "RANGE 1s STEP 500ms"))
    system.advance(S, 100)
    system.advance(S, 500)
    system.advance(S, 200)
    push(system, 450)
    assert system.late(S) == 1
    system.advance(None, 1000)
    assert timeline(system.poll(q)) == {500: [], 1000: []}


def test_times_before_the_epoch_have_windows_too(system: Any) -> None:
    system.declare(S)
    q = system.register(query("q", "RANGE 500ms STEP 500ms"))
    push(system, -700, -500, -499, 0, 1)
    system.advance(S, 500)
    assert timeline(system.poll(q)) == {-500: at(-700, -500), 0: at(-499, 0), 500: at(1)}


def test_a_window_shorter_than_its_step_skips_what_lies_between(system: Any) -> None:
    system.declare(S)
    q = system.register(query("q", "RANGE 100ms STEP 500ms"))
    push(system, 400, 401, 500, 501)
    system.advance(S, 1000)
    assert timeline(system.poll(q)) == {500: at(401, 500), 1000: []}


def test_content_is_a_set_and_each_occurrence_lives_its_own_time(system: Any) -> None:
    system.declare(S)
    text = query("q", "RANGE 1s STEP 1s", body="SELECT (COUNT(*) AS ?n) WHERE { ?s :p ?o }")
    q = system.register(text)
    for time in (100, 200, 1100):
        system.push(S, time, nt("a p b"))
    system.advance(S, 3000)
    evaluations = system.poll(q)
    assert [words(e) for e in evaluations] == [["1"], ["1"], ["0"]]
    assert [bag(e.answer) for e in evaluations][2] == {"0": 1}
