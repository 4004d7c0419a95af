"""Loads of data files by a mapping: Spark makes the triples that the embedded loader makes."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.errors import DataError
from spark.test_bulk_load import count, load

PREFIXES = "@prefix rml: <http://w3id.org/rml/> . @prefix e: <urn:e:> ."
JSON = f"""{PREFIXES}
<#r> rml:logicalSource [ rml:referenceFormulation rml:JSONPath ; rml:iterator "$" ] ;
  rml:subjectMap [ rml:template "urn:s:{{$.id}}" ] ;
  rml:predicateObjectMap [ rml:predicate e:v ; rml:objectMap [ rml:reference "$.v" ] ] ,
    [ rml:predicate e:price ; rml:objectMap [ rml:reference "$.price" ] ] ,
    [ rml:predicate e:at ; rml:objectMap [ rml:reference "$.at" ] ] ,
    [ rml:predicate e:room ; rml:objectMap [ rml:template "{{$.room}}" ; rml:termType rml:BlankNode ] ] ,
    [ rml:predicate e:new ; rml:objectMap [ rml:termType rml:BlankNode ] ] .
"""
CSV = JSON.replace("JSONPath", "CSV").replace(' ; rml:iterator "$"', "").replace("$.", "")
CONSTRUCT = "CONSTRUCT { _:x <urn:e:v> $.v ; <urn:e:id> $.id } WHERE {}"
ROWS = [{"id": i, "v": f"{i}\ntext", "price": f"{i}.50", "at": f"2026-01-01T00:00:{i % 60:02}", "room": i % 7}
        for i in range(3_000)]  # fmt: skip


def written(folder):
    """The same rows in each format."""
    (folder / "x.ndjson").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    (folder / "x.json").write_text(json.dumps(ROWS))
    lines = ["id,v,price,at,room", *(f'{r["id"]},"{r["v"]}",{r["price"]},{r["at"]},{r["room"]}' for r in ROWS)]
    (folder / "x.csv").write_text("\r\n".join(lines))
    (folder / "x.csv.gz").write_bytes(gzip.compress((folder / "x.csv").read_bytes()))
    typed = [
        row | {"price": Decimal(row["price"]), "at": dt.datetime.fromisoformat(row["at"]).replace(tzinfo=dt.UTC)}
        for row in ROWS
    ]
    pq.write_table(pa.Table.from_pylist(typed), folder / "x.parquet", row_group_size=500)


def answers(engine):
    """The answers, with blank nodes by what they have."""
    plain = engine.query("SELECT ?s ?p ?o { ?s ?p ?o FILTER(!ISBLANK(?o) && !ISBLANK(?s)) }")
    rooms = engine.query("SELECT ?room (COUNT(*) AS ?n) { ?s <urn:e:room> ?room } GROUP BY ?room")
    new = engine.query("SELECT (COUNT(DISTINCT ?b) AS ?n) { { ?s <urn:e:new> ?b } UNION { ?b <urn:e:id> ?id } }")
    return (
        sorted(tuple(term.n3() for term in row.values()) for row in plain),
        sorted(int(row["n"]) for row in rooms),
        [int(row["n"]) for row in new],
    )


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("x.ndjson", {"rml": JSON}),
        ("x.ndjson", {"construct": CONSTRUCT}),
        ("x.json", {"rml": JSON, "events": "$[*]"}),
        ("x.csv", {"rml": CSV}),
        ("x.csv.gz", {"rml": CSV}),
        ("x.parquet", {"rml": JSON}),
    ],
)
def test_each_format_gives_the_triples_of_the_embedded_loader(spark, tmp_path, name, settings):
    written(tmp_path)
    with penstock.Engine(shards=2) as ours, penstock.Engine() as plain:
        report, bad = load(spark, ours, tmp_path / "load", tmp_path / name, mapping=settings, split_bytes=40_000)
        assert plain.load(tmp_path / name, mapping=settings).triples == report.triples >= 6_000
        assert bad == []
        assert answers(ours) == answers(plain)


def test_bad_lines_of_ndjson_are_skipped_and_named(spark, tmp_path):
    lines = [json.dumps(row) for row in ROWS]
    lines[1_000], lines[2_999] = '{"id": ', '{"id": 1, "v": {}}'
    (tmp_path / "x.ndjson").write_text("\n".join(lines))
    with penstock.Engine() as engine:
        settings = {"mapping": {"rml": JSON}, "split_bytes": 40_000}
        _, bad = load(spark, engine, tmp_path / "load", tmp_path / "x.ndjson", **settings)
        assert [(line, text) for _, line, _, text in bad] == [(1_001, b'{"id": '), (3_000, b'{"id": 1, "v": {}}')]
        assert "not JSON" in bad[0][2]
        assert len(answers(engine)[0]) == 3 * (len(ROWS) - 2)
    with penstock.Engine() as engine:
        with pytest.raises(DataError, match="more than 1 bad lines"):
            load(spark, engine, tmp_path / "load", tmp_path / "x.ndjson", max_bad=1, **settings)
        assert count(engine) == 0


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("x.csv", b"id,v\n1,2\n1,2,3\n", r"x\.csv: line 3: 3 cells"),
        ("x.json", b'{"id": ', r"x\.json: the message is not JSON"),
    ],
)
def test_a_bad_document_fails_the_load(spark, tmp_path, name, text, message):
    (tmp_path / name).write_bytes(text)
    rml = JSON if name == "x.json" else CSV.partition(" ,\n")[0] + " ."
    with penstock.Engine() as engine, pytest.raises(DataError, match=message):
        load(spark, engine, tmp_path / "load", tmp_path / name, mapping={"rml": rml})
