"""Events that are RDF Patches: what they add to and remove from the stored graph, and what windows contain of them."""

from __future__ import annotations

import shutil

import pytest

import penstock
from penstock import DataError, LimitError
from support.bench import Bench, timeline

PATCH = "application/rdf-patch"


def patch(*rows: str) -> str:
    """Rows such as `A a p b`."""
    return "".join(f"{row[0]} " + "".join(f"<urn:{word}> " for word in row.split()[1:]) + ".\n" for row in rows)


def stored(engine: penstock.Engine, graph: str | None = None) -> list[str]:
    pattern = "?s ?p ?o" if graph is None else f"GRAPH <{graph}> {{ ?s ?p ?o }}"
    found = engine.query(f"SELECT * {{ {pattern} }}")
    return sorted(" ".join(str(row[v]).removeprefix("urn:") for v in "spo") for row in found)


@pytest.fixture
def bench(make_bench):
    made = make_bench()
    made.declare("s", timing=["urn:t"], lateness_ms=0)
    return made


def test_a_removal_is_visible_with_its_batch(bench):
    bench.engine.push("urn:s", patch("A a p b", "A c p d"), 50, PATCH)
    bench.engine.push("urn:s", patch("D a p b", "A e p f"), 150, PATCH)
    bench.advance("s", 199)
    assert stored(bench.engine) == ["a p b", "c p d"]
    bench.advance("s", 200)
    assert stored(bench.engine) == ["c p d", "e p f"]


def test_the_last_operation_of_a_batch_decides_by_time_and_arrival(bench):
    bench.engine.declare_stream("urn:late", lateness_ms=1000, timing=[])
    bench.engine.push("urn:late", patch("A a p b"), 60, PATCH)
    bench.engine.push("urn:late", patch("D a p b", "D c p d"), 50, PATCH)
    bench.engine.push("urn:late", "<urn:c> <urn:p> <urn:d> .", 50)
    bench.engine.push("urn:late", patch("A e p f", "D e p f"), 50, PATCH)
    bench.advance("late", 100)
    assert stored(bench.engine) == ["a p b", "c p d"]


def test_a_removal_concerns_the_graph_of_the_stream(bench):
    bench.engine.load(b"<urn:a> <urn:p> <urn:b> .", format="nt")
    bench.engine.load(b"<urn:a> <urn:p> <urn:b> . <urn:c> <urn:p> <urn:d> .", format="turtle", graph="urn:g")
    bench.declare("g", timing=[], absorb_into="urn:g")
    bench.engine.push("urn:g", patch("D a p b", "D never p stored"), 50, PATCH)
    bench.advance("g", 100)
    assert (stored(bench.engine), stored(bench.engine, "urn:g")) == (["a p b"], ["c p d"])


def test_a_removal_takes_no_assertion_out_of_a_window(bench):
    query = bench.register("?s :p ?o", "s RANGE 200ms STEP 100ms", select="SELECT ?s")
    bench.engine.push("urn:s", patch("A a p b"), 50, PATCH)
    bench.engine.push("urn:s", patch("D a p b"), 60, PATCH)
    bench.advance("s", 300)
    assert timeline(query) == {100: ["a"], 200: ["a"], 300: []}
    assert stored(bench.engine) == []


def test_a_standing_query_sees_the_removal_at_the_instant_that_contains_its_batch(bench):
    query = bench.engine.register(
        "SELECT (COUNT(*) AS ?n) FROM STREAM <urn:s> [RANGE 100ms STEP 100ms] FROM NAMED <urn:x-penstock:stored>"
        " { GRAPH <urn:x-penstock:stored> { ?s <urn:p> ?o } }"
    )
    bench.engine.push("urn:s", patch("A a p b", "A c p d"), 50, PATCH)
    bench.engine.push("urn:s", patch("D a p b"), 150, PATCH)
    bench.advance("s", 300)  # one closing of all batches: each instant has its own state
    assert timeline(query) == {100: ["2"], 200: ["1"], 300: ["1"]}


def test_the_removal_of_a_timing_triple_is_a_dead_letter(bench):
    data = patch("A a p b", "D a t b")
    with pytest.raises(DataError, match=r"removes a triple of a timing predicate \(<urn:t>\): "):
        bench.engine.push("urn:s", data, 50, PATCH)
    report = bench.engine.push_events(
        "urn:s", [(60, patch("A c p d", "D c p d")), (70, data), (80, patch("A e p f"))], PATCH
    )
    assert (report.accepted, report.rejected) == (2, 1)
    letters = bench.engine.dead_letters()
    assert [(letter.timestamp, letter.data) for letter in letters] == [(50, data.encode()), (70, data.encode())]
    bench.declare("all", timing="all")
    with pytest.raises(DataError, match="timing predicate"):
        bench.engine.push("urn:all", patch("D a p b"), 50, PATCH)
    bench.advance("s", 100)
    assert stored(bench.engine) == ["e p f"]


def test_an_invalid_patch_is_a_dead_letter_and_the_others_are_accepted(bench):
    events = [(50, patch("A a p b")), (50, b"D <urn:a> <urn:p> ."), (50, patch("D a p b")), (50, "")]
    report = bench.engine.push_events("urn:s", events, PATCH)
    assert (report.accepted, report.rejected) == (3, 1)
    (letter,) = bench.engine.dead_letters()
    assert letter.data == b"D <urn:a> <urn:p> ."
    assert letter.reason.startswith("line 1, column 19")


def test_a_late_patch_changes_nothing(bench):
    bench.engine.push("urn:s", patch("A a p b"), 50, PATCH)
    bench.advance("s", 100)
    report = bench.engine.push("urn:s", patch("D a p b"), 100, PATCH)
    assert report.late == 1
    assert [event.data for event in bench.engine.late("urn:s")] == [patch("D a p b").encode()]
    bench.advance("s", 200)
    assert stored(bench.engine) == ["a p b"]


def test_late_and_accepted_patches_of_one_push(bench):
    bench.advance("s", 40)
    events = [(50, patch("A a p b", "D c p d")), (30, patch("A late p b")), (60, patch("D a p b", "A c p d"))]
    report = bench.engine.push_events("urn:s", events, PATCH)
    assert (report.accepted, report.late) == (2, 1)
    bench.advance("s", 100)
    assert stored(bench.engine) == ["c p d"]


def test_a_patch_that_is_too_large_or_beyond_the_budget_changes_nothing(make_bench):
    bench = make_bench(limits=penstock.Limits(max_event_bytes=100))
    bench.declare("s", timing=[])
    with pytest.raises(DataError, match="max_event_bytes"):
        bench.engine.push("urn:s", patch(*["D a p b"] * 10), 50, PATCH)
    bench = make_bench()
    bench.declare("s", timing=[], slice_mb=1)
    rows = [f"{'AD'[i % 2]} a{i} p b" for i in range(20_000)]
    with pytest.raises(LimitError, match="budget"):
        bench.engine.push("urn:s", patch(*rows), 50, PATCH)
    bench.advance("s", 100)
    assert stored(bench.engine) == []


def test_open_removals_survive_a_restart_and_a_crash(make_bench, tmp_path):
    bench = make_bench(data_dir=tmp_path / "data", durability="commit")
    bench.declare("s", timing=[])
    bench.engine.push("urn:s", patch("A a p b", "A c p d"), 50, PATCH)
    bench.advance("s", 100)
    bench.engine.push("urn:s", patch("D a p b", "D c p d", "A c p d"), 150, PATCH)
    bench.reopen()
    bench.engine.push_events("urn:s", [(160, patch("A e p f", "D c p d")), (160, "no patch")], PATCH)
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    crashed = Bench(**bench.settings | {"data_dir": tmp_path / "copy"})
    for each in (bench, crashed):
        each.advance("s", 200)
        assert stored(each.engine) == ["e p f"]
        assert len(each.engine.dead_letters()) == 1
        each.engine.close()


def test_terms_of_removed_triples_are_forgotten(make_bench):
    bench = make_bench()
    bench.declare("s", timing=[])
    for i in range(1, 400):
        bench.engine.push("urn:s", patch(f"D a{i} p b{i}"), 100 * i, PATCH)
    bench.advance("s", 50_000)
    assert bench.engine.stats()["terms"] < 300


def removals(bench: Bench, clauses: str, body: str, select: str = "?s") -> penstock.Query:
    return bench.engine.register(f"SELECT {select} {clauses} {{ {body} }}")


class TestWindowsOfRemovals:
    def test_contain_the_removed_rows_of_the_window(self, bench):
        query = removals(bench, "REMOVED FROM STREAM <urn:s> [RANGE 200ms STEP 100ms]", "?s ?p ?o")
        bench.engine.push("urn:s", patch("A a p b", "D b p b"), 50, PATCH)
        bench.engine.push("urn:s", patch("D c p b", "D c p b"), 150, PATCH)  # need not have been stored
        bench.engine.push("urn:s", patch("A e p b"), 250, PATCH)
        bench.advance("s", 400)
        assert timeline(query) == {100: ["b"], 200: ["b", "c"], 300: ["c"], 400: []}

    def test_are_addressed_like_those_of_assertions(self, bench):
        where = "GRAPH <urn:s> { ?s ?p ?o }"
        named = removals(bench, "REMOVED FROM NAMED STREAM <urn:s> [RANGE 100ms]", where)
        any_graph = removals(bench, "REMOVED FROM NAMED STREAM <urn:s> [RANGE 100ms]", "GRAPH ?g { ?s ?p ?o }", "?g")
        both = removals(
            bench,
            "REMOVED FROM NAMED WINDOW <urn:gone> ON <urn:s> [RANGE 300ms STEP 100ms]"
            " FROM NAMED WINDOW <urn:new> ON <urn:s> [RANGE 100ms]",
            "WINDOW <urn:gone> { ?s ?p ?old } WINDOW <urn:new> { ?s ?p ?new }",
            "?s ?old ?new",
        )
        bench.engine.push("urn:s", patch("A a p 1"), 50, PATCH)
        bench.engine.push("urn:s", patch("D a p 1", "A a p 2"), 150, PATCH)
        bench.advance("s", 200)
        assert timeline(named) == {100: [], 200: ["a"]}
        assert timeline(any_graph) == {100: [], 200: ["s"]}
        assert timeline(both) == {100: [], 200: [("a", "1", "2")]}

    def test_join_the_stored_graph_of_their_instant(self, bench):
        """An alert: what is left of a node when its type is removed."""
        query = removals(
            bench,
            "REMOVED FROM NAMED STREAM <urn:s> [RANGE 100ms] FROM <urn:x-penstock:stored>",
            "GRAPH <urn:s> { ?s <urn:type> ?o } ?s <urn:name> ?name FILTER NOT EXISTS { ?s <urn:type> ?any }",
            "?name",
        )
        bench.engine.push(
            "urn:s", patch("A a type x", "A a name n", "A b type x", "A b type y", "A b name m"), 50, PATCH
        )
        bench.engine.push("urn:s", patch("D a type x", "D b type x"), 150, PATCH)
        bench.advance("s", 300)
        assert timeline(query) == {100: [], 200: ["n"], 300: []}

    def test_keep_the_slices_that_they_need_and_no_others(self, bench):
        query = removals(bench, "REMOVED FROM STREAM <urn:s> [RANGE 500ms STEP 100ms]", "?s ?p ?o", "(COUNT(*) AS ?n)")
        for i in range(100):
            bench.engine.push("urn:s", patch(f"D a{i} p b"), 100 * i + 50, PATCH)
        bench.advance("s", 10_000)
        counts = [found[0] for found in timeline(query).values()]
        assert counts == ["1", "2", "3", "4", *["5"] * 96]
        assert bench.engine.stats()["streams"]["urn:s"]["live_tuples"] <= 6
        query.stop()
        bench.engine.push("urn:s", patch("D a p b"), 10_050, PATCH)
        bench.advance("s", 10_200)
        assert bench.engine.stats()["streams"]["urn:s"]["live_tuples"] == 0

    def test_survive_a_restart_and_a_crash(self, make_bench, tmp_path):
        bench = make_bench(data_dir=tmp_path / "data", durability="commit")
        bench.declare("s", timing=[])
        removals(bench, "REMOVED FROM STREAM <urn:s> [RANGE 300ms STEP 100ms]", "?s ?p ?o")
        bench.engine.push("urn:s", patch("D a p b"), 50, PATCH)
        bench.engine.push("urn:s", patch("D b p b"), 150, PATCH)
        bench.advance("s", 150)
        bench.reopen()
        bench.engine.push("urn:s", patch("D c p b"), 250, PATCH)
        shutil.copytree(tmp_path / "data", tmp_path / "copy")
        crashed = Bench(**bench.settings | {"data_dir": tmp_path / "copy"})
        for each in (bench, crashed):
            each.advance("s", 400)
            (query,) = each.engine.queries.values()
            assert timeline(query) == {100: ["a"], 200: ["a", "b"], 300: ["a", "b", "c"], 400: ["b", "c"]}
            each.engine.close()

    def test_feed_derived_streams_and_stream_operators(self, bench):
        bench.engine.register(
            "REGISTER STREAM <urn:gone> AS CONSTRUCT { ?s <urn:gone> ?o }"
            " REMOVED FROM STREAM <urn:s> [RANGE 100ms STEP 100ms] { ?s <urn:p> ?o }"
        )
        reader = bench.register("?s ?p ?o", "gone RANGE 100ms", select="SELECT ?s")
        lost = bench.engine.register(
            "REGISTER DSTREAM d AS SELECT ?s REMOVED FROM STREAM <urn:s> [RANGE 100ms STEP 100ms] { ?s ?p ?o }"
        )
        bench.engine.push("urn:s", patch("D a p b", "A c p d"), 50, PATCH)
        bench.advance("s", 300)
        found = timeline(reader)
        assert (found[100], found[200]) == (["a"], [])
        assert timeline(lost) == {100: [], 200: ["a"], 300: []}

    def test_queries_that_differ_in_the_word_do_not_share_a_window(self, bench):
        asserted = removals(bench, "FROM STREAM <urn:s> [RANGE 100ms]", "?s ?p ?o")
        gone = removals(bench, "REMOVED FROM STREAM <urn:s> [RANGE 100ms]", "?s ?p ?o")
        bench.engine.push("urn:s", patch("A a p b", "D c p b"), 50, PATCH)
        bench.advance("s", 100)
        assert (timeline(asserted), timeline(gone)) == ({100: ["a"]}, {100: ["c"]})
        assert "removals of <urn:s>, the last 100 ms" in bench.engine.explain(gone)
