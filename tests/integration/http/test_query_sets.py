"""Query sets over HTTP: registration, members, steps, live results of a member, errors of members."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import quote

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

import penstock
from penstock.http.embedded import application
from penstock.http.live import Feeds, events
from penstock.http.query_sets import ARROW, member_key

PATH = "/streams/" + quote("urn:s", safe="")
TEXT = (
    "REGISTER QUERY near (?user ?limit) AS SELECT ?o FROM STREAM <urn:s> [RANGE 200ms STEP 100ms]"
    " WHERE { ?user <urn:p> ?o FILTER(?o < ?limit) }"
)
NEAR = "/queries/near?report=change&key=user"


@pytest.fixture
def engine():
    with penstock.Engine() as made:
        yield made


@pytest.fixture
def feeds(engine):
    return Feeds.of(engine)


@pytest.fixture
def http(engine, feeds):
    client = TestClient(application(engine, feeds=feeds), base_url="http://localhost")
    assert client.put(PATH, json={"batch_ms": 100, "timing": "all"}).status_code == 200
    return client


def pushed(http, time, *pairs):
    body = "".join(f'<urn:{s}> <urn:p> "{o}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n' for s, o in pairs)
    assert http.post(f"{PATH}/events?timestamp={time}", content=body).status_code == 202


def advanced(http, time):
    assert http.post(f"{PATH}/advance?timestamp={time}").status_code == 204


def table_of(response):
    assert response.headers["content-type"] == ARROW
    return pa.ipc.open_stream(response.content).read_all()


def cells(table):
    return [tuple(v["value"] if isinstance(v, dict) else v for v in row.values()) for row in table.to_pylist()]


def arrow(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def test_a_set_is_registered_shown_and_stopped(http, engine):
    made = http.put(NEAR, content=TEXT).json()
    assert (made["name"], made["report"], made["key"], made["members"]) == ("near", "change", ["user"], 0)
    assert made["columns"] == ["user", "limit"]
    assert http.put(NEAR, content=TEXT).json() == made
    assert http.get("/queries/near").json() == http.get("/queries").json()["near"] == made
    assert http.put("/queries/near?report=every", content=TEXT).status_code == 400
    assert http.put("/queries/other?report=some", content=TEXT).json()["error"] == "DataError"
    assert http.put("/queries/near", content=TEXT.replace(" (?user ?limit)", "")).json()["error"] == "QueryError"
    assert http.delete("/queries/near").status_code == 204
    assert http.get("/queries/near").status_code == 404
    assert http.post("/queries/near/members", content="{}").status_code == 404
    assert http.get("/queries/near/steps").status_code == 404
    assert engine.query_sets == {}


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ('{"user": "urn:a", "limit": 5, "more": 1}\n\n{"limit": 9, "user": "urn:b"}\n', "application/x-ndjson"),
        ('{"user": "urn:a", "limit": 5}\n{"limit": 9, "user": "urn:b"}', ""),
        ("limit,user\n5,urn:a\n9,urn:b\n", "text/csv"),
        (arrow(pa.table({"user": ["urn:a", "urn:b"], "limit": [5, 9]})), ARROW),
    ],
)
def test_members_are_added_and_removed(http, engine, body, content_type):
    http.put(NEAR, content=TEXT)
    headers = {"content-type": content_type} if content_type else {}
    report = http.post("/queries/near/members", content=body, headers=headers)
    assert report.json() == {"added": 2, "replaced": 0, "unchanged": 0, "rejected": 0}
    assert http.post("/queries/near/members", content=body, headers=headers).json()["unchanged"] == 2
    pushed(http, 50, ("a", 4), ("b", 8))
    advanced(http, 100)
    assert sorted(cells(table_of(http.get("/queries/near/steps")))) == [(100, "urn:a", "4"), (100, "urn:b", "8")]
    removed = http.request("DELETE", "/queries/near/members?key=user", content=body, headers=headers)
    assert removed.json() == {"removed": 2}
    assert len(engine.query_sets["near"]) == 0


def test_a_request_with_another_key_changes_nothing(http, engine):
    http.put(NEAR, content=TEXT)
    refused = http.post("/queries/near/members?key=limit", content='{"user": "urn:a", "limit": 5}')
    assert (refused.status_code, refused.json()["error"]) == (400, "DataError")
    assert "the key of query set near is user, not limit" in refused.json()["message"]
    assert len(engine.query_sets["near"]) == 0


@pytest.mark.parametrize(
    ("body", "content_type", "message"),
    [
        ("{", "application/x-ndjson", "line 1"),
        ('{"user": "urn:a", "limit": 5}\n[1]', "application/x-ndjson", "line 2: a member is a JSON object"),
        ("a,b\n1\n", "text/csv", "need the columns user, limit: one is missing"),
        ("user\nurn:a\n", "text/csv", "need the columns user, limit: one is missing"),
        ('user,limit\n"a\n', "text/csv", "cannot be read as text/csv"),
        ("x", ARROW, "cannot be read"),
        ("x", "text/turtle", "not text/turtle"),
    ],
)
def test_members_that_cannot_be_read_change_nothing(http, engine, body, content_type, message):
    http.put(NEAR, content=TEXT)
    response = http.post("/queries/near/members", content=body, headers={"content-type": content_type})
    assert response.status_code == 400
    assert message in response.json()["message"]
    assert len(engine.query_sets["near"]) == 0


def test_an_error_of_one_member_is_a_dead_letter(http):
    http.put(NEAR, content=TEXT)
    body = '{"user": "no iri", "limit": 5}\n{"user": "urn:b", "limit": 9}'
    assert http.post("/queries/near/members", content=body).json()["rejected"] == 1
    (letter,) = http.post("/dead-letters").json()
    assert (letter["stream"], "user is not an absolute IRI" in letter["reason"]) == ("near", True)


def test_the_parts_of_steps(http):
    http.put(NEAR, content=TEXT)
    assert http.get("/queries/near/steps").status_code == 204
    http.post("/queries/near/members", content='{"user": "urn:a", "limit": 5}\n{"user": "urn:b", "limit": 9}')
    pushed(http, 50, ("a", 4))
    advanced(http, 600)
    assert cells(table_of(http.get("/queries/near/steps"))) == [(100, "urn:a", "4")]
    members = cells(table_of(http.get("/queries/near/steps?part=members")))
    assert members == [(100, "urn:a"), (300, "urn:a")]  # its answer becomes empty
    assert cells(table_of(http.get("/queries/near/steps?part=added"))) == [(100, "urn:a", "4")]
    assert cells(table_of(http.get("/queries/near/steps?part=removed&after=100"))) == [(300, "urn:a", "4")]
    assert http.get("/queries/near/steps?after=300").status_code == 204
    assert http.get("/queries/near/steps?part=all").status_code == 400
    assert http.get("/queries/near/steps?after=x").status_code == 400


def test_live_results_of_one_member(http, feeds):
    http.put(NEAR, content=TEXT)
    http.post("/queries/near/members", content='{"user": "urn:a", "limit": 5}\n{"user": "urn:b", "limit": 9}')
    pushed(http, 50, ("a", 4))
    pushed(http, 150, ("b", 7))
    advanced(http, 600)
    assert http.get("/queries/near/results").status_code == 400

    async def listened():
        found = []
        async for message in events(feeds.get("near"), None, "urn:b"):
            found.append(message)
            if len(found) == 2:
                return found
        return found

    first, second = asyncio.run(asyncio.wait_for(listened(), 10))
    assert first.startswith(b"id: 200\n")
    data = json.loads(first.partition(b"data: ")[2])
    assert [row["o"]["value"] for row in data["results"]["bindings"]] == ["7"]
    data = json.loads(second.partition(b"data: ")[2])
    assert (data["time"], len(data["added"]["results"]["bindings"])) == (400, 0)
    assert [row["o"]["value"] for row in data["removed"]["results"]["bindings"]] == ["7"]


def test_the_key_of_a_member_is_text_or_json(http, engine):
    http.put(NEAR, content=TEXT)
    http.put("/queries/many?report=every", content=TEXT)
    http.put("/queries/ids?report=every&key=id", content=TEXT)
    http.post("/queries/ids/members", content='{"user": "urn:a", "limit": 5, "id": 7}')
    sets = engine.query_sets
    assert member_key(sets["near"], "urn:unknown") == "urn:unknown"
    assert member_key(sets["ids"], "7") == 7
    assert member_key(sets["many"], '["urn:a", 5]') == ("urn:a", 5)
    with pytest.raises(penstock.DataError, match="member"):
        member_key(sets["many"], "urn:a")


def test_sets_of_a_data_directory_have_feeds(tmp_path):
    with penstock.Engine(tmp_path) as engine:
        engine.declare_stream("urn:s", timing="all")
        engine.register_set(TEXT, [("urn:a", 5)], report="every", key="user")
        engine.push("urn:s", '<urn:a> <urn:p> "4" .', timestamp=50)
        engine.advance("urn:s", 100)
    with penstock.Engine(tmp_path) as engine:
        http = TestClient(application(engine), base_url="http://localhost")
        members = cells(table_of(http.get("/queries/near/steps?part=members")))
        assert members == [(100, "urn:a")]
        assert http.get("/queries").json()["near"]["members"] == 1


def test_a_text_with_parameters_reports_changes_by_default(http, engine):
    assert http.put("/queries/plain", content=TEXT).json()["report"] == "change"
    assert http.put("/queries/plain", content=TEXT).status_code == 200
    assert http.put("/queries/keyed?key=user", content=TEXT).json()["key"] == ["user"]
    made = engine.register_set(TEXT, [("urn:a", 5)], name="again")
    assert made.report == "change"
    assert http.put("/queries/bad", content=TEXT.replace("?limit)", "?limit ?more)", 1)).json()["error"] == "QueryError"
