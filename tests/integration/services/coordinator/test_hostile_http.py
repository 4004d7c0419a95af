"""Hostile bodies at the coordinator's HTTP: refused, and nothing waits for them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from penstock.rdf.formats import Format
from penstock.services.coordinator import http_routes as coordinator_routes
from penstock.services.coordinator.insertion import Insertion
from support.hostile import DOCUMENTS
from support.small_cluster import SmallCluster

DEEP = b"[" * 200_000
BODIES = [
    DEEP,
    b'{"iri":' * 100_000,
    b'{"iri": ' + b"9" * 10_000 + b"}",
    b"\xff\xfe",
    b'{"iri": "\\ud800"}',
    b"NaN",
    b"",
]


class Served:
    def __init__(self) -> None:
        self.cluster = SmallCluster()
        self.lock = threading.Lock()
        routes = coordinator_routes.routes(self.cluster.coordinator, self.lock)
        self.http = TestClient(Starlette(routes=routes))


@pytest.fixture
def served():
    made = Served()
    yield made
    made.cluster.close()


@pytest.mark.parametrize("path", ["/streams", "/streams/s", "/loads"])
@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_json_that_is_none_or_too_deep_is_the_askers_error(served, path, body):
    verb = served.http.put if path == "/streams/s" else served.http.post
    answer = verb(path, content=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "DataError")
    assert served.http.get("/streams").json() == {}


@pytest.mark.parametrize("name", ["entities", "objects in objects", "triple terms", "contexts in contexts"])
def test_a_hostile_document_is_the_askers_error(served, name):
    fmt, make = DOCUMENTS[name]
    headers = {"content-type": Format(fmt).media_type}
    answer = served.http.post("/data", content=make(300_000).encode(), headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (400, "DataError")
    good = served.http.post("/data", content="<u:s> <u:p> <u:o> .", headers={"content-type": "text/turtle"})
    assert good.json() == {"triples": 1, "terms": 3}


def test_plain_json_as_data_is_refused_with_a_hint(served):
    answer = served.http.post("/data", content=b'{"t": 1}', headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert "needs a context" in answer.json()["message"]


def test_a_graph_that_is_no_iri_is_refused(served):
    assert served.http.post("/data?graph=no%20iri", content=b"<u:s> <u:p> <u:o> .").status_code == 400


@pytest.mark.parametrize("path", ["/data", "/update"])
def test_streams_are_listed_and_steps_go_on_while_a_document_is_read(served, monkeypatch, path):
    reading, finish = threading.Event(), threading.Event()

    def slow(*_):
        reading.set()
        assert finish.wait(60)
        return Insertion([[], [], [], []], (), 0)

    monkeypatch.setattr(Insertion, "of_document", slow)
    monkeypatch.setattr(Insertion, "of_operation", slow)
    headers = {"content-type": "application/sparql-update"} if path == "/update" else {}
    with served.http, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(served.http.post, path, content=b"anything", headers=headers)
        assert reading.wait(60)
        assert not served.lock.locked()
        assert served.http.get("/streams").status_code == 200
        with served.lock:
            served.cluster.run(5)
        assert served.http.put("/streams/s", json={"iri": "http://x/s"}).status_code == 200
        finish.set()
        assert asked.result(60).json()["triples"] == 0
