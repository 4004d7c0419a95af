"""LOAD: files below `load_directory`, and nothing else."""

from __future__ import annotations

import gzip
import shutil

import pytest

import penstock
from penstock import DataError, QueryError
from penstock.cli import main


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "data files"
    (made / "sub").mkdir(parents=True)
    (made / "a.nt").write_text("<urn:a> <urn:p> <urn:b> .\n_:x <urn:p> _:x .\n")
    (made / "sub/b c.ttl").write_text("@prefix : <urn:> . :a :p 2 . <> :p <#x> .")
    with gzip.open(made / "z.nt.gz", "wt") as file:
        file.write("<urn:z> <urn:p> <urn:z> .\n")
    (made / "bad.nt").write_text("<urn:a> <urn:p> <urn:b> .\nno triple\n")
    (made / "text.md").write_text("text")
    (tmp_path / "secret.nt").write_text("<urn:secret> <urn:p> <urn:b> .\n")
    (made / "link.nt").symlink_to(tmp_path / "secret.nt")
    (made / "inner.nt").symlink_to(made / "a.nt")
    return made


@pytest.fixture
def engine(folder):
    with penstock.Engine(load_directory=folder) as made:
        yield made


def count(engine, pattern="?s ?p ?o"):
    return int(str(next(iter(engine.query(f"SELECT (COUNT(*) AS ?n) {{ {pattern} }}")))["n"]))


def test_documents_are_added_to_the_graph(engine, folder):
    assert engine.update("LOAD <file:a.nt>") == penstock.UpdateReport(2, 0)
    assert engine.update(f"LOAD <{(folder / 'a.nt').as_uri()}> INTO GRAPH <urn:g>").added == 2
    engine.update("LOAD <file:sub/b%20c.ttl> INTO GRAPH <urn:h> ; LOAD <file:z.nt.gz> ; LOAD <file:inner.nt>")
    assert (count(engine), count(engine, "GRAPH <urn:h> { ?s <urn:p> ?o }")) == (4, 2)
    assert engine.query(f"ASK {{ GRAPH <urn:h> {{ <{(folder / 'sub/b c.ttl').as_uri()}> ?p ?o }} }}")


def test_operations_of_a_text_see_what_a_load_has_added_and_are_one_snapshot(engine):
    before = engine.stats()["snapshot"]
    report = engine.update(
        "LOAD <file:a.nt> INTO GRAPH <urn:g> ; INSERT { ?s <urn:q> ?o } WHERE { GRAPH <urn:g> { ?s <urn:p> ?o } } ;"
        " DROP GRAPH <urn:g>"
    )
    assert report.added == 2
    assert engine.stats()["snapshot"] == before + 1
    assert count(engine) == count(engine, "?s <urn:q> ?o") == 2


@pytest.mark.parametrize(
    ("iri", "message"),
    [
        ("file:none.nt", "there is no file"),
        ("file:../secret.nt", "there is no file"),
        ("file:sub/../../secret.nt", "there is no file"),
        ("file:%2e%2e/secret.nt", "there is no file"),
        ("file:link.nt", "there is no file"),
        ("file:sub", "there is no file"),
        ("file:", "there is no file"),
        ("file:a%00.nt", "there is no file"),
        ("file:///etc/passwd", "there is no file"),
        ("file://host/a.nt", "LOAD reads files only"),
        ("file:a.nt?x", "LOAD reads files only"),
        ("http://localhost/a.nt", "LOAD reads files only"),
        ("a.nt", "LOAD reads files only"),
        ("file:bad.nt", "bad.nt"),
        ("file:text.md", "does not imply an RDF format"),
    ],
)
def test_anything_else_is_an_error_at_its_position_or_silently_nothing(engine, folder, iri, message):
    with pytest.raises(QueryError) as error:
        engine.update(f"INSERT DATA {{ <urn:a> <urn:p> 1 }} ;\n  LOAD <{iri}>")
    assert message in str(error.value)
    assert str(folder) not in str(error.value)
    assert (error.value.line, count(engine)) == (2, 0)
    assert error.value.column == 3
    assert engine.update(f"INSERT DATA {{ <urn:a> <urn:p> 1 }} ; LOAD SILENT <{iri}>").added == 1


def test_without_a_directory_load_is_an_error():
    with penstock.Engine() as engine:
        with pytest.raises(QueryError, match="LOAD is not supported without a load_directory") as error:
            engine.update("LOAD <file:a.nt>")
        assert (error.value.line, error.value.column) == (1, 1)
        assert engine.update("LOAD SILENT <file:a.nt>").added == 0


def test_the_setting_is_checked(tmp_path):
    with pytest.raises(DataError, match="is not a directory"):
        penstock.Engine(load_directory=tmp_path / "none")


def test_what_was_loaded_survives_a_crash(tmp_path, folder):
    with penstock.Engine(tmp_path / "data", durability="commit", load_directory=folder) as engine:
        engine.update("LOAD <file:z.nt.gz> ; DELETE DATA { <urn:none> <urn:p> 1 }")  # by the log
        engine.update("LOAD <file:a.nt>")  # blank nodes: by a checkpoint
        shutil.copytree(tmp_path / "data", tmp_path / "copy")
    with penstock.Engine(tmp_path / "copy", durability="commit") as engine:
        assert count(engine) == 3


def test_the_command_line_has_the_option(tmp_path, folder, capsys):
    data = str(tmp_path / "data")
    assert main(["update", "LOAD <file:a.nt>", "--data-dir", data, "--load-directory", str(folder)]) == 0
    assert capsys.readouterr().out == "2 triples added\n"
    assert main(["update", "LOAD <file:bad.nt>", "--data-dir", data, "--load-directory", str(folder)]) == 2
    assert "line 2" in capsys.readouterr().err
