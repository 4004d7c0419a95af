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
