"""Loads by a real Spark leave what the embedded loader leaves."""

from __future__ import annotations

import bz2
import gzip
import random
import subprocess
import sys

import pytest
import rdflib

import penstock
from penstock.errors import DataError, StorageError
from penstock.spark import sources
from penstock.spark.bulk_load import BulkLoad, LoadSettings
from support import shared

LOOK_UPS = 1_000


def load(spark, engine, folder, *files, staging=None, **settings):
    """Load files; returns the report and the bad lines."""
    folder.mkdir(exist_ok=True)
    intake = engine.bulk()
    staging = staging or str(folder / "staging")
    bulk = BulkLoad(spark, LoadSettings(tuple(map(str, files)), shards=intake.shards, **settings), staging)
    bulk.open()
    known = intake.known_terms(folder / "known.parquet")
    bulk.run(known)
    with bulk.prepared(folder) as prepared:
        report = intake.take(known, prepared)
    bad = bulk.bad_lines(100)
    bulk.staging.remove()
    return report, bad


def count(engine):
    (row,) = engine.query("SELECT (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }")
    return int(row["n"])


def without_blanks(row):
    return tuple("_:" if isinstance(term, rdflib.BNode) else term.n3() for term in row.values())


def equal_look_ups(ours, plain, seed):
    """A thousand random vertices, looked up as subjects and as objects."""
    vertices = [
        row["v"].n3()
        for row in plain.query("SELECT DISTINCT ?v { { ?v ?p ?o } UNION { ?s ?p ?v } }")
        if not isinstance(row["v"], rdflib.BNode)
    ]
    chosen = random.Random(seed).sample(sorted(vertices), min(LOOK_UPS, len(vertices)))
    for vertex in chosen:
        patterns = [f"SELECT ?p ?s {{ ?s ?p {vertex} }}"]
        if not vertex.startswith('"'):
            patterns.append(f"SELECT ?p ?o {{ {vertex} ?p ?o }}")
        for query in patterns:
            answers = [sorted(without_blanks(row) for row in engine.query(query)) for engine in (ours, plain)]
            assert answers[0] == answers[1], query
    return len(chosen)


def generated(folder, universities):
    generator = shared.need("data/gen_lubm.py")
    command = [sys.executable, str(generator), str(universities), str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=600)
    return sorted(folder.glob("*.nt"))


def equals_the_embedded_loader(spark, tmp_path, files, shards):
    with penstock.Engine(shards=shards) as ours, penstock.Engine() as plain:
        for file in files:
            plain.load(file)
        report, bad = load(spark, ours, tmp_path / "load", *files, edges_per_bin=200_000, terms_per_task=100_000)
        assert bad == []
        assert report.triples == count(plain) == count(ours)
        assert equal_look_ups(ours, plain, seed=1) == LOOK_UPS
        return report.triples


def test_a_million_generated_triples(spark, tmp_path):
    assert equals_the_embedded_loader(spark, tmp_path, generated(tmp_path, 8), shards=3) > 1_000_000


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_ten_million_generated_triples(spark, tmp_path):
    assert equals_the_embedded_loader(spark, tmp_path, generated(tmp_path, 78), shards=4) > 10_000_000


def test_the_stored_data_of_citybench(spark, tmp_path):
    files = sorted((shared.need("data/citybench") / "dataset").glob("*.n3"))
    equals_the_embedded_loader(spark, tmp_path, files, shards=2)


def test_a_second_load_extends_the_first_and_a_repeated_one_changes_nothing(spark, tmp_path):
    shared_part = [f"<http://s/{i}> <http://p/{i % 3}> 'value number {i}' .\n".replace("'", '"') for i in range(3_000)]
    first, second = tmp_path / "first.nt", tmp_path / "second.nt"
    first.write_text("".join(shared_part[:2_000]))
    second.write_text("".join(shared_part[1_000:]))
    with penstock.Engine(shards=2) as engine, penstock.Engine() as plain:
        engine.update("INSERT DATA { <http://s/1> <http://p/own> <http://s/2> }")
        plain.update("INSERT DATA { <http://s/1> <http://p/own> <http://s/2> }")
        assert load(spark, engine, tmp_path / "1", first)[0].triples == 2_000
        report, _ = load(spark, engine, tmp_path / "2", second)
        assert report.triples == 1_000
        again, _ = load(spark, engine, tmp_path / "3", second)
        assert (again.triples, again.terms) == (0, 0)
        plain.load(first)
        plain.load(second)
        assert count(engine) == count(plain)
        equal_look_ups(engine, plain, seed=2)


TRIPLES = rdflib.Graph().parse(
    data="""@prefix : <http://ex.org/> .
    :a :p :b, "a text that is long"@en, 5, "odd"^^:type ; :q [ :r "inner text of some length" ] . :b :p :c .""",
    format="turtle",
)
WRITTEN = {
    "a.nt": TRIPLES.serialize(format="nt"),
    "a b[1].nt": TRIPLES.serialize(format="nt").replace("ex.org", "ex2.org"),
    "a.ttl": TRIPLES.serialize(format="turtle").replace("ex.org", "ex3.org"),
    "a.rdf": TRIPLES.serialize(format="xml").replace("ex.org", "ex4.org"),
    "a.jsonld": TRIPLES.serialize(format="json-ld").replace("ex.org", "ex5.org"),
    "a.trig": "<http://g> { <http://s> <http://p> <o>, [] }",
    "a.nq": '<http://s> <http://p> "x" <http://g> .\r\n\r\n_:b <http://p> _:c .\n# end',
}


@pytest.mark.parametrize("whole_bytes", [8 << 20, 0])
def test_every_serialisation_compressed_or_not(spark, tmp_path, monkeypatch, whole_bytes):
    monkeypatch.setattr(sources, "WHOLE_BYTES", whole_bytes)  # 0: each document is read line by line
    monkeypatch.setattr(sources, "COMPRESSED_WHOLE_BYTES", whole_bytes)
    folder = tmp_path / "in"
    folder.mkdir()
    with penstock.Engine() as ours, penstock.Engine() as plain:
        for name, text in WRITTEN.items():
            (folder / name).write_text(text)
            plain.load(folder / name)
        for name, pack, ending in (("a.nt", bz2.compress, "bz2"), ("a.ttl", gzip.compress, "gz")):
            text = WRITTEN[name].replace("ex.org", f"{ending}.org").replace("ex3.org", f"{ending}.org").encode()
            (folder / f"{name}.{ending}").write_bytes(pack(text))
            plain.load(text, format="nt" if name == "a.nt" else "turtle", base="http://unused")
        load(spark, ours, tmp_path / "load", folder)
        assert count(ours) == count(plain)
        equal_look_ups(ours, plain, seed=3)


def test_a_blank_node_is_one_node_through_the_splits_of_a_file_and_another_one_in_another_file(spark, tmp_path):
    lines = [f"_:same <http://p> <http://o/{i:06}> .\n" for i in range(5_000)]
    for name in ("a.nt", "b.nt"):
        (tmp_path / name).write_text("".join(lines))
    with penstock.Engine() as engine:
        load(spark, engine, tmp_path / "load", tmp_path / "a.nt", tmp_path / "b.nt", split_bytes=30_000)
        (row,) = engine.query("SELECT (COUNT(DISTINCT ?s) AS ?n) (COUNT(*) AS ?m) { ?s <http://p> ?o }")
        assert (int(row["n"]), int(row["m"])) == (2, 10_000)


def test_bad_lines_are_reported_by_their_number_in_the_file_within_a_bound(spark, tmp_path):
    lines = [f"<http://s/{i}> <http://p> <http://o> .\n" for i in range(3_000)]
    for i in (0, 1_500, 2_999):
        lines[i] = f"nonsense {i}\n"
    file = tmp_path / "a.nt"
    file.write_text("".join(lines))
    with penstock.Engine() as engine:
        report, bad = load(spark, engine, tmp_path / "1", file, max_bad=3, split_bytes=20_000)
        assert report.triples == 2_997
        assert [(line, text) for _, line, _, text in bad] == [
            (i + 1, f"nonsense {i}".encode()) for i in (0, 1_500, 2_999)
        ]
        assert all(name.endswith("a.nt") and "column 1" in reason for name, _, reason, _ in bad)
    with penstock.Engine() as engine:
        with pytest.raises(DataError, match=r"more than 2 bad lines; the first: .*a\.nt: line 1, column 1"):
            load(spark, engine, tmp_path / "2", file, max_bad=2, split_bytes=20_000)
        assert count(engine) == 0


def test_a_document_with_a_fault_fails_the_load_with_its_place(spark, tmp_path):
    (tmp_path / "a.ttl").write_text("@prefix : <http://ex.org/> .\n:a :b :c\n:d :e .\n")
    with penstock.Engine() as engine, pytest.raises(DataError, match=r"a\.ttl: line 3, column"):
        load(spark, engine, tmp_path / "load", tmp_path / "a.ttl")


def test_a_file_that_is_not_there_is_named(spark, tmp_path):
    with penstock.Engine() as engine, pytest.raises((DataError, StorageError), match=r"none\.nt"):
        load(spark, engine, tmp_path / "load", tmp_path / "none.nt")
