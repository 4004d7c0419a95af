"""`penstock run` and `penstock explain` in this process: options, replays of files, what is messages on standard error."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from penstock.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

S = "http://ex.org/posts"


class Done(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def penstock(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    def run(*arguments: object) -> Done:
        code = main([str(argument) for argument in arguments])
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def query_file(tmp_path: Path) -> Path:
    path = tmp_path / "alerts.rq"
    path.write_text(f"SELECT ?s FROM STREAM <{S}> [RANGE 1s STEP 1s] WHERE {{ ?s <http://ex.org/p> ?o }}")
    return path


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "posts.nqs"
    path.write_text("100 <urn:a> <http://ex.org/p> <urn:b> .\n3001 <urn:e> <http://ex.org/q> <urn:f> .\n")
    return path


@pytest.mark.parametrize(
    "options",
    [
        ["--speed", "often"],
        ["--speed", "0"],
        ["--speed", "nan"],
        ["--timing", "some"],
        ["--timing", "http://ex.org/other=all"],
        ["--absorb", f"{S}="],
    ],
)
def test_bad_options_are_wrong_usage(penstock: Any, query_file: Path, events: Path, options: list[str]) -> None:
    done = penstock("run", query_file, "--stream", f"{S}={events}", *options)
    assert (done.code, done.out) == (2, "")
    assert options[0] in done.err


@pytest.mark.parametrize("timing", ["all", f"{S}=all", f"{S}=http://ex.org/q,http://ex.org/p"])
def test_timing_keeps_tuples_out_of_the_stored_graph(penstock: Any, tmp_path: Path, events: Path, timing: str) -> None:
    query = tmp_path / "stored.rq"
    query.write_text(f"SELECT ?s FROM NAMED STREAM <{S}> [RANGE 1s] {{ ?s ?p ?o }}")
    arguments = ["run", query, "--stream", f"{S}={events}", "--format", "jsonl"]
    assert [len(rows) for rows in answers(penstock(*arguments, "--timing", timing))] == [0, 0, 0, 0]
    assert [len(rows) for rows in answers(penstock(*arguments))] == [1, 1, 1, 2]


def answers(done: Done) -> list[Any]:
    messages = [line for line in done.err.splitlines() if "has no --timing" not in line]
    assert (done.code, messages) == (0, [])
    return [json.loads(line)["results"]["bindings"] for line in done.out.splitlines()]


def test_what_is_odd_but_not_wrong_is_a_warning(penstock: Any, tmp_path: Path, events: Path) -> None:
    query = tmp_path / "gaps.rq"
    query.write_text(f"SELECT ?s FROM STREAM <{S}> [RANGE 1s STEP 2s] {{ ?s ?p ?o }}", encoding="utf-8")
    done = penstock("run", query, "--stream", f"{S}={events}", "--timing", "all")
    assert done.code == 0
    assert done.err.startswith(f"{query}: warning: the step of the window")


def late_recording(path: Path) -> Path:
    """Events of 50 s, more than are pushed at once; some of them half a second out of order."""
    times = [1_000 + 10 * i - (500 if i in (1_999, 2_001, 3_999) else 0) for i in range(5_000)]
    path.write_text("".join(f"{t} <urn:{i}> <http://ex.org/p> <urn:b> .\n" for i, t in enumerate(times)))
    return path


def test_what_comes_within_the_lateness_is_counted(penstock: Any, tmp_path: Path, query_file: Path) -> None:
    stream = f"{S}={late_recording(tmp_path / 'late.nqs')}"
    arguments = ["run", query_file, "--stream", stream, "--timing", "all", "--format", "jsonl"]
    rows = answers(penstock(*arguments, "--lateness", 1_000))
    assert sum(map(len, rows)) == 5_000
    assert f"3 late events on <{S}>" in penstock(*arguments).err


def test_files_of_one_stream_are_merged_by_time(penstock: Any, tmp_path: Path, query_file: Path) -> None:
    files = [tmp_path / "one.nqs", tmp_path / "two.nqs"]
    for offset, path in enumerate(files):
        times = range(1 + offset, 9_000, 2)
        path.write_text("".join(f"{t} <urn:{t}> <http://ex.org/p> <urn:b> .\n" for t in times))
    streams = [word for path in files for word in ("--stream", f"{S}={path}")]
    found = answers(penstock("run", query_file, *streams, "--format", "jsonl"))
    assert [len(rows) for rows in found] == [1_000] * 8 + [999]


def test_files_of_patches_remove(penstock: Any, tmp_path: Path) -> None:
    stream, query = tmp_path / "posts.rdfp", tmp_path / "stored.rq"
    stream.write_text("100 A <urn:a> <urn:p> <urn:b> .\n1100 D <urn:a> <urn:p> <urn:b> .\n")
    query.write_text(f"SELECT ?s FROM NAMED STREAM <{S}> [RANGE 1s] {{ ?s ?p ?o }}")
    done = penstock("run", query, "--stream", f"{S}={stream}", "--absorb", f"{S}=urn:g", "--format", "jsonl")
    assert [len(rows) for rows in answers(done)] == [0, 0]
    query.write_text(f"SELECT ?s FROM STREAM <{S}> [RANGE 1s] {{ GRAPH <urn:g> {{ ?s ?p ?o }} }}")
    done = penstock("run", query, "--stream", f"{S}={stream}", "--absorb", f"{S}=urn:g", "--format", "jsonl")
    assert [len(rows) for rows in answers(done)] == [1, 0]
    other = tmp_path / "other.nqs"
    other.write_text("100 <urn:a> <urn:p> <urn:b> .\n")
    files = ["--stream", f"{S}={stream}", "--stream", f"{S}={other}"]
    mixed = penstock("run", query, *files, "--absorb", f"{S}=urn:g")
    assert (mixed.code, "different formats" in mixed.err) == (1, True)


def test_the_last_instant_holds_the_last_event(penstock: Any, tmp_path: Path) -> None:
    stream, hourly, often = tmp_path / "s.nqs", tmp_path / "hourly.rq", tmp_path / "often.rq"
    stream.write_text("100 <urn:a> <http://ex.org/p> <urn:b> .\n1950 <urn:c> <http://ex.org/p> <urn:d> .\n")
    text = f"SELECT ?s FROM STREAM <{S}> [RANGE {{0}} STEP {{0}}] WHERE {{{{ ?s <http://ex.org/p> ?o }}}}"
    hourly.write_text("REGISTER QUERY hourly AS " + text.format("1h"))
    often.write_text("REGISTER QUERY often AS " + text.format("1s"))
    done = penstock("run", hourly, often, "--stream", f"{S}={stream}", "--timing", "all", "--format", "jsonl")
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [(e["query"], e["time"], len(e["results"]["bindings"])) for e in found] == [
        ("often", 1_000, 1),
        ("often", 2_000, 1),
        ("hourly", 3_600_000, 2),
    ]


def test_changes_are_in_the_lines_in_place_of_answers(penstock: Any, query_file: Path, events: Path) -> None:
    command = ["run", query_file, "--stream", f"{S}={events}", "--timing", "all", "--changes"]
    done = penstock(*command, "--format", "jsonl")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert all("results" not in line for line in lines)
    found = [tuple(len(line[part]["results"]["bindings"]) for part in ("added", "removed")) for line in lines]
    assert (done.code, found[:3]) == (0, [(1, 0), (0, 1), (0, 0)])
    assert penstock(*command).code == 2


def test_a_reader_of_a_derived_stream_may_come_first_and_reports_its_last_instant(
    penstock: Any, tmp_path: Path
) -> None:
    stream, reader, maker = tmp_path / "s.nqs", tmp_path / "1-reader.rq", tmp_path / "2-maker.rq"
    stream.write_text("100 <urn:a> <http://ex.org/p> <urn:b> .\n1950 <urn:c> <http://ex.org/p> <urn:d> .\n")
    reader.write_text("REGISTER QUERY reader AS SELECT ?s FROM STREAM <urn:d> [RANGE 10s STEP 5s] WHERE { ?s ?p ?o }")
    made = f"FROM STREAM <{S}> [RANGE 1s STEP 1s] WHERE {{ ?s <http://ex.org/p> ?o }}"
    maker.write_text(f"REGISTER STREAM <urn:d> AS CONSTRUCT {{ ?s <urn:q> ?o }} {made}")
    done = penstock("run", reader, maker, "--stream", f"{S}={stream}", "--timing", "all", "--format", "jsonl")
    assert (done.code, done.err) == (0, "")
    found = [json.loads(line) for line in done.out.splitlines()]
    read = [(e["time"], len(e["results"]["bindings"])) for e in found if e["query"] == "reader"]
    assert read == [(5_000, 2)]
    assert [e["time"] for e in found if e["query"] != "reader"] == [1_000, 2_000]


def test_a_query_that_cannot_be_registered_is_named(penstock: Any, tmp_path: Path, events: Path) -> None:
    query = tmp_path / "broken.rq"
    query.write_text("SELECT ?s FROM STREAM <urn:none> [RANGE 1s STEP 1s] WHERE { ?s ?p ?o }")
    done = penstock("run", query, "--stream", f"{S}={events}", "--timing", "all")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"{query}:\n")
    assert "unknown stream <urn:none>" in done.err


def test_a_stream_without_timing_is_a_warning(penstock: Any, query_file: Path, events: Path) -> None:
    arguments = ["run", query_file, "--stream", f"{S}={events}"]
    assert penstock(*arguments).err == f"warning: stream <{S}> has no --timing: every event is stored as well\n"
    assert penstock(*arguments, "--timing", "all").err == ""
    assert penstock(*arguments, "--absorb", f"{S}=urn:g").err == ""


def test_a_recording_without_a_valid_event_is_an_error(penstock: Any, tmp_path: Path, query_file: Path) -> None:
    stream = tmp_path / "s.nqs"
    arguments = ["run", query_file, "--stream", f"{S}={stream}", "--timing", "all"]
    stream.write_text("100 <urn:a> <http://ex.org/p> 1 .\n")
    done = penstock(*arguments)
    assert (done.code, done.err.splitlines()[0][:47]) == (1, "error: no event is valid: 1 event rejected, the")
    stream.write_text("100 <urn:a> <http://ex.org/p> 1 .\n200 <urn:a> <http://ex.org/p> <urn:b> .\n")
    done = penstock(*arguments)
    assert (done.code, done.err[:27]) == (0, "1 event rejected, the first")


def test_explain_takes_what_a_standing_query_names_as_there(penstock: Any, tmp_path: Path) -> None:
    folder, data = tmp_path / "data", tmp_path / "d.nt"
    data.write_text("<urn:a> <http://lab/fo> <urn:b> .\n", encoding="utf-8")
    text = (
        "SELECT * FROM Tweets [RANGE 10s STEP 1s] FROM Lab { ?x po ?z GRAPH Lab { ?x fo ?y } GRAPH Other { ?y ?p ?z } }"
    )
    done = penstock("explain", text, "--base", "http://lab/")
    assert done.code == 0, done.err
    assert "window 0: <http://lab/Tweets>, the last 10000 ms, every 1000 ms" in done.out
    assert penstock("load", data, "--data-dir", folder).code == 0
    assert penstock("explain", text, "--base", "http://lab/", "--data-dir", folder).code == 0
    assert penstock("explain", text).code == 2  # bare names without a base
