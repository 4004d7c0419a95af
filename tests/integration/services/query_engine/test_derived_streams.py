"""Streams that queries publish, in a cluster: through the log, once, whoever evaluates publisher and readers."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

import penstock
from penstock.engine.answers.json_lines import json_line
from penstock.errors import DataError, QueryError
from penstock.wire import ShardBatch, decode
from support.small_cluster import SmallCluster

IRI, MADE = "http://x/s", "http://x/made"
PUBLISH = (
    f"REGISTER STREAM <{MADE}> AS CONSTRUCT {{ ?o <urn:of> ?s . ?o <urn:by> [] }} "
    f"FROM STREAM <{IRI}> [RANGE 2s STEP 1s] WHERE {{ ?s <urn:p> ?o }}"
)
READ = f"REGISTER QUERY r AS SELECT ?o ?s FROM STREAM <{MADE}> [RANGE 3s STEP 1s] WHERE {{ ?o <urn:of> ?s }}"
BOTH = (
    f"REGISTER QUERY b AS SELECT (COUNT(*) AS ?n) FROM NAMED STREAM <{MADE}> [RANGE 3s STEP 2s] "
    f"FROM NAMED STREAM <{IRI}> [RANGE 1s STEP 1s] "
    f"WHERE {{ GRAPH <{MADE}> {{ ?o <urn:of> ?s }} GRAPH <{IRI}> {{ ?s <urn:p> ?o }} }}"
)
COUNTED = (
    f"REGISTER STREAM <{MADE}> AS CONSTRUCT {{ ?o <urn:of> ?s }} FROM STREAM <{IRI}> [TRIPLES 2 STEP 1] "
    "WHERE { ?s <urn:p> ?o }"
)


@pytest.fixture
def cluster():
    made = SmallCluster(engines=2, buckets=4)
    yield made
    made.close()


def lines(cluster: SmallCluster) -> list[tuple]:
    return [key_of(line) for line in cluster.results()]


def key_of(line: dict) -> tuple:
    rows = line["results"]["bindings"] if "results" in line else len(line["graph"].splitlines())
    held = sorted(json.dumps(row, sort_keys=True) for row in rows) if isinstance(rows, list) else rows
    return line["query"], line["time"], held


def events():
    """(time, data) of a stream, with silence in between."""
    for second in (0, 1, 2, 5, 6, 9):
        yield 100_000 + 1000 * second + 300, f"<urn:a{second}> <urn:p> <urn:b{second % 2}> ."


def both_ways(cluster: SmallCluster, texts: dict[str, str], *, kill_at: int | None = None) -> list[tuple]:
    """Play the same on the cluster and on the embedded engine; returns what that one says."""
    with penstock.Engine() as engine:
        engine.declare_stream(IRI)
        cluster.coordinator.declare(IRI, "s")
        queries = []
        for name, text in texts.items():
            queries.append(engine.register(text, name=name))
            cluster.coordinator.register(name, text)
        cluster.run()
        for i, (time_ms, data) in enumerate(events()):
            engine.push(IRI, data, timestamp=time_ms)
            cluster.push("s", time_ms, data)
            if i == kill_at:
                cluster.kill("e0")
            cluster.run(20)
        engine.advance(IRI, 112_000)
        cluster.advance("s", 112_000)
        cluster.run()
        found = [key_of(json.loads(json_line(e, query.name))) for query in queries for e in query.poll()]
    return sorted(found, key=lambda key: key[:2])


@pytest.mark.parametrize("kill_at", [None, 0, 2, 4])
def test_readers_see_what_the_embedded_engine_shows_them(cluster, kill_at):
    expected = both_ways(cluster, {"p": PUBLISH, "r": READ, "b": BOTH}, kill_at=kill_at)
    assert lines(cluster) == expected
    assert len(expected) > 25


def test_count_windows_publish_too(cluster):
    reader = f"REGISTER QUERY r AS SELECT ?o ?s FROM STREAM <{MADE}> [RANGE 1s STEP 500ms] WHERE {{ ?o <urn:of> ?s }}"
    expected = both_ways(cluster, {"p": COUNTED, "r": reader}, kill_at=3)
    assert lines(cluster) == expected


def test_steps_of_several_lengths_leave_batches_open_between_commits(cluster):
    publish = (
        f"REGISTER STREAM <{MADE}> AS CONSTRUCT {{ ?o <urn:of> ?s }} FROM NAMED WINDOW <urn:w> ON <{IRI}> "
        f"[RANGE 2s STEP 2s] FROM NAMED WINDOW <urn:v> ON <{IRI}> [RANGE 3s STEP 3s] "
        "WHERE { WINDOW <urn:v> { ?s <urn:p> ?o } }"
    )
    expected = both_ways(cluster, {"p": publish, "r": READ}, kill_at=3)
    assert lines(cluster) == expected


def test_every_batch_of_a_derived_stream_is_in_the_log_once(cluster):
    both_ways(cluster, {"p": PUBLISH}, kill_at=2)
    records = [decode(m.value) for m in cluster.messages(cluster.topics.names.shards) if m.partition == 0]
    batches = [r for r in records if isinstance(r, ShardBatch) and r.stream == MADE]
    assert all(after.first == before.last + 1 for before, after in pairwise(batches))
    assert batches[0].begin_ms is not None


def test_a_stream_ends_with_its_query_and_goes_with_its_last_reader(cluster):
    coordinator = cluster.coordinator
    coordinator.declare(IRI, "s")
    coordinator.register("p", PUBLISH)
    coordinator.register("b", BOTH)
    cluster.push("s", 100_300, "<urn:a> <urn:p> <urn:b> .")
    cluster.advance("s", 102_000)
    cluster.run()
    coordinator.stop("p")
    cluster.advance("s", 106_000)
    cluster.run()
    assert [line["time"] for line in cluster.results() if line["query"] == "b"][-1] == 106_000
    assert MADE in coordinator.streams
    with pytest.raises(QueryError, match="was published by a query that has stopped"):
        coordinator.register("again", PUBLISH)
    coordinator.stop("b")
    assert MADE not in coordinator.streams
    coordinator.register("again", PUBLISH)
    cluster.run()
    assert all(engine.replica.declared[MADE] == coordinator.streams[MADE].number for engine in cluster.engines.values())
    assert all(engine.caught_up() for engine in cluster.engines.values())


def test_a_coordinator_that_takes_over_knows_which_streams_have_ended(cluster):
    coordinator = cluster.coordinator
    coordinator.declare(IRI, "s")
    coordinator.register("p", PUBLISH)
    coordinator.register("r", READ)
    coordinator.stop("p")
    coordinator.close()
    cluster.restart_coordinator()
    with pytest.raises(QueryError, match="was published by a query that has stopped"):
        cluster.coordinator.register("again", PUBLISH)
    cluster.coordinator.stop("r")
    assert MADE not in cluster.coordinator.streams


def test_what_a_derived_stream_cannot_be_is_refused(cluster):
    coordinator = cluster.coordinator
    coordinator.declare(IRI, "s")
    coordinator.declare(MADE, "made", batch_ms=250)
    coordinator.register("r", READ)
    with pytest.raises(QueryError, match="queries already read stream"):
        coordinator.register("p", PUBLISH)
    coordinator.stop("r")
    coordinator.register("p", PUBLISH)
    assert (coordinator.streams[MADE].batch_ms, coordinator.streams[MADE].publisher) == (1000, "p")
    with pytest.raises(DataError, match="is published by query p"):
        coordinator.drop(MADE)
    cluster.send(cluster.topics.names.queries, "p", READ)
    cluster.run()
    assert coordinator.queries["p"].text == PUBLISH
    assert MADE not in cluster.dispatcher.streams


def test_a_stream_declared_first_absorbs_what_its_query_publishes(cluster):
    coordinator = cluster.coordinator
    coordinator.declare(IRI, "s", timing="all")
    coordinator.declare(MADE, "made", absorb_into="http://x/g", timing=["urn:by"])
    coordinator.register("p", PUBLISH)
    cluster.push("s", 100_300, "<urn:a> <urn:p> <urn:b> .")
    cluster.advance("s", 102_000)
    cluster.run()
    asked = "SELECT ?s ?p ?o WHERE { GRAPH <http://x/g> { ?s ?p ?o } }"
    for engine in cluster.engines.values():
        [row] = engine.one_shot.query(asked, None, None, None)
        assert [str(row[name]) for name in "spo"] == ["urn:b", "urn:of", "urn:a"]


@pytest.mark.parametrize("paused", [False, True])
def test_what_a_reader_still_had_to_report_of_a_stream_that_has_ended_is_reported(paused):
    """By an engine that is behind the end of the stream already when it takes the reader over."""
    cluster = SmallCluster(engines=2, buckets=2)
    coordinator = cluster.coordinator
    coordinator.declare(IRI, "s")
    coordinator.register("p", PUBLISH)
    group = coordinator.register("r", READ).group
    cluster.run()
    [holder] = [name for name, engine in cluster.engines.items() if group % 2 in engine.buckets]
    if paused:
        cluster.paused.append(cluster.engines[holder])
    cluster.push("s", 100_300, "<urn:a> <urn:p> <urn:b> .")
    cluster.advance("s", 105_000)
    cluster.run(4)
    coordinator.stop("p")
    cluster.run(4)
    if paused:
        cluster.kill(holder)
        cluster.run(60)
    found = [(time, len(rows)) for query, time, rows in lines(cluster) if query == "r"]
    cluster.close()
    assert found == [(101_000, 1), (102_000, 1), (103_000, 1), (104_000, 1), (105_000, 0)]


LONG = (
    f"REGISTER STREAM <{MADE}> AS CONSTRUCT {{ ?s <urn:of> ?long }} FROM STREAM <{IRI}> [RANGE 1s STEP 1s] "
    f"WHERE {{ ?s <urn:p> ?o BIND(CONCAT({', '.join(['?o'] * 9)}) AS ?long) }}"
)
READ_LONG = f"REGISTER QUERY r AS SELECT ?s FROM STREAM <{MADE}> [RANGE 1s STEP 1s] WHERE {{ ?s <urn:of> ?long }}"


def statuses(cluster: SmallCluster, query: str) -> list[dict]:
    messages = cluster.messages(cluster.topics.names.status)
    return [json.loads(m.value) for m in messages if m.value and m.key.startswith(f"query {query} ".encode())]


@pytest.mark.parametrize("stopped", [False, True])
def test_an_answer_with_a_term_that_is_too_large_is_an_error_of_its_evaluation(cluster, stopped):
    """The term has 9 MB, beyond max_term_bytes: it ended every engine that evaluated it."""
    coordinator = cluster.coordinator
    coordinator.declare(IRI, "s")
    coordinator.register("p", LONG)
    coordinator.register("r", READ_LONG)
    cluster.advance("s", 100_000)
    cluster.run()
    for time_ms, subject, size in ((100_300, "fine", 1), (101_300, "large", 1 << 20), (101_400, "beside", 1)):
        cluster.push("s", time_ms, f'<urn:{subject}> <urn:p> "{"x" * size}" .')
    cluster.advance("s", 102_000)
    if stopped:
        cluster.paused += cluster.engines.values()
        cluster.run(3)
        coordinator.stop("p")
        cluster.paused.clear()
    cluster.run()
    found = {line["time"]: line for line in cluster.results() if line["query"] == "p"}
    assert "error" not in found[101_000]
    assert "max_term_bytes" in found[102_000]["error"]
    assert sum(engine.sinks.refused for engine in cluster.engines.values()) == 1
    if stopped:
        return
    assert statuses(cluster, "p")[-1]["status"] == "failing"
    assert "max_term_bytes" in statuses(cluster, "p")[-1]["error"]
    cluster.push("s", 102_300, '<urn:later> <urn:p> "x" .')
    cluster.advance("s", 104_000)
    cluster.run()
    assert statuses(cluster, "p")[-1]["status"] == "standing"
    read = {line["time"]: line["results"]["bindings"] for line in cluster.results() if line["query"] == "r"}
    assert [len(read[t]) for t in (101_000, 102_000, 103_000)] == [1, 0, 1]


def test_an_engine_that_takes_over_knows_no_error_of_the_one_before(cluster):
    coordinator = cluster.coordinator
    coordinator.declare(IRI, "s")
    group = coordinator.register("p", LONG).group
    cluster.advance("s", 100_000)
    cluster.run()
    cluster.push("s", 100_300, f'<urn:large> <urn:p> "{"x" * (1 << 20)}" .')
    cluster.advance("s", 101_000)
    cluster.run()
    assert statuses(cluster, "p")[-1]["status"] == "failing"
    cluster.kill(next(name for name, engine in cluster.engines.items() if group % 4 in engine.buckets))
    cluster.run(60)
    cluster.push("s", 101_300, '<urn:fine> <urn:p> "x" .')
    cluster.advance("s", 102_000)
    cluster.run()
    assert statuses(cluster, "p")[-1]["status"] == "standing"
    found = {line["time"]: "error" in line for line in cluster.results()}
    assert found == {101_000: True, 102_000: False}
