"""`penstock.Client` against a cluster of processes does what the embedded engine does, verb by verb."""

from __future__ import annotations

import asyncio
import time

import pytest

pytest.importorskip("confluent_kafka")

from rdflib import RDF, Literal, URIRef

from penstock import Client, DataError, Engine, QueryError, UnknownStreamError
from support.cluster_load import BOUND_S, small

pytestmark = pytest.mark.xdist_group("broker")

S, EX = "http://x/s", "http://x/"
CITY = f'<{EX}a> <{EX}label> "A" . <{EX}b> <{EX}label> "B"@en .'.encode()
SETTINGS = {"batch_ms": 100, "timing": [EX + "speed"], "absorb_into": EX + "g", "max_ahead_ms": 1 << 52}
ROWS = f"""SELECT ?road ?label ?speed FROM STREAM <{S}> [RANGE 2s STEP 1s] FROM <urn:x-penstock:stored>
WHERE {{ ?road <{EX}speed> ?speed ; <{EX}label> ?label }} ORDER BY ?speed"""
JAMS = f"REGISTER QUERY jams AS CONSTRUCT {{ ?r <{EX}jam> ?v }} FROM STREAM <{S}> [RANGE 1s STEP 1s] WHERE {{ ?r <{EX}speed> ?v FILTER(?v < 10) }}"
ABSORBED = f"SELECT ?s ?o FROM <{EX}g> WHERE {{ ?s <{EX}seen> ?o }} ORDER BY ?s"


def prepare(to):
    """The verbs before events."""
    assert to.load(CITY, format="turtle").triples == 2
    to.declare_stream(S, **SETTINGS)
    to.declare_stream(S, **SETTINGS)
    to.update(f"INSERT DATA {{ <{EX}c> <{EX}label> 'C' }}")
    rows, jams = to.register(ROWS, name="rows"), to.register(JAMS)
    assert (rows.name, jams.name) == ("rows", "jams")
    assert set(to.queries) == {"rows", "jams"}
    assert list(to.streams) == [S]
    with pytest.raises(QueryError) as bad:
        to.register("SELECT ?x FROM STREAM <http://x/unknown> [RANGE 1s] WHERE { ?x ?y ?z }")
    assert (bad.value.line, "<http://x/unknown>" in str(bad.value)) == (1, True)
    return rows, jams


def events(to):
    """Events of every kind; those that are refused too."""
    to.push(S, f"<{EX}a> <{EX}speed> 5 .", 1_500, format="turtle")
    to.push(
        S,
        [(URIRef(EX + "b"), URIRef(EX + "speed"), Literal(50)), (URIRef(EX + "b"), RDF.type, URIRef(EX + "R"))],
        1_600,
    )
    to.push_events(
        S,
        [
            (2_500, f'<{EX}c> <{EX}speed> "7"^^<http://www.w3.org/2001/XMLSchema#integer> .'),
            (2_600, f"<{EX}a> <{EX}seen> <{EX}c> ."),
        ],
    )
    to.push(S, f"<{EX}a> <{EX}speed> <{EX}late> .", 100)
    try:
        to.push(S, "no RDF", 2_700)
    except DataError:
        assert isinstance(to, Engine), "a producer hears of it by the dead letters"
    to.advance(None, 4_000)
    with pytest.raises(UnknownStreamError):
        to.push("http://x/unknown", b"", 1)


def summary(evaluation):
    answer = evaluation.answer
    rows = list(answer) if hasattr(answer, "variables") else set(answer)
    return evaluation.query, evaluation.time, evaluation.windows, rows


def waits(query):
    """What a query waits for."""
    status = query.status()
    return status.state, status.last, status.next, status.waits_for


def taken(query, until_ms):
    """Evaluations of a query up to an instant, however long they take to come."""
    found, deadline = [], time.monotonic() + BOUND_S
    while not found or found[-1].time < until_ms:
        found += query.poll(limit=2)
        assert time.monotonic() < deadline, [e.time for e in found]
    return [summary(evaluation) for evaluation in found]


def until(look):
    deadline = time.monotonic() + BOUND_S
    while not (found := look()):
        assert time.monotonic() < deadline
    return found


def test_the_same_verbs_give_the_same_answers(broker, topic_prefix, tmp_path):
    with Engine() as engine:
        rows, jams = prepare(engine)
        events(engine)
        expected = taken(rows, 4_000), taken(jams, 4_000)
        waiting = waits(rows), waits(jams)
        late, letters = engine.late(S), engine.dead_letters()
        one_shot = list(engine.query(ABSORBED))
    with (
        small(broker.bootstrap_servers, topic_prefix, tmp_path) as cluster,
        Client(broker.bootstrap_servers, cluster.url, prefix=topic_prefix) as client,  # engines are found
    ):
        rows, jams = prepare(client)
        until(lambda: rows.status().evaluated and jams.status().evaluated)
        events(client)
        assert (taken(rows, 4_000), taken(jams, 4_000)) == expected
        assert until(lambda: (waits(rows), waits(jams)) == waiting)
        assert rows.status().error is None
        assert until(lambda: client.late(S)) == late
        assert client.late(S) == [], "taking empties them"
        assert {letter.data for letter in until(client.dead_letters)} == {b"no RDF"} == {letters[0].data, b"no RDF"}
        assert until(lambda: list(client.query(ABSORBED))) == one_shot
        assert client.query(f"ASK {{ <{EX}c> <{EX}label> 'C' }}") is True
        assert len(client.query("CONSTRUCT WHERE { ?s ?p ?o }", timeout_s=5.0)) == 3
        with pytest.raises(QueryError) as bad:
            client.query("SELECT *\nWHERE { ?s ?p }")
        assert (bad.value.line, "WHERE" in str(bad.value)) == (2, True), "with the line and a caret"
        again(client, jams)


def again(client, jams):
    """What comes later: by subscription, by iteration, until the query is stopped."""
    heard: list[int] = []
    end = client.queries["rows"].subscribe(lambda evaluation: heard.append(evaluation.time))
    client.advance(S, 6_000)
    until(lambda: heard[-1:] == [6_000])
    end()

    async def iterate():
        return [evaluation.time async for evaluation in jams if evaluation.time == 6_000 and jams.stop() is None]

    assert asyncio.run(asyncio.wait_for(iterate(), BOUND_S)) == [6_000]
    assert jams.stopped
    assert jams.status().state == "stopped"
    assert set(client.queries) == {"rows"}
    client.stop("rows")
    client.drop_stream(S)
    assert client.streams == {}


def test_many_queries_are_registered_in_one_request(broker, topic_prefix, tmp_path):
    texts = {
        f"q{i}": f"SELECT ?s FROM STREAM <{S}> [RANGE 1s STEP 1s] WHERE {{ ?s <{EX}at> <{EX}place/{i}> }}"
        for i in range(60)
    }
    with (
        small(broker.bootstrap_servers, topic_prefix, tmp_path) as cluster,
        Client(broker.bootstrap_servers, cluster.url, prefix=topic_prefix) as client,
    ):
        client.declare_stream(S, **SETTINGS)
        with pytest.raises(QueryError, match="query 'bad': "):
            client.register_all(texts | {"bad": "SELECT nothing"})
        assert client.queries == {}
        queries = client.register_all(texts)
        assert {name: query.text for name, query in queries.items()} == texts
        client.push_events(S, [(1_000 + i, f"<{EX}s{i}> <{EX}at> <{EX}place/{i}> .") for i in range(60)])
        client.advance(S, 2_000)
        for i in (0, 33, 59):
            rows = until(lambda i=i: [row for e in queries[f"q{i}"].poll() for row in e.answer])
            assert [str(row["s"]) for row in rows] == [f"{EX}s{i}"]
