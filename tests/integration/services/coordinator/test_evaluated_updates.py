"""Updates with patterns in a cluster: an engine evaluates them on a snapshot, the coordinator writes their effects."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.engine.oneshot import generic_plans, texts
from penstock.errors import ConflictError, LimitError, QueryError, UnavailableError
from penstock.query.protocol_dataset import dataset_of
from penstock.services.coordinator.insertion import Insertion
from penstock.updates import effects
from penstock.updates.effects import Effect
from support import shared, w3c, w3c_update
from support.small_cluster import SmallCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

READS = [None, "shm", "tcp"]
RUNNER = shared.module("suites/w3c_update_runner.py")


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[Callable[..., SmallCluster]]:
    made = []

    def make(reads: Any = None) -> SmallCluster:
        cluster = SmallCluster(shards=3, reads=reads)
        made.append(cluster)
        if reads is not None:
            cluster.start_store("s0", tmp_path, keeps=False)
            cluster.start_store("s1", tmp_path, keeps=False)
        cluster.run()
        return cluster

    yield make
    for cluster in made:
        cluster.close()


def evaluated(cluster: SmallCluster, text: str, base: str | None = None, **graphs: Any) -> Effect:
    dataset = dataset_of(graphs.get("default", ()), graphs.get("named", ()))
    effect = cluster.engines["e0"].updates.evaluate(text, base, dataset)
    sent = Effect.of_bytes(effect.to_bytes())
    for got, given in ((sent.removed, effect.removed), (sent.added, effect.added)):
        assert [c.tolist() for c in got] == [c.tolist() for c in given]
    return sent


def update(cluster: SmallCluster, text: str, base: str | None = None, **graphs: Any) -> int:
    added = cluster.coordinator.insert(Insertion.of_effect(evaluated(cluster, text, base, **graphs)))
    cluster.run()
    return added


def asked(cluster: SmallCluster, text: str) -> Any:
    return cluster.engines["e0"].one_shot.query(text, None, None, None)


def count(cluster: SmallCluster, pattern: str) -> int:
    return int(next(iter(asked(cluster, f"SELECT (COUNT(*) AS ?count) {{ {pattern} }}")))["count"])


def state(cluster: SmallCluster) -> dict[str | None, list[Any]]:
    found: dict[str | None, list[Any]] = defaultdict(list)
    for row in asked(cluster, w3c_update.EVERYTHING):
        graph = str(row["g"]) if "g" in row else None
        found[graph].append(tuple(RUNNER.key(row[name]) for name in "spo"))
    return found


@pytest.mark.parametrize("reads", READS)
def test_the_w3c_evaluations_of_updates(clusters, reads) -> None:
    cluster, count = clusters(reads), 0
    for test in w3c_update.tests():
        if test.kind != "update":
            continue
        task = test.task
        update(cluster, "DROP ALL")
        for graph, base, path in (*((None, *pair) for pair in task.default), *task.named):
            syntax = w3c.FORMATS[path.rsplit(".", 1)[1]]
            cluster.coordinator.load(Path(path).read_bytes(), syntax, graph, base)
        cluster.run()
        update(cluster, task.request, task.base)
        expected = RUNNER.expected_state(w3c_update.suite(), test.expected)
        assert RUNNER.canonical(expected) == RUNNER.canonical(state(cluster)), test.id
        count += 1
    assert count == 94


@pytest.mark.parametrize("reads", READS)
def test_operations_see_what_those_before_them_have_added(clusters, reads) -> None:
    cluster = clusters(reads)
    cluster.coordinator.load(b"<urn:a> <urn:p> 1 . <urn:b> <urn:p> 2 .", "turtle")
    cluster.run()
    added = update(
        cluster,
        """PREFIX : <urn:>
        INSERT { ?s :name ?name . ?s :node [ :of ?s ] } WHERE { ?s :p ?o BIND(CONCAT("a long computed name of ", STR(?s)) AS ?name) } ;
        INSERT DATA { :c :name "a long computed name of urn:a" } ;
        INSERT { GRAPH :new { ?s :same ?t } } WHERE { ?s :name ?n . ?t :name ?n FILTER(STR(?s) < STR(?t)) } ;
        INSERT { ?t :checked true } WHERE { GRAPH :new { ?s :same ?t } ?s :node ?node . ?node :of ?s }""",
    )
    assert added == 6 + 1 + 1 + 1
    assert count(cluster, "GRAPH <urn:new> { <urn:a> <urn:same> <urn:c> } <urn:c> <urn:checked> true") == 1
    assert count(cluster, "?s <urn:node> ?n . ?n <urn:of> ?s FILTER(ISBLANK(?n))") == 2
    # later labels have the same numbers in engines and stores
    cluster.coordinator.load(b"<urn:a> <urn:later> 1 .", "turtle")
    cluster.run()
    assert count(cluster, "?s <urn:later> 1") == 1
    assert update(cluster, "INSERT { ?s <urn:again> ?o } WHERE { ?s <urn:later> ?o }") == 1
    assert count(cluster, "?s <urn:again> 1 ; <urn:name> ?n") == 1


@pytest.mark.parametrize("reads", READS)
def test_updates_remove_what_their_patterns_find(clusters, reads) -> None:
    cluster = clusters(reads)
    cluster.coordinator.load("".join(f"<urn:{i}> <urn:p> {i % 7} .\n" for i in range(20_000)).encode(), "turtle")
    cluster.run()
    assert update(cluster, "DELETE { ?s <urn:p> 3 } INSERT { ?s <urn:q> 3 } WHERE { ?s <urn:p> 3 }") == 2 * 2857
    assert (count(cluster, "?s <urn:p> 3"), count(cluster, "?s <urn:q> 3")) == (0, 2857)
    assert update(cluster, "DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER(?o < 3) }") == 3 * 2857 + 1
    assert count(cluster, "?s ?p ?o") == 20_000 - 3 * 2857 - 1
    copy_and_move = "COPY DEFAULT TO <urn:g> ; MOVE <urn:g> TO <urn:h> ; DELETE DATA { <urn:4> <urn:p> 4 }"
    update(cluster, copy_and_move)
    assert count(cluster, "GRAPH <urn:g> { ?s ?p ?o }") == 0
    assert count(cluster, "GRAPH <urn:h> { ?s ?p ?o }") == 1 + count(cluster, "?s ?p ?o") == 20_000 - 3 * 2857 - 1
    assert update(cluster, "DELETE { <urn:5> ?p ?o } WHERE { <urn:5> ?p ?o . ?x <urn:q> ?y }") == 1, "each triple once"
    update(cluster, "CLEAR DEFAULT")
    assert [str(row["g"]) for row in asked(cluster, "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }")] == ["urn:h"]
    update(cluster, "DROP ALL ; INSERT DATA { <urn:4> <urn:p> 4 }")
    assert count(cluster, "{ ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } }") == 1


def test_computed_terms_and_new_constants_are_removed_if_they_are_stored(clusters) -> None:
    cluster = clusters()
    name, long = "CONCAT('a long computed ', 'name of ', STR(?s))", "<urn:a> <urn:name> 'a long computed name of urn:a'"
    cluster.coordinator.update(f"INSERT DATA {{ {long} . <urn:b> <urn:name> 'b' }}")
    cluster.run()
    removed = update(
        cluster,
        f"""DELETE {{ ?s <urn:name> ?n . ?s <urn:name> 'a constant that nobody knows' . ?s <urn:name> ?node }}
        WHERE {{ ?s <urn:name> ?o BIND({name} AS ?n) BIND(BNODE() AS ?node) }}""",
    )
    assert removed == 1, "what the cluster's dictionary does not have is stored nowhere"
    assert count(cluster, "?s <urn:name> ?n") == 1
    update(
        cluster,
        f"""INSERT {{ ?s <urn:made> ?n }} WHERE {{ ?s <urn:name> ?o BIND({name} AS ?n) }} ;
        DELETE {{ ?s <urn:made> ?n }} WHERE {{ ?s <urn:made> ?o BIND({name} AS ?n) }} ; {f"DELETE DATA {{ {long} }}"}""",
    )
    assert count(cluster, "?s ?p ?n") == 1


QUERY = """SELECT ?x FROM STREAM <urn:s> [RANGE 1s STEP 1s] FROM <urn:x-penstock:stored>
WHERE { ?e <urn:at> ?x . ?x <urn:known> true }"""


@pytest.mark.parametrize("reads", READS)
def test_an_instant_sees_what_is_removed_after_it_also_if_another_engine_evaluates_it(tmp_path, reads) -> None:
    cluster = SmallCluster(engines=2, shards=3, reads=reads)
    if reads is not None:
        cluster.start_store("s0", tmp_path, keeps=False)
    cluster.coordinator.declare("urn:s", "s", batch_ms=100, timing=("urn:at",))
    cluster.coordinator.load(b"<urn:a> <urn:known> true . <urn:b> <urn:known> true .", "turtle")
    for i in range(4):  # in groups, and buckets, of their own
        cluster.coordinator.register(f"q{i}", QUERY, max_catch_up=1000 + i)
    cluster.run()

    def second(end_ms: int, rounds: int = 40) -> None:
        cluster.push("s", end_ms - 500, "_:e <urn:at> <urn:a> .\n_:e <urn:at> <urn:b> .")
        cluster.advance("s", end_ms)
        cluster.run(rounds)

    cluster.advance("s", 0)
    second(1000)
    assert update(cluster, "DELETE WHERE { <urn:b> ?p ?o }") == 1
    second(2000)
    cluster.paused.append(cluster.engines["e0"])
    second(3000, 3)
    cluster.coordinator.update("DELETE DATA { <urn:a> <urn:known> true } ; INSERT DATA { <urn:b> <urn:known> true }")
    second(4000, 3)
    cluster.kill("e0")
    cluster.run()
    found = [(line["query"], line["time"], len(line["results"]["bindings"])) for line in cluster.results()]
    names = [[row["x"]["value"] for row in line["results"]["bindings"]] for line in cluster.results()]
    assert found == [(f"q{i}", t, 2 if t == 1000 else 1) for i in range(4) for t in (1000, 2000, 3000, 4000)]
    assert [n for n in names if len(n) == 1] == [["urn:a"], ["urn:a"], ["urn:b"]] * 4
    cluster.close()


def test_blank_nodes_of_the_graph_stay_the_same_and_new_ones_are_new(clusters) -> None:
    cluster = clusters()
    cluster.coordinator.update("INSERT DATA { _:b <urn:p> 1 }")
    cluster.run()
    for _ in range(2):
        assert update(cluster, "INSERT { ?b <urn:seen> true . _:new <urn:made> ?b } WHERE { ?b <urn:p> 1 }") == 2
    assert count(cluster, "?b <urn:p> 1 ; <urn:seen> true") == 1
    assert count(cluster, "?new <urn:made> ?b . ?b <urn:p> 1") == 2


def test_the_graphs_of_the_request_are_those_of_the_pattern(clusters) -> None:
    cluster = clusters()
    cluster.coordinator.update(
        "INSERT DATA { GRAPH <urn:g> { <urn:a> <urn:p> 1 } GRAPH <urn:h> { <urn:b> <urn:p> 1 } }"
    )
    cluster.run()
    text = "INSERT { ?s <urn:q> 1 } WHERE { ?s <urn:p> 1 }"
    assert update(cluster, text) == 0
    assert update(cluster, text, default=["urn:g"]) == 1
    with pytest.raises(QueryError, match="USING"):
        evaluated(cluster, "WITH <urn:g> " + text, default=["urn:g"])


def test_a_change_in_between_is_a_conflict(clusters) -> None:
    cluster = clusters()
    effect = evaluated(cluster, "INSERT { <urn:a> <urn:n> ?n } WHERE { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } }")
    cluster.coordinator.update("INSERT DATA { <urn:a> <urn:p> 1 }")
    with pytest.raises(ConflictError):
        cluster.coordinator.insert(Insertion.of_effect(effect), "name")
    assert cluster.coordinator.active, "a conflict leaves the coordinator as it is"
    cluster.run()
    assert count(cluster, "?s ?p ?o") == 1
    assert update(cluster, "INSERT { <urn:a> <urn:n> ?n } WHERE { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } }") == 1
    assert count(cluster, "?s <urn:n> 1") == 1
    removal = evaluated(cluster, "DELETE { ?s ?p ?o } WHERE { ?s ?p ?o FILTER NOT EXISTS { ?s <urn:retained> true } }")
    cluster.coordinator.update("INSERT DATA { <urn:a> <urn:retained> true }")
    with pytest.raises(ConflictError):
        cluster.coordinator.insert(Insertion.of_effect(removal))
    cluster.run()
    assert count(cluster, "?s ?p ?o") == 3


def test_an_effect_is_stored_once_for_its_name(clusters) -> None:
    cluster = clusters()
    cluster.coordinator.update("INSERT DATA { <urn:a> <urn:p> 1 }")
    cluster.run()
    text = "INSERT { [] <urn:made> ?s } WHERE { ?s <urn:p> 1 }"
    insertion = Insertion.of_effect(evaluated(cluster, text))
    assert cluster.coordinator.insert(insertion, "k") == 1
    assert cluster.coordinator.insert(insertion, "k") == 1, "although other changes are in between now"
    cluster.coordinator.close()
    cluster.restart_coordinator()
    assert cluster.coordinator.stored("k") == (1, 2)
    assert cluster.coordinator.insert(insertion, "k") == 1
    cluster.run()
    assert count(cluster, "?x <urn:made> ?s") == 1


def test_a_large_effect_is_split_over_records(clusters) -> None:
    cluster = clusters()
    cluster.coordinator.load("".join(f"<urn:{i}> <urn:p> {i} .\n" for i in range(20_000)).encode(), "turtle")
    cluster.run()
    assert update(cluster, "INSERT { ?s <urn:q> ?o , <urn:z> } WHERE { ?s <urn:p> ?o }") == 40_000
    assert count(cluster, "?s <urn:q> <urn:z>") == 20_000


def test_what_is_not_supported_has_its_position(clusters, monkeypatch) -> None:
    cluster = clusters()
    with pytest.raises(QueryError) as caught:
        evaluated(cluster, "INSERT DATA { <urn:a> <urn:p> 1 } ;\n LOAD <urn:a>")
    assert (caught.value.line, caught.value.column) == (2, 2)
    monkeypatch.setattr(effects, "MAX_INSERTION", 1)
    with pytest.raises(LimitError, match="MAX_INSERTION"):
        evaluated(cluster, "INSERT DATA { <urn:a> <urn:p> 1, 2 }")
    cluster.coordinator.update("INSERT DATA { <urn:a> <urn:p> 1 }")
    cluster.coordinator.update("INSERT DATA { <urn:a> <urn:p> 2 }")
    cluster.run()
    with pytest.raises(LimitError, match="MAX_INSERTION"):
        evaluated(cluster, "CLEAR ALL")


@pytest.mark.parametrize("reads", READS)
def test_updates_that_differ_in_constants_are_parsed_and_planned_once(clusters, reads, monkeypatch) -> None:
    cluster = clusters(reads)
    update(cluster, "INSERT DATA { " + " ".join(f"<urn:s{i}> <urn:p> {i} ." for i in range(12)) + " }")
    parsed, planned = [], []
    parse, make_plan = texts.parse, generic_plans.make_plan
    monkeypatch.setattr(texts, "parse", lambda text, *a, **k: parsed.append(text) or parse(text, *a, **k))
    monkeypatch.setattr(generic_plans, "make_plan", lambda *a, **k: planned.append(a) or make_plan(*a, **k))
    for i in range(12):  # the new label has another number in each evaluation before the first commit
        moved = f"DELETE {{ <urn:s{i}> <urn:p> ?v }} INSERT {{ <urn:s{i}> <urn:q> ?v , 'v' }} "
        text = f"{moved} WHERE {{ <urn:s{i}> <urn:p> ?v }}"
        if i == 5:
            update(cluster, "INSERT DATA { <urn:a> <urn:between> 1 }")
        effect = evaluated(cluster, text)
        assert (len(effect.removed[0]), len(effect.added[0])) == (1, 2)
        assert update(cluster, text) == 3
    assert len(parsed) == 2, "the first text, and the one that is prepared"
    assert len(planned) == 1
    found = asked(cluster, "SELECT ?s ?v { ?s <urn:q> ?v FILTER(isNumeric(?v)) }")
    assert sorted(int(str(row["v"])) for row in found) == list(range(12))
    assert not asked(cluster, "ASK { ?s <urn:p> ?v }")
    with pytest.raises(QueryError, match="line 1, column"):
        evaluated(cluster, "DELETE { <urn:s1> <urn:p> ?v } WHERE { <urn:s1> <urn:p> ?v , }")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory of files for LOAD, beside a file that it must not read."""
    made = tmp_path / "files"
    made.mkdir()
    (tmp_path / "secret.nt").write_text("<urn:secret> <urn:p> <urn:b> .\n")
    (made / "a.ttl").write_text("<urn:a> <urn:p> 'a literal of the file', [] , <rel> . <urn:x> <urn:p> 7 .")
    (made / "bad.nt").write_text("<urn:a> <urn:p> <urn:b> .\nno triple\n")
    (made / "link.nt").symlink_to(tmp_path / "secret.nt")
    return made


@pytest.mark.parametrize("reads", READS)
def test_a_load_reads_a_file_of_the_engine_and_later_operations_see_it(clusters, reads, folder, monkeypatch) -> None:
    cluster = clusters(reads)
    monkeypatch.setattr(cluster.engines["e0"].updates, "_load_directory", folder)
    text = "LOAD <file:a.ttl> INTO GRAPH <urn:g> ; DELETE { GRAPH <urn:g> { <urn:x> ?p ?o } } "
    text += "INSERT { <urn:y> ?p ?o } WHERE { GRAPH <urn:g> { <urn:x> ?p ?o } }"
    assert update(cluster, text) == 5
    rows = asked(cluster, "SELECT ?o { GRAPH <urn:g> { <urn:a> <urn:p> ?o } }")
    found = {str(row["o"]) for row in rows}
    assert found >= {"a literal of the file", (folder / "rel").as_uri()}
    assert len(found) == 3
    assert asked(cluster, "ASK { <urn:y> <urn:p> 7 FILTER NOT EXISTS { GRAPH <urn:g> { <urn:x> ?p ?o } } }")
    assert count(cluster, "GRAPH <urn:g> { ?s ?p ?o }") == 3
    update(cluster, "LOAD <file:a.ttl> INTO GRAPH <urn:g>")
    assert count(cluster, "GRAPH <urn:g> { ?s ?p ?o }") == 5, "a blank node of a document is new in each load"


def test_a_load_reads_no_other_files_and_has_the_limit_of_insertions(clusters, folder, monkeypatch) -> None:
    cluster = clusters()
    with pytest.raises(QueryError, match="LOAD is not supported without PENSTOCK_LOAD_DIRECTORY"):
        evaluated(cluster, "LOAD <file:a.ttl>")
    monkeypatch.setattr(cluster.engines["e0"].updates, "_load_directory", folder)
    for iri in ("file:../secret.nt", "file:link.nt", (folder.parent / "secret.nt").as_uri(), "file:none.nt"):
        with pytest.raises(QueryError, match="there is no file") as caught:
            evaluated(cluster, f"INSERT DATA {{ <urn:a> <urn:p> 1 }} ;\n LOAD <{iri}>")
        assert (caught.value.line, caught.value.column) == (2, 2)
        assert len(evaluated(cluster, f"LOAD SILENT <{iri}>").added[0]) == 0
    with pytest.raises(QueryError, match="reads files only"):
        evaluated(cluster, "LOAD <http://example.org/a.ttl>")
    with pytest.raises(QueryError, match=r"bad\.nt: line 2"):
        evaluated(cluster, "LOAD <file:bad.nt>")
    monkeypatch.setattr("penstock.updates.evaluation.MAX_INSERTION", 3)
    with pytest.raises(LimitError, match="more than 3 statements"):
        evaluated(cluster, "LOAD <file:a.ttl>")


def test_a_failed_evaluation_whose_error_lives_on_retains_no_view(clusters, monkeypatch) -> None:
    cluster = clusters("shm")
    update(cluster, "INSERT DATA { <urn:s> <urn:p> 1, 2, 3 }")
    engine, graph = cluster.engines["e0"], cluster.engines["e0"].updates.core.store

    def fails(*_: Any, **__: Any) -> Any:
        raise UnavailableError("the dictionary service does not answer")

    with monkeypatch.context() as patched:
        patched.setattr("penstock.engine.oneshot.one_shot.native.execute", fails)
        with pytest.raises(UnavailableError) as of_query:
            engine.one_shot.query("SELECT * { ?s <urn:p> ?o }", None, None, None)
    assert graph.oldest_needed(10**6) == 10**6

    errors = [of_query.value]
    for at in ("penstock.updates.evaluation.to_cluster", "penstock.engine.oneshot.updating.native.instances"):
        with monkeypatch.context() as patched:
            patched.setattr(at, fails)
            with pytest.raises(UnavailableError) as of_update:
                engine.updates.evaluate("INSERT { ?s <urn:q> ?o } WHERE { ?s <urn:p> ?o }")
        errors.append(of_update.value)
        assert graph.oldest_needed(10**6) == 10**6
    assert len(errors) == 3, "all errors still exist"
