"""`penstock load` of documents that are none."""

from __future__ import annotations

import pytest

from penstock.cli.app import main
from support.hostile import DOCUMENTS


def load(tmp_path, name: str, text: str) -> int:
    path = tmp_path / name
    path.write_text(text)
    return main(["load", str(path), "--data-dir", str(tmp_path / "data")])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"temperature": 21.5}', "needs a context"),
        ('{"@context": "https://schema.org/", "name": "x"}', "contexts are not fetched"),
        ("[" * 100_000, "max_json_depth"),
    ],
    ids=range(3),
)
def test_a_json_file_that_gives_no_triple_ends_with_exit_code_one(tmp_path, capsys, text, message):
    assert load(tmp_path, "x.json", text) == 1
    assert message in capsys.readouterr().err


def test_an_empty_json_document_is_loaded(tmp_path):
    assert load(tmp_path, "x.json", "{}") == 0


@pytest.mark.parametrize(("name", "ending"), [("entities", "rdf"), ("triple terms", "ttl"), ("bases on bases", "ttl")])
def test_a_hostile_file_ends_with_exit_code_one(tmp_path, capsys, name, ending):
    assert load(tmp_path, f"x.{ending}", DOCUMENTS[name][1](900_000)) == 1
    assert capsys.readouterr().err.startswith("error: ")


RML = """@prefix rml: <http://w3id.org/rml/> .
<#r> rml:logicalSource [ rml:source [ rml:path "x.csv" ] ; rml:referenceFormulation rml:CSV ] ;
  rml:subjectMap [ rml:template "urn:s:{id}" ] ;
  rml:predicateObjectMap [ rml:predicate <urn:v> ; rml:objectMap [ rml:reference "v" ] ] .
"""


@pytest.mark.parametrize("files", [["x.csv"], []], ids=["the file", "the files of the mapping"])
def test_data_files_are_loaded_by_a_mapping(tmp_path, capsys, files):
    (tmp_path / "x.csv").write_text("id,v\n1,a\n2,b\n")
    (tmp_path / "m.ttl").write_text(RML)
    given = [str(tmp_path / name) for name in files]
    data_dir = str(tmp_path / "data")
    assert main(["load", *given, "--mapping", str(tmp_path / "m.ttl"), "--data-dir", data_dir]) == 0
    assert capsys.readouterr().out.startswith("2 triples from 1 file ")
    assert main(["query", "SELECT ?v { <urn:s:2> <urn:v> ?v }", "--data-dir", data_dir, "--format", "csv"]) == 0
    assert capsys.readouterr().out.split() == ["v", "b"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give at least one file"),
        (["x.csv"], "does not imply an RDF format"),
        (["--mapping", "m.ttl", "--spark"], "give at least one file"),
        (["x.csv", "--mapping", "m.ttl", "--format", "avro"], "one of json, ndjson, csv, parquet"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path, capsys, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.csv").write_text("id,v\n1,a\n2,b,c\n")
    (tmp_path / "m.ttl").write_text(RML)
    assert main(["load", *options, "--data-dir", "data"]) != 0
    assert message in capsys.readouterr().err.replace("\n", " ")
