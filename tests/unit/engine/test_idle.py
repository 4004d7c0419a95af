"""Idle streams by the wall clock: `advance_idle`, and what a query says that it waits for."""

from __future__ import annotations

import pytest

import penstock
from support.bench import timeline

NOW = 1_800_000_000_000


class Clock:
    def __init__(self) -> None:
        self.now_ms = NOW

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bench(make_bench, clock):
    made = make_bench(clock=clock)
    made.engine.advance_idle()
    return made


def wait(bench, clock, ms):
    """The wall clock goes on; streams are looked at before and after. Returns those that were advanced."""
    bench.engine.advance_idle()
    clock.now_ms += ms
    return bench.engine.advance_idle()


def test_a_quiet_stream_holds_a_join_until_its_idle_timeout(bench, clock):
    bench.declare("s", idle_timeout_ms=10_000)
    bench.declare("t", idle_timeout_ms=10_000)
    query = bench.register("?s :p ?o", "s RANGE 1s STEP 1s", "t RANGE 1s STEP 1s")
    bench.push("t", 100, "a p b")
    bench.push("s", 5_500, "a p c")
    assert [w.stream for w in query.status().waits_for] == ["urn:t"]
    assert wait(bench, clock, 9_999) == []
    bench.push("s", 5_600, "a p d")
    assert wait(bench, clock, 1) == ["urn:t"]
    assert [e.time for e in query.poll()] == [1_000, 2_000, 3_000, 4_000, 5_000]
    assert bench.engine.stats()["streams"]["urn:t"]["watermark"] == 5_599
    bench.push("t", 4_000, "a p late")
    assert len(bench.engine.late("urn:t")) == 1


def test_a_stream_that_never_spoke_is_idle_too(bench, clock):
    bench.declare("s")
    bench.declare("t")
    query = bench.register("?s :p ?o", "s RANGE 1s STEP 1s", "t RANGE 1s STEP 1s")
    bench.push("s", 900, "a p c")
    bench.push("s", 2_500, "a p c")
    assert wait(bench, clock, 10_000) == ["urn:t"]
    assert [e.time for e in query.poll()] == [1_000, 2_000]


def test_streams_that_no_query_reads_together_do_not_move_each_other(bench, clock):
    for iri in ("s", "t"):
        bench.declare(iri)
        bench.register("?s :p ?o", f"{iri} RANGE 1s STEP 1s")
    bench.push("s", 1_500, "a p b")
    bench.push("t", 500_000, "a p b")
    assert wait(bench, clock, 60_000) == []


def test_streams_that_meet_through_a_derived_stream_move_each_other(bench, clock):
    bench.declare("s")
    bench.declare("t")
    bench.register(
        "?s :p ?o", "s RANGE 1s STEP 1s", select="CONSTRUCT { ?s :q ?o }", header="REGISTER STREAM <urn:d> AS"
    )
    joined = bench.register("?s :q ?o", "d RANGE 1s STEP 1s", "t RANGE 1s STEP 1s", header="REGISTER QUERY joined AS")
    for stream, time in (("t", 100), ("s", 500), ("t", 3_500)):
        bench.push(stream, time, "a p b")
    assert [(w.stream, w.publisher is None) for w in joined.status().waits_for] == [("urn:d", False)]
    assert wait(bench, clock, 10_000) == ["urn:s"]
    assert [e.time for e in joined.poll()] == [1_000, 2_000, 3_000]


def test_a_stream_that_follows_the_wall_clock_goes_on_with_it(bench, clock):
    bench.declare("s")
    query = bench.register("?s :p ?o", "s RANGE 1s STEP 1s")
    bench.push("s", NOW, "a p b")
    assert wait(bench, clock, 12_000) == ["urn:s"]
    assert bench.engine.stats()["streams"]["urn:s"]["watermark"] == NOW + 2_000
    assert wait(bench, clock, 1_000) == ["urn:s"]
    assert max(timeline(query)) == NOW + 3_000


def test_an_advance_by_hand_counts_as_a_sign_of_life(bench, clock):
    bench.declare("s")
    bench.declare("t")
    bench.register("?s :p ?o", "s RANGE 1s STEP 1s", "t RANGE 1s STEP 1s")
    bench.push("s", 9_500, "a p b")
    wait(bench, clock, 6_000)
    bench.advance("t", 1_000)
    assert wait(bench, clock, 6_000) == []
    assert wait(bench, clock, 6_000) == ["urn:t"]


def test_a_leap_beyond_max_catch_up_is_a_gap(make_bench, clock):
    bench = make_bench(clock=clock, limits=penstock.Limits(max_catch_up=100))
    bench.declare("s")
    bench.declare("t")
    query = bench.register("?s :p ?o", "s RANGE 1s STEP 1s", "t RANGE 1s STEP 1s")
    bench.push("t", 1_500, "a p b")
    bench.push("s", NOW, "a p b")
    assert wait(bench, clock, 10_000) == ["urn:s", "urn:t"]
    assert query.poll() == []
    (gap,) = query.gaps
    assert (gap.after, gap.until) == (1_400, NOW)


class TestStatus:
    def test_before_any_progress_every_stream_is_waited_for(self, bench):
        bench.declare("s")
        status = bench.register("?s :p ?o", "s RANGE 1s STEP 1s", header="REGISTER QUERY q AS").status()
        assert (status.name, status.state, status.registration_point, status.last, status.next) == (
            "q", "waiting", None, None, None,
        )  # fmt: skip
        (wait,) = status.waits_for
        assert (wait.stream, wait.watermark, wait.required, wait.publisher) == ("urn:s", None, None, None)

    def test_what_releases_it_does(self, bench):
        bench.declare("s", batch_ms=300, lateness_ms=50)
        query = bench.register("?s :p ?o", "s RANGE 1s STEP 1s")
        bench.push("s", 100, "a p b")
        (wait,) = query.status().waits_for
        assert wait.release == "an event on <urn:s> later than 1250 ms, or advance to 1200 ms"
        bench.push("s", 1_250, "a p b")
        assert query.poll() == []
        bench.push("s", 1_251, "a p b")
        assert [e.time for e in query.poll()] == [1_000]
        assert query.status().last == 1_000

    def test_a_stopped_one_waits_for_nothing(self, bench):
        bench.declare("s")
        query = bench.register("?s :p ?o", "s RANGE 1s STEP 1s")
        query.stop()
        assert (query.status().state, query.status().waits_for) == ("stopped", ())


class TestTiming:
    def test_a_declaration_without_timing_warns_what_it_means(self, bench):
        with pytest.warns(penstock.UnboundedStorageWarning, match="every tuple is stored for ever"):
            bench.engine.declare_stream("urn:n")

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("timing", ["all", (), ["urn:p"]])
    def test_one_that_says_it_does_not(self, bench, timing):
        bench.engine.declare_stream("urn:n", timing=timing)

    def test_what_a_stream_has_stored_is_counted_over_restarts(self, make_bench, tmp_path):
        bench = make_bench(data_dir=tmp_path)
        bench.declare("s", timing=["urn:q"])
        for time in (10, 20):
            bench.push("s", time, "a p b", "a q b")
        bench.advance("s", 1_000)
        bench.reopen()
        bench.push("s", 1_500, "c p d")
        bench.advance("s", 2_000)
        assert bench.engine.stats()["streams"]["urn:s"]["stored_tuples"] == 3
