"""Data files in chunks: formats, quoted line ends, blank nodes, records without triples, and errors with their place."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import json
import random
import shutil
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock import DataError
from penstock.core import _native as native
from penstock.mapping.files.data_files import read_mapped
from penstock.mapping.files.file_mapping import DataFormat, FileMapping
from penstock.mapping.files.row_texts import json_rows
from penstock.mapping.stream_mapping import StreamMapping

PREFIXES = "@prefix rml: <http://w3id.org/rml/> . @prefix e: <urn:e:> ."
JSON = f"""{PREFIXES}
<#r> rml:logicalSource [ rml:referenceFormulation rml:JSONPath ; rml:iterator "$" ] ;
  rml:subjectMap [ rml:template "urn:s:{{$.id}}" ] ;
  rml:predicateObjectMap [ rml:predicate e:v ; rml:objectMap [ rml:reference "$.v" ] ] .
"""
CSV = JSON.replace("JSONPath", "CSV").replace(' ; rml:iterator "$"', "").replace("$.", "")
BLANK = f"""{PREFIXES}
<#r> rml:logicalSource [ rml:referenceFormulation rml:CSV ] ;
  rml:subjectMap [ rml:template "{{room}}" ; rml:termType rml:BlankNode ] ;
  rml:predicateObjectMap [ rml:predicate e:has ; rml:objectMap [ rml:termType rml:BlankNode ] ] .
"""


def triples(source, settings, kind, chunk_bytes=1 << 20):
    dictionary = native.Dictionary()
    decode = native.LocalTerms(dictionary).decode
    found = []
    for part in read_mapped(dictionary, source, FileMapping(settings, DataFormat(kind)), chunk_bytes=chunk_bytes):
        found += zip(*map(decode, (part.subjects, part.predicates, part.objects)), strict=True)
    return sorted(found)


@pytest.fixture(params=["native", "interpreted"])
def executor(request, monkeypatch):
    """Run a test with the native executor, and with the one in Python."""
    if request.param == "interpreted":
        monkeypatch.setattr(StreamMapping, "batch", lambda *_: None)
    return request.param


def test_each_format_gives_the_same_triples(tmp_path, executor):
    rows = [{"id": f"s{i}", "v": f"text {i}"} for i in range(50)]
    (tmp_path / "x.ndjson").write_text("\n\n".join(map(json.dumps, rows)))
    (tmp_path / "x.json").write_text(json.dumps(rows))
    (tmp_path / "x.csv").write_text("id,v\n" + "".join(f"{row['id']},{row['v']}\r\n" for row in rows))
    (tmp_path / "y.csv.gz").write_bytes(gzip.compress((tmp_path / "x.csv").read_bytes()))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet")
    found = []
    for name, settings in (
        ("x.ndjson", {"rml": JSON}),
        ("x.json", {"rml": JSON, "events": "$[*]"}),
        ("x.csv", {"rml": CSV}),
        ("y.csv.gz", {"rml": CSV}),
        ("x.parquet", {"rml": JSON, "time": {"path": "$.at"}}),
    ):
        with penstock.Engine() as engine:
            report = engine.load(tmp_path / name, mapping=settings, graph="urn:g")
            rows = engine.query("SELECT * { GRAPH <urn:g> { ?s <urn:e:v> ?o } } ORDER BY ?s")
            found.append((report.triples, [(str(row["s"]), str(row["o"])) for row in rows]))
    assert found[0][0] == 50
    assert found == [found[0]] * 5


@pytest.mark.parametrize("chunk_bytes", [1, 7, 64])
def test_rows_with_quoted_line_ends_and_quotes_stay_whole(executor, chunk_bytes):
    cells = ["plain", 'a "quote"', "two\nlines", "cr\rlf\r\n", ",", '"', "", 'in"side']
    rows = [(i, cells[i % len(cells)]) for i in range(40)]
    plain = ("plain", 'in"side')
    quoted = [(i, cell if cell in plain else '"{}"'.format(cell.replace('"', '""'))) for i, cell in rows]
    text = "\ufeffid,v\r\n" + "\r\n".join(f"{i},{cell}" for i, cell in quoted)
    found = triples(text.encode(), {"rml": CSV}, "csv", chunk_bytes)
    assert [(s[1], o[1]) for s, _, o in found] == sorted((f"urn:s:{i}", cell) for i, cell in rows)


def test_quotes_in_a_header_do_not_end_it(executor):
    text = b'id,"a\n""b""",v\n1,x,y\n'
    assert [o[1] for _, _, o in triples(text, {"rml": CSV}, "csv", 3)] == ["y"]


@pytest.mark.parametrize("seed", range(20))
def test_a_text_of_csv_is_cut_where_a_row_ends(seed):
    chance = random.Random(seed)
    text, ends = "", [0]
    for _ in range(8):
        out = io.StringIO()
        row = ["".join(chance.choices('ab",\r\n', k=chance.randrange(4))) for _ in range(3)]
        quoting = csv.QUOTE_ALL if "\r" in "".join(row) else csv.QUOTE_MINIMAL
        csv.writer(out, lineterminator=chance.choice(["\n", "\r\n"]), quoting=quoting).writerow(row)
        text += out.getvalue()
        ends.append(len(text))
    for n in range(len(text) + 1):
        assert native.complete_csv_rows(text[:n].encode()) == max(end for end in ends if end <= n)


def test_blank_nodes_of_templates_are_those_of_the_file_and_new_ones_are_not(executor):
    rooms = "room\n" + "hall\nattic\n" * 10
    found = triples(rooms.encode(), {"rml": BLANK}, "csv", 8)
    assert len({s for s, _, _ in found}) == 2
    assert len({o for _, _, o in found}) == 20


def test_blank_nodes_of_construct_are_those_of_a_record(executor):
    text = "CONSTRUCT { _:x <urn:e:v> $.v } WHERE {}"
    found = triples(b'{"v": 1}\n{"v": 2}\n', {"construct": text}, "ndjson")
    assert len({s for s, _, _ in found}) == 2


def test_records_without_triples_are_skipped(executor):
    lines = b'{"id": 1}\n{"v": 2}\n{"id": 3, "v": 3}\n'
    assert [s[1] for s, _, _ in triples(lines, {"rml": JSON}, "ndjson")] == ["urn:s:3"]
    assert triples(b"", {"rml": JSON}, "ndjson") == []


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("ndjson", b'{"id": 1, "v": 2}\n' * 30 + b'{"id": \n', "line 31: the message is not JSON"),
        ("ndjson", b'{"id": 1, "v": 2}\n' * 30 + b'{"id": 1, "v": {}}\n', "record 1 after line 30"),
        ("csv", b"id,v\n" + b"1,2\n" * 30 + b"1,2,3\n", "line 32: 3 cells"),
        ("csv", b"id\n1\n", "no column 'v'"),
        ("csv", b"", "no header line"),
        ("csv", b'id,v\n1,"', "cannot be read"),
        ("json", b"[", "not JSON"),
        ("parquet", b"PAR1", "the Parquet file cannot be read"),
    ],
)
def test_an_error_names_the_place(kind, text, message, tmp_path):
    path = tmp_path / f"x.{kind}"
    path.write_bytes(text)
    settings = {"rml": CSV if kind == "csv" else JSON}
    with pytest.raises(DataError, match=message) as caught:
        triples(path, settings, kind, 18)
    assert str(caught.value).startswith(f"{path}: ")
    with penstock.Engine() as engine, pytest.raises(DataError):
        engine.load(path, mapping=settings)


def test_values_of_parquet_become_texts():
    row = {
        "time": dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
        "day": dt.date(2026, 1, 2),
        "price": Decimal("1.50"),
        "data": b"\x00\xff",
        "took": dt.timedelta(seconds=1.5),
        "list": [{"deep": True}, None],
        "none": None,
    }
    assert json.loads(json_rows(pa.RecordBatch.from_pylist([row]))) == {
        "time": "2026-01-02T03:04:05+00:00",
        "day": "2026-01-02",
        "price": "1.50",
        "data": "AP8=",
        "took": 1.5,
        "list": [{"deep": True}, None],
        "none": None,
    }
    with pytest.raises(DataError, match="a row cannot be written as JSON"):
        json_rows(pa.RecordBatch.from_pylist([{"x": float("nan")}]))


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("x.txt", {"rml": JSON}, "the file name does not imply a format"),
        ("x.json", {"rml": JSON, "format": "avro"}, "`format` of a file is one of json, ndjson, csv, parquet"),
        ("x.json", {"rml": CSV}, "another rml:referenceFormulation"),
        (".", {"construct": "CONSTRUCT {} WHERE {}"}, "only an RML mapping names the files"),
    ],
)
def test_a_mapping_that_does_not_fit_is_an_error(name, settings, message, tmp_path):
    (tmp_path / "x.json").write_text("{}")
    (tmp_path / "x.txt").write_text("{}")
    with penstock.Engine() as engine, pytest.raises(DataError, match=message):
        engine.load(tmp_path / name, mapping=settings)


def test_a_folder_has_the_files_that_the_mapping_names(tmp_path):
    (tmp_path / "a.csv").write_text("id,v\n1,2\n")
    rml = CSV.replace("rml:referenceFormulation", 'rml:source [ rml:path "a.csv" ] ; rml:referenceFormulation')
    with penstock.Engine() as engine:
        assert engine.load(tmp_path, mapping={"rml": rml}).triples == 1


def test_mapped_bytes_are_there_after_a_crash(tmp_path):
    with penstock.Engine(data_dir=tmp_path / "data", durability="commit") as engine:
        engine.load(b"id,v\n1,2\n", format="csv", mapping={"rml": CSV})
        shutil.copytree(tmp_path / "data", tmp_path / "copy")
    with penstock.Engine(data_dir=tmp_path / "copy", durability="commit") as engine:
        assert engine.query("ASK { <urn:s:1> <urn:e:v> '2' }")
