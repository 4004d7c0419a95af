"""The coordinator's verbs and the engine's SPARQL endpoint over HTTP, on the memory log."""

from __future__ import annotations

import random
from dataclasses import replace
from threading import Lock

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from penstock.engine.limits import Limits
from penstock.errors import DataError, UnavailableError
from penstock.http import sparql as sparql_routes
from penstock.http.graph_store import GraphStore
from penstock.log import MemoryLog, Partition, Record
from penstock.log.clock import VirtualClock
from penstock.log.topics import TopicNames
from penstock.mapping.encodings.schema_registration import SchemaRegistration
from penstock.replication.cluster_topics import ClusterTopics
from penstock.services.coordinator import http_routes as coordinator_routes
from penstock.services.coordinator.coordinator import Coordinator
from penstock.services.dictionary.dictionary import DictionaryService
from penstock.services.query_engine.query_engine import QueryEngine
from penstock.services.query_engine.replica_checkpoint import ReplicaFactory
from penstock.wire import ShardBatch, encode
from support.avro_rows import RegistryInMemory

QUERY = "REGISTER QUERY q AS SELECT ?o FROM STREAM <http://x/s> [RANGE 1s STEP 1s] WHERE { ?s <http://x/p> ?o }"


class Everything:
    """Coordinator, dictionary and engine over one memory log."""

    def __init__(self) -> None:
        self.log, self.clock = MemoryLog(VirtualClock()), VirtualClock(1)
        self.topics = ClusterTopics(TopicNames(), shards=2, buckets=2)
        self.log.create(self.topics.all())
        self.terms = DictionaryService(self.log, self.topics)
        self.registry = RegistryInMemory()
        schemas = SchemaRegistration(self.registry)
        self.coordinator = Coordinator(self.log, self.topics, "c", self.terms, self.clock, schemas=schemas)
        factory = ReplicaFactory(None, self.terms, 2, Limits(), self.clock.now_ms, random.Random(0))
        self.engine = QueryEngine(self.log, self.topics, "e", factory, self.clock)
        routes = [
            *coordinator_routes.routes(self.coordinator, Lock()),
            *sparql_routes.routes(sparql_routes.asking(self.engine.one_shot), Limits()),
            *GraphStore(sparql_routes.asking(self.engine.one_shot)).routes(),
        ]
        self.http = TestClient(Starlette(routes=routes))

    def run(self) -> None:
        for _ in range(30):
            self.clock.advance(200)
            self.coordinator.step()
            self.engine.step()

    def close(self) -> None:
        self.coordinator.close()
        self.engine.close()


@pytest.fixture
def cluster():
    made = Everything()
    yield made
    made.close()


def test_a_standby_says_that_it_is_one(cluster):
    answer = cluster.http.get("/queries")
    assert (answer.status_code, answer.json()["error"]) == (503, "NotActiveError")


def test_declarations_and_queries_come_and_go(cluster):
    cluster.run()
    http = cluster.http
    assert http.put("/streams/s", json={"iri": "http://x/s", "batch_ms": 500}).status_code == 200
    assert http.put("/streams/s", json={"iri": "http://x/s", "batch_ms": 500}).status_code == 200
    assert http.put("/streams/s", json={"iri": "http://x/s", "batch_ms": 100}).status_code == 400
    refused = http.put("/streams/t", json={"iri": "http://x/t", "speed": 1}).json()["message"]
    assert refused.startswith("unknown settings speed: a stream has batch_ms, lateness_ms, ")
    first = http.put("/queries/q?wait=0", content=QUERY).json()
    assert http.put("/queries/q?wait=0", content=QUERY).json() == first
    assert first["streams"] == ["http://x/s"]
    assert (
        http.put("/queries/r?wait=0&max_catch_up=9", content=QUERY.replace("q AS", "r AS")).json()["max_catch_up"] == 9
    )
    assert http.put("/queries/p?max_catch_up=x", content=QUERY.replace("q AS", "p AS")).status_code == 400
    assert http.put("/queries/p?changes=maybe", content=QUERY.replace("q AS", "p AS")).status_code == 400
    changes = http.put("/queries/p?changes=true", content=QUERY.replace("q AS", "p AS")).json()
    assert (changes["changes"], first["changes"]) == (True, False)
    refused = http.put("/queries/p", content=QUERY.replace("q AS", "p AS"))
    assert refused.status_code == 400
    assert http.delete("/queries/p").status_code == 204
    assert http.delete("/queries/r").status_code == 204
    assert (first["enrolled"], first["point"]) == (False, None)
    cluster.run()
    assert http.get("/queries/q").json()["enrolled"] is True
    assert http.put("/queries/q?wait=soon", content=QUERY).status_code == 400
    assert http.delete("/streams/s").status_code == 400
    assert http.delete("/queries/q").status_code == 204
    assert http.delete("/queries/q").status_code == 404
    assert http.delete("/streams/s").status_code == 204
    missing = http.delete("/streams/s")
    assert (missing.status_code, missing.json()["error"]) == (404, "UnknownStreamError")
    assert http.get("/streams").json() == {}


def test_a_registration_waits_for_the_schema_registry_and_says_what_it_answers(cluster):
    cluster.run()
    http, url = cluster.http, "/queries/q?wait=0&topic=own&result_format=avro"
    http.put("/streams/s", json={"iri": "http://x/s"})
    cluster.registry.error = UnavailableError("the registry is down")
    refused = http.put(url, content=QUERY)
    expected = {"error": "RegistryUnavailableError", "message": "the registry is down"}
    assert (refused.status_code, refused.json()) == (503, expected)
    cluster.registry.error = DataError("the registry refuses the schema")
    assert http.put(url, content=QUERY).status_code == 400
    assert http.get("/queries").json() == {}
    cluster.registry.error = None
    made = http.put(url, content=QUERY).json()
    assert (made["result_format"], made["schema_id"], made["row_types"]) == ("avro", 7, "s")
    assert http.put(url, content=QUERY).json() == made


def test_many_streams_are_declared_at_once_or_none(cluster):
    cluster.run()
    http = cluster.http
    many = {f"s{i}": {"iri": f"http://x/{i}", "batch_ms": 500} for i in range(50)}
    assert http.post("/streams", json=many).status_code == 200
    assert http.post("/streams", json=many).json().keys() == many.keys()
    assert len(http.get("/streams").json()) == 50
    for wrong in ({"iri": "http://x/new", "batch_ms": 0}, {"iri": "http://x/new", "speed": 1}, {"batch_ms": 1}, 5):
        answer = http.post("/streams", json={"new": {"iri": "http://x/good"}, "wrong": wrong})
        assert (answer.status_code, answer.json()["error"]) == (400, "DataError")
    assert http.post("/streams", json=["s"]).status_code == 400
    assert len(http.get("/streams").json()) == 50
    next_one = http.put("/streams/t", json={"iri": "http://x/good"}).json()
    assert next_one["number"] == 51, "what was refused took no number"
    topics = cluster.log.topics()
    assert all(f"penstock.{kind}.{name}" in topics for kind in ("events", "tuples") for name in many)


def test_an_update_that_is_asked_for_again_by_its_name_is_stored_once(cluster):
    cluster.run()
    again = {"idempotency-key": "1"}
    for headers in (again, again, {"idempotency-key": "2"}):
        assert cluster.http.post("/update", content="INSERT DATA { [] <http://x/p> 1 }", headers=headers).json() == {
            "triples": 1
        }
    cluster.run()
    asked = {"query": "SELECT (COUNT(*) AS ?n) { ?s <http://x/p> 1 }"}
    assert cluster.http.get("/sparql", params=asked).json()["results"]["bindings"][0]["n"]["value"] == "2"
    long = cluster.http.post(
        "/update", content="INSERT DATA { [] <http://x/p> 1 }", headers={"idempotency-key": "k" * 201}
    )
    assert long.status_code == 400


def test_a_bad_query_is_reported_with_line_and_column(cluster):
    cluster.run()
    answer = cluster.http.put("/queries/q?wait=0", content="REGISTER QUERY q AS SELECT *\nWHERE { ?s ?p }")
    assert answer.status_code == 400
    assert (answer.json()["error"], answer.json()["line"]) == ("QueryError", 2)


def test_a_batch_becomes_a_result_and_stored_data(cluster):
    cluster.run()
    http = cluster.http
    http.put("/streams/s", json={"iri": "http://x/s", "batch_ms": 500})
    http.put("/queries/q?wait=0", content=QUERY)
    s, p, o = cluster.terms.encode([(1, f"http://x/{n}", "", "") for n in "spo"])
    writer = cluster.log.transactional("dispatcher")
    for k, rows in ((0, 1), (1, 0), (2, 0), (3, 0)):
        column = [np.full(rows, term, np.uint64) for term in (s, p, o)]
        batch = ShardBatch("http://x/s", k, k, np.zeros(rows, np.uint32), np.full(rows, 300), *column, 0)
        empty = ShardBatch("http://x/s", k, k, *(c[:0] for c in (batch.positions, batch.times, *column)), 0)
        names = cluster.topics.names
        writer.commit([Record(names.shards, encode(part), None, i) for i, part in enumerate((empty, batch))])
    cluster.run()
    partitions = {Partition(cluster.topics.names.results, i): 0 for i in range(cluster.topics.result_partitions)}
    found = [message.key for message in cluster.log.reader(partitions).poll()]
    assert found == [b"q@1000", b"q@2000"]
    asked = {"query": "SELECT ?o { <http://x/s> <http://x/p> ?o }"}
    answer = http.get("/sparql", params=asked).json()
    assert answer["results"]["bindings"] == [{"o": {"type": "uri", "value": "http://x/o"}}]
    assert http.post("/sparql", data=asked, headers={"accept": "text/csv"}).text.split() == ["o", "http://x/o"]
    assert http.get("/sparql").status_code == 400


def test_what_users_store_is_there_for_everybody(cluster):
    cluster.run()
    http = cluster.http
    assert http.post("/update", content="INSERT DATA { <http://x/a> <http://x/p> 'b' }").json() == {"triples": 1}
    turtle = "<http://x/c> <http://x/p> 'd', 'e' ."
    stored = http.post("/data", params={"graph": "http://x/g"}, content=turtle, headers={"content-type": "text/turtle"})
    assert stored.json() == {"triples": 2, "terms": 3}
    assert http.post("/update", content="LOAD <http://x/file").status_code == 400
    assert http.post("/data", content="no", headers={"content-type": "text/turtle"}).status_code == 400
    cluster.run()
    asked = {"query": "ASK { <http://x/a> <http://x/p> 'b' . GRAPH <http://x/g> { <http://x/c> <http://x/p> 'e' } }"}
    assert http.get("/sparql", params=asked).json()["boolean"] is True


def test_graphs_are_added_to_at_the_coordinator_and_read_at_an_engine(cluster):
    http, turtle, key = cluster.http, {"content-type": "text/turtle"}, {"idempotency-key": "g"}
    cluster.run()
    for _ in range(2):
        answer = http.post("/rdf-graphs?graph=http://x/g", content="[] <p> 1 .", headers=turtle | key)
        assert (answer.status_code, answer.content) == (204, b"")
    made = http.post("/rdf-graphs", content="[] <http://x/p> 1 .", headers=turtle)
    assert made.status_code == 201
    assert http.post("/rdf-graphs?graph=http://x/g", content="no", headers=turtle).status_code == 400
    cluster.run()
    found = http.get("/rdf-graphs?graph=http://x/g")
    assert (found.status_code, found.text.count("<http://x/p>")) == (200, 1)
    assert http.get("/rdf-graphs", params={"graph": made.headers["location"]}).status_code == 200
    assert http.head("/rdf-graphs?graph=http://x/none").status_code == 404


def test_several_queries_in_one_request(cluster):
    cluster.run()
    assert cluster.http.put("/streams/s", json={"iri": "http://x/s"}).status_code == 200
    texts = {f"q{i}": QUERY.replace("q AS", f"q{i} AS").replace("x/p", f"x/p{i % 2}") for i in range(3)}
    options = {"changes": True, "max_catch_up": 7, "result_format": "arrow", "base": None}
    given = {name: {"query": text, **(options if name == "q1" else {})} for name, text in texts.items()}
    answer = cluster.http.post("/queries?wait=0", json=given)
    assert answer.status_code == 200, answer.text
    assert {name: each["text"] for name, each in answer.json().items()} == texts
    found = answer.json()["q1"]
    assert (found["changes"], found["max_catch_up"], found["result_format"]) == (True, 7, "arrow")
    assert set(cluster.http.get("/queries").json()) == set(texts)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "a JSON object, by names"),
        ({}, "a JSON object, by names"),
        ({"q": QUERY}, "query 'q' is a JSON object with \"query\""),
        ({"q": {"query": QUERY, "topic": "x"}}, "unknown option 'topic'"),
        ({"q": {"query": QUERY, "max_catch_up": True}}, "max_catch_up is not True"),
        ({"q": {"query": QUERY, "result_format": "xml"}}, "result_format"),
        ({"one": {"query": QUERY.replace("q AS", "one AS")}, "q": {"query": "SELECT"}}, "query 'q': "),
    ],
)
def test_one_bad_query_of_a_request_refuses_all(cluster, given, message):
    cluster.run()
    cluster.http.put("/streams/s", json={"iri": "http://x/s"})
    answer = cluster.http.post("/queries", json=given)
    assert answer.status_code == 400
    assert message in answer.json()["message"]
    assert cluster.http.get("/queries").json() == {}


SET = (
    "REGISTER QUERY near (?user ?limit) AS SELECT ?o FROM STREAM <http://x/s> [RANGE 1s STEP 1s]"
    " WHERE { ?user <http://x/p> ?o FILTER (?o < ?limit) }"
)


def members(cluster) -> list[tuple[str, str | None]]:
    """Keys and values of the records of the set's parameters topic."""
    topic = cluster.topics.names.parameters("near")
    reader = cluster.log.reader({Partition(topic, 0): 0})
    try:
        found = [message for message in reader.poll(1000) if message.key is not None]
        return [(m.key.decode(), None if m.value is None else m.value.decode()) for m in found]
    finally:
        reader.close()


def test_members_of_a_set_over_http(cluster):
    cluster.run()
    cluster.http.put("/streams/s", json={"iri": "http://x/s", "timing": "all"})
    registered = cluster.http.put("/queries/near?key=user", content=SET)
    assert (registered.status_code, registered.json()["key"]) == (200, ["user"])
    lines = '{"user": "http://x/a", "limit": 5}\n{"user": "http://x/b", "limit": 7}\n'
    made = cluster.http.post("/queries/near/members?key=user", content=lines)
    assert (made.status_code, made.json()) == (202, {"rows": 2})
    csv = {"content-type": "text/csv"}
    assert cluster.http.post("/queries/near/members", content="user,limit\nhttp://x/c,1\n", headers=csv).is_success
    other = cluster.http.post("/queries/near/members?key=user&key=limit", content="", headers=csv)
    assert (other.status_code, other.json()["error"]) == (400, "DataError")
    assert "the key of query set near is user, not user, limit" in other.json()["message"]
    gone = cluster.http.request("DELETE", "/queries/near/members?key=user", content='{"user": "http://x/a"}')
    assert (gone.status_code, gone.json()) == (202, {"rows": 1})
    assert members(cluster) == [
        ("http://x/a", '{"user": "http://x/a", "limit": 5}'),
        ("http://x/b", '{"user": "http://x/b", "limit": 7}'),
        ("http://x/c", '{"user": "http://x/c", "limit": 1}'),
        ("http://x/a", None),
    ]


def test_the_key_of_a_set_is_part_of_its_registration(cluster):
    cluster.run()
    http = cluster.http
    http.put("/streams/s", json={"iri": "http://x/s", "timing": "all"})
    made = http.put("/queries/near", content=SET).json()
    assert made["key"] == ["user", "limit"]  # all parameters
    assert http.put("/queries/near?key=user&key=limit", content=SET).json() == made
    assert http.put("/queries/near?key=user", content=SET).json()["error"] == "QueryError"  # another registration
    replaced = http.put("/queries/near?key=id&replace=true", content=SET).json()
    assert (replaced["key"], replaced["number"] > made["number"]) == (["id"], True)
    assert http.put("/queries/near", content=SET).json()["number"] == replaced["number"]  # no key: the registered one
    assert http.post("/queries/near/members", content='{"user": "urn:a", "limit": 5, "id": 7}').status_code == 202
    assert members(cluster) == [("7", '{"user": "urn:a", "limit": 5}')]
    for query, text, message in (
        ("/queries/far?key=o", SET.replace("near", "far"), "the answer has a column o"),
        ("/queries/far?key=user&key=user", SET.replace("near", "far"), "several different names"),
        ("/queries/q?key=o", QUERY, "the text declares no parameters"),
    ):
        refused = http.put(query, content=text)
        assert (refused.status_code, refused.json()["error"]) == (400, "DataError")
        assert message in refused.json()["message"]
    assert set(http.get("/queries").json()) == {"near"}


def test_the_parts_of_a_set(cluster):
    cluster.run()
    http = cluster.http
    http.put("/streams/s", json={"iri": "http://x/s", "timing": "all"})
    assert http.put("/queries/near?parts=64", content=SET).json()["parts"] == 64
    assert http.put("/queries/near?parts=64", content=SET).status_code == 200
    assert http.put("/queries/near", content=SET).json()["parts"] == 64  # no parts: the registered ones
    assert http.put("/queries/near?parts=1", content=SET).json()["error"] == "QueryError"  # another registration
    for path, text, message in (
        ("/queries/far?parts=0", SET.replace("near", "far"), "parts must be between 1 and 64 (MAX_PARTS), not 0"),
        ("/queries/far?parts=65", SET.replace("near", "far"), "not 65"),
        ("/queries/far?parts=some", SET.replace("near", "far"), "parts is no whole number: 'some'"),
        ("/queries/q?parts=2", QUERY, "`parts` is an option of query sets"),
    ):
        refused = http.put(path, content=text)
        assert (refused.status_code, refused.json()["error"]) == (400, "DataError")
        assert message in refused.json()["message"]
    assert set(http.get("/queries").json()) == {"near"}


def test_a_set_whose_registration_has_no_key_takes_the_key_of_a_request(cluster):
    cluster.run()
    cluster.http.put("/streams/s", json={"iri": "http://x/s", "timing": "all"})
    cluster.http.put("/queries/near", content=SET)
    queries = cluster.coordinator._registrar.queries
    queries["near"] = replace(queries["near"], key=())
    post, row = cluster.http.post, '{"user": "urn:a", "limit": 5}'
    assert post("/queries/near/members?key=user", content=row).status_code == 202
    assert post("/queries/near/members", content=row).status_code == 202
    assert [key for key, _ in members(cluster)] == ["urn:a", '["urn:a", "5"]']


def test_a_request_with_a_bad_member_writes_no_member(cluster):
    cluster.run()
    cluster.http.put("/streams/s", json={"iri": "http://x/s", "timing": "all"})
    cluster.http.put("/queries/near", content=SET)
    cluster.http.put("/queries/q", content=QUERY)
    post = cluster.http.post
    bad = post("/queries/near/members", content='{"user": "http://x/a", "limit": 5}\n{"user": "http://x/b"}')
    assert (bad.status_code, bad.json()["error"]) == (400, "DataError")
    assert "limit" in bad.json()["message"]
    assert post("/queries/near/members", content="[1]").status_code == 400
    assert post("/queries/q/members", content="{}").status_code == 404  # not a query set
    assert post("/queries/none/members", content="{}").status_code == 404
    assert post("/queries/near/members", content="").json() == {"rows": 0}
    assert members(cluster) == []
