"""`penstock run` with query sets: files of members, keys, reports, messages about wrong options."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.cli import main

if TYPE_CHECKING:
    from pathlib import Path

S = "http://ex.org/posts"
TEXT = (
    f"REGISTER QUERY near (?user ?limit) AS SELECT ?o FROM STREAM <{S}> [RANGE 1s STEP 1s]"
    " WHERE { ?user <urn:p> ?o FILTER(?o < ?limit) }"
)
INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"
ROWS = [{"user": "urn:a", "limit": 5, "id": 1}, {"user": "urn:b", "limit": 9, "id": 2}]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "near.rq").write_text(TEXT)
    lines = [(100, "a", 4), (100, "b", 3), (1100, "a", 4), (1100, "b", 9), (2100, "a", 4)]
    (tmp_path / "posts.nqs").write_text("".join(f'{t} <urn:{s}> <urn:p> "{o}"{INTEGER} .\n' for t, s, o in lines))
    (tmp_path / "m.csv").write_text("user,limit,id\nurn:a,5,1\nurn:b,9,2\n")
    (tmp_path / "m.json").write_text(json.dumps(ROWS))
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    table = pa.Table.from_pylist(ROWS)
    with pa.ipc.new_file(tmp_path / "m.arrow", table.schema) as writer:
        writer.write_table(table)
    with pa.ipc.new_stream(tmp_path / "m.arrows", table.schema) as writer:
        writer.write_table(table)
    return tmp_path


def run(files: Path, *options: object) -> int:
    given = ["run", files / "near.rq", "--stream", f"{S}={files / 'posts.nqs'}", "--timing", "all", *options]
    return main([str(option) for option in given])


def results(out: str) -> list[tuple[Any, ...]]:
    lines = [json.loads(line) for line in out.splitlines()]
    return [(x["time"], x["member"], [b["o"]["value"] for b in x["results"]["bindings"]]) for x in lines]


@pytest.mark.parametrize("name", ["m.csv", "m.json", "m.jsonl", "m.arrow", "m.arrows"])
def test_members_of_a_file_report_when_their_answers_change(files, capsys, name):
    assert run(files, "--parameters", f"near={files / name}", "--key", "near=user", "--format", "jsonl") == 0
    assert results(capsys.readouterr().out) == [(1000, "urn:a", ["4"]), (1000, "urn:b", ["3"]), (2000, "urn:b", [])]


def test_reports_and_keys_of_other_types(files, capsys):
    options = ["--parameters", f"near={files / 'm.json'}", "--key", "near=id,user", "--report", "nonempty"]
    assert run(files, *options, "--format", "jsonl") == 0
    a, b = [1, "urn:a"], [2, "urn:b"]
    assert results(capsys.readouterr().out) == [(1000, a, ["4"]), (1000, b, ["3"]), (2000, a, ["4"]), (3000, a, ["4"])]


def test_changes_of_members(files, capsys):
    options = ["--parameters", f"near={files / 'm.csv'}", "--key", "near=id", "--format", "jsonl", "--changes"]
    assert run(files, *options) == 0
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (last["time"], last["member"], last["added"]["results"]["bindings"]) == (2000, 2, [])
    assert [row["o"]["value"] for row in last["removed"]["results"]["bindings"]] == ["3"]


def test_tables_name_the_members(files, capsys):
    assert run(files, "--parameters", f"near={files / 'm.csv'}", "--key", "near=id,user") == 0
    assert "near, 1, urn:a @ 1000 ms: 1 row" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ([], 1, "near is a query set: give its members as --parameters near=FILE"),
        (["--parameters", "m.csv"], 2, "--parameters"),
        (["--parameters", "near=m.csv", "--parameters", "far=m.csv"], 2, "far"),
        (["--parameters", "near=m.csv", "--report", "some"], 2, "--report"),
        (["--parameters", "near=m.xls"], 1, "m.xls: members are in a file"),
        (["--parameters", "near=few.csv"], 1, "limit"),
        (["--parameters", "near=bad.json"], 1, "no row is a member: not a member of near: user"),
    ],
)
def test_wrong_options_and_files(files, capsys, monkeypatch, options, code, message):
    monkeypatch.chdir(files)
    (files / "m.xls").write_text("")
    (files / "few.csv").write_text("user\nurn:a\n")
    (files / "bad.json").write_text('[{"user": 5, "limit": 5}]')
    assert run(files, *options) == code
    assert message in " ".join(capsys.readouterr().err.split())


def test_rejected_rows_are_counted(files, capsys):
    (files / "some.jsonl").write_text('{"user": "urn:a", "limit": 5}\n{"user": 7, "limit": 5}\n')
    assert run(files, "--parameters", f"near={files / 'some.jsonl'}", "--format", "jsonl") == 0
    assert "1 rows rejected, the first one because: not a member of near: user" in capsys.readouterr().err
