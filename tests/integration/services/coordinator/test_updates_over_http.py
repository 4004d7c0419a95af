"""Updates with patterns over HTTP: the coordinator's requests to engines, conflicts, errors, idempotency keys."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from starlette.applications import Starlette

from penstock.errors import UnavailableError
from penstock.http import sparql
from penstock.http.graph_store import GraphStore
from penstock.http.protocol_requests import ProtocolOperation
from penstock.http.web_server import WebServer
from penstock.services.coordinator import http_routes
from penstock.updates import effect_requests, effect_routes
from penstock.updates.effect_requests import EffectRequests
from penstock.updates.effects import Effect
from support import w3c_http
from support.small_cluster import SmallCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COUNT = "INSERT { [] <urn:count> ?count } WHERE { SELECT (COUNT(*) AS ?count) { ?s ?p ?o } }"


class Evaluator:
    """An engine's evaluator that takes turns with the steps of the cluster. `before` is called before each use."""

    def __init__(self, cluster: SmallCluster, lock: threading.Lock) -> None:
        self._updates, self._lock = cluster.engines["e0"].updates, lock
        self.before: Callable[[], None] = lambda: None
        self.evaluations = 0

    @property
    def insertions(self) -> Callable[[], int]:
        return self._updates.insertions

    def evaluate(self, *given: Any) -> Effect:
        with self._lock:
            effect = self._updates.evaluate(*given)
        self.evaluations += 1
        self.before()
        return effect


class Running:
    """A cluster whose services step in a thread, and the URLs of its coordinator and engine."""

    def __init__(self) -> None:
        self.lock, self.cluster = threading.Lock(), SmallCluster()
        self.evaluator = Evaluator(self.cluster, self.lock)
        engine_routes = effect_routes.routes(self.evaluator)  # type: ignore[arg-type]
        self.engine = WebServer(Starlette(routes=engine_routes), "127.0.0.1", 0)
        self.cluster.engines["e0"].answer_at(f"http://127.0.0.1:{self.engine.port}")
        routes = http_routes.routes(self.cluster.coordinator, self.lock)
        routes += GraphStore(self._ask).routes()
        self.coordinator = WebServer(Starlette(routes=routes), "127.0.0.1", 0)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.002):
            with self.lock:
                self.cluster.run(1)

    def _ask(self, *asked: Any) -> Any:
        """Answer a query, once all changes are applied."""
        with self.lock:
            self.cluster.run(3)
            return sparql.asking(self.cluster.engines["e0"].one_shot)(*asked)

    def insert(self) -> None:
        """Store data at the coordinator, while an update is evaluated."""
        with self.lock:
            self.cluster.coordinator.update("INSERT DATA { [] <urn:p> 1 }")

    def update(self, text: str, key: str | None = None, **parameters: Any) -> httpx.Response:
        headers = {"content-type": "application/sparql-update"} | ({} if key is None else {"idempotency-key": key})
        url = f"http://127.0.0.1:{self.coordinator.port}/update"
        return httpx.post(url, content=text, headers=headers, params=parameters, timeout=60)

    def triples(self) -> list[tuple[str, str]]:
        """Return predicate and object of each triple, once all are applied."""
        with self.lock:
            self.cluster.run()
            found = self.cluster.engines["e0"].one_shot.query("SELECT ?p ?o { ?s ?p ?o }", None, None, None)
            return sorted((str(row["p"]), str(row["o"])) for row in found)

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self.coordinator.stop()
        self.engine.stop()
        self.cluster.close()


@contextmanager
def running() -> Iterator[Running]:
    made = Running()
    try:
        yield made
    finally:
        made.close()


def test_updates_see_all_that_was_stored_before_them() -> None:
    with running() as http:
        http.insert()
        for _ in range(3):
            assert http.update(COUNT).json() == {"triples": 1}
        assert [o for p, o in http.triples() if p == "urn:count"] == ["1", "2", "3"]


def test_a_change_in_between_leads_to_another_evaluation() -> None:
    with running() as http:
        left = [1, 1]
        http.evaluator.before = lambda: http.insert() if left and left.pop() else None
        assert http.update(COUNT).json() == {"triples": 1}
        assert http.evaluator.evaluations == 3
        assert [o for p, o in http.triples() if p == "urn:count"] == ["2"]


def test_an_update_removes_what_was_stored_during_its_first_evaluation() -> None:
    with running() as http:
        http.insert()
        left = [1]
        http.evaluator.before = lambda: http.insert() if left and left.pop() else None
        assert http.update("DELETE WHERE { ?s <urn:p> ?o }", "k").json() == {"triples": 2}
        assert http.update("DELETE WHERE { ?s <urn:p> ?o }", "k").json() == {"triples": 2}
        assert http.evaluator.evaluations == 2
        assert http.triples() == []


def test_data_are_removed_without_an_evaluation() -> None:
    with running() as http:
        assert http.update("INSERT DATA { <urn:a> <urn:p> 1, 2 }").json() == {"triples": 2}
        removal = "DELETE DATA { <urn:a> <urn:p> 1, 'a name that nobody knows' } ; INSERT DATA { <urn:a> <urn:p> 3 }"
        assert http.update(removal).json() == {"triples": 2}
        assert http.evaluator.evaluations == 0
        assert http.triples() == [("urn:p", "2"), ("urn:p", "3")]


EXCHANGES = [
    pytest.param(exchange, id=f"{kind}: {exchange.name}")
    for kind in ("direct", "indirect")
    for exchange in w3c_http.exchanges(f"graph-store-protocol/manifest-{kind}.ttl")
]


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_the_w3c_tests_of_the_graph_store_protocol(exchange: Any) -> None:
    """The coordinator answers POST, PUT and DELETE, and the engine GET and HEAD."""
    with running() as http:
        url = f"http://127.0.0.1:{http.coordinator.port}"
        wrong = w3c_http.run(exchange, url, {"/gsp": "/rdf-graphs"})
    assert wrong is None, f"{wrong.request.method} {wrong.request.url}: {wrong.status_code} {wrong.text}"


def test_a_graph_is_replaced_and_removed_once() -> None:
    with running() as http:
        url = f"http://127.0.0.1:{http.coordinator.port}/rdf-graphs"
        turtle, graph = {"content-type": "text/turtle"}, {"graph": "urn:g"}

        def sent(method: str, content: str = "", key: str | None = None, **asked: str) -> int:
            named = turtle | ({} if key is None else {"idempotency-key": key})
            return httpx.request(method, url, params=asked or graph, content=content, headers=named).status_code

        assert sent("PUT", "[] <urn:p> 1, 2 .", "a") == 201
        assert sent("PUT", "[] <urn:q> 1 .", "b") == 204
        assert sent("PUT", "[] <urn:p> 1, 2 .", "a") == 204, "an earlier request"
        assert httpx.get(url, params=graph).text.count("urn:") == 1
        http.insert()
        assert sent("DELETE", key="c") == 204
        assert sent("DELETE", key="c") == 204
        assert (sent("DELETE"), sent("PUT", "no triple"), sent("DELETE", graph="relative")) == (404, 400, 400)
        assert [p for p, _ in http.triples()] == ["urn:p"]
        assert sent("DELETE", default="") == sent("DELETE", default="") == 204
        assert http.triples() == []


def test_too_many_conflicts_are_an_error_without_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_routes, "EVALUATIONS", 3)
    with running() as http:
        http.evaluator.before = http.insert
        answer = http.update(COUNT)
        assert (answer.status_code, answer.json()["error"]) == (409, "ConflictError")
        assert http.evaluator.evaluations == 3
        assert {p for p, _ in http.triples()} == {"urn:p"}


def test_concurrent_updates_take_turns_and_none_is_lost() -> None:
    with running() as http, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: http.update(COUNT), range(24)))
        assert {answer.status_code for answer in answers} == {200}
        assert sorted(int(o) for _, o in http.triples()) == list(range(24))
        assert http.evaluator.evaluations == 24


def test_a_repeated_request_is_executed_once() -> None:
    with running() as http:
        assert [http.update(COUNT, "k").json()["triples"] for _ in range(3)] == [1, 1, 1]
        assert http.evaluator.evaluations == 1
        assert http.triples() == [("urn:count", "0")]


def test_the_answer_of_an_engine_that_refuses_is_passed_on() -> None:
    with running() as http:
        wrong = http.update("INSERT DATA { <urn:a> <urn:p> 1 } ;\n ADD <urn:g> TO <urn:h>")
        assert (wrong.status_code, wrong.json()["error"], wrong.json()["line"]) == (400, "QueryError", 2)
        loads = http.update("INSERT { ?s ?p ?o } WHERE { ?s ?p ?o } ;\n\n LOAD <urn:file>")
        assert (loads.status_code, loads.json()["line"]) == (400, 3)
        graphs = {"using-graph-uri": "urn:g"}
        assert http.update(COUNT, **graphs).json() == {"triples": 1}
        both = http.update("WITH <urn:h> INSERT { ?s <urn:q> 1 } WHERE { ?s ?p ?o }", **graphs)
        assert (both.status_code, "USING" in both.json()["message"]) == (400, True)
        assert http.triples() == [("urn:count", "0")]


def test_without_an_engine_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effect_requests, "_TRY_S", 0.5)
    with running() as http:
        http.engine.stop()
        answer = http.update(COUNT)
        assert (answer.status_code, answer.json()["error"]) == (503, "UnavailableError")
        assert http.triples() == []


def test_without_a_live_engine_an_update_fails_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effect_requests, "_ABSENT_S", 0.3)

    async def none() -> list[str]:
        return []

    update = ProtocolOperation("update", "LOAD <urn:file>")
    with pytest.raises(UnavailableError, match="no query engine is live"):
        asyncio.run(asyncio.wait_for(EffectRequests(none).evaluate(update, 0, {}), 10))


def test_an_update_waits_for_an_engine_that_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effect_requests, "_ABSENT_S", 5.0)
    with running() as http:
        answers = [[f"http://127.0.0.1:{http.engine.port}"], [], [], []]

        async def later() -> list[str]:
            return answers.pop() if len(answers) > 1 else answers[0]

        found = asyncio.run(EffectRequests(later).evaluate(ProtocolOperation("update", COUNT), 0, {}))
        assert isinstance(found, Effect)
        assert http.evaluator.evaluations == 1
