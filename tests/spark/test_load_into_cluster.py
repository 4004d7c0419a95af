"""Loads by a real Spark into a cluster of processes: seen at once by all engines and stores, and again after kills."""

from __future__ import annotations

import random
import time
from contextlib import ExitStack

import pytest
import rdflib

import penstock
from penstock.cli.cluster.local_cluster import LocalCluster
from penstock.client import Client
from penstock.client.loading import Loading
from penstock.errors import DataError
from penstock.log import TransientError
from penstock.spark.bulk_load import BulkLoad, LoadSettings
from support.brokers import broker, topic_prefix  # noqa: F401 - fixtures

BOUND_S = 300.0
COUNT = "SELECT (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"
TRIPLES = 30_000


@pytest.fixture(scope="module")
def prefix():
    return f"load{time.time_ns()}"


@pytest.fixture(scope="module")
def cluster(broker, tmp_path_factory, prefix):  # noqa: F811
    folder = tmp_path_factory.mktemp("cluster")
    few = {"dictionaries": 1, "coordinators": 1, "engines": 2, "stores": 1, "shards": 3}
    with LocalCluster(broker.bootstrap_servers, folder, prefix=prefix, **few) as running:
        yield running


@pytest.fixture(scope="module")
def engines(broker, cluster, prefix):  # noqa: F811
    """A client of each engine."""
    with ExitStack() as stack:
        given = broker.bootstrap_servers, cluster.url
        yield [stack.enter_context(Client(*given, url, prefix=prefix)) for url in cluster.sparql_url.split(",")]


class InterruptedLoadError(Exception):
    pass


def load(spark, cluster, root, *files, stop_at=None, **settings):
    """As `penstock load --spark --cluster` does it; `stop_at`: the stage in which the driver dies."""

    def begun(stage):
        if stage == stop_at:
            raise InterruptedLoadError

    loading = Loading(cluster.url)
    target = loading.target()
    given = LoadSettings(tuple(map(str, files)), shards=target.shards, dictionaries=target.dictionaries, **settings)
    bulk = BulkLoad(spark, given, f"{root}/staging", begun=begun, retained_folder=f"{root}/loads")
    resumed = bulk.open()
    bulk.run()
    manifest = bulk.manifest()
    if stop_at == "submitted":
        raise InterruptedLoadError
    stored = loading.store(manifest)
    bulk.staging.remove()
    return stored, resumed


def rows(answer):
    return sorted(
        sorted((name, "_" if isinstance(term, rdflib.BNode) else term.n3()) for name, term in row.items())
        for row in answer
    )


def until(condition):
    deadline = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {BOUND_S} s"
        time.sleep(0.1)


def counted(engine):
    (row,) = engine.query(COUNT)
    return int(row["n"])


def equals(engines, plain, seed):
    """Every engine of the cluster comes to hold what the embedded one holds."""
    expected = counted(plain)
    vertices = sorted(row["s"].n3() for row in plain.query("SELECT DISTINCT ?s { ?s ?p ?o FILTER(isIRI(?s)) }"))
    for engine in engines:
        until(lambda engine=engine: counted(engine) == expected)
        for vertex in random.Random(seed).sample(vertices, 100):
            for text in (f"SELECT ?p ?o {{ {vertex} ?p ?o }}", f"SELECT ?s ?p {{ ?s ?p {vertex} }}"):
                assert rows(engine.query(text)) == rows(plain.query(text)), text


def written(folder, first, count):
    """N-Triples and TriG: entries, literals, blank nodes, a named graph."""
    lines = [
        f'<http://s/{i % 5_000}> <http://p/{i % 7}> "the value of number {i}"@en .\n'
        for i in range(first, first + count)
    ]
    (folder / "a.nt").write_text("".join(lines) + "".join(f"_:x <http://p/of> <http://s/{i}> .\n" for i in range(50)))
    (folder / "b.trig").write_text("<http://g> { <http://s/1> <http://p/in> 1.50, [ <http://p/q> <http://s/2> ] }")


def test_a_load_is_in_all_engines_and_a_second_one_extends_it(spark, cluster, engines, tmp_path):
    plain = penstock.Engine()
    for each in (engines[0], plain):
        each.update("INSERT DATA { <http://s/1> <http://p/own> <http://s/2> }")
    stored = []
    for i, (first, count) in enumerate(((0, TRIPLES), (TRIPLES // 2, TRIPLES))):
        folder = tmp_path / f"in-{i}"
        folder.mkdir()
        written(folder, first, count)
        stored.append(load(spark, cluster, tmp_path / "shared", folder, edges_per_bin=10_000)[0])
        for file in sorted(folder.iterdir()):
            plain.load(file)
        equals(engines, plain, seed=i)
    assert stored == [TRIPLES + 53] * 2
    assert "http://g" in str(list(engines[0].query("SELECT ?g { GRAPH ?g { ?s ?p 1.50 } }")))
    for name in ("engine-0", "store-0"):
        cluster.kill(name)
    cluster.watch()
    until(lambda: answers(engines[0]))
    equals(engines, plain, seed=3)
    plain.close()


def answers(engine):
    try:
        counted(engine)
    except TransientError:
        return False
    return True


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)])
def test_a_driver_that_dies_leaves_the_cluster_as_it_was_and_the_next_one_goes_on(
    spark, cluster, engines, tmp_path, seed
):
    engine, file = engines[0], tmp_path / "a.nt"
    file.write_text("".join(f"<http://killed/{seed}/{i}> <http://p> <http://o/{i % 9}> .\n" for i in range(2_000)))
    before = counted(engine)
    for stage in random.Random(seed).sample(["parse", "terms", "edges", "submitted"], 2):
        with pytest.raises(InterruptedLoadError):
            load(spark, cluster, tmp_path / "shared", file, stop_at=stage)
        assert counted(engine) == before
    stored, resumed = load(spark, cluster, tmp_path / "shared", file)
    assert (stored, resumed) == (2_000, True)
    until(lambda: counted(engine) == before + 2_000)
    assert [path.name for path in (tmp_path / "shared").iterdir()] == ["loads"]
    assert len(list((tmp_path / "shared" / "loads").iterdir())) == 1


def test_a_load_that_fails_leaves_nothing(spark, cluster, engines, tmp_path):
    (tmp_path / "a.nt").write_text("nonsense\n" * 20)
    before = counted(engines[0])
    with pytest.raises(DataError, match="more than 3 bad lines"):
        load(spark, cluster, tmp_path / "shared", tmp_path / "a.nt", max_bad=3)
    assert counted(engines[0]) == before
    assert not (tmp_path / "shared" / "loads").exists()
