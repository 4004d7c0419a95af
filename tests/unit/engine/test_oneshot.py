"""One-shot queries, updates and loads: snapshots, caches, limits."""

from __future__ import annotations

import gzip
import threading

import pytest
import rdflib

import penstock
from penstock import DataError, LimitError
from support.bench import nt, rows


def count(engine, pattern="?s ?p ?o"):
    (row,) = engine.query(f"SELECT (COUNT(*) AS ?n) WHERE {{ {pattern} }}")
    return int(row["n"])


def test_each_form_gives_its_own_kind_of_answer(bench):
    bench.engine.update("INSERT DATA { <urn:a> <urn:p> 1, 2 }")
    answer = bench.engine.query("SELECT ?o WHERE { ?s ?p ?o } ORDER BY ?o")
    assert isinstance(answer, penstock.Solutions)
    assert [row["o"].toPython() for row in answer] == [1, 2]
    assert bench.engine.query("ASK { <urn:a> ?p 2 }") is True
    graph = bench.engine.query("CONSTRUCT { ?s <urn:of> ?o } WHERE { ?s ?p ?o }")
    assert isinstance(graph, rdflib.Graph)
    assert len(graph) == 2
    assert len(bench.engine.query("DESCRIBE <urn:a>")) == 2


def test_the_latest_snapshot_is_seen_at_once(bench):
    bench.declare("s", "t")
    bench.push("s", 50, "a p b")
    assert count(bench.engine) == 0
    bench.advance("s", 100)
    assert count(bench.engine) == 1
    bench.engine.update("INSERT DATA { <urn:c> <urn:p> <urn:d> }")
    assert count(bench.engine) == 2


def test_a_text_asked_again_is_neither_parsed_nor_planned_again(bench, monkeypatch):
    bench.engine.update("INSERT DATA { <urn:a> <urn:p> <urn:b> }")
    text = "SELECT * WHERE { <urn:a> ?p ?o }"
    assert len(bench.engine.query(text)) == 1
    monkeypatch.setattr("penstock.engine.oneshot.texts.parse", None)
    monkeypatch.setattr("penstock.engine.oneshot.one_shot.make_plan", None)
    assert len(bench.engine.query(text)) == 1


def test_a_cached_plan_survives_its_constants_being_forgotten(bench):
    """The constant's slot of the dictionary goes to another term meanwhile: the old id must not be asked for."""
    text = "SELECT * WHERE { <urn:not-yet-known> ?p ?o }"
    assert len(bench.engine.query(text)) == 0
    bench.declare("s", timing="all")
    for k in range(1, 300):
        bench.push("s", 100 * k, f"fleeting{k} p{k} o{k}")
    assert bench.engine.stats()["terms_forgotten"] > 100
    for k in range(10):
        bench.engine.update(f"INSERT DATA {{ <urn:new{k}> <urn:p> <urn:b> }}")
    assert len(bench.engine.query(text)) == 0
    bench.engine.update("INSERT DATA { <urn:not-yet-known> <urn:p> <urn:b> }")
    assert len(bench.engine.query(text)) == 1


def test_a_plan_is_chosen_again_when_counts_have_left_it(bench):
    text = "SELECT * WHERE { ?a <urn:p> ?b . ?b <urn:q> ?c }"
    before = bench.engine.explain(text)
    for _ in range(3):
        bench.engine.query(text)
    bench.engine.load(nt(*(f"a{i} p b{i}" for i in range(5000)), "b1 q c").encode(), format="nt")
    for _ in range(70):
        assert len(bench.engine.query(text)) == 1
    assert bench.engine.explain(text).split("actual")[0] != before.split("actual")[0]
    assert "plan of the last run" not in bench.engine.explain(text)


def test_time_and_memory_are_limited(bench):
    bench.engine.load(nt(*(f"a{i} p b{i % 7}" for i in range(2000))).encode(), format="nt")
    text = "SELECT (COUNT(*) AS ?n) WHERE { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f }"
    with pytest.raises(LimitError, match="time"):
        bench.engine.query(text, timeout_s=0.05)
    with pytest.raises(LimitError, match="memory"):
        bench.engine.query("SELECT * WHERE { ?a ?p ?b . ?c ?q ?d }", memory_mb=1)
    assert bench.engine.query("ASK { ?s ?p ?o }") is True


def test_terms_of_an_answer_outlive_everything_else(bench):
    answer = bench.engine.query(
        'SELECT ?x ?y WHERE { BIND(<urn:nowhere-else> AS ?x) BIND(CONCAT("made ", "up text") AS ?y) }'
    )
    bench.declare("s", timing="all")
    for k in range(1, 300):
        bench.push("s", 100 * k, f"fleeting{k} p o{k}")
    assert rows(answer) == [("nowhere-else", "made up text")]
    assert [str(t) for t in bench.engine.decode(answer.ids["y"])] == ["made up text"]


def test_updates_share_blank_nodes_within_one_statement_only(bench):
    bench.engine.update("INSERT DATA { _:b <urn:p> _:b . GRAPH <urn:g> { _:b <urn:q> 1 } }")
    assert bench.engine.query("ASK { ?b <urn:p> ?b . GRAPH <urn:g> { ?b <urn:q> ?x } }") is True
    bench.engine.update("INSERT DATA { _:b <urn:p> _:b }")
    assert count(bench.engine, "?b <urn:p> ?b") == 2


def test_an_update_is_one_snapshot_and_nothing_new_is_none(bench):
    before = bench.engine.stats()["snapshot"]
    bench.engine.update("INSERT DATA { <urn:a> <urn:p> 1 . <urn:a> <urn:p> 2 }")
    bench.engine.update("INSERT DATA { <urn:a> <urn:p> 1 . <urn:a> <urn:p> 2 }")
    bench.engine.update("INSERT DATA { }")
    assert bench.engine.stats()["snapshot"] == before + 1


def test_a_load_reports_what_was_new(bench, tmp_path):
    data = nt("a p b", "a p b", "c p d")
    report = bench.engine.load(data.encode(), format="nt")
    assert (report.triples, report.terms) == (2, 5)
    assert report.seconds > 0
    path = tmp_path / "more.nt.gz"
    path.write_bytes(gzip.compress(nt("c p d", "e p f").encode()))
    assert bench.engine.load(path, graph="urn:g").triples == 2
    assert count(bench.engine, "GRAPH <urn:g> { ?s ?p ?o }") == 2


def test_a_load_tells_how_far_it_has_come(bench, tmp_path):
    path = tmp_path / "many.ttl"
    path.write_text("".join(f"<urn:{i}> <urn:p> {i} .\n" for i in range(40_000)))  # several parts
    reported = []
    bench.engine.load(path, progress=lambda read, total: reported.append((read, total)))
    assert len(reported) > 1
    assert reported == sorted(reported)
    assert {total for _, total in reported} == {path.stat().st_size}


@pytest.mark.parametrize(
    ("source", "more"),
    [
        (b"<urn:a> <urn:p> <urn:b> .\nrubbish", {"format": "nt"}),
        (b"<urn:a> <urn:p> <urn:b> .", {}),
        (b"", {"format": "unknown"}),
        ("no/such/file.nt", {}),
        (b"<urn:a> <urn:p> <urn:b> .", {"format": "nt", "graph": "not an iri"}),
    ],
)
def test_a_load_that_fails_stores_nothing(bench, source, more):
    with pytest.raises(DataError):
        bench.engine.load(source, **more)
    assert bench.engine.stats()["triples"] == 0


def test_readers_see_whole_snapshots_while_others_write(bench):
    """Each update adds a pair; a reader must never see half of one."""
    bench.declare("s")
    failures, done = [], threading.Event()
    pairs = "SELECT ?k (COUNT(*) AS ?n) WHERE { { ?k <urn:left> ?x } UNION { ?k <urn:right> ?x } } GROUP BY ?k"

    def read():
        while not done.is_set():
            try:
                failures.extend(row for row in bench.engine.query(pairs) if int(row["n"]) != 2)
            except Exception as error:  # noqa: BLE001 - whatever it is, the test fails
                failures.append(error)
                return

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for k in range(150):
        bench.engine.update(f"INSERT DATA {{ <urn:u{k}> <urn:left> 1 . <urn:u{k}> <urn:right> 1 }}")
        bench.push("s", 100 * k + 50, f"s{k} left x", f"s{k} right x")
    done.set()
    for reader in readers:
        reader.join(60)
    assert failures == []
    assert len(bench.engine.query(pairs)) == 299


def test_pushes_from_many_threads_lose_nothing(bench):
    names = [f"s{i}" for i in range(4)]
    bench.declare(*names)
    queries = [bench.register("?s :p ?o", f"{name} RANGE 1s") for name in names]
    both = bench.register("?s :p ?o", *(f"{name} RANGE 1s" for name in names))
    bench.advance(None, 0)

    def push(name):
        for k in range(200):
            bench.push(name, 50 + k * 20, f"{name}-{k} p x")
        bench.advance(name, 5000)

    threads = [threading.Thread(target=push, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert [sum(len(e.answer) for e in query.poll()) for query in queries] == [200] * 4
    evaluations = both.poll()
    assert [e.time for e in evaluations] == [1000, 2000, 3000, 4000, 5000]
    assert sum(len(e.answer) for e in evaluations) == 800
