"""A dictionary that is away in the middle of an evaluation: the engine waits there, and nothing is lost or doubled."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from penstock.log import TransientError
from support.small_cluster import SmallCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EX = "urn:x:"
QUERIES = {
    "shown": f"REGISTER ISTREAM shown AS SELECT ?s ?o FROM STREAM <{EX}s> [RANGE PT3S STEP PT1S] WHERE {{ ?s <{EX}at> ?o }}",
    "looked at": f"""REGISTER DSTREAM looked AS SELECT ?o (COUNT(DISTINCT ?s) AS ?n) FROM STREAM <{EX}s> [RANGE PT2S STEP PT1S]
        WHERE {{ ?s <{EX}at> ?o FILTER(STRLEN(STR(?o)) > 3) }} GROUP BY ?o""",
    "joined": f"""REGISTER QUERY joined AS SELECT ?s ?made ?p FROM STREAM <{EX}s> [RANGE PT2S STEP PT1S]
        WHERE {{ ?s <{EX}at> ?o BIND(IRI(CONCAT(STR(?o), "/next")) AS ?made) OPTIONAL {{ ?made ?p ?x }} }}""",
    "published": f"""REGISTER STREAM <{EX}derived> AS CONSTRUCT {{ ?made <{EX}of> ?s }} FROM STREAM <{EX}s> [RANGE PT1S STEP PT1S]
        WHERE {{ ?s <{EX}at> ?o BIND(IRI(CONCAT(STR(?o), "/next")) AS ?made) }}""",
}


class Flaky:
    """Calls of a service that fail as often as `rate` says."""

    def __init__(self, service: Any, seed: int) -> None:
        self._random = random.Random(seed)
        self.rate = 0.0
        self.failed = 0
        for verb in ("encode", "find", "decode"):
            setattr(service, verb, self._flaky(getattr(service, verb)))

    def _flaky(self, call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def made(argument: Any) -> Any:
            if self._random.random() < self.rate:
                self.failed += 1
                raise TransientError("the dictionary is unavailable")
            return call(argument)

        return made


@pytest.fixture
def run() -> Iterator[Callable[[float, int], tuple[list[dict[str, Any]], int]]]:
    def made(rate: float, seed: int) -> tuple[list[dict[str, Any]], int]:
        cluster = SmallCluster(engines=2, buckets=4)
        flaky = Flaky(cluster.terms, seed)
        cluster.coordinator.declare(f"{EX}s", "s", batch_ms=500)
        for second in range(1, 13):
            if second == 4:
                for name, text in QUERIES.items():
                    cluster.coordinator.register(name, text)
            flaky.rate = 0.0  # adaptor and coordinator have their own tests
            triples = [f"<{EX}n{k}> <{EX}at> <{EX}place/{(second + k) % 5}{'/next' * (k % 2)}> ." for k in range(3)]
            cluster.push("s", 1_000 * second, "\n".join(triples))
            cluster.adaptor.step()
            flaky.rate = rate
            cluster.run(15)
            if second == 8:
                cluster.kill("e1")
        flaky.rate = 0.0
        cluster.advance("s", 14_000)
        cluster.run(60)
        results = cluster.results()
        cluster.close()
        return results, flaky.failed

    return made


def test_an_engine_waits_for_an_unavailable_dictionary(run) -> None:
    expected, _ = run(0.0, 0)
    assert len({line["query"] for line in expected}) >= 3
    for seed in range(3):
        found, failed = run(0.5, seed)
        assert failed > 10
        assert [_reported(line) for line in found] == [_reported(line) for line in expected]


def _reported(line: dict[str, Any]) -> Any:
    rows = line.get("results", line)
    return line["query"], line["time"], sorted(map(repr, rows["bindings"])) if "bindings" in rows else repr(rows)


def test_no_query_counts_as_finished_before_all_that_were_stopped_are() -> None:
    """An engine takes a bucket over in which two queries were stopped, and the dictionary goes away between them."""
    cluster = SmallCluster(engines=2, buckets=1)
    cluster.coordinator.declare(f"{EX}s", "s", batch_ms=500)
    made = f"REGISTER ISTREAM made AS SELECT ?made FROM STREAM <{EX}s> [RANGE PT5S STEP PT1S] WHERE "
    cluster.coordinator.register("made", made + f'{{ ?s <{EX}at> ?o BIND(IRI(CONCAT(STR(?o), "/next")) AS ?made) }}')
    for name, shown in (("one", "s"), ("two", "o")):
        text = f"REGISTER QUERY {name} AS SELECT ?{shown} FROM STREAM <{EX}s> [RANGE PT2S STEP PT1S] "
        cluster.coordinator.register(name, text + f"WHERE {{ ?s <{EX}at> ?o }}")
    cluster.run()
    [holder] = [name for name, engine in cluster.engines.items() if engine.buckets]
    cluster.push("s", 10_100, f"<{EX}n1> <{EX}at> <{EX}p1> .")
    cluster.advance("s", 12_000)
    cluster.run(5)
    cluster.paused.append(cluster.engines[holder])
    cluster.push("s", 12_100, f"<{EX}n2> <{EX}at> <{EX}p2> .")
    cluster.advance("s", 15_000)
    cluster.run(4)
    cluster.coordinator.stop("one")
    cluster.coordinator.stop("two")
    cluster.run(4)
    cluster.kill(holder)
    [left] = cluster.engines.values()
    flaky, finish, finished = Flaky(cluster.terms, 0), left.enrolment.finish, []

    def finishing(bucket: Any, registration: Any, over: Any) -> None:
        if len(finished) == 1:
            flaky.rate = 1.0
        finish(bucket, registration, over)
        finished.append(registration.record.name)

    left.enrolment.finish = finishing  # type: ignore[method-assign]
    cluster.run(20)
    assert finished == ["one"]
    left.enrolment.finish = finish  # type: ignore[method-assign]
    flaky.rate = 0.0
    cluster.run(60)
    results = [(line["query"], line["time"]) for line in cluster.results() if line["query"] != "made"]
    cluster.close()
    assert results == [(name, time) for name in ("one", "two") for time in range(11_000, 16_000, 1_000)]


def test_an_answer_that_no_record_has_room_for_is_an_error_of_its_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers refuse it for good: an engine would end with it, and so would whoever takes the query over."""
    monkeypatch.setattr("penstock.services.query_engine.result_sinks.MAX_LINE_BYTES", 400)
    cluster = SmallCluster(buckets=1)
    cluster.coordinator.declare(f"{EX}s", "s", batch_ms=500)
    text = f"REGISTER QUERY q AS SELECT ?s FROM STREAM <{EX}s> [RANGE PT1S STEP PT1S] WHERE {{ ?s <{EX}at> ?o }}"
    cluster.coordinator.register("q", text)
    cluster.push("s", 10_100, "\n".join(f"<{EX}n{i}> <{EX}at> <{EX}p1> ." for i in range(9)))
    cluster.push("s", 11_100, f"<{EX}n1> <{EX}at> <{EX}p1> .")
    cluster.advance("s", 12_000)
    cluster.run(10)
    first, second = cluster.results()[:2]
    cluster.close()
    assert "MAX_LINE_BYTES is 400" in first["error"]
    assert first["time"] == 11_000
    assert len(second["results"]["bindings"]) == 1
