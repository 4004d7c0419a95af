"""The stages as Spark's tasks run them, one after the other in this process: what they prepare is what `load` loads."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.engine.intake.bulk_intake import Prepared
from penstock.errors import DataError
from penstock.rdf.formats import Format
from penstock.spark import edges, numbering, statement_parsing
from penstock.spark.sources import format_of
from penstock.spark.staging import Staging

BINS = 3


class Stages:
    """A load in one process: tasks are calls, shuffles are lists."""

    def __init__(self, folder, engine, texts, *, max_bad=0, graph=None, splits=2):
        self.folder, self.engine, self.splits = folder, engine, splits
        folder.mkdir(exist_ok=True)
        files = {number: (fmt, f"file:///{number}") for number, (fmt, _) in enumerate(texts)}
        self.settings = statement_parsing.ParseSettings(files, graph, max_bad)
        self.texts = texts
        self.intake = engine.bulk()

    def parse(self):
        """One part a split, as rows by kind."""
        rows = []
        for number, (fmt, text) in enumerate(self.texts):
            lines = text.splitlines(keepends=True)
            step = -(-len(lines) // self.splits) or 1
            starts = range(0, len(lines), step) if fmt.is_native else [0]
            for start in starts:
                chosen = lines[start : start + step] if fmt.is_native else lines
                function = statement_parsing.parse_lines if fmt.is_native else statement_parsing.parse_documents
                settings = statement_parsing.ParseSettings(
                    self.settings.files, self.settings.graph, self.settings.max_bad, first_part=len(rows) + 100
                )
                batches = [rows_of(number, start, chosen[:1]), rows_of(number, start, chosen[1:])]
                rows.append(pa.Table.from_batches(function(settings, batches), statement_parsing.STAGED))
        return pa.concat_tables(rows)

    def number(self, staged, known):
        terms = kind(staged, "terms").select(["part", "slot", "kind", "lexical", "datatype", "lang"])
        if known.file is not None:
            terms = pa.concat_tables([terms, pq.read_table(known.file)])
        return pa.Table.from_batches(numbering.number_terms(terms.to_batches(max_chunksize=7)), numbering.NUMBERED)

    def prepare(self, known):
        staged = self.parse()
        numbered = self.number(staged, known)
        self.bad = kind(staged, "bad").to_pylist()
        count = kind(numbered, "count").to_pylist()[0]
        first = np.array([known.next_slot], np.uint64), np.array([known.blanks], np.uint64)
        self._dictionary(kind(numbered, "new"), *first)
        self._edges(staged, numbered, edges.DealSettings(self.intake.shards, BINS, *first))
        return Prepared(
            sorted(self.folder.glob("dictionary-*")),
            list(self._edge_files()),
            known.blanks + count["blanks"],
            BINS,
            "n",
        )

    def _dictionary(self, new, *first):
        ids = numbering.ids_of_codes(new.column("code").to_numpy().view(np.uint64), *first)
        table = new.select(["kind", "lexical", "datatype", "lang"]).append_column("id", pa.array(ids.view(np.int64)))
        pq.write_table(table, self.folder / "dictionary-0.parquet")

    def _edges(self, staged, numbered, settings):
        maps, triples = kind(numbered, "map"), kind(staged, "triples")
        names = ["part", "slots", "codes", "s", "p", "o", "g"]
        rows = []
        for part in sorted(set(triples.column("part").to_pylist())):
            for table in (maps, triples):
                for row in table.to_pylist():
                    if row["part"] == part:
                        rows.append({name: row.get(name) for name in names})
        schema = pa.schema([("part", pa.int64()), *((name, pa.binary()) for name in names[1:])])
        dealt = pa.Table.from_batches(
            edges.deal(settings, pa.Table.from_pylist(rows, schema).to_batches()), edges.DEALT
        )
        for place in set(dealt.column("place").to_pylist()):
            chosen = dealt.filter(pa.compute.equal(dealt.column("place"), place))
            table = pa.Table.from_batches(edges.sort_bins(settings.bins, chosen.to_batches()), edges.SORTED)
            direction, number = divmod(place, settings.bins)
            pq.write_table(table, self.folder / f"edges-{direction}-{number}.parquet")

    def _edge_files(self):
        for file in sorted(self.folder.glob("edges-*")):
            _, direction, number = file.stem.split("-")
            yield int(direction), int(number), file

    def load(self):
        known = self.intake.known_terms(self.folder / "known.parquet")
        return self.intake.take(known, self.prepare(known))


def rows_of(file, start, lines):
    return pa.RecordBatch.from_arrays(
        [
            pa.array([file] * len(lines), pa.int64()),
            pa.array([start] * len(lines), pa.int64()),
            pa.array(lines, pa.string()),
        ],
        names=["file", "start", "text"],
    )


def kind(table, what):
    return table.filter(pa.compute.equal(table.column("what"), what))


def triples_of(engine):
    """All statements, blank nodes by what is around them only."""
    rows = engine.query("SELECT ?g ?s ?p ?o { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }")
    return sorted(
        tuple(
            "_" if name in row and row[name].__class__.__name__ == "BNode" else row[name].n3() if name in row else ""
            for name in ("g", "s", "p", "o")
        )
        for row in rows
    )


def random_lines(seed, n):
    rng = random.Random(seed)
    objects = [
        '"a literal of some length"',
        '"x"@en',
        '"long enough to be kept"@de-AT',
        "_:b1",
        "_:b2",
        "<http://o/1>",
        '"5"^^<http://www.w3.org/2001/XMLSchema#integer>',
        '"odd value here"^^<http://t/own>',
    ]
    subjects = [f"<http://s/{i % 9}>" for i in range(9)] + ["_:b1", "_:b3"]
    graphs = ["", " <http://g/1>", " _:g"]
    return [
        f"{rng.choice(subjects)} <http://p/{rng.randrange(4)}> {rng.choice(objects)}{rng.choice(graphs)} .\n"
        for _ in range(n)
    ]


@pytest.mark.parametrize("seed", range(6))
def test_a_prepared_load_equals_a_plain_one(tmp_path, seed):
    with penstock.Engine(shards=1 + seed % 3) as ours, penstock.Engine() as plain:
        for turn in range(3):  # later rounds extend the dictionary and meet stored edges
            text = "".join(random_lines(seed * 7 + turn, 60))
            document = "@prefix : <http://s/> . :1 <http://p/1> [ <http://p/2> 'a literal of some length' ], <rel> ."
            texts = [(Format.N_QUADS, text), (Format.TURTLE, document)]
            report = Stages(tmp_path / str(turn), ours, texts).load()
            expected = plain.load(text.encode(), format="nquads").triples
            expected += plain.load(document.encode(), format="turtle", base="file:///1").triples
            assert report.triples == expected
            assert triples_of(ours) == triples_of(plain)


def test_terms_that_are_known_keep_their_ids(tmp_path):
    text = "".join(line for line in random_lines(1, 50) if "_:" not in line)
    with penstock.Engine() as engine:
        first = Stages(tmp_path / "1", engine, [(Format.N_QUADS, text)]).load()
        again = Stages(tmp_path / "2", engine, [(Format.N_QUADS, text)]).load()
    assert first.triples > 0
    assert (again.triples, again.terms) == (0, 0)


def test_a_graph_takes_what_names_none(tmp_path):
    with penstock.Engine() as engine:
        Stages(tmp_path, engine, [(Format.N_TRIPLES, "<http://a> <http://b> <http://c> .\n")], graph="http://g").load()
        assert engine.query("ASK { GRAPH <http://g> { <http://a> <http://b> <http://c> } }") is True


def test_bad_lines_are_skipped_and_reported_by_split_and_line(tmp_path):
    lines = ["<http://a> <http://b> <http://c> .\n", "nonsense\n", "\n", "<http://a> <http://b> 5 .\n"]
    with penstock.Engine() as engine:
        stages = Stages(tmp_path, engine, [(Format.N_TRIPLES, "".join(lines))], max_bad=5)
        assert stages.load().triples == 1
    assert [(row["start"], row["line"], row["text"]) for row in stages.bad] == [
        (0, 2, b"nonsense"),
        (2, 2, b"<http://a> <http://b> 5 ."),
    ]


def test_an_unreadable_document_is_reported_as_a_whole(tmp_path):
    with penstock.Engine() as engine:
        stages = Stages(tmp_path, engine, [(Format.TURTLE, "<http://a> <http://b> .\n")])
        bad = kind(stages.parse(), "bad").to_pylist()
    assert [row["line"] for row in bad] == [statement_parsing.WHOLE_DOCUMENT]
    assert "line 1" in bad[0]["reason"]


def test_a_dictionary_that_went_on_is_refused_and_nothing_is_stored(tmp_path):
    with penstock.Engine() as engine:
        stages = Stages(tmp_path, engine, [(Format.N_TRIPLES, "<http://a> <http://b> <http://c> .\n")])
        known = stages.intake.known_terms(tmp_path / "known.parquet")
        prepared = stages.prepare(known)
        engine.update("INSERT DATA { <http://x> <http://y> <http://z> }")
        with pytest.raises(DataError):
            stages.intake.take(known, prepared)
        assert engine.query("ASK { <http://a> ?p ?o }") is False
        assert stages.load().triples == 1


@pytest.mark.parametrize(
    ("name", "expected"), [("a.nt.bz2", "nt"), ("a.b.ttl", "turtle"), ("x.nq.ZST", "nquads"), ("x.rdf.gz", "xml")]
)
def test_formats_follow_from_names_without_the_extension_of_a_compression(name, expected):
    assert format_of(name).value == expected


class Folder:
    """Enough of HadoopFiles for Staging, on a dict."""

    def __init__(self):
        self.files = {}

    def read_state(self, name):
        return self.files.get(name)

    def write_state(self, name, data):
        self.files[name] = data

    def delete(self, name):
        self.files = {key: value for key, value in self.files.items() if key != name and not key.startswith(name + "/")}


def test_a_load_is_taken_up_where_it_broke_off_and_another_one_begins_anew():
    files = Folder()
    first = Staging(files, "/s/")
    assert not first.open({"files": ["a"]})
    folder = first.begin("parse")
    files.write_state(folder + "/data", b"")
    first.complete("parse", {"triples": 3})
    files.write_state(first.begin("terms") + "/half", b"")

    again = Staging(files, "/s")
    assert again.open({"files": ["a"]})
    assert (again.found("parse"), again.found("terms")) == ({"triples": 3}, None)
    again.begin("terms")
    assert set(files.files) == {"/s/load.json", "/s/parse/data"}
    assert again.load_id == first.load_id

    other = Staging(files, "/s")
    assert not other.open({"files": ["b"]})
    assert set(files.files) == {"/s/load.json"}
    assert other.load_id != first.load_id
