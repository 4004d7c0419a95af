"""Updates that remove: what is gone, and who still sees it."""

from __future__ import annotations

import shutil

import pytest

import penstock
from penstock import UpdateReport
from support.bench import rows

PREFIX = "PREFIX : <urn:> "
EVERYTHING = "SELECT ?g ?s ?p ?o { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"


@pytest.fixture(params=[1, 3])
def engine(request):
    with penstock.Engine(shards=request.param) as made:
        yield made


def update(engine, text):
    return engine.update(PREFIX + text)


def answer(engine, text):
    return rows(engine.query(PREFIX + text))


def test_what_is_removed_is_gone_and_can_be_added_again(engine):
    update(engine, "INSERT DATA { :a :p 1, 2 . :b :p 1 . GRAPH :g { :a :p 1 } }")
    update(engine, "DELETE DATA { :a :p 1 . :nobody :has 7 . GRAPH :g { :a :p 9 } }")
    assert answer(engine, "SELECT ?s ?o { ?s :p ?o }") == [("a", "2"), ("b", "1")]
    assert answer(engine, "SELECT ?g { GRAPH ?g { :a :p 1 } }") == ["g"]
    assert engine.stats()["triples"] == 3
    update(engine, "INSERT DATA { :a :p 1 }")
    assert answer(engine, "SELECT ?o { :a :p ?o }") == ["1", "2"]


def test_a_removal_that_changes_nothing_is_no_snapshot(engine):
    update(engine, "INSERT DATA { :a :p 1 }")
    before = engine.stats()["snapshot"]
    for text in (
        "DELETE DATA { :a :p 2 }",
        "DELETE WHERE { ?s :q ?o }",
        "CLEAR GRAPH :none",
        "DROP SILENT GRAPH :none",
    ):
        update(engine, text)
    update(engine, "DELETE { ?s ?p ?o } INSERT { ?s ?p ?o } WHERE { ?s ?p ?o }")
    assert engine.stats()["snapshot"] == before
    assert answer(engine, "SELECT ?s { ?s ?p ?o }") == ["a"]


def test_a_pattern_removes_and_adds_at_once(engine):
    update(engine, "INSERT DATA { :a :count 1 . :b :count 5 . :a :old :x }")
    update(
        engine,
        "DELETE { ?s :count ?n . ?s :old ?x } INSERT { ?s :count ?m } WHERE { ?s :count ?n OPTIONAL { ?s :old ?x } BIND(?n + 1 AS ?m) }",
    )
    assert answer(engine, "SELECT ?s ?p ?o { ?s ?p ?o }") == [("a", "count", "2"), ("b", "count", "6")]
    update(engine, "DELETE { ?s ?p ?o } INSERT { ?o ?p ?s } WHERE { ?s :count ?o BIND(:count AS ?p) }")
    assert engine.stats()["triples"] == 0


def test_the_last_operation_on_a_triple_decides(engine):
    before = engine.stats()["snapshot"]
    update(
        engine,
        """INSERT DATA { :a :p 1, 2 } ; DELETE DATA { :a :p 1 } ; DELETE DATA { :a :p 3 } ; INSERT DATA { :a :p 3, 3 } ;
        DELETE DATA { :a :p 2 } ; INSERT DATA { :a :p 2 }""",
    )
    assert answer(engine, "SELECT ?o { :a :p ?o }") == ["2", "3"]
    update(
        engine,
        """DELETE { :a :p ?o } WHERE { :a :p ?o FILTER(?o < 3) } ; INSERT { :n :is ?n } WHERE { SELECT (COUNT(*) AS ?n) { :a :p ?o } } ;
        INSERT DATA { :a :p 4 } ; DELETE WHERE { :a :p 3 } ; INSERT { :m :is ?m } WHERE { SELECT (SUM(?o) AS ?m) { :a :p ?o } }""",
    )
    assert answer(engine, "SELECT ?s ?p ?o { ?s ?p ?o }") == [("a", "p", "4"), ("m", "is", "4"), ("n", "is", "1")]
    assert engine.stats()["snapshot"] == before + 2


def test_graphs_are_cleared_moved_and_copied(engine):
    data = "INSERT DATA { :d :p 0 GRAPH :g { :a :p 1 . :a :q :b } GRAPH :h { :c :p 3 } } ; "
    everything = [("-", "d", "p", "0"), ("g", "a", "p", "1"), ("g", "a", "q", "b"), ("h", "c", "p", "3")]
    default, (g1, g2), h = everything[:1], everything[1:3], everything[3:]

    def after(text):
        update(engine, "CLEAR ALL ; " + data + text)
        return answer(engine, EVERYTHING)

    def named(graph, *triples):
        return [(graph, *triple[1:]) for triple in triples]

    assert after("CREATE GRAPH :new") == everything
    assert after("CLEAR DEFAULT") == [g1, g2, *h]
    assert after("DROP NAMED") == default
    assert after("CLEAR GRAPH :g") == default + h
    assert after("DROP GRAPH :g ; CREATE GRAPH :g") == default + h
    assert after("DROP ALL") == []
    assert after("MOVE :g TO :h") == default + named("h", g1, g2)
    assert after("MOVE DEFAULT TO :g") == named("g", *default) + h
    assert after("MOVE :g TO DEFAULT") == named("-", g1, g2) + h
    assert after("COPY :g TO :h") == [*default, g1, g2, *named("h", g1, g2)]
    assert after("COPY DEFAULT TO :i ; CLEAR DEFAULT") == [g1, g2, *h, *named("i", *default)]
    assert after("COPY :g TO :g ; MOVE :h TO :h ; MOVE SILENT :none TO :g") == everything


def test_a_graph_ends_with_its_last_triple(engine):
    update(engine, "INSERT DATA { GRAPH :g { :a :p 1 . :b :p 2 } GRAPH :h { :a :p 1 } }")
    graphs = "SELECT ?g { GRAPH ?g {} }"
    update(engine, "DELETE DATA { GRAPH :g { :a :p 1 } }")
    assert answer(engine, graphs) == ["g", "h"]
    update(
        engine,
        "DELETE { GRAPH ?g { ?s :p ?o } } WHERE { GRAPH ?g { ?s :p ?o FILTER(?o = 2) } } ; INSERT { :seen :is ?g } WHERE { GRAPH ?g {} }",
    )
    assert answer(engine, graphs) == ["h"]
    assert answer(engine, "SELECT ?g { :seen :is ?g }") == ["h"]


def test_with_and_the_name_of_the_default_graph_hold_for_removals(engine):
    stored = "<urn:x-penstock:stored>"
    update(engine, "INSERT DATA { :a :p 1, 2 GRAPH :g { :a :p 1, 2 } }")
    update(engine, "WITH :g DELETE { ?s :p ?o } WHERE { ?s :p ?o FILTER(?o = 1) }")
    update(engine, f"DELETE {{ GRAPH ?g {{ ?s :p 2 }} }} WHERE {{ ?s :p 2 BIND({stored} AS ?g) }}")
    assert answer(engine, EVERYTHING) == [("-", "a", "p", "1"), ("g", "a", "p", "2")]
    update(engine, f"DELETE DATA {{ GRAPH {stored} {{ :a :p 1 }} }} ; CLEAR GRAPH :g")
    assert answer(engine, EVERYTHING) == []


def test_blank_nodes_are_removed_by_a_pattern(engine):
    update(engine, "INSERT DATA { :a :has [ :x 1 ], [ :x 2 ] }")
    update(engine, "DELETE WHERE { :a :has ?n . ?n :x 1 }")
    assert answer(engine, "SELECT ?x { :a :has ?n . ?n :x ?x }") == ["2"]
    assert engine.stats()["triples"] == 2


def test_a_snapshot_outlives_a_removal(engine):
    update(engine, "INSERT DATA { " + "".join(f":s{k} :p {k} . " for k in range(1_000)) + "}")
    before = engine.query(PREFIX + "SELECT ?s ?o { ?s :p ?o }")
    update(engine, "DELETE { ?s :p ?o } WHERE { ?s :p ?o FILTER(?o >= 10) }")
    assert len(before) == 1_000
    assert len(engine.query(PREFIX + "SELECT ?s ?o { ?s :p ?o }")) == 10


def test_standing_queries_see_a_removal_at_their_next_instant(make_bench):
    bench = make_bench()
    bench.declare("s", timing="all")
    joined, missing, counted = (
        bench.engine.register(
            f"{PREFIX} SELECT {what} FROM STREAM :s [RANGE 1s STEP 1s] FROM <urn:x-penstock:stored> {{ ?a :p ?b . {pattern} }}"
        )
        for what, pattern in (
            ("?x", "?b :is ?x"),
            ("?b", "FILTER NOT EXISTS { ?b :is ?x }"),
            ("(COUNT(?x) AS ?n)", "OPTIONAL { ?b :is ?x }"),
        )
    )
    update(bench.engine, "INSERT DATA { :b :is 7, 8 }")
    bench.push("s", 100, "a p b")
    bench.advance("s", 1_000)
    update(bench.engine, "DELETE DATA { :b :is 7 }")
    for instant, text in ((2_000, "DELETE WHERE { :b :is ?x }"), (3_000, "INSERT DATA { :b :is 7 }"), (4_000, "")):
        bench.push("s", instant - 900, "a p b")
        bench.advance("s", instant)
        update(bench.engine, text)
    assert [rows(evaluation.answer) for evaluation in joined.poll()] == [["7", "8"], ["8"], [], ["7"]]
    assert [rows(evaluation.answer) for evaluation in missing.poll()] == [[], [], ["b"], []]
    assert [rows(evaluation.answer) for evaluation in counted.poll()] == [["2"], ["1"], ["0"], ["1"]]


def test_a_query_that_lags_sees_the_graph_without_later_batches_and_with_the_update(make_bench):
    bench = make_bench()
    bench.declare("fast", absorb_into="urn:g")
    bench.declare("slow", timing="all")
    query = bench.engine.register(
        f"{PREFIX} SELECT ?x FROM STREAM :fast [RANGE 1s STEP 1s] FROM STREAM :slow [RANGE 1s STEP 1s] FROM NAMED :g {{ GRAPH :g {{ :a :is ?x }} }}"
    )
    bench.push("fast", 500, "a is v1")
    bench.advance("fast", 1_000)
    bench.push("fast", 1_500, "a is v2")
    bench.advance("fast", 2_000)
    update(bench.engine, "DELETE DATA { GRAPH :g { :a :is :v1, :v2 } } ; INSERT DATA { GRAPH :g { :a :is :v3 } }")
    bench.push("slow", 500, "x y z")
    bench.advance("slow", 1_000)
    bench.push("fast", 2_500, "a is v1")
    bench.advance("fast", 3_000)
    bench.advance("slow", 3_000)
    assert [rows(evaluation.answer) for evaluation in query.poll()] == [["v3"], ["v3"], ["v1", "v3"]]


@pytest.mark.parametrize("durability", ["checkpoint", "commit"])
def test_removals_are_there_after_a_restart_and_after_a_crash(make_bench, tmp_path, durability):
    bench = make_bench(data_dir=tmp_path / "data", durability=durability)
    update(
        bench.engine, "INSERT DATA { :a :p 1, 2, 3 . :b :p _:n . _:n :q 1 . GRAPH :g { :a :p 1 } GRAPH :h { :a :p 1 } }"
    )
    bench.engine.checkpoint()
    for text in (
        "DELETE DATA { :a :p 1 . :a :p 9 }",
        "DELETE { ?s :p ?o } INSERT { ?s :q ?x } WHERE { ?s :p ?o FILTER(?o = 2) BIND(RAND() AS ?x) }",
        "DELETE WHERE { :b :p ?n . ?n :q ?x }",
        "MOVE :g TO :i ; DROP GRAPH :h",
        "INSERT DATA { :after :p 4 } ; DELETE DATA { :after :p 5 }",
    ):
        update(bench.engine, text)
    if durability == "checkpoint":
        bench.engine.checkpoint()
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    expected = answer(bench.engine, EVERYTHING)
    assert len(expected) == 4
    for _ in range(2):
        with penstock.Engine(tmp_path / "copy") as back:
            assert answer(back, EVERYTHING) == expected
            assert back.stats()["triples"] == 4
            assert answer(back, "SELECT ?g { GRAPH ?g {} }") == ["i"]
    with penstock.Engine(tmp_path / "copy") as back:
        update(back, "CLEAR ALL")
    with penstock.Engine(tmp_path / "copy", read_only=True) as back:
        assert answer(back, EVERYTHING) == []
        update(back, "INSERT DATA { :a :p 1 }")


def test_an_update_reports_its_effect(engine):
    assert update(engine, "INSERT DATA { :a :p 1, 2 }") == UpdateReport(2, 0)
    assert update(engine, "INSERT DATA { :a :p 2, 3 } ; DELETE DATA { :a :p 1, 7 }") == UpdateReport(1, 1)
    assert update(engine, "DELETE { ?s ?p ?o } INSERT { ?s ?p 3 } WHERE { ?s ?p ?o }") == UpdateReport(0, 1)
    assert update(engine, "CREATE GRAPH :g") == UpdateReport()
