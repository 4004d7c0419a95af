"""Queries beyond the planning limits (ADR 59) at the coordinator: refused with a place, and others are registered."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from penstock.engine.limits import Limits
from penstock.errors import QueryLimitError
from penstock.query import parser
from penstock.services.coordinator import http_routes as coordinator_routes
from penstock.services.coordinator import registrar
from penstock.wire import StreamPredicates
from support.large_queries import NAMES, large_query
from support.small_cluster import SmallCluster

IRI = "http://x/s"
COUNT = f"REGISTER QUERY q AS SELECT (COUNT(*) AS ?n) FROM STREAM <{IRI}> [RANGE 1s STEP 1s] WHERE {{ ?s ?p ?o }}"
SUBJECTS = COUNT.replace("(COUNT(*) AS ?n)", "?s")


@pytest.fixture
def cluster():
    made = SmallCluster()
    made.coordinator.declare(IRI, "s", batch_ms=500)
    made.run(5)
    yield made
    made.close()


def statuses(cluster: SmallCluster) -> dict[str, dict]:
    """What a compacted view of the status topic has."""
    found: dict[str, dict] = {}
    for message in cluster.messages(cluster.topics.names.status):
        key = message.key.decode()
        found.pop(key, None)
        if message.value is not None:
            found[key] = json.loads(message.value)
    return found


def assert_answers(cluster: SmallCluster, query: str) -> None:
    cluster.push("s", 100_200, "<urn:a> <urn:p> <urn:b> .")
    cluster.advance("s", 101_000)
    cluster.run()
    assert [(line["query"], line["time"]) for line in cluster.results()] == [(query, 101_000)]


@pytest.mark.parametrize("name", NAMES)
def test_over_http_it_is_the_askers_error_with_a_place(cluster, name):
    text, limits = large_query(name, IRI)
    lock = threading.Lock()
    routes = coordinator_routes.routes(cluster.coordinator, lock)
    with TestClient(Starlette(routes=routes)) as http, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(http.put, "/queries/large", content=text)
        assert http.get("/streams").status_code == 200
        assert http.put("/queries/good?wait=0", content=COUNT).status_code == 200
        answer = asked.result(120)
        refusal = answer.json()
        assert (answer.status_code, refusal["error"], refusal["line"]) == (400, "QueryLimitError", 2)
        assert int(refusal["column"]) > 1
        assert any(limit in refusal["message"] for limit in limits)
        assert len(answer.content) < 2_000
        assert [found["name"] for found in http.get("/queries").json().values()] == ["good"]
    assert_answers(cluster, "good")


@pytest.mark.parametrize("name", NAMES)
def test_in_the_queries_topic_it_is_refused_and_those_behind_it_are_registered(cluster, name):
    text, limits = large_query(name, IRI)
    queries = cluster.topics.names.queries
    cluster.send(queries, "large", text)
    cluster.send(queries, "good", COUNT)
    cluster.run()
    refusal = statuses(cluster)["refused query large"]
    assert (refusal["status"], refusal["error"], refusal["line"]) == ("refused", "QueryLimitError", 2)
    assert refusal["column"] > 1
    assert any(limit in refusal["message"] for limit in limits)
    assert list(cluster.coordinator.queries) == ["good"]
    assert_answers(cluster, "good")
    cluster.send(queries, "large", SUBJECTS)
    cluster.run()
    assert "refused query large" not in statuses(cluster)


@pytest.mark.parametrize("name", NAMES)
def test_a_query_stands_whose_replacement_is_beyond_the_limits(cluster, name):
    queries = cluster.topics.names.queries
    cluster.send(queries, "q", COUNT)
    cluster.send(queries, "q", large_query(name, IRI)[0])
    cluster.run()
    assert statuses(cluster)["refused query q"]["error"] == "QueryLimitError"
    assert cluster.coordinator.queries["q"].text == COUNT
    assert_answers(cluster, "q")


def test_a_registration_is_parsed_once(cluster, monkeypatch):
    texts, parse_syntax = [], parser.parse_syntax

    def counted(text, *given):
        texts.append(text)
        return parse_syntax(text, *given)

    monkeypatch.setattr(parser, "parse_syntax", counted)
    active = cluster.coordinator._active
    assert active is not None
    active.state.filters["http://x/other"] = StreamPredicates("http://x/other", 1, (), np.empty(0, np.int64), 1)
    cluster.coordinator.register("q", COUNT)
    cluster.coordinator.register("q", COUNT)  # it stands so
    assert texts == [COUNT]


def test_parsing_and_planning_of_a_registration_share_a_budget():
    made = registrar.Registrar(Limits(planning_memory_mb=1))
    made.declare(IRI, batch_ms=500)
    parsed = made.parse(COUNT)
    parsed.budget.bytes = 1 << 20  # as if parsing had spent all of it
    with pytest.raises(QueryLimitError, match="planning_memory_mb"):
        made.register("q", COUNT, parsed=parsed)
    assert made.queries == {}
    made.register("q", COUNT)
