"""RDF Patches and mapped messages on a real broker: producers are plain Kafka clients, services are killed in between,
and the answers are those of the embedded engine.
"""

from __future__ import annotations

import json
import os
import random
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

import penstock
from penstock.client import Client
from penstock.engine.answers.json_lines import json_line
from support.cluster_load import small
from support.occupations import occupations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.cli.cluster.local_cluster import LocalCluster

pytestmark = pytest.mark.xdist_group("broker")
BEGIN, END = 1_700_000_000_000, 1_700_000_006_000
BOUND_S = 120.0
PATCH = "application/rdf-patch"
S, T, READINGS, MESSAGES = "http://x/staff", "http://x/places", "http://x/readings", "http://x/messages"
COMMON: dict[str, Any] = {"idle_timeout_ms": 3_600_000}  # no stream becomes idle while its adaptor is down
PATCHED: dict[str, dict[str, Any]] = {
    S: COMMON | {"timing": ["urn:seen"]},
    T: COMMON | {"timing": [], "absorb_into": "urn:g"},
}
WINDOW = "[RANGE 300ms STEP 100ms]"
STORED = "FROM <urn:x-penstock:stored>"
QUERIES = {
    "employed": f"SELECT (COUNT(*) AS ?n) FROM NAMED STREAM <{S}> {WINDOW} {STORED} {{ ?s <urn:p> ?o }}",
    "stored": f"SELECT ?s ?o FROM NAMED STREAM <{S}> {WINDOW} {STORED} {{ ?s <urn:p> ?o }}",
    "in_graph": f"SELECT ?s ?o FROM NAMED STREAM <{T}> {WINDOW} {{ GRAPH <urn:g> {{ ?s <urn:p> ?o }} }}",
    "windowed": f"SELECT ?s ?p ?o FROM STREAM <{S}> {WINDOW} {{ ?s ?p ?o }}",
    "gone": f"SELECT ?s ?o REMOVED FROM STREAM <{S}> {WINDOW} {{ ?s <urn:p> ?o }}",
    "moved": f"SELECT ?s ?old ?new REMOVED FROM NAMED WINDOW <urn:w> ON <{S}> {WINDOW} {STORED}"
    " { WINDOW <urn:w> { ?s <urn:p> ?old } ?s <urn:p> ?new }",
}
TIMED = b'A <urn:n1> <urn:p> "1" .\nD <urn:n1> <urn:seen> "1" .'
GARBLED = b"A <urn:n1> <urn:p> \xff\x00 .\nnothing"

PREFIXES = (
    "@prefix rml: <http://w3id.org/rml/> . @prefix x: <http://x/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> ."
)
RML = f"""{PREFIXES}
<#r> rml:logicalSource [ rml:iterator "$" ] ; rml:subjectMap [ rml:template "http://x/s/{{$.sensor}}" ] ;
  rml:predicateObjectMap
    [ rml:predicate x:celsius ; rml:objectMap [ rml:reference "$.celsius" ; rml:datatype xsd:decimal ] ] ,
    [ rml:predicate x:key ; rml:objectMap [ rml:reference "@key" ] ] ,
    [ rml:predicate x:room ; rml:objectMap [ rml:template "http://x/room/{{@headers.room}}" ] ] ,
    [ rml:predicate x:at ; rml:objectMap [ rml:reference "@timestamp" ] ] .
"""
CONTEXT = {"@vocab": "http://x/", "@base": "http://x/n/", "id": "@id", "at": None, "of": {"@type": "@id"}}
READ = f"""SELECT ?s ?celsius ?key ?room ?at FROM STREAM <{READINGS}> [RANGE 1s STEP 1s]
{{ ?s <http://x/celsius> ?celsius OPTIONAL {{ ?s <http://x/key> ?key }} OPTIONAL {{ ?s <http://x/room> ?room }}
OPTIONAL {{ ?s <http://x/at> ?at }} }} ORDER BY ?s"""
SAID = f"SELECT ?s ?of ?text FROM STREAM <{MESSAGES}> [RANGE 1s STEP 1s] {{ ?s <http://x/of> ?of ; <http://x/text> ?text }} ORDER BY ?s"


class Users:
    """A cluster, a producer that is a plain Kafka client, and the evaluations that were read so far."""

    def __init__(self, servers: str, prefix: str, cluster: LocalCluster, client: Client) -> None:
        self.prefix, self.cluster, self.client = prefix, cluster, client
        self.answers: dict[tuple[str, int], Any] = {}
        self._servers = servers
        self._producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
        self._results = client.watch()

    def produce(self, stream: str, value: bytes | None, key: str | None = None, at: int = 0, **headers: str) -> None:
        """`at`: the record's own timestamp. Underscores in names of headers stand for hyphens."""
        pairs = [(name.replace("_", "-"), text.encode()) for name, text in headers.items()]
        topic = f"{self.prefix}.events.{stream.rpartition('/')[2]}"
        self._producer.produce(topic, value, key, headers=pairs, timestamp=at)

    def flush(self) -> None:
        assert self._producer.flush(30) == 0

    def wait(self, ready: Callable[[], Any]) -> None:
        """Read evaluations until `ready`; none may come twice."""
        deadline = time.monotonic() + BOUND_S
        while not ready():
            found = next(self._results)
            if found is None:
                self.cluster.watch()
                assert time.monotonic() < deadline, f"it did not come\n{occupations(self.cluster)}"
            else:
                assert (found.query, found.time) not in self.answers, "an evaluation twice"
                self.answers[found.query, found.time] = found.line

    def letters(self, stream: str) -> dict[bytes, tuple[bytes, dict[str, str]]]:
        """The dead letters of a stream by key: their bytes and headers. An adaptor that restarts may repeat some."""
        topic = TopicPartition(f"{self.prefix}.dead-letter", 0, OFFSET_BEGINNING)
        consumer = Consumer({"bootstrap.servers": self._servers, "group.id": "-", "enable.partition.eof": True})
        consumer.assign([topic])
        found = {}
        while (message := consumer.poll(10)) is not None and message.error() is None:
            headers = {name: value.decode() for name, value in message.headers()}
            if headers["stream"] == stream:
                letter = message.value(), headers
                assert found.setdefault(message.key(), letter) == letter
        consumer.close()
        return found


@pytest.fixture(scope="module")
def users(broker, tmp_path_factory) -> Iterator[Users]:
    prefix = f"changing-{os.getpid()}-{time.time_ns()}"
    with (
        small(broker.bootstrap_servers, prefix, tmp_path_factory.mktemp("changing")) as cluster,
        Client(broker.bootstrap_servers, cluster.url, cluster.sparql_url, prefix=prefix) as client,
    ):
        yield Users(broker.bootstrap_servers, prefix, cluster, client)


def patches(seed: int) -> list[tuple[str, int, bytes]]:
    """Return events (stream, time, patch); two are invalid, some are late."""
    rng, made = random.Random(seed), []
    for at in range(BEGIN + 20, END - 200, 30):
        for stream in (S, T):
            rows = []
            for _ in range(rng.choice([0, 1, 2, 4])):
                node, value = rng.randrange(6), rng.choice([1, 2, "a value that is too long for an inline term"])
                timed = stream == S and rng.random() < 0.2
                rows.append(
                    f'{"A" if timed else rng.choice("AADD")} <urn:n{node}> <urn:{"seen" if timed else "p"}> "{value}" .'
                )
            made.append((stream, at - (400 if rng.random() < 0.05 else 0), "\n".join(rows).encode()))
    made.insert(len(made) // 3, (S, BEGIN + 2_000, TIMED))
    made.insert(len(made) * 3 // 5, (S, BEGIN + 3_500, GARBLED))
    return made


def essence(lines: list[dict[str, Any]]) -> dict[tuple[str, int], list[str]]:
    return {(e["query"], e["time"]): sorted(map(json.dumps, e["results"]["bindings"])) for e in lines}


def counts(lines: dict[tuple[str, int], dict[str, Any]]) -> list[int]:
    found = sorted((at, line) for (query, at), line in lines.items() if query == "employed")
    return [int(line["results"]["bindings"][0]["n"]["value"]) for _, line in found]


def test_patches_are_applied_once_while_a_store_and_an_adaptor_are_killed(users: Users) -> None:
    events = patches(7)
    with penstock.Engine() as engine:
        for iri, settings in PATCHED.items():
            engine.declare_stream(iri, **settings)
        queries = [engine.register(text, name=name) for name, text in QUERIES.items()]
        for stream, at, patch in events:
            engine.push_events(stream, [(at, patch)], "rdf-patch")
        engine.advance(None, END)
        lines = [json.loads(json_line(evaluation)) for query in queries for evaluation in query.poll()]
        expected, letters = essence(lines), engine.dead_letters()
        late = {
            stream: [(each.timestamp, each.watermark, each.data) for each in engine.late(stream)] for stream in (S, T)
        }
        stored = "SELECT ?s ?o { { ?s <urn:p> ?o } UNION { GRAPH <urn:g> { ?s <urn:p> ?o } } } ORDER BY ?s ?o"
        last = list(map(str, engine.query(stored)))
    assert all(any(rows for (name, _), rows in expected.items() if name == query) for query in QUERIES)
    for iri, settings in PATCHED.items():
        users.client.declare_stream(iri, iri.rpartition("/")[2], **settings)
    for name, text in QUERIES.items():
        users.client.register(text, name=name)
    began = time.monotonic()
    quarter, killed = len(events) // 4 + 1, ("adaptor-0", "store-0")
    for part in range(4):
        for stream, at, patch in events[part * quarter : (part + 1) * quarter]:
            users.produce(stream, patch, "k", content_type=PATCH, timestamp=str(at))
        users.flush()
        if part == 1:
            users.wait(lambda: ("moved", BEGIN + 1_000) in users.answers)
        if part == 2:
            for name in killed:
                users.cluster.kill(name)
            read = len(users.answers)
            time.sleep(0.5)
            users.cluster.watch()
    assert all(users.cluster.services[name].starts > 1 for name in killed)
    for stream in PATCHED:
        users.produce(stream, None, heartbeat=str(END))
    users.flush()
    users.wait(lambda: expected.keys() <= users.answers.keys())
    assert essence([line for (query, _), line in users.answers.items() if query in QUERIES]) == expected
    assert 0 < read < len(expected)
    found = counts(users.answers)
    falls = sum(after < before for before, after in pairwise(found))
    assert falls > 0
    assert list(map(str, users.client.query(stored))) == last
    assert {s: [(e.timestamp, e.watermark, e.data) for e in users.client.late(s)] for s in (S, T)} == late
    dead = sorted(users.letters(S).values(), key=lambda letter: letter[1]["time"])
    assert [value for value, _ in dead] == [TIMED, GARBLED] == [letter.data for letter in letters]
    assert [headers["reason"] for _, headers in dead] == [letter.reason for letter in letters]
    assert ["(<urn:seen>)" in dead[0][1]["reason"], "line 2" in dead[1][1]["reason"]] == [True, True]
    assert {headers["content-type"] for _, headers in dead} == {PATCH}
    assert users.letters(T) == {}
    print(
        f"{len(events)} patches, {len(expected)} evaluations ({read} before the kills), {falls} falls of the count, "
        f"{sum(map(len, late.values()))} late, {len(dead)} dead letters, {time.monotonic() - began:.1f} s: 0 lost, 0 doubled"
    )


def test_messages_of_plain_json_are_mapped(users: Users) -> None:
    mappings = {READINGS: {"rml": RML}, MESSAGES: {"context": CONTEXT, "time": {"path": "$.at"}}}
    for iri, mapping in mappings.items():
        users.client.declare_stream(iri, iri.rpartition("/")[2], timing="all", mapping=mapping, **COMMON)
    users.client.register(READ, name="read")
    users.client.register(SAID, name="said")
    broken, timeless = b'{"sensor": "s9", "celsius": {"value": 3}}', b'{"id": "n9", "of": "x", "text": "no time"}'
    users.produce(READINGS, b'{"sensor": "s1", "celsius": 21.50}', "k1", at=BEGIN + 100, room="hall 1")
    users.produce(
        READINGS, b'{"sensor": "s2", "celsius": 19}', None, timestamp=str(BEGIN + 200), content_type="application/json"
    )
    users.produce(READINGS, broken, "k9", at=BEGIN + 300, room="cellar")
    users.produce(READINGS, b"<http://x/s/s3> <http://x/celsius> 7 .", at=BEGIN + 400, content_type="text/turtle")
    users.produce(
        MESSAGES, b'{"id": "n1", "of": "http://x/s/s1", "text": "warm", "at": "2023-11-14T22:13:20.100Z"}', "k"
    )
    users.produce(MESSAGES, timeless, "k")
    users.flush()
    users.client.push(READINGS, '{"sensor": "s4", "celsius": -1.0}', BEGIN + 500)
    users.client.push("messages", '{"id": "n2", "of": "s2", "text": "cold", "at": "2023-11-14T23:13:20.900+01:00"}')
    users.produce(READINGS, None, heartbeat=str(BEGIN + 1_000))
    users.produce(MESSAGES, None, heartbeat=str(BEGIN + 1_000))
    users.flush()
    instant = BEGIN + 1_000
    users.wait(lambda: {("read", instant), ("said", instant)} <= users.answers.keys())

    def rows(query: str) -> list[dict[str, str]]:
        bindings = users.answers[query, instant]["results"]["bindings"]
        return [{name: term["value"] for name, term in row.items()} for row in bindings]

    assert rows("read") == [
        {
            "s": "http://x/s/s1",
            "celsius": "21.50",
            "key": "k1",
            "room": "http://x/room/hall%201",
            "at": str(BEGIN + 100),
        },
        {"s": "http://x/s/s2", "celsius": "19", "at": str(BEGIN + 200)},
        {"s": "http://x/s/s3", "celsius": "7"},
        {"s": "http://x/s/s4", "celsius": "-1.0", "at": str(BEGIN + 500)},
    ]
    assert rows("said") == [
        {"s": "http://x/n/n1", "of": "http://x/s/s1", "text": "warm"},
        {"s": "http://x/n/n2", "of": "http://x/n/s2", "text": "cold"},
    ]
    [(value, headers)] = users.letters(READINGS).values()
    assert (value, headers["room"]) == (broken, "cellar")
    assert headers["reason"].startswith("$.celsius: an object")
    [(value, headers)] = users.letters(MESSAGES).values()
    assert value == timeless
    assert "$.at" in headers["reason"]
