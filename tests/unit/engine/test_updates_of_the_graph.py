"""Updates: each operation sees those before it, and the whole is one snapshot or nothing."""

from __future__ import annotations

import shutil
import threading

import pytest

import penstock
from penstock import LimitError, QueryError
from support.bench import rows

PREFIX = "PREFIX : <urn:> "


@pytest.fixture(params=[1, 3])
def engine(request):
    with penstock.Engine(shards=request.param) as made:
        yield made


def update(engine, text):
    engine.update(PREFIX + text)


def answer(engine, text):
    return rows(engine.query(PREFIX + text))


def ask(engine, pattern):
    return engine.query(f"{PREFIX} ASK {{ {pattern} }}")


def test_insert_where_adds_an_instance_of_the_template_for_each_solution(engine):
    update(engine, "INSERT DATA { :a :p 1 . :b :p 2 . :b :q :c }")
    before = engine.stats()["snapshot"]
    update(
        engine,
        "INSERT { ?s :r ?o . GRAPH ?s { :s :has ?o, ?x } GRAPH :g { ?s a :T } } WHERE { ?s :p ?o OPTIONAL { ?s :q ?x } }",
    )
    assert engine.stats()["snapshot"] == before + 1
    assert answer(engine, "SELECT ?s ?o { ?s :r ?o }") == [("a", "1"), ("b", "2")]
    assert answer(engine, "SELECT ?g ?o { GRAPH ?g { :s :has ?o } }") == [("a", "1"), ("b", "2"), ("b", "c")]
    assert answer(engine, "SELECT ?s { GRAPH :g { ?s a :T } }") == ["a", "b"]


def test_what_is_no_triple_is_left_out(engine):
    update(engine, "INSERT DATA { :a :p 1 . :a :p :b }")
    update(engine, "INSERT { ?o :of ?s . :x ?o ?s . ?s :unbound ?no . GRAPH ?o { ?s :in ?o } } WHERE { ?s :p ?o }")
    assert answer(engine, "SELECT ?s ?o { ?s :of ?o }") == [("b", "a")]
    assert answer(engine, "SELECT ?p ?o { :x ?p ?o }") == [("b", "a")]
    assert answer(engine, "SELECT ?g { GRAPH ?g { ?s :in ?o } }") == ["b"]
    assert not ask(engine, "?s :unbound ?o")


def test_blank_nodes_of_a_template_are_new_for_each_solution(engine):
    update(engine, "INSERT DATA { :a :p 1 . :b :p 2 }")
    text = "INSERT { ?s :has _:n, [ :x 1 ] . _:n :value ?o . GRAPH :g { _:n :of ?s } } WHERE { ?s :p ?o }"
    update(engine, text)
    assert len(engine.query(f"{PREFIX} SELECT DISTINCT ?n {{ ?s :has ?n }}")) == 4
    assert answer(engine, "SELECT ?s ?o { ?s :has ?n . ?n :value ?o . GRAPH :g { ?n :of ?s } }") == [
        ("a", "1"),
        ("b", "2"),
    ]
    update(engine, text)
    assert len(engine.query(f"{PREFIX} SELECT DISTINCT ?n {{ ?s :has ?n }}")) == 8


def test_terms_that_the_pattern_computes_are_stored(engine):
    update(
        engine,
        'INSERT { :a :p ?x, ?y, ?z } WHERE { BIND(CONCAT("long ", "text") AS ?x) BIND(1 + 1 AS ?y) BIND(BNODE() AS ?z) }',
    )
    assert ask(engine, ':a :p "long text", 2, ?b FILTER(isBlank(?b))')
    assert engine.stats()["triples"] == 3


def test_each_operation_sees_those_before_it_and_all_are_one_snapshot(engine):
    before = engine.stats()["snapshot"]
    update(
        engine,
        """INSERT DATA { :a :p 1 . GRAPH :g { :a :p 2 } } ;
        INSERT { ?s :q ?o } WHERE { ?s :p ?o } ;
        INSERT { GRAPH :h { ?s :r ?o } } WHERE { { ?s :q ?o } UNION { GRAPH ?g { ?s :p ?o } } } ;
        ADD :h TO :i ; COPY :i TO :j ; ADD DEFAULT TO :k ;
        INSERT { :graphs :are ?g } WHERE { GRAPH ?g {} } ;
        INSERT { :count :of ?n } WHERE { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } }""",
    )
    assert engine.stats()["snapshot"] == before + 1
    assert answer(engine, "SELECT ?g ?s ?p ?o { GRAPH ?g { ?s ?p ?o } }") == sorted(
        [("g", "a", "p", "2")] + [(g, "a", "r", o) for g in "hij" for o in "12"] + [("k", "a", p, "1") for p in "pq"]
    )
    assert answer(engine, "SELECT ?g { :graphs :are ?g }") == list("ghijk")
    assert answer(engine, "SELECT ?n { :count :of ?n }") == ["7"]


def test_an_operation_that_fails_leaves_the_graph_alone(engine):
    update(engine, "INSERT DATA { GRAPH :g { :a :p 1 } :a :p 2 }")
    before = engine.stats()["snapshot"]
    for text, message, column in (
        ("CREATE GRAPH :g", "graph <urn:g> already exists", 25),
        ("ADD :none TO :g", "graph <urn:none> does not exist", 25),
        ("CLEAR ALL; MOVE :g TO :h", "graph <urn:g> does not exist", 36),
        ("LOAD :g", "LOAD is not supported without a load_directory", 25),
    ):
        with pytest.raises(QueryError) as caught:
            engine.update(f"{PREFIX}\nINSERT DATA {{ :b :p 3 }};{text}")
        assert caught.value.message.startswith(message)
        assert (caught.value.line, caught.value.column) == (2, column)
    assert engine.stats()["snapshot"] == before
    assert not ask(engine, ":b :p 3")


def test_whether_a_graph_exists_is_ignored_on_demand(engine):
    update(
        engine,
        "INSERT DATA { GRAPH :g { :a :p 1 } } ; CREATE SILENT GRAPH :g ; ADD SILENT :none TO :g ; CREATE GRAPH :new",
    )
    update(engine, "COPY :g TO :g ; MOVE :g TO :g ; ADD DEFAULT TO DEFAULT ; COPY DEFAULT TO :new")
    assert engine.stats()["triples"] == 1


def test_with_and_using_give_the_dataset(engine):
    update(engine, "INSERT DATA { :a :p :d GRAPH :g { :a :p :g1 } GRAPH :h { :a :p :h1 } }")
    update(engine, "WITH :g INSERT { ?s :q ?o . GRAPH :other { ?s :q ?x } } WHERE { ?s :p ?o GRAPH :h { ?s :p ?x } }")
    assert answer(engine, "SELECT ?g ?o { GRAPH ?g { :a :q ?o } }") == [("g", "g1"), ("other", "h1")]
    update(engine, "WITH :new INSERT { ?s :r ?o } USING :g USING NAMED :h WHERE { ?s :p ?o GRAPH ?any { ?s :p ?x } }")
    assert answer(engine, "SELECT ?o { GRAPH :new { :a :r ?o } }") == ["g1"]
    update(engine, "WITH :nowhere INSERT { :s :t 1 } WHERE {}")
    assert ask(engine, "GRAPH :nowhere { :s :t 1 }")


def test_the_stored_default_graph_has_a_name(engine):
    stored = "<urn:x-penstock:stored>"
    update(
        engine,
        f"INSERT DATA {{ GRAPH {stored} {{ :a :p 1 }} }} ; INSERT {{ GRAPH ?g {{ :a :p 2 }} }} WHERE {{ BIND({stored} AS ?g) }}",
    )
    assert answer(engine, "SELECT ?o { :a :p ?o }") == ["1", "2"]
    assert not ask(engine, "GRAPH ?g { ?s ?p ?o }")


def test_a_pattern_has_the_limits_of_queries():
    with penstock.Engine(limits=penstock.Limits(query_timeout_s=0.1)) as engine:
        update(engine, "INSERT DATA { " + "".join(f":s{k} :p {k} . " for k in range(2_000)) + "}")
        with pytest.raises(LimitError):
            update(
                engine,
                "INSERT { :n :n ?n } WHERE { SELECT (COUNT(*) AS ?n) { ?a :p ?x . ?b :p ?y . ?c :p ?z FILTER(?x + ?y < ?z) } }",
            )
        assert engine.stats()["triples"] == 2_000


def test_readers_see_all_operations_of_a_text_or_none(engine):
    failures, done = [], threading.Event()

    def read():
        while not done.is_set():
            if answer(engine, "SELECT ?k { ?k :left ?x FILTER NOT EXISTS { ?k :right ?x } }"):
                failures.append("half of an update")
                return

    reader = threading.Thread(target=read)
    reader.start()
    for k in range(100):
        update(engine, f"INSERT DATA {{ :u{k} :left {k} }} ; INSERT {{ ?u :right ?x }} WHERE {{ ?u :left ?x }}")
    done.set()
    reader.join(60)
    assert failures == []


def test_standing_queries_see_an_update_at_their_next_instant(make_bench):
    bench = make_bench()
    bench.declare("s", timing="all")
    query = bench.engine.register(
        f"{PREFIX} SELECT ?x FROM STREAM :s [RANGE 1s STEP 1s] FROM <urn:x-penstock:stored> {{ ?a :p ?b . ?b :copy ?x }}"
    )
    bench.push("s", 100, "a p b")
    bench.advance("s", 1_000)
    update(bench.engine, "INSERT DATA { :b :is 7 } ; INSERT { ?b :copy ?x } WHERE { ?b :is ?x }")
    bench.push("s", 1_100, "a p b")
    bench.advance("s", 2_000)
    assert [rows(evaluation.answer) for evaluation in query.poll()] == [[], ["7"]]


@pytest.mark.parametrize(
    ("template", "pattern"),
    [
        ("?s :q ?x . GRAPH :g { ?s :q \"a\\n\"@en, 'é'^^:d }", "?s :p ?o BIND(RAND() AS ?x)"),
        ("?s :q _:n . _:n :x ?x", "?s :p ?o BIND(STRUUID() AS ?x)"),
        ("<relative> :q ?x", "?s :p ?o BIND(UUID() AS ?x)"),
        ("?s :q ?none", "?s :p ?o"),
    ],
)
def test_what_an_update_added_is_there_after_a_crash(make_bench, tmp_path, template, pattern):
    bench = make_bench(data_dir=tmp_path / "data", durability="commit")
    update(
        bench.engine, "INSERT DATA { :a :p 1 . :b :p 2 . _:n :p 3 }" if "_:" in template else "INSERT DATA { :a :p 1 }"
    )
    update(bench.engine, f"INSERT {{ {template} }} WHERE {{ {pattern} }}")
    update(bench.engine, "INSERT DATA { :after :p 4 }")
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    with penstock.Engine(tmp_path / "copy") as back:
        everything = "SELECT ?g ?p ?o { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } FILTER(!isBlank(?o)) }"
        assert answer(back, everything) == answer(bench.engine, everything)
        assert back.stats()["triples"] == bench.engine.stats()["triples"]
