"""The Graph Store HTTP Protocol at `/rdf-graphs` of an embedded engine: names of graphs, formats, limits, errors."""

from __future__ import annotations

import re

import pytest
import rdflib
from starlette.testclient import TestClient

import penstock
from penstock.http.embedded import application

TURTLE, TRIPLE = {"content-type": "text/turtle"}, "<http://x/a> <http://x/p> 1 ."
GRAPH = {"graph": "http://x/g"}


@pytest.fixture
def engine():
    with penstock.Engine() as made:
        yield made


@pytest.fixture
def http(engine):
    return TestClient(application(engine), base_url="http://localhost")


def test_a_document_is_added_to_a_graph(engine, http):
    answer = http.post("/rdf-graphs", params=GRAPH, content=TRIPLE, headers=TURTLE)
    assert (answer.status_code, answer.content) == (201, b"")
    assert http.post("/rdf-graphs", params=GRAPH, content="<http://x/b> <http://x/p> 2 .").status_code == 400, (
        "N-Triples"
    )
    assert http.post("/rdf-graphs", params=GRAPH, content=TRIPLE, headers=TURTLE).status_code == 204
    found = http.get("/rdf-graphs", params=GRAPH, headers={"accept": "text/turtle"})
    assert found.headers["content-type"] == "text/turtle; charset=utf-8"
    assert found.headers["vary"] == "accept"
    assert len(rdflib.Graph().parse(data=found.text, format="turtle")) == 1
    assert http.get("/rdf-graphs", params=GRAPH).headers["content-type"] == "application/n-triples"
    assert engine.query("ASK { GRAPH <http://x/g> { <http://x/a> <http://x/p> 1 } }") is True


def test_the_default_graph_always_exists(http):
    assert http.get("/rdf-graphs?default").status_code == 200
    assert http.post("/rdf-graphs?default", content=TRIPLE, headers=TURTLE).status_code == 204
    assert "<http://x/a>" in http.get("/rdf-graphs?default").text
    assert (
        http.get("/rdf-graphs", params={"graph": "urn:x-penstock:stored"}).text == http.get("/rdf-graphs?default").text
    )
    assert http.head("/rdf-graphs?default").status_code == 200


def test_the_url_of_a_path_is_the_iri_of_a_graph(engine, http):
    assert http.post("/rdf-graphs/rooms/%C3%A9t%2Fe", content="<> <p> 1 .", headers=TURTLE).status_code == 201
    iri = "http://localhost/rdf-graphs/rooms/%C3%A9t%2Fe"
    assert engine.query(f"ASK {{ GRAPH <{iri}> {{ <{iri}> <http://localhost/rdf-graphs/rooms/p> 1 }} }}") is True
    assert http.get("/rdf-graphs/rooms/%C3%A9t%2Fe").text == http.get("/rdf-graphs", params={"graph": iri}).text != ""


def test_a_new_graph_gets_an_iri(http):
    answer = http.post("/rdf-graphs", content=TRIPLE, headers=TURTLE)
    assert answer.status_code == 201
    place = answer.headers["location"]
    assert re.fullmatch("http://localhost/rdf-graphs/[0-9a-f]{32}", place)
    assert http.get(place).text == http.get("/rdf-graphs", params={"graph": place}).text
    assert "<http://x/a>" in http.get(place).text


def test_a_graph_without_triples_does_not_exist(http):
    for method in ("GET", "HEAD"):
        answer = http.request(method, "/rdf-graphs", params=GRAPH)
        assert answer.status_code == 404
    assert http.get("/rdf-graphs/none").json()["error"] == "NotFound"
    assert http.post("/rdf-graphs/none", content="", headers=TURTLE).status_code == 201
    assert http.get("/rdf-graphs/none").status_code == 404


def test_files_of_a_form_become_one_snapshot(engine, http):
    files = [
        ("a", ("a.ttl", "_:b <http://x/p> 1 .", "text/turtle")),
        ("b", ("b.nt", "_:b <http://x/p> <http://x/o> .\n")),
        ("c", ("c", '{"@id": "http://x/a", "http://x/p": "\\n"}', "application/ld+json")),
    ]
    before = engine.stats()["snapshot"]
    assert http.post("/rdf-graphs", params=GRAPH, files=files).status_code == 201
    assert engine.stats()["snapshot"] == before + 1
    found = engine.query("SELECT (COUNT(*) AS ?n) (COUNT(DISTINCT ?s) AS ?m) { GRAPH <http://x/g> { ?s ?p ?o } }")
    assert [(int(row["n"]), int(row["m"])) for row in found] == [(3, 3)], "each file has its own blank nodes"
    wrong = [files[0], ("d", ("d.ttl", "<http://x/a> <http://x/p>", "text/turtle"))]
    answer = http.post("/rdf-graphs", params=GRAPH, files=wrong)
    assert (answer.status_code, answer.json()["error"]) == (400, "DataError")
    assert engine.stats()["snapshot"] == before + 1


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("/rdf-graphs?graph=relative", TURTLE),
        ("/rdf-graphs?default&graph=http://x/g", TURTLE),
        ("/rdf-graphs?graph=http://x/g&graph=http://x/h", TURTLE),
        ("/rdf-graphs/direct?graph=http://x/g", TURTLE),
        ("/rdf-graphs?default", {"content-type": "image/png"}),
        ("/rdf-graphs?default", {"content-type": "application/trig"}),
        ("/rdf-graphs?default", {"content-type": "multipart/form-data; boundary=x"}),
    ],
)
def test_wrong_requests_are_refused(http, url, headers):
    answer = http.post(url, content=TRIPLE, headers=headers)
    assert (answer.status_code, answer.json()["error"]) == (400, "DataError")


def test_a_request_without_a_graph_is_refused(http):
    assert http.get("/rdf-graphs").status_code == 400


def test_a_graph_is_replaced_as_one_snapshot(engine, http):
    text = '_:b <http://x/p> "a\\n\u2028", 1 ; <http://x/q> [] .'
    assert http.put("/rdf-graphs", params=GRAPH, content=text.encode(), headers=TURTLE).status_code == 201
    before = engine.stats()["snapshot"]
    assert http.put("/rdf-graphs", params=GRAPH, content=TRIPLE, headers=TURTLE).status_code == 204
    assert engine.stats()["snapshot"] == before + 1
    assert http.get("/rdf-graphs", params=GRAPH).text.count("\n") == 1
    assert http.put("/rdf-graphs", params=GRAPH, content="no", headers=TURTLE).status_code == 400
    assert http.get("/rdf-graphs", params=GRAPH).text.count("\n") == 1
    assert http.put("/rdf-graphs?default", content=TRIPLE, headers=TURTLE).status_code == 204


def test_a_graph_is_removed(http):
    assert http.delete("/rdf-graphs", params=GRAPH).status_code == 404
    http.post("/rdf-graphs", params=GRAPH, content=TRIPLE, headers=TURTLE)
    assert http.delete("/rdf-graphs", params=GRAPH).status_code == 204
    assert http.get("/rdf-graphs", params=GRAPH).status_code == 404
    assert http.delete("/rdf-graphs?default").status_code == 204
    assert http.delete("/rdf-graphs").status_code == 400
