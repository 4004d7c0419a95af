"""Files in bounded parts."""

import gzip

import pytest

from penstock.core._native import Dictionary
from penstock.errors import DataError
from penstock.rdf.bulk_files import Source, read
from penstock.rdf.formats import Format
from support import shared

TRIPLES = "".join(f"_:n{i} <http://e/next> _:n{i + 1} .\n" for i in range(1000))


def rows(parts):
    return sum(len(part) for part in parts)


def load(path, **options):
    return list(read(Dictionary(), Source.of(path), **options))


@pytest.mark.parametrize(
    ("name", "fmt"),
    [
        ("a.ttl", Format.TURTLE),
        ("a.n3", Format.TURTLE),
        ("a.nt", Format.N_TRIPLES),
        ("a.nq", Format.N_QUADS),
        ("a.trig", Format.TRIG),
        ("a.rdf", Format.RDF_XML),
        ("a.owl", Format.RDF_XML),
        ("a.xml", Format.RDF_XML),
        ("a.jsonld", Format.JSON_LD),
        ("dir.ttl/a.NT.GZ", Format.N_TRIPLES),
        ("a.b.ttl.gz", Format.TURTLE),
    ],
)
def test_names_tell_the_format(name, fmt):
    assert Format.of_path(name) is fmt


@pytest.mark.parametrize("name", ["a", "a.csv", "a.gz", "ttl"])
def test_names_that_tell_nothing_are_refused(name):
    with pytest.raises(DataError, match="format"):
        Format.of_path(name)


@pytest.mark.parametrize("chunk_bytes", [1, 7, 100, 1 << 20])
def test_parts_of_any_size_give_the_same_document(tmp_path, chunk_bytes):
    path = tmp_path / "a.nt"
    path.write_text(TRIPLES.rstrip("\n"))
    parts = load(path, chunk_bytes=chunk_bytes)
    assert rows(parts) == 1000
    previous = None
    for part in parts:
        for s, o in zip(part.subjects, part.objects, strict=True):
            assert previous in (None, s)
            previous = o


@pytest.mark.parametrize("ending", ["nt", "nq", "ttl", "trig"])
def test_gzip_by_name(tmp_path, ending):
    path = tmp_path / f"a.{ending}.gz"
    path.write_bytes(gzip.compress(TRIPLES.encode()))
    assert rows(load(path)) == 1000


def test_damaged_gzip_is_a_data_error(tmp_path):
    path = tmp_path / "a.nt.gz"
    for content in (b"not gzip", gzip.compress(TRIPLES.encode())[:-50]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"a\.nt\.gz: damaged gzip"):
            load(path)


def test_errors_name_file_and_line_of_the_whole_document(tmp_path):
    path = tmp_path / "a.nt"
    path.write_text(TRIPLES + "\nwrong\n")
    with pytest.raises(DataError, match=r"a\.nt: line 1002, column 1: expected a subject"):
        load(path, chunk_bytes=300)
    path = tmp_path / "a.ttl"
    path.write_text("<http://e/a> <http://e/b>\n\n ] .")
    with pytest.raises(DataError, match=r"a\.ttl: line 3, column 2"):
        load(path)


def test_relative_iris_are_resolved_against_the_file(tmp_path):
    path = tmp_path / "a b.ttl"
    path.write_text("<#x> <p> <> .")
    dictionary = Dictionary()
    (part,) = read(dictionary, Source.of(path))
    assert part.objects[0] == dictionary.find(1, path.as_uri())
    assert part.subjects[0] == dictionary.find(1, path.as_uri() + "#x")
    (part,) = read(dictionary, Source.of(path, base="http://e/d/"))
    assert part.predicates[0] == dictionary.find(1, "http://e/d/p")


def test_bytes_need_a_format():
    with pytest.raises(DataError, match="format"):
        Source.of(b"")
    assert rows(read(Dictionary(), Source.of(TRIPLES.encode(), "nt"))) == 1000


def test_progress_counts_bytes_of_the_file(tmp_path):
    path = tmp_path / "a.nt"
    path.write_text(TRIPLES)
    seen = []
    load(path, chunk_bytes=5000, progress=lambda done, total: seen.append((done, total)))
    size = path.stat().st_size
    assert [total for _, total in seen] == [size] * len(seen)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == size


def test_endless_lines_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.rdf.bulk_files.MAX_LINE_BYTES", 1000)
    path = tmp_path / "a.nt"
    path.write_text("#" * 5000)
    with pytest.raises(DataError, match="a line longer than 1000 bytes"):
        load(path, chunk_bytes=100)


def test_missing_files_are_os_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.nt")


def test_the_citybench_files_load():
    folder = shared.need("data/citybench/dataset")
    counts = {path.name: rows(load(path)) for path in folder.glob("*.n3")}
    assert counts == {"AarhusCulturalEvents.n3": 1490, "AarhusLibraryEvents.n3": 23225, "SensorRepository.n3": 44213}
