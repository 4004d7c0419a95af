"""`penstock map`: the triples of a sample, the errors of mappings and messages."""

from __future__ import annotations

import io
import json
import sys

import pytest

from penstock.cli import main

RML = """@prefix rml: <http://w3id.org/rml/> . @prefix e: <urn:e:> .
<#r> rml:logicalSource [ rml:iterator "$" ; rml:source "in.json" ] ;
  rml:subjectMap [ rml:template "urn:s:{$.id}" ] ;
  rml:predicateObjectMap [ rml:predicate e:k ; rml:objectMap [ rml:reference "@key" ] ] ,
    [ rml:predicate e:h ; rml:objectMap [ rml:reference "@headers.h" ] ] .
"""


@pytest.fixture
def typed(monkeypatch):
    def type_in(data):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return type_in


def test_the_triples_of_a_message_are_shown(tmp_path, capsys, typed):
    mapping = tmp_path / "m.ttl"
    mapping.write_text(RML)
    typed(b'{"id": 1}')
    assert main(["map", "--mapping", str(mapping), "--key", "k", "--header", "H=x", "--timestamp", "7"]) == 0
    assert capsys.readouterr().out == '# event at 7\n<urn:s:1> <urn:e:k> "k" .\n<urn:s:1> <urn:e:h> "x" .\n'


def test_a_context_and_the_mapping_of_a_declaration_are_files_too(tmp_path, capsys):
    message, context, declared = tmp_path / "in.json", tmp_path / "c.jsonld", tmp_path / "m.json"
    message.write_text('{"v": "a", "at": 3}')
    context.write_text('{"@context": {"@vocab": "urn:e:", "at": null, "v": {"@id": "urn:e:v"}}}')
    declared.write_text('{"context": {"@vocab": "urn:e:", "at": null}, "time": {"path": "$.at", "unit": "ms"}}')
    assert main(["map", "--mapping", str(context), str(message), "--timestamp", "3"]) == 0
    first = capsys.readouterr().out
    assert main(["map", "--mapping", str(declared), str(message)]) == 0
    for shown in (first, capsys.readouterr().out):
        assert shown.startswith("# event at 3\n_:")
        assert shown.endswith(' <urn:e:v> "a" .\n')


def test_the_files_that_a_mapping_names_are_mapped(tmp_path, capsys):
    (tmp_path / "m.ttl").write_text(RML.replace("@key", "$.k"))
    (tmp_path / "in.json").write_text('{"id": 1, "k": "x"}')
    assert main(["map", "--files", "--mapping", str(tmp_path / "m.ttl")]) == 0
    assert capsys.readouterr().out == '<urn:s:1> <urn:e:k> "x" .\n'


def test_files_may_have_more_records_than_a_message(tmp_path, capsys):
    (tmp_path / "m.ttl").write_text(RML.replace("@key", "$.k").replace('"$"', '"$[*]"'))
    records = ",".join(json.dumps({"id": n, "k": 1}) for n in range(100_001))
    (tmp_path / "in.json").write_text(f"[{records}]")
    assert main(["map", "--files", "--mapping", str(tmp_path / "m.ttl")]) == 0
    assert capsys.readouterr().out.count("\n") == 100_001
    (tmp_path / "in.json").unlink()
    assert main(["map", "--files", "--mapping", str(tmp_path / "m.ttl")]) == 1
    assert "in.json: No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message", "error"),
    [
        (RML.replace("$.id", "$..id"), b"{}", "subject map (line 3): the path '$..id' has '..' (search)"),
        (RML, b'{"id": 1', "the message is not JSON: Expecting ',' delimiter (line 1, column 9)"),
        (RML, b'{"id": {}}', "$.id: an object where <urn:x-penstock:mapping#r>, subject map needs one value"),
        (RML, b'{"id": 1}', "no triple"),
    ],
)
def test_errors_name_the_place(tmp_path, capsys, typed, text, message, error):
    mapping = tmp_path / "m.ttl"
    mapping.write_text(text)
    typed(message)
    assert main(["map", "--mapping", str(mapping)]) == 1
    assert error in capsys.readouterr().err
