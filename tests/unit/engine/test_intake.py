"""The fate of input: accepted, late, bad, too far ahead; and what each leaves behind."""

from __future__ import annotations

import numpy as np
import pytest
import rdflib

import penstock
from penstock import DataError, LimitError, UnknownStreamError
from support.bench import WALL, nt, timeline

DAY = 86_400_000


@pytest.fixture
def query(bench):
    bench.declare("s")
    query = bench.register("?s ?p ?o", "s RANGE 100ms")
    bench.advance("s", 0)
    return query


def watermark(bench):
    return bench.engine.stats()["streams"]["urn:s"]["watermark"]


def test_a_setting_out_of_range_is_refused_with_its_range(bench):
    with pytest.raises(
        penstock.DataError, match="must be an integer from 0 to 1152921504606846975, not 4611686018427387904"
    ):
        bench.declare("s", max_ahead_ms=1 << 62)
    bench.declare("s", max_ahead_ms=(1 << 60) - 1)


def test_an_event_moves_the_watermark_to_just_before_it(bench, query):
    bench.push("s", 250, "a p b")
    assert watermark(bench) == 249
    bench.push("s", 250, "c p d")
    bench.push("s", 260, "e p f")
    assert watermark(bench) == 259
    assert bench.engine.late("urn:s") == []


def test_a_late_event_contains_the_watermark_that_it_met(bench, query):
    bench.engine.push_events(
        "urn:s", [(250, "<urn:a> <urn:p> <urn:b> ."), (60, "<urn:c> <urn:p> <urn:d> ."), (900, "")]
    )
    [late] = bench.engine.late("urn:s")
    assert (late.timestamp, late.watermark) == (60, 249)


def test_arrays_and_lists_as_columns_have_the_same_outcome(make_bench):
    outcomes = []
    for as_column in (np.array, lambda values, _: list(values)):
        bench = make_bench()
        bench.declare("s", lateness_ms=20)
        query = bench.register("?s ?p ?o", "s RANGE 100ms")
        bench.advance("s", 0)
        a, p, *objects = bench.engine.encode(rdflib.URIRef(f"urn:{name}") for name in "apbcdef")

        def push(times, a=a, p=p, objects=objects, as_column=as_column, bench=bench):
            n = len(times)
            ids = (as_column(column, np.uint64) for column in ([a] * n, [p] * n, objects[:n]))
            bench.engine.push_columns("urn:s", as_column(times, np.int64), *ids)

        for times in ([10, 90, 60], [70, 50, 95], [130, 80], [260], [255, 10**15]):
            push(times)
        with pytest.raises(DataError, match="out of range"):
            push([1 << 61])
        stats = bench.engine.stats()["streams"]["urn:s"]
        late = [(event.timestamp, event.watermark, event.data) for event in bench.engine.late("urn:s")]
        outcomes.append((timeline(query), stats, late, bench.engine.dead_letters()))
    assert outcomes[0] == outcomes[1]
    assert len(outcomes[0][2]) == 3


def test_lateness_holds_the_watermark_back(bench):
    bench.declare("s", lateness_ms=100)
    bench.push("s", 250, "a p b")
    assert watermark(bench) == 149
    bench.push("s", 150, "c p d")
    bench.push("s", 149, "late p d")
    assert [(e.timestamp, e.watermark, e.data) for e in bench.engine.late("urn:s")] == [
        (149, 149, nt("late p d").encode())
    ]


def test_a_late_event_changes_nothing_and_is_handed_over_once(bench, query):
    bench.push("s", 250, "a p b")
    bench.push("s", 249, "late p b")
    (late,) = bench.engine.late("urn:s")
    assert late.stream == "urn:s"
    assert "249" in late.reason
    assert bench.engine.late("urn:s") == []
    assert bench.engine.stats()["streams"]["urn:s"]["late"] == 1
    bench.advance("s", 300)
    assert timeline(query)[300] == [("a", "p", "b")]
    assert bench.engine.query("ASK { <urn:late> ?p ?o }") is False


def test_a_bad_event_raises_and_is_a_dead_letter_and_moves_nothing(bench, query):
    with pytest.raises(DataError, match="line 1"):
        bench.engine.push("urn:s", "rubbish", timestamp=500)
    (letter,) = bench.engine.dead_letters()
    assert (letter.stream, letter.timestamp, letter.data) == ("urn:s", 500, b"rubbish")
    assert "line 1" in letter.reason
    assert bench.engine.dead_letters() == []
    assert watermark(bench) == 0


def test_a_bad_event_among_many_does_not_stop_the_others(bench, query):
    bench.engine.push_events("urn:s", [(10, nt("a p b")), (20, "rubbish"), ("x", nt("c p d")), (30, nt("e p f"))])
    assert [letter.data for letter in bench.engine.dead_letters()] == [b"rubbish", nt("c p d").encode()]
    bench.advance("s", 100)
    assert timeline(query) == {100: [("a", "p", "b"), ("e", "p", "f")]}


def test_an_event_too_far_ahead_is_refused_and_moves_nothing(bench):
    bench.declare("s")
    bench.push("s", WALL + DAY, "a p b")
    with pytest.raises(DataError, match="max_ahead"):
        bench.push("s", WALL + 2 * DAY, "c p d")
    assert watermark(bench) == WALL + DAY - 1
    assert bench.engine.dead_letters()[0].timestamp == WALL + 2 * DAY
    bench.advance("s", WALL + 2 * DAY)
    bench.push("s", WALL + 3 * DAY, "c p d")


@pytest.mark.parametrize("push", ["push", "push_events"])
def test_input_for_an_unknown_stream_is_an_error_and_a_dead_letter(bench, push):
    arguments = (b"x", 1) if push == "push" else ([(1, b"x"), (2, b"y")],)
    with pytest.raises(UnknownStreamError, match="urn:unknown"):
        getattr(bench.engine, push)("urn:unknown", *arguments)
    assert [letter.data for letter in bench.engine.dead_letters()] == [b"x", b"y"][: len(arguments[0]) or 1]
    for verb in (bench.engine.late, bench.engine.drop_stream, lambda iri: bench.engine.advance(iri, 1)):
        with pytest.raises(UnknownStreamError):
            verb("urn:unknown")


def test_rdflib_triples_are_events_too(bench, query):
    a, p = rdflib.URIRef("urn:a"), rdflib.URIRef("urn:p")
    bench.engine.push("urn:s", [(a, p, rdflib.Literal(1)), (a, p, rdflib.BNode("x"))], timestamp=50)
    graph = rdflib.Graph()
    graph.add((a, p, rdflib.Literal("two")))
    bench.engine.push("urn:s", graph, timestamp=60)
    bench.advance("s", 100)
    assert len(query.poll()[0].answer) == 3


def test_turtle_is_taken_where_it_is_named(bench, query):
    bench.engine.push("urn:s", "@prefix : <urn:> . :a :p :b, :c .", timestamp=50, format="turtle")
    bench.advance("s", 100)
    assert timeline(query) == {100: [("a", "p", "b"), ("a", "p", "c")]}


def test_pushing_nothing_is_fine(bench, query):
    bench.engine.push_events("urn:s", [])
    empty = np.empty(0, np.uint64)
    bench.engine.push_columns("urn:s", np.empty(0, np.int64), empty, empty, empty)
    assert watermark(bench) == 0


# ---- columns
def test_columns_of_ids_are_tuples(bench, query):
    a, p, b, c = bench.engine.encode([rdflib.URIRef(f"urn:{x}") for x in "apbc"])
    bench.engine.push_columns("urn:s", [10, 20, 120], [a, a, a], [p, p, p], [b, c, b])
    bench.advance("s", 200)
    assert timeline(query) == {100: [("a", "p", "b"), ("a", "p", "c")], 200: [("a", "p", "b")]}


def test_late_columns_are_handed_over_as_ntriples(bench, query):
    a, p = bench.engine.encode([rdflib.URIRef("urn:a"), rdflib.URIRef("urn:p")])
    bench.engine.push_columns("urn:s", [50, 20, 10**12], [a] * 3, [p] * 3, [a] * 3)
    assert [(e.timestamp, e.data) for e in bench.engine.late("urn:s")] == [(20, b"<urn:a> <urn:p> <urn:a> .\n")]
    assert [e.timestamp for e in bench.engine.dead_letters()] == [10**12]


def test_columns_far_beyond_the_watermark_are_measured_by_the_clock(bench):
    bench.declare("s", max_ahead_ms=10)
    bench.advance("s", 0)
    a, p = (np.repeat(bench.engine.encode([rdflib.URIRef(f"urn:{x}")]), 1) for x in "ap")
    for time in (5, 50, WALL + 10, WALL + 30):
        bench.engine.push_columns("urn:s", np.array([time], np.int64), a, p, a)
    assert [e.timestamp for e in bench.engine.dead_letters()] == [WALL + 30]
    assert watermark(bench) == WALL + 9


def test_columns_that_cannot_be_tuples_are_refused_whole(bench, query):
    a, literal = bench.engine.encode([rdflib.URIRef("urn:a"), rdflib.Literal("a long literal")])
    for s, p, o in [
        ([literal], [a], [a]),
        ([a], [literal], [a]),
        ([a], [a], [0]),
        ([a], [a], [123456]),
        ([a], [a], [1 << 63]),
        ([a, a], [a], [a]),
    ]:
        with pytest.raises(DataError):
            bench.engine.push_columns("urn:s", [50] * len(o), s, p, o)
    with pytest.raises(DataError):
        bench.engine.push_columns("urn:s", [1 << 61], [a], [a], [a])
    assert watermark(bench) == 0


def test_encode_and_decode_are_inverse(bench):
    terms = [rdflib.URIRef("urn:a"), rdflib.Literal("05", datatype=rdflib.XSD.integer, normalize=False)]
    ids = bench.engine.encode(terms)
    assert ids.dtype == np.uint64
    assert [str(t) for t in bench.engine.decode(ids)] == ["urn:a", "05"]
    assert bench.engine.decode([0]) == [None]
    with pytest.raises(DataError):
        bench.engine.decode([99999])


# ---- declarations
@pytest.mark.parametrize(
    "settings",
    [
        {"batch_ms": 0},
        {"batch_ms": 1.5},
        {"batch_ms": True},
        {"lateness_ms": -1},
        {"retention_ms": 1 << 62},
        {"timing": "some"},
        {"timing": ["not an iri"]},
        {"absorb_into": "not an iri"},
        {"slice_mb": 0},
        {"graph_history": 1, "retention_ms": 5},
        {"graph_history": True},
    ],
)
def test_a_declaration_without_sense_is_refused(bench, settings):
    with pytest.raises(DataError):
        bench.declare("s", **settings)
    assert "urn:s" not in bench.engine.streams


def test_the_same_declaration_again_is_no_change_and_another_is_an_error(bench):
    bench.declare("s", timing=["urn:p"])
    bench.declare("s", timing=["urn:p"])
    with pytest.raises(DataError, match="already declared"):
        bench.declare("s", timing="all")
    assert bench.engine.streams["urn:s"].timing == ("urn:p",)


def test_a_stream_can_be_dropped_when_no_query_reads_it(bench, query):
    bench.push("s", 50, "a p b")
    bench.advance("s", 100)
    with pytest.raises(DataError, match="q1"):
        bench.engine.drop_stream("urn:s")
    query.stop()
    bench.engine.drop_stream("urn:s")
    assert "urn:s" not in bench.engine.streams
    assert bench.engine.query("ASK { <urn:a> <urn:p> <urn:b> }") is True
    bench.declare("s")
    bench.push("s", 10, "c p d")


# ---- limits
def test_a_memory_budget_refuses_before_anything_changes(bench):
    bench.declare("s", slice_mb=1, timing="all")
    bench.register("?s ?p ?o", "s RANGE 1h")
    with pytest.raises(LimitError, match="urn:s"):  # noqa: PT012 - somewhere on the way
        for k in range(1000):
            bench.push("s", 100 + k, *(f"a{k}-{i} p b" for i in range(1000)))
    before = bench.engine.stats()["streams"]["urn:s"]
    with pytest.raises(LimitError):
        bench.push("s", 100_000, *(f"x{i} p b" for i in range(1000)))
    assert bench.engine.stats()["streams"]["urn:s"] == before


def test_too_many_instants_at_once_are_refused_before_anything_changes(make_bench):
    bench = make_bench(limits=penstock.Limits(max_catch_up=100))
    bench.declare("s")
    query = bench.register("?s ?p ?o", "s RANGE 10ms")
    bench.push("s", 50, "a p b")
    for refused in (lambda: bench.push("s", 1101, "c p d"), lambda: bench.advance("s", 1100)):
        with pytest.raises(LimitError, match="max_catch_up"):
            refused()
    assert watermark(bench) == 49
    bench.advance("s", 1000)
    assert len(query.poll()) == 100
    assert bench.engine.late("urn:s") == []


def test_a_jump_records_what_it_left_out(make_bench):
    bench = make_bench(limits=penstock.Limits(max_catch_up=100))
    bench.declare("s")
    query = bench.register("?s ?p ?o", "s RANGE 1s STEP 10ms")
    bench.push("s", 50, "a p b")
    bench.advance("s", 5000, skip=True)
    assert query.poll() == []
    assert query.gaps == [penstock.Gap(0, 5000, 500)]
    bench.push("s", 5005, "c p d")
    bench.advance("s", 5100)
    assert [e.time for e in query.poll()] == list(range(5010, 5101, 10))
    assert bench.engine.query("ASK { <urn:a> <urn:p> <urn:b> }") is True


def test_an_advance_never_goes_back(bench, query):
    bench.advance("s", 500)
    bench.advance("s", 100)
    assert watermark(bench) == 500
    for time in (1.5, "1", None, 1 << 62):
        with pytest.raises(DataError):
            bench.advance("s", time)


def test_advancing_all_streams_moves_those_without_progress_too(bench, query):
    bench.declare("t")
    both = bench.register("?s ?p ?o", "s RANGE 100ms", "t RANGE 100ms")
    bench.advance(None, 200)
    assert list(timeline(both)) == [100, 200]


def test_a_watermark_of_an_interrupted_pass_is_caught_up_by_the_next_push(bench, query, monkeypatch):
    fire = bench.engine._runtime.firing.fire

    def interrupted(cohort):
        if cohort.next == 200:
            raise KeyboardInterrupt
        fire(cohort)

    monkeypatch.setattr(bench.engine._runtime.firing, "fire", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bench.advance("s", 500)
    monkeypatch.undo()
    bench.push("s", 501, "a p b")
    assert list(timeline(query)) == [100, 200, 300, 400, 500]


def test_a_count_window_that_is_never_polled_is_bounded_too(make_bench):
    bench = make_bench(limits=penstock.Limits(max_unpolled=5))
    bench.declare("s")
    query = bench.register("?s :p ?o", "s TRIPLES 1")
    for k in range(1, 7):
        bench.push("s", 100 * k, f"a{k} p b")
    with pytest.raises(LimitError, match="poll"):
        bench.push("s", 800, "a7 p b")
    bench.push("s", 600, "a8 p b")  # which closes nothing
    assert list(timeline(query)) == [100, 200, 300, 400, 500]
    bench.push("s", 800, "a7 p b")
    assert timeline(query) == {600: [("a8", "b")]}


def test_a_jump_over_leaps_leaves_out_only_what_is_beyond_the_limit(make_bench):
    bench = make_bench(limits=penstock.Limits(max_catch_up=100))
    bench.declare("s")
    fine = bench.register("?s ?p ?o", "s RANGE 1s STEP 10ms")
    coarse = bench.register("?s ?p ?o", "s RANGE 1s STEP 1s")
    bench.push("s", 50, "a p b")
    bench.advance("s", 5000, skip="leaps")
    assert fine.poll() == []
    assert fine.gaps == [penstock.Gap(0, 5000, 500)]
    assert [e.time for e in coarse.poll()] == [1000, 2000, 3000, 4000, 5000]
    assert coarse.gaps == []
