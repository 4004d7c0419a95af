"""The commands of docs/api.md as a user types them: what they print, where, and their exit codes."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

S = "http://ex.org/posts"
QUERY = (
    f"REGISTER QUERY alerts AS SELECT ?s ?o FROM STREAM <{S}> [RANGE 1s STEP 1s] WHERE {{ ?s <http://ex.org/p> ?o }}"
)


def penstock(*arguments: object, timeout: float = 60, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "COLUMNS": "120"}
    return subprocess.run(
        [sys.executable, "-m", "penstock", *map(str, arguments)],
        capture_output=True, text=True, timeout=timeout, check=False, env=environment, **options,
    )  # fmt: skip


@pytest.fixture
def events(tmp_path: Path) -> Path:
    path = tmp_path / "posts.nqs"
    path.write_text(
        "100 <urn:a> <http://ex.org/p> _:x .\n100 _:x <http://ex.org/p> <urn:b> .\n1500 <urn:c> <http://ex.org/p> <urn:d> .\n3001 <urn:e> <http://ex.org/q> <urn:f> .\n",
        encoding="utf-8",
    )
    return path


@pytest.fixture
def query_file(tmp_path: Path) -> Path:
    path = tmp_path / "alerts.rq"
    path.write_text(QUERY, encoding="utf-8")
    return path


def test_load_then_query_in_every_format(tmp_path: Path) -> None:
    data, folder = tmp_path / "people.ttl", tmp_path / "data"
    data.write_text('@prefix : <http://ex.org/> . :ann :knows :bob ; :name "Ann, A."@en ; :age 30 .', encoding="utf-8")
    loaded = penstock("load", data, "--data-dir", folder)
    assert loaded.returncode == 0, loaded.stderr
    text = "SELECT ?p ?o WHERE { <http://ex.org/ann> ?p ?o } ORDER BY ?p"
    as_json = json.loads(penstock("query", text, "--data-dir", folder, "--format", "json").stdout)
    assert [b["o"]["value"] for b in as_json["results"]["bindings"]] == ["30", "http://ex.org/bob", "Ann, A."]
    rows = list(csv.reader(io.StringIO(penstock("query", text, "--data-dir", folder, "--format", "csv").stdout)))
    assert rows[0] == ["p", "o"]
    assert [row[1] for row in rows[1:]] == ["30", "http://ex.org/bob", "Ann, A."]
    tsv = penstock("query", text, "--data-dir", folder, "--format", "tsv").stdout.splitlines()
    assert tsv[0] == "?p\t?o"
    assert '"Ann, A."@en' in tsv[3]
    assert "<literal" in penstock("query", text, "--data-dir", folder, "--format", "xml").stdout
    table = penstock("query", text, "--data-dir", folder).stdout
    assert "Ann, A." in table


def test_load_into_a_named_graph_and_query_from_a_file(tmp_path: Path) -> None:
    data, folder, query = tmp_path / "d.nt", tmp_path / "data", tmp_path / "q.rq"
    data.write_text("<urn:a> <urn:p> <urn:b> .\n", encoding="utf-8")
    query.write_text("ASK { GRAPH <urn:g> { <urn:a> <urn:p> <urn:b> } }", encoding="utf-8")
    assert penstock("load", data, "--data-dir", folder, "--graph", "urn:g").returncode == 0
    asked = penstock("query", f"@{query}", "--data-dir", folder, "--format", "json")
    assert json.loads(asked.stdout)["boolean"] is True


def test_run_prints_one_json_line_an_evaluation(query_file: Path, events: Path) -> None:
    done = penstock("run", query_file, "--stream", f"{S}={events}", "--speed", "max", "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["time"] for line in lines][:3] == [1000, 2000, 3000]
    assert {line["query"] for line in lines} == {"alerts"}
    assert lines[0]["windows"] == {S: [0, 1000]}
    assert [len(line["results"]["bindings"]) for line in lines][:3] == [2, 1, 0]
    assert all(line["head"]["vars"] == ["s", "o"] for line in lines)
    assert all("snapshot" in line and "attempt" in line for line in lines)


def test_run_joins_a_nodes_own_message_and_stored_data(tmp_path: Path, events: Path) -> None:
    stored, query = tmp_path / "stored.nt", tmp_path / "join.rq"
    stored.write_text('<urn:b> <http://ex.org/label> "Bee" .\n', encoding="utf-8")
    query.write_text(
        f"REGISTER QUERY j AS SELECT ?l FROM STREAM <{S}> [RANGE 1s STEP 1s] FROM <urn:g> "
        "WHERE { <urn:a> <http://ex.org/p> ?x . ?x <http://ex.org/p> ?b . ?b <http://ex.org/label> ?l }",
        encoding="utf-8",
    )
    done = penstock(
        "run", query, "--data", f"urn:g={stored}", "--stream", f"{S}={events}", "--speed", "max", "--format", "jsonl"
    )
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout.splitlines()[0])
    assert [b["l"]["value"] for b in first["results"]["bindings"]] == ["Bee"]


def test_run_reads_a_stream_from_standard_input(query_file: Path, events: Path) -> None:
    with events.open(encoding="utf-8") as lines:
        done = penstock("run", query_file, "--stream", f"{S}=-", "--speed", "max", "--format", "jsonl", stdin=lines)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 3


def test_construct_prints_n_triples(tmp_path: Path, events: Path) -> None:
    query = tmp_path / "c.rq"
    query.write_text(
        f"REGISTER QUERY c AS CONSTRUCT {{ ?s <urn:saw> ?o }} FROM STREAM <{S}> [RANGE 1s STEP 1s] WHERE {{ ?s <http://ex.org/p> ?o }}",
        encoding="utf-8",
    )
    done = penstock("run", query, "--stream", f"{S}={events}", "--speed", "max", "--format", "jsonl")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert "<urn:c> <urn:saw> <urn:d> ." in lines[1]["graph"]


def test_a_query_error_exits_with_two_and_a_caret(tmp_path: Path, events: Path) -> None:
    broken = tmp_path / "broken.rq"
    broken.write_text("SELECT ?s\nWHERE { ?s ?p }", encoding="utf-8")
    for done in (
        penstock("run", broken, "--stream", f"{S}={events}"),
        penstock("query", f"@{broken}", "--data-dir", tmp_path / "data"),
        penstock("explain", f"@{broken}"),
    ):
        assert done.returncode == 2, done.stdout + done.stderr
        assert "line 2" in done.stderr
        assert "^" in done.stderr
        assert "Traceback" not in done.stderr


def test_wrong_usage_exits_with_two() -> None:
    for arguments in (["nonsense"], ["run"], ["load"], ["query"]):
        assert penstock(*arguments).returncode == 2, arguments


def test_work_that_fails_exits_with_one(tmp_path: Path, query_file: Path) -> None:
    broken = tmp_path / "broken.nt"
    broken.write_text("<urn:a> <urn:b> oops .\n", encoding="utf-8")
    for done in (
        penstock("load", broken, "--data-dir", tmp_path / "data"),
        penstock("load", tmp_path / "missing.nt", "--data-dir", tmp_path / "data"),
        penstock("run", query_file, "--stream", f"{S}={tmp_path / 'missing.nqs'}"),
    ):
        assert done.returncode == 1, done.stdout + done.stderr
        assert done.stderr.strip()
        assert "Traceback" not in done.stderr


def test_explain_prints_a_plan() -> None:
    done = penstock("explain", "SELECT ?s WHERE { ?s <urn:p> ?o . FILTER(?o > 3) }")
    assert done.returncode == 0, done.stderr
    assert "scan" in done.stdout.lower()


def test_the_demo_runs_plainly_for_some_seconds() -> None:
    began = time.monotonic()
    done = penstock("demo", "--seconds", 4, "--plain")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 5
    assert time.monotonic() - began < 20


@pytest.fixture
def ctrl_c_counts() -> Iterator[None]:
    """Processes started meanwhile heed SIGINT: a shell starts background jobs with it ignored, which is inherited."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_counts")
def test_ctrl_c_stops_cleanly() -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with subprocess.Popen(
        [sys.executable, "-m", "penstock", "demo", "--plain"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        running.stdout.readline()
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=20)
    assert "Traceback" not in out + err
    assert running.returncode in (0, 130)


def test_help_names_every_command() -> None:
    text = penstock("--help").stdout
    assert all(command in text for command in ("demo", "load", "query", "run", "explain"))
