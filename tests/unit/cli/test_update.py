"""`penstock update`: texts and files, exit codes, and what is stored."""

from __future__ import annotations

import pytest

import penstock
from penstock.cli import main


def test_an_update_changes_the_graph_of_a_directory(tmp_path, capsys):
    data = str(tmp_path / "data")
    assert main(["update", "INSERT DATA { <urn:a> <urn:p> 1, 2 }", "--data-dir", data]) == 0
    assert capsys.readouterr().out == "2 triples added\n"
    text = tmp_path / "copy.ru"
    text.write_text("INSERT { <b> <urn:p> ?o } WHERE { <urn:a> <urn:p> ?o FILTER(?o > 1) }", encoding="utf-8")
    assert main(["update", f"@{text}", "--data-dir", data, "--base", "urn:x:/"]) == 0
    assert capsys.readouterr().out == "1 triple added\n"
    text = "DELETE { ?s <urn:p> 1, ?o } INSERT { ?s <urn:p> 3, 4 } WHERE { ?s <urn:p> ?o }"
    assert main(["update", text, "--data-dir", data]) == 0
    assert capsys.readouterr().out == "3 triples removed, 4 triples added\n"
    assert main(["update", "CLEAR GRAPH <urn:g>", "--data-dir", data]) == 0
    assert capsys.readouterr().out == "no change\n"
    with penstock.Engine(data, read_only=True) as engine:
        assert engine.query("ASK { <urn:x:/b> <urn:p> 4 }")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE GRAPH <urn:g> ;\nLOAD <urn:g>", "POST /data (line 2, column 1)"),
        ("INSERT DATA { ?s <urn:p> 1 }", "a variable cannot stand in INSERT DATA"),
        ("ASK {}", "a query is not an update"),
    ],
)
def test_what_cannot_be_executed_is_wrong_usage_with_its_position(tmp_path, capsys, text, message):
    assert main(["update", text, "--data-dir", str(tmp_path / "data")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "data").exists()
