"""A restart continues where the last checkpoint was: nothing forgotten, nothing twice."""

from __future__ import annotations

import os
import shutil

import pytest
import rdflib

import penstock
from penstock import StorageError
from penstock.engine.checkpoint import checkpoint_reader as restoring
from support.bench import Bench, rows, timeline

SCENES = {
    "window": {"windows": ("s RANGE 500ms STEP 100ms",)},
    "istream": {"windows": ("s RANGE 300ms STEP 100ms",), "header": "REGISTER ISTREAM q AS"},
    "dstream": {"windows": ("s RANGE 300ms STEP 100ms",), "header": "REGISTER DSTREAM q AS"},
    "unequal": {"windows": ("s RANGE 500ms STEP 200ms", "t RANGE 300ms STEP 300ms")},
    "count": {"windows": ("s TRIPLES 3 STEP 2",)},
    "counts": {"windows": ("s TRIPLES 3 STEP 2", "t TRIPLES 2 STEP 3")},
    "all": {"windows": ("s ALL STEP 200ms",)},
    "stream": {
        "windows": ("s RANGE 200ms STEP 100ms",),
        "select": "CONSTRUCT { ?s :made ?o ; :in _:b }",
        "header": "REGISTER STREAM <urn:d> AS",
    },
    "computed": {
        "body": '?s :p ?o BIND(CONCAT("a long text about ", STR(?o)) AS ?t)',
        "windows": ("s RANGE 500ms STEP 100ms",),
        "header": "REGISTER ISTREAM q AS",
    },
    "pairs": {"body": "?a :p ?o . ?b :p ?c", "select": "SELECT ?c ?a ?o", "windows": ("s RANGE 300ms STEP 100ms",)},
}


def play(bench, scene, restart_at, *, poll_always=True):
    """Run a small scene, with a restart before one of its steps; returns everything that was reported."""
    settings = dict(SCENES[scene])
    windows = settings.pop("windows")
    bench.declare("s", lateness_ms=50)
    bench.declare("t", batch_ms=70)
    bench.register(settings.pop("body", "?s :p ?o"), *windows, **settings)
    if scene == "stream":
        bench.register("?s :made ?o", "d RANGE 400ms STEP 200ms", header="REGISTER QUERY reader AS")
    seen = {name: {} for name in bench.engine.queries}
    for step in range(20):
        if step == restart_at:
            bench.reopen()
        time = 37 + 61 * step
        bench.push("s", time, f"a{step % 5} p b{step % 3}")
        if step % 2:
            bench.push("t", time + 10, f"t{step % 4} p b{step % 3}")
        if poll_always or step == 19:
            for name, query in bench.engine.queries.items():
                seen[name] |= {e.time: (e.windows, _shape(e)) for e in query.poll()}
    return seen


def _shape(evaluation):
    """Return rows without the names of blank nodes."""
    return [
        tuple("_" if word.startswith("b") and word[1:2].isdigit() and len(word) > 3 else word for word in row)
        for row in rows(evaluation.answer)
        if isinstance(row, tuple)
    ]


@pytest.mark.parametrize("restart_at", [0, 1, 7, 12, 19])
@pytest.mark.parametrize("scene", SCENES)
def test_a_restart_changes_no_answer(make_bench, tmp_path, scene, restart_at):
    expected = play(make_bench(), scene, None)
    assert sum(len(found) for found in expected.values()) > 3
    assert play(make_bench(data_dir=tmp_path), scene, restart_at) == expected


@pytest.mark.parametrize("scene", ["window", "istream", "stream", "computed"])
def test_what_was_not_polled_before_a_restart_is_polled_after_it(make_bench, tmp_path, scene):
    expected = play(make_bench(), scene, None)
    assert play(make_bench(data_dir=tmp_path), scene, 13, poll_always=False) == expected


@pytest.fixture
def bench(make_bench, tmp_path):
    return make_bench(data_dir=tmp_path / "data", limits=penstock.Limits(max_unpolled=50))


def test_everything_declared_and_registered_comes_back(bench):
    bench.declare(
        "s", batch_ms=50, timing=["urn:p"], absorb_into="urn:g", retention_ms=7, slice_mb=3, graph_history=True
    )
    bench.engine.load(b"<urn:a> <urn:p> <urn:b> .", graph="urn:h", format="nt")
    query = bench.register(":u :p ?o", "s RANGE 1s", header="REGISTER QUERY lasting AS")
    bench.push("s", 120, "u p x")
    before = bench.engine.streams
    bench.reopen()
    assert bench.engine.streams == before
    again = bench.engine.queries["lasting"]
    assert (again.text, again.registration_point) == (query.text, 100)
    assert bench.engine.query("ASK { GRAPH <urn:h> { <urn:a> <urn:p> <urn:b> } }") is True


def test_a_query_comes_back_whose_graph_went_with_the_stream_that_absorbed_into_it(bench):
    bench.declare("s", timing="all")
    bench.declare("t", absorb_into="urn:g")
    bench.register("?s ?p ?o FILTER NOT EXISTS { GRAPH :g { ?s ?p ?o } }", "s RANGE 100ms")
    bench.engine.drop_stream("urn:t")
    bench.reopen()
    bench.push("s", 250, "a p b")
    bench.advance("s", 300)
    assert timeline(bench.engine.queries["q1"]) == {300: [("a", "p", "b")]}


def test_an_unknown_registration_point_is_found_after_a_restart(bench):
    bench.declare("s")
    bench.register("?s ?p ?o", "s RANGE 100ms")
    bench.reopen()
    bench.push("s", 250, "a p b")
    bench.advance("s", 300)
    assert timeline(bench.engine.queries["q1"]) == {300: [("a", "p", "b")]}


def test_cohorts_merge_after_a_restart_as_they_would_have(bench):
    bench.declare("s")
    bench.register(":x :p ?o", "s RANGE 300ms STEP 100ms", header="REGISTER QUERY x AS")
    bench.advance("s", 0)
    bench.advance("s", 100)
    bench.register(":y :p ?o", "s RANGE 300ms STEP 100ms", header="REGISTER QUERY y AS")
    bench.push("s", 150, "x p a", "y p b")
    bench.advance("s", 200)
    bench.reopen()
    x, y = bench.engine.queries["x"], bench.engine.queries["y"]
    assert x._member.cohort is not y._member.cohort
    bench.advance("s", 600)
    assert x._member.cohort is y._member.cohort
    assert timeline(x)[400] == ["a"]
    assert timeline(y)[400] == ["b"]


def test_partly_polled_blocks_come_back_for_those_who_did_not_poll(bench):
    bench.declare("s")
    for name in ("x", "y", "gone"):
        bench.register(f":{name} :p ?o", "s RANGE 100ms", header=f"REGISTER QUERY {name} AS")
    bench.push("s", 50, "x p a", "y p b", "gone p c")
    bench.advance("s", 200)
    bench.engine.queries["x"].poll(1)
    bench.engine.queries["gone"].stop()
    bench.reopen()
    assert timeline(bench.engine.queries["x"]) == {200: []}
    assert timeline(bench.engine.queries["y"]) == {100: ["b"], 200: []}
    assert len(bench.engine.queries["y"]._member.cohort.log) == 0


def test_a_query_that_took_a_stopped_ones_name_is_not_taken_for_it(bench):
    bench.declare("s")
    bench.register(":x :p ?o", "s RANGE 100ms", header="REGISTER QUERY same AS")
    bench.register(":y :p ?o", "s RANGE 100ms", header="REGISTER QUERY other AS")
    bench.push("s", 50, "x p a", "y p b")
    bench.advance("s", 100)
    bench.engine.queries["same"].stop()
    bench.register(":x :p ?o", "s RANGE 100ms", header="REGISTER QUERY same AS")
    bench.reopen()
    assert bench.engine.queries["same"].poll() == []
    assert timeline(bench.engine.queries["other"]) == {100: ["b"]}


def test_late_events_dead_letters_gaps_and_errors_come_back(bench):
    bench.declare("s")
    query = bench.register("?s ?p ?o", "s RANGE 100ms", header="REGISTER QUERY q AS")
    bench.push("s", 50, "a p b")
    bench.push("s", 10, "late p b")
    with pytest.raises(penstock.DataError):
        bench.engine.push("urn:s", b"\xff", timestamp=60)
    bench.advance("s", 500, skip=True)
    bench.engine._runtime.core.limits = penstock.Limits(evaluation_timeout_s=1e-9)
    bench.advance("s", 600)
    assert query.unpolled() == 1
    bench.reopen()
    assert [e.timestamp for e in bench.engine.late("urn:s")] == [10]
    assert [e.data for e in bench.engine.dead_letters()] == [b"\xff"]
    query = bench.engine.queries["q"]
    assert query.gaps == [penstock.Gap(0, 500, 5)]
    (evaluation,) = query.poll()
    assert isinstance(evaluation.error, penstock.LimitError)
    with pytest.raises(penstock.LimitError):
        evaluation.answer  # noqa: B018


def test_ids_that_a_user_holds_stay_the_same(bench):
    ids = bench.engine.encode([rdflib.URIRef("urn:mine"), rdflib.Literal("a text of some length")])
    bench.reopen()
    assert [str(t) for t in bench.engine.decode(ids)] == ["urn:mine", "a text of some length"]


def test_fresh_blank_nodes_after_a_restart_are_new_ones(bench):
    bench.engine.update("INSERT DATA { _:b <urn:p> <urn:first> }")
    bench.reopen()
    bench.engine.update("INSERT DATA { _:b <urn:p> <urn:second> }")
    answer = bench.engine.query("SELECT (COUNT(DISTINCT ?s) AS ?n) WHERE { ?s <urn:p> ?o }")
    assert rows(answer) == ["2"]


# ---- crashes
def crash(bench, tmp_path):
    """Go on from a copy of the directory, as a power cut would have left it."""
    shutil.copytree(bench.settings["data_dir"], tmp_path / "copy")
    bench.engine.close()
    bench.settings["data_dir"] = tmp_path / "copy"
    bench.engine = penstock.Engine(**bench.settings)


def test_after_a_crash_the_state_is_the_last_checkpoints_and_stats_say_what_to_push_again(bench, tmp_path):
    bench.declare("s", lateness_ms=100)
    query = bench.register("?s :p ?o", "s RANGE 100ms", header="REGISTER QUERY q AS")
    for time in (10, 250, 180, 260):
        bench.push("s", time, f"a p v{time}")
    query.poll()
    bench.engine.checkpoint()
    bench.push("s", 500, "a p v500")
    assert timeline(query)
    crash(bench, tmp_path)
    stats = bench.engine.stats()["streams"]["urn:s"]
    assert stats["watermark"] == 159
    assert stats["push_again"] == {"from": 160, "skip": 3}
    bench.push("s", 500, "a p v500")
    bench.advance("s", 600)
    (first, *_) = evaluations = bench.engine.queries["q"].poll()
    assert [e.time for e in evaluations] == [200, 300, 400, 500, 600]
    assert rows(first.answer) == [("a", "v180")]
    assert first.attempt == 2


def test_a_refused_event_counts_as_arrived_when_its_producer_starts_again(bench):
    bench.declare("s", lateness_ms=1000)
    bench.register("?s :p ?o", "s TRIPLES 2", header="REGISTER QUERY q AS")
    events = [(1010, "<urn:a> <urn:p> <urn:1> ."), (1020, "no triple"), (1030, "<urn:a> <urn:p> <urn:3> .")]
    bench.engine.push_events("urn:s", events)
    bench.reopen()
    again = bench.engine.stats()["streams"]["urn:s"]["push_again"]
    left = [event for event in events if event[0] >= again["from"]][again["skip"] :]
    assert left == []
    bench.engine.push_events("urn:s", left)
    bench.advance("s", 2000)
    (evaluation,) = bench.engine.queries["q"].poll()
    assert sorted(rows(evaluation.answer)) == [("a", "1"), ("a", "3")]


def test_so_does_one_that_was_too_far_ahead(bench):
    bench.declare("s", lateness_ms=100, max_ahead_ms=1 << 50)
    bench.push("s", 1000, "a p b")
    with pytest.raises(penstock.DataError, match="max_ahead_ms"):
        bench.push("s", 1 << 59, "a p c")
    bench.reopen()
    assert bench.engine.stats()["streams"]["urn:s"]["push_again"] == {"from": 900, "skip": 2}


def test_refused_events_are_counted_up_to_a_bound(make_bench):
    bench = make_bench(limits=penstock.Limits(max_refused=3))
    bench.declare("s", lateness_ms=100)
    bench.engine.push_events("urn:s", [(1000, "<urn:a> <urn:p> <urn:b> ."), *[(1001, "bad")] * 9])
    assert bench.engine.stats()["streams"]["urn:s"]["push_again"] == {"from": 900, "skip": 4}


def test_a_clean_end_is_no_crash(bench):
    bench.declare("s")
    bench.reopen()
    assert bench.engine.stats()["attempt"] == 1


def test_a_crash_before_any_checkpoint_leaves_nothing(bench, tmp_path):
    bench.declare("s")
    crash(bench, tmp_path)
    assert dict(bench.engine.streams) == {}


def test_a_checkpoint_without_a_directory_is_an_error():
    bench = Bench()
    with pytest.raises(StorageError, match="data_dir"):
        bench.engine.checkpoint()
    bench.engine.close()


def test_two_engines_on_one_directory_are_refused(bench):
    with pytest.raises(StorageError, match="LOCK"):
        penstock.Engine(data_dir=bench.settings["data_dir"])


def test_a_read_only_engine_works_on_a_copy(bench):
    bench.engine.update("INSERT DATA { <urn:a> <urn:p> <urn:b> }")
    bench.engine.checkpoint()
    with penstock.Engine(data_dir=bench.settings["data_dir"], read_only=True) as reader:
        assert reader.query("ASK { <urn:a> <urn:p> <urn:b> }") is True
        reader.update("INSERT DATA { <urn:c> <urn:p> <urn:d> }")
        with pytest.raises(StorageError):
            reader.checkpoint()
    assert bench.engine.query("ASK { <urn:c> ?p ?o }") is False
    bench.engine.checkpoint()


def test_a_checkpoint_while_evaluations_are_handed_over_keeps_those_that_are_not_yet(bench):
    bench.declare("s")
    query = bench.register("?s ?p ?o", "s RANGE 200ms STEP 100ms", header="REGISTER QUERY q AS")
    query.subscribe(lambda e: bench.engine.checkpoint() if e.time == 200 else None)
    bench.push("s", 50, "a p b")
    bench.advance("s", 500)
    bench.engine._directory.close(clean=False)  # as a crash leaves it
    bench.engine = penstock.Engine(**bench.settings)
    again = bench.engine.queries["q"]
    assert timeline(again) == {300: [], 400: [], 500: []}
    bench.advance("s", 600)
    assert timeline(again) == {600: []}


def test_a_reader_under_whom_the_checkpoint_is_replaced_reads_the_new_one(bench, monkeypatch):
    bench.declare("s")
    bench.engine.checkpoint()
    read, replaced = restoring.read_json, []

    def replace_meanwhile(path):
        found = read(path)
        if not replaced:
            replaced.append(path)
            bench.engine.checkpoint()
        return found

    monkeypatch.setattr(restoring, "read_json", replace_meanwhile)
    with penstock.Engine(data_dir=bench.settings["data_dir"], read_only=True) as reader:
        assert list(reader.streams) == ["urn:s"]


def test_every_corrupt_file_is_named(bench):
    bench.declare("s")
    bench.register("?s ?p ?o", "s RANGE 100ms")
    bench.push("s", 50, "a p b")
    bench.engine.close()
    (folder,) = bench.settings["data_dir"].glob("checkpoint-*")
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        size = path.stat().st_size
        if not size:
            continue
        with path.open("r+b") as file:
            file.seek(size // 2)
            byte = file.read(1)
            file.seek(size // 2)
            file.write(bytes([byte[0] ^ 0xFF]))
        with pytest.raises(StorageError, match=path.name):
            penstock.Engine(data_dir=bench.settings["data_dir"])
        with path.open("r+b") as file:
            file.seek(size // 2)
            file.write(byte)
    penstock.Engine(data_dir=bench.settings["data_dir"]).close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_cannot_be_written_is_a_storage_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError):
        penstock.Engine(data_dir=tmp_path / "data")


def test_checkpoints_replace_one_another(bench):
    for k in range(3):
        bench.engine.update(f"INSERT DATA {{ <urn:a> <urn:p> <urn:b{k}> }}")
        bench.engine.checkpoint()
        assert len(list(bench.settings["data_dir"].glob("checkpoint-*"))) == 1
