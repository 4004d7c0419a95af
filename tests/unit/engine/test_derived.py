"""Streams that queries publish, and queries that read them."""

from __future__ import annotations

import numpy as np
import pytest
import rdflib

import penstock
from penstock import DataError, QueryError
from penstock.engine.standing import evaluator as evaluate
from support.bench import nt, timeline

MADE = "CONSTRUCT { ?s :made ?o }"


def publish(bench, name="urn:d", body="?s :p ?o", window="s RANGE 100ms", kind="STREAM", select=MADE):
    return bench.register(body, window, select=select, header=f"REGISTER {kind} <{name}> AS")


def test_a_published_stream_feeds_other_queries_in_the_same_pass(bench):
    bench.declare("s")
    maker = publish(bench)
    reader = bench.register("?s :made ?o", "d RANGE 200ms STEP 100ms")
    bench.push("s", 50, "a p b")
    bench.push("s", 150, "c p d")
    bench.advance("s", 400)
    assert timeline(maker)[100] == [("a", "made", "b")]
    assert timeline(reader) == {
        100: [("a", "b")],
        200: [("a", "b"), ("c", "d")],
        300: [("c", "d")],
        400: [],
    }


def test_its_declaration_follows_its_query(bench):
    bench.declare("s")
    publish(bench, window="s RANGE 1s STEP 250ms")
    declared = bench.engine.streams["urn:d"]
    assert (declared.batch_ms, declared.lateness_ms, declared.timing) == (250, 0, "all")
    bench.advance("s", 0)
    bench.advance("s", 500)
    assert bench.engine.stats()["streams"]["urn:d"]["watermark"] == 749


def test_what_was_declared_before_keeps_its_timing_and_its_graph(bench):
    bench.declare("s")
    bench.declare("d", timing=["urn:other"], absorb_into="urn:g")
    reader = bench.register("GRAPH <urn:g> { ?s :made ?o }", "d RANGE 100ms")
    publish(bench, window="s RANGE 200ms")
    bench.push("s", 50, "a p b")
    bench.advance("s", 600)
    assert bench.engine.query("ASK { GRAPH <urn:g> { <urn:a> <urn:made> <urn:b> } }") is True
    # the batch that holds 100 is (0, 200], and with it what was published at 200
    assert timeline(reader) == {t: [("a", "b")] for t in (100, 200, 300, 400, 500, 600)}


def test_a_chain_of_streams_runs_through_in_one_pass(bench):
    bench.declare("s")
    publish(bench, "urn:d1")
    publish(bench, "urn:d2", "?s :made ?o", "d1 RANGE 100ms")
    publish(bench, "urn:d3", "?s :made ?o", "d2 RANGE 100ms")
    last = bench.register("?s :made ?o", "d3 RANGE 100ms", "s RANGE 100ms")
    bench.push("s", 50, "a p b")
    bench.advance("s", 200)
    assert timeline(last) == {100: [("a", "b")], 200: []}


def test_istream_publishes_what_is_new(bench):
    bench.declare("s")
    publish(bench, kind="ISTREAM", window="s RANGE 300ms STEP 100ms")
    reader = bench.register("?s :made ?o", "d RANGE 100ms")
    bench.push("s", 50, "a p b")
    bench.push("s", 150, "c p d")
    bench.advance("s", 400)
    assert timeline(reader) == {100: [("a", "b")], 200: [("c", "d")], 300: [], 400: []}


def test_computed_terms_and_blank_nodes_travel(bench):
    bench.declare("s")
    body = '?s :p ?o BIND(CONCAT(STR(?s), " and a long tail of text") AS ?t)'
    publish(bench, body=body, select="CONSTRUCT { _:b :of ?s ; :text ?t }")
    reader = bench.register("?b :of ?s ; :text ?t", "d RANGE 100ms", select="SELECT ?s ?t")
    bench.push("s", 50, "a p b", "c p d")
    bench.advance("s", 100)
    assert timeline(reader) == {
        100: [("a", "a and a long tail of text"), ("c", "c and a long tail of text")],
    }


def test_only_its_query_publishes_to_it_and_advancing_all_skips_it(bench):
    bench.declare("s")
    publish(bench)
    bench.advance(None, 250)
    assert bench.engine.stats()["streams"]["urn:d"]["watermark"] is None
    for refused in (
        lambda: bench.push("d", 10, "a p b"),
        lambda: bench.engine.push_events("urn:d", [(10, nt("a p b"))]),
        lambda: bench.advance("d", 1000),
    ):
        with pytest.raises(DataError, match="derived"):
            refused()
    bench.advance(None, 300)
    assert bench.engine.stats()["streams"]["urn:d"]["watermark"] == 399
    a = bench.engine.encode([rdflib.URIRef("urn:a")])
    with pytest.raises(DataError, match="derived"):
        bench.engine.push_columns("urn:d", np.array([450], np.int64), a, a, a)


def test_a_cycle_of_queries_is_refused(bench):
    bench.declare("s", "d", "e")
    with pytest.raises(QueryError, match="cycle"):
        publish(bench, "urn:d", window="d RANGE 100ms")
    publish(bench, "urn:d", window="e RANGE 100ms")
    with pytest.raises(QueryError, match="cycle"):
        publish(bench, "urn:e", window="d RANGE 100ms")
    assert len(bench.engine.queries) == 1


def test_a_stream_has_one_source(bench):
    bench.declare("s", "d", "used")
    publish(bench)
    with pytest.raises(QueryError, match=r"published by urn:d|already a query"):
        publish(bench)
    with pytest.raises(QueryError, match="published by"):
        bench.engine.register(
            "REGISTER STREAM <urn:d> AS CONSTRUCT { ?s ?p ?o } FROM STREAM <urn:s> [RANGE 1s] WHERE { ?s ?p ?o }",
            name="x",
        )
    bench.push("used", 10, "a p b")
    with pytest.raises(QueryError, match="pushed"):
        publish(bench, "urn:used")


def test_it_ends_with_its_query_and_delays_no_other(bench):
    bench.declare("s", "t")
    maker = publish(bench)
    both = bench.register("?s :made ?o", "d RANGE 100ms", "t RANGE 100ms")
    alone = bench.register("?s :made ?o", "d RANGE 100ms")
    bench.push("s", 50, "a p b")
    bench.advance("s", 100)
    bench.advance("t", 300)
    assert timeline(both) == {100: [("a", "b")]}
    maker.stop()
    assert timeline(both) == {200: [], 300: []}
    assert timeline(alone) == {100: [("a", "b")]}
    bench.advance("t", 400)
    assert timeline(both) == {400: []}
    assert timeline(alone) == {}
    both.stop()
    assert "urn:d" in bench.engine.streams
    alone.stop()
    assert "urn:d" not in bench.engine.streams
    publish(bench)


def test_it_cannot_be_dropped_while_its_query_runs(bench):
    bench.declare("s")
    publish(bench)
    with pytest.raises(DataError, match="urn:d"):
        bench.engine.drop_stream("urn:d")


def test_unequal_steps_publish_at_every_instant(bench):
    bench.declare("s", "t")
    text = (
        "PREFIX : <urn:> REGISTER STREAM <urn:d> AS CONSTRUCT { ?s :made ?o } "
        "FROM STREAM <urn:s> [RANGE 200ms] FROM STREAM <urn:t> [RANGE 300ms] WHERE { ?s :p ?o }"
    )
    bench.engine.register(text)
    reader = bench.register("?s :made ?o", "d RANGE 100ms")
    for stream in "st":
        bench.push(stream, 50, f"{stream} p b")
    bench.advance(None, 600)
    assert timeline(reader)[200] == [("s", "b")]
    assert timeline(reader) == {}
    bench.advance(None, 1200)
    assert max(timeline(reader)) >= 1100


def test_count_windows_can_publish_and_do_not_stall_their_readers(bench):
    bench.declare("s")
    publish(bench, window="s TRIPLES 2")
    reader = bench.register("?s :made ?o", "d RANGE 100ms")
    for i, time in enumerate((10, 20, 30, 340, 350)):
        bench.push("s", time, f"a p v{i}")
    bench.advance("s", 1000)
    assert timeline(reader) == {
        100: [("a", "v0"), ("a", "v1")],
        200: [],
        300: [],
        400: [("a", "v2"), ("a", "v3")],
        500: [],
        600: [],
        700: [],
        800: [],
        900: [],
        1000: [],
    }


def test_count_windows_wait_for_a_stream_without_progress_and_for_none_that_has_ended(bench):
    bench.declare("s", "t", "u")
    maker = publish(bench, "urn:m", window="u RANGE 100ms")
    windows = ("s TRIPLES 2", "t TRIPLES 2", "m TRIPLES 2")
    bench.register("?s :p ?o", *windows, select=MADE, header="REGISTER STREAM <urn:d> AS")
    reader = bench.register("?s :made ?o", "d RANGE 100ms")
    bench.push("s", 150, "a p b")
    bench.advance("s", 500)
    bench.push("t", 130, "c p d")
    bench.push("t", 140, "e p f")
    bench.advance("t", 500)
    bench.push("u", 50, "g p h")
    bench.advance("u", 300)
    assert timeline(reader) == {200: [("c", "d"), ("e", "f")], 300: []}
    maker.stop()
    bench.advance("s", 600)
    assert timeline(reader) == {400: [], 500: []}


def test_an_evaluation_that_fails_publishes_nothing_and_time_goes_on(make_bench):
    bench = make_bench(limits=penstock.Limits(evaluation_memory_mb=1))
    bench.declare("s")
    million = "{ SELECT DISTINCT ?s ?o ?a ?c { ?s :p ?o . ?a :p ?b . ?c :p ?d } }"
    maker = publish(bench, body=million)
    reader = bench.register("?s :made ?o", "d RANGE 100ms")
    bench.push("s", 50, *(f"a{i} p b{i}" for i in range(100)))
    bench.push("s", 150, "a p b")
    bench.advance("s", 200)
    first, second = maker.poll()
    assert isinstance(first.error, penstock.LimitError)
    assert len(second.answer) == 1
    assert timeline(reader)[200] == [("a", "b")]


def behind_counts(bench):
    """A query on the instants of a grid behind one that counts."""
    bench.declare("s")
    publish(bench, window="s TRIPLES 1")
    return bench.register("?s :made ?o", "d RANGE 100ms STEP 1ms")


def test_what_a_count_window_sets_off_behind_it_is_bounded(make_bench):
    bench = make_bench(limits=penstock.Limits(max_catch_up=1000))
    reader = behind_counts(bench)
    bench.push("s", 50, "a p b")
    bench.advance("s", 100)
    taken = len(reader.poll())
    assert 0 < taken <= 100
    with pytest.raises(penstock.LimitError, match="max_catch_up"):
        bench.advance("s", 10_000)
    assert bench.engine.stats()["streams"]["urn:s"]["watermark"] == 100
    bench.advance("s", 1000)
    assert reader.poll()[-1].time == 1000


def test_a_jump_reaches_behind_a_count_window(make_bench):
    bench = make_bench(limits=penstock.Limits(max_catch_up=1000))
    reader = behind_counts(bench)
    bench.push("s", 50, "a p b")
    bench.advance("s", 100)
    reader.poll()
    bench.advance("s", 10_000, skip=True)
    assert [(gap.after, gap.until) for gap in reader.gaps] == [(100, 10_000)]
    assert reader.poll() == []
    bench.advance("s", 10_100)
    assert [e.time for e in reader.poll()][:2] == [10_001, 10_002]


def test_who_registers_after_a_jump_begins_behind_it(bench):
    bench.declare("s")
    publish(bench)
    reader = bench.register("?s :made ?o", "d RANGE 100ms")
    bench.advance("s", 100)
    bench.advance("s", 10_000, skip=True)
    late = bench.register("?s :made ?o", "d RANGE 200ms STEP 100ms")
    assert late.registration_point == 10_000
    bench.advance("s", 10_100)
    assert list(timeline(late)) == [10_100]
    assert list(timeline(reader)) == [10_100]


def interrupt(monkeypatch, owner, name, when=lambda *_: True):
    """Let Ctrl-C come where a function is called; returns what ends that."""
    real = getattr(owner, name)

    def interrupted(*args):
        if when(*args):
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(owner, name, interrupted)
    return monkeypatch.undo


def test_an_interrupted_pass_goes_on_behind_what_was_published(bench, monkeypatch):
    bench.declare("s")
    publish(bench)
    reader = bench.register("?s :made ?o", "d RANGE 100ms")
    bench.push("s", 50, "a p b")
    evaluator = bench.engine._runtime.evaluator
    go_on = interrupt(monkeypatch, evaluator, "evaluate", lambda cohort, _: cohort.group.publishes is None)
    with pytest.raises(KeyboardInterrupt):
        bench.advance("s", 100)
    go_on()
    bench.advance("s", 110)
    assert timeline(reader) == {100: [("a", "b")]}


def test_an_interrupted_pass_loses_no_report_of_a_count_window(bench, monkeypatch):
    bench.declare("s")
    publish(bench, window="s TRIPLES 1")
    reader = bench.register("?s :made ?o", "d RANGE 100ms")
    bench.push("s", 50, "a p b")
    bench.advance("s", 100)
    bench.push("s", 150, "c p d")
    go_on = interrupt(monkeypatch, bench.engine._runtime.firing, "closed")
    with pytest.raises(KeyboardInterrupt):
        bench.advance("s", 200)
    go_on()
    bench.advance("s", 300)
    bench.push("s", 350, "e p f")
    bench.advance("s", 400)
    assert timeline(reader) == {100: [("a", "b")], 200: [("c", "d")], 300: [], 400: [("e", "f")]}


def test_an_interrupted_difference_is_made_again(bench, monkeypatch):
    bench.declare("s")
    query = bench.register("?s :p ?o", "s RANGE 100ms", header="REGISTER ISTREAM q AS")
    bench.push("s", 50, "a p b")
    go_on = interrupt(monkeypatch, evaluate, "as_stream")
    with pytest.raises(KeyboardInterrupt):
        bench.advance("s", 200)
    go_on()
    bench.advance("s", 300)
    assert timeline(query) == {100: [("a", "b")], 200: [], 300: []}


def test_the_end_of_a_stream_that_held_its_readers_up_is_no_way_around_the_limit(make_bench):
    """A reader of a derived stream and of one that is far ahead: stopping the publisher makes all between due."""
    bench = make_bench(limits=penstock.Limits(max_catch_up=1000))
    bench.declare("s")
    bench.declare("t")
    publisher = publish(bench)
    text = (
        "REGISTER QUERY both AS SELECT ?o FROM NAMED STREAM <urn:d> [RANGE 10ms STEP 1ms] "
        "FROM NAMED STREAM <urn:t> [RANGE 10ms STEP 1ms] WHERE { GRAPH <urn:t> { ?s <urn:p> ?o } }"
    )
    reader = bench.engine.register(text)
    bench.push("s", 50, "a p b")
    bench.advance("s", 200)
    bench.advance("t", 200)
    reader.poll()
    bench.advance("t", 1_000_000)
    publisher.stop()
    assert reader.poll() == []
    assert [gap.until for gap in reader.gaps] == [1_000_000]
