"""Added and removed rows of a cluster's queries: a consumer that applies them from the beginning holds the answer, over
kills, moves of buckets, and records that a topic rejects. Embedded engines report the same rows.
"""

from __future__ import annotations

import json
from collections import Counter
from unittest import mock

import pytest

import penstock
from penstock.client.results import ClusterEvaluation
from penstock.core import _native as native
from penstock.engine.standing.evaluator import Evaluator
from penstock.services.query_engine.result_sinks import RETRY_MS
from support.held_rows import HeldRows
from support.small_cluster import SmallCluster
from support.systems import counted

IRI = "http://x/s"
FIRST = 101
BODIES = {
    "rows": f"SELECT ?s ?o FROM STREAM <{IRI}> [RANGE 3s STEP 1s] WHERE {{ ?s <urn:p> ?o }}",
    "groups": f"SELECT ?s (COUNT(*) AS ?n) FROM STREAM <{IRI}> [RANGE 3s STEP 1s] WHERE {{ ?s <urn:p> ?o }} GROUP BY ?s",
    "made": f"SELECT (BNODE() AS ?b) (CONCAT(STR(?s), '!') AS ?c) FROM STREAM <{IRI}> [RANGE 2s STEP 1s] "
    "WHERE { ?s <urn:p> ?o }",
    "unique": f"SELECT DISTINCT ?o FROM STREAM <{IRI}> [RANGE 2s STEP 1s] WHERE {{ ?s <urn:p> ?o OPTIONAL {{ ?s <urn:q> ?z }} }}",
    "counted": f"SELECT ?s ?o FROM STREAM <{IRI}> [TRIPLES 3] WHERE {{ ?s <urn:p> ?o }}",
    "one": f"SELECT ?o FROM STREAM <{IRI}> [RANGE 3s STEP 1s] WHERE {{ <urn:s1> <urn:p> ?o }}",
    "other": f"SELECT ?o FROM STREAM <{IRI}> [RANGE 3s STEP 1s] WHERE {{ <urn:s2> <urn:p> ?o }}",
    "made_graph": f"CONSTRUCT {{ ?s <urn:of> ?o . ?o <urn:is> 1 }} FROM STREAM <{IRI}> [RANGE 2s STEP 1s] "
    "WHERE { ?s <urn:p> ?o }",
    "asked": f"ASK FROM STREAM <{IRI}> [RANGE 1s STEP 1s] WHERE {{ <urn:s2> <urn:p> ?o }}",
}


def text(name: str, body: str) -> str:
    return f"REGISTER QUERY {name} AS {body}"


@pytest.fixture
def from_changes():
    """Let engines evaluate even small inputs from changes (ADR 78)."""
    usual = native.maintain_from(0)
    yield
    native.maintain_from(usual)


@pytest.fixture
def cluster():
    made = SmallCluster(engines=2)
    made.coordinator.declare(IRI, "s", batch_ms=500)
    yield made
    made.close()


def events(second: int) -> list[str]:
    """The events of a second: subjects and objects come, stay and go."""
    return [f"<urn:s{i}> <urn:p> <urn:o{(second * i) % 4}> ." for i in range(second % 4 + 1)]


def push(cluster: SmallCluster, second: int, data: list[str]) -> None:
    for line in data:
        cluster.push("s", second * 1_000 - 800, line)
    cluster.advance("s", second * 1_000)
    cluster.run()


def read(cluster: SmallCluster, topic: str) -> dict[str, list[dict]]:
    """Return the lines of each query, as a consumer of added and removed rows sees them."""
    tables: dict[str, HeldRows] = {}
    found: dict[str, list[dict]] = {}
    for message in cluster.messages(topic):
        name = json.loads(message.value)["query"]
        found.setdefault(name, []).append(tables.setdefault(name, HeldRows()).read(message.value))
    return found


def rows(line: dict) -> Counter:
    if "results" not in line:
        return Counter([line["boolean"]] if "boolean" in line else line["graph"].splitlines())
    return Counter(json.dumps(row, sort_keys=True) for row in line["results"]["bindings"])


@pytest.mark.parametrize("maintain", [0, 2_048])
def test_a_consumer_that_applies_the_changes_holds_the_answer_over_kills_and_moves(cluster, from_changes, maintain):
    native.maintain_from(maintain)
    for name, body in BODIES.items():
        cluster.coordinator.register(f"{name}_c", text(f"{name}_c", body), changes=True)
        cluster.coordinator.register(name, text(name, body))
    cluster.advance("s", 100_000)
    cluster.run()
    for i in range(9):
        push(cluster, FIRST + i, events(FIRST + i))
        if i == 2:
            cluster.kill("e0")
            cluster.start_engine("e2")
            cluster.run(200)
        elif i == 4:
            for name in list(cluster.engines):
                cluster.kill(name)
            cluster.start_engine("e3")
            cluster.run(200)
        elif i == 6:
            cluster.start_engine("e4")
            cluster.run(200)
    found = read(cluster, cluster.topics.names.results)
    for name in BODIES:
        plain, changed = found[name], found[f"{name}_c"]
        assert [line["time"] for line in changed] == [line["time"] for line in plain]
        if name != "made":  # labels of BNODE() differ
            assert [rows(line) for line in changed] == [rows(line) for line in plain]
        assert sum(map(len, map(rows, plain))) > 8 or name == "asked", name
    lines = [json.loads(message.value) for message in cluster.messages(cluster.topics.names.results)]
    complete = Counter(line["query"] for line in lines if line["query"].endswith("_c") and "added" not in line)
    assert complete == Counter({f"{name}_c": 1 for name in BODIES}), "only the first record, also after kills"


def test_commits_write_the_changes_of_the_answer_and_an_engine_that_takes_over_goes_on(cluster):
    cluster.coordinator.register("q", text("q", BODIES["rows"].replace("RANGE 3s", "RANGE 90s")), changes=True)
    cluster.advance("s", 100_000)
    cluster.run()
    push(cluster, FIRST, [f"<urn:s{i}> <urn:p> <urn:{i}> ." for i in range(400)])
    for second in range(FIRST + 1, FIRST + 6):
        if second == FIRST + 3:
            for name in list(cluster.engines):
                cluster.kill(name)
            cluster.start_engine("e3")
            cluster.run(200)
        push(cluster, second, [f"<urn:s{second}> <urn:p> <urn:o> ."])
    written = [m for m in cluster.messages(cluster.topics.progress) if (m.key or b"").startswith(b"answer ")]
    assert len({message.key for message in written}) == len(written), "each piece is written once"
    sizes = [len(message.value or b"") for message in written]
    assert len(sizes) == 6, "the base, and five changes"
    assert max(sizes[1:]) * 10 < sizes[0]
    lines = [json.loads(message.value) for message in cluster.messages(cluster.topics.names.results)]
    assert [len(line["added"]["results"]["bindings"]) for line in lines[-5:]] == [1] * 5


@pytest.mark.parametrize("operator", ["ISTREAM", "DSTREAM", "changes"])
def test_evaluations_from_changes_compare_no_answers(cluster, from_changes, monkeypatch, operator):
    compared = mock.Mock(side_effect=Evaluator._compared, autospec=True)
    monkeypatch.setattr(Evaluator, "_compared", lambda *given: compared(*given))  # noqa: PLW0108
    head = "QUERY" if operator == "changes" else operator
    cluster.coordinator.register("q", f"REGISTER {head} q AS {BODIES['rows']}", changes=operator == "changes")
    cluster.advance("s", 100_000)
    cluster.run()
    for second in range(FIRST, FIRST + 9):
        push(cluster, second, [f"<urn:s{second}> <urn:p> <urn:o{i}> ." for i in range(3)])
        for engine in cluster.engines.values():
            engine.replica.runtime.forgetting.evict(second % 2)
    assert 0 < compared.call_count < 9
    lines = cluster.results()
    assert len(lines) == 9
    for line in lines[4:]:
        answers = [line["added"], line["removed"]] if operator == "changes" else [line]
        assert [len(answer["results"]["bindings"]) for answer in answers] == [3] * len(answers)


def test_rows_with_terms_of_the_engine_are_compared_with_terms_of_the_cluster(cluster, from_changes, monkeypatch):
    """A computed term has an id of the engine, until the cluster gives the term an id (ADR 27)."""
    lasting, found = Evaluator._lasting, []
    monkeypatch.setattr(Evaluator, "_lasting", lambda *given: found.append(lasting(*given)) or found[-1])
    made = f"SELECT ?c FROM STREAM <{IRI}> [RANGE 4s STEP 1s] WHERE {{ ?s <urn:p> ?o BIND(CONCAT('long', STR(?o)) AS ?c) }}"
    cluster.coordinator.register("q", text("q", made), changes=True)
    cluster.coordinator.register("p", text("p", made))
    fetches = f"SELECT ?o FROM STREAM <{IRI}> [RANGE 1s STEP 1s] WHERE {{ ?s <urn:q> ?o }}"
    cluster.coordinator.register("r", text("r", fetches))
    cluster.advance("s", 100_000)
    cluster.run()
    known, new = (f"a text that is too long for an id, {i}" for i in range(2))
    events = [
        f'<urn:other> <urn:q> "long{known}"',
        f'<urn:s> <urn:p> "{known}"',
        f'<urn:s1> <urn:p> "{new}"',
        f'<urn:other> <urn:q> "long{new}"',
        f'<urn:s2> <urn:p> "{known}"',
        f'<urn:s3> <urn:p> "{new}"',
    ]
    for i in range(12):
        if i == 10:  # the last evaluations compare complete answers
            native.maintain_from((1 << 64) - 1)
        push(cluster, FIRST + i, [f"{events[i]} ."] if i < len(events) else [])
    lines = read(cluster, cluster.topics.names.results)
    assert [rows(line) for line in lines["q"]] == [rows(line) for line in lines["p"]]
    assert len({sum(rows(line).values()) for line in lines["p"]}) > 2
    assert set(found) == {True, False}


def test_an_embedded_engine_reports_the_same_rows(cluster):
    engine = penstock.Engine()
    engine.declare_stream(IRI, batch_ms=500)
    names = [name for name in BODIES if name != "made"]
    for name in names:
        cluster.coordinator.register(name, text(name, BODIES[name]), changes=True)
        engine.register(text(name, BODIES[name]), changes=True)
    for each in (lambda t: cluster.advance("s", t), lambda t: engine.advance(IRI, t)):
        each(100_000)
    cluster.run()
    for second in range(FIRST, FIRST + 5):
        push(cluster, second, events(second))
        engine.push(IRI, "\n".join(events(second)), timestamp=second * 1_000 - 800)
        engine.advance(IRI, second * 1_000)
    remote = [ClusterEvaluation(line) for line in cluster.results()]

    def sides(evaluation) -> tuple:
        return counted(evaluation.added), counted(evaluation.removed)

    for name in names:
        here = {evaluation.time: sides(evaluation) for evaluation in engine.queries[name].poll()}
        there = {evaluation.time: sides(evaluation) for evaluation in remote if evaluation.query == name}
        assert here == there
        assert any(removed for _, removed in here.values()), name
    with pytest.raises(penstock.PenstockError, match="apply them to the previous answer"):
        _ = next(evaluation for evaluation in remote if not evaluation.complete).answer
    engine.close()


@pytest.mark.parametrize("name", ["made_graph", "asked"])
def test_a_rejected_record_of_a_graph_or_a_boolean_is_followed_by_a_complete_answer(cluster, name):
    cluster.coordinator.register("q", text("q", BODIES[name]), topic="own", changes=True)
    cluster.coordinator.register("p", text("p", BODIES[name]))
    cluster.advance("s", 100_000)
    cluster.run()
    push(cluster, FIRST, events(FIRST))
    cluster.log.configure("own", 10)
    push(cluster, FIRST + 1, events(FIRST + 1))
    cluster.log.configure("own", 1_000_000)
    cluster.clock.advance(RETRY_MS)
    for second in range(FIRST + 2, FIRST + 6):
        push(cluster, second, events(second))
    lines = [json.loads(message.value) for message in cluster.messages("own")]
    assert ["added" in line for line in lines] == [False, False, True, True, True]
    plain = read(cluster, cluster.topics.names.results)
    assert "error" in plain["q"][0]
    expected = {line["time"]: rows(line) for line in plain["p"]}
    for line in read(cluster, "own")["q"]:
        assert rows(line) == expected[line["time"]]


def test_after_a_rejected_record_the_next_one_has_the_complete_answer(cluster):
    cluster.coordinator.register("q", text("q", BODIES["rows"]), topic="own", changes=True)
    cluster.coordinator.register("p", text("p", BODIES["rows"]))
    cluster.advance("s", 100_000)
    cluster.run()
    cluster.log.configure("own", 2_000)
    push(cluster, FIRST, events(FIRST))
    # two evaluations in one transaction: the first one is rejected, and the second one cannot be applied without it
    for i in range(50):
        cluster.push("s", FIRST * 1_000 + 200, f"<urn:s> <urn:p> <urn:{i:020}> .")
    cluster.push("s", FIRST * 1_000 + 1_200, "<urn:s> <urn:p> <urn:b> .")
    cluster.advance("s", (FIRST + 2) * 1_000)
    cluster.run()
    for name in list(cluster.engines):
        cluster.kill(name)
    cluster.start_engine("e9")
    cluster.run(200)
    for second in range(FIRST + 3, FIRST + 6):
        push(cluster, second, events(second))
    found, plain = read(cluster, "own")["q"], read(cluster, cluster.topics.names.results)["p"]
    lines = [json.loads(message.value) for message in cluster.messages("own")]
    assert "takes 2000 bytes" in found[1]["error"]
    assert ["error" in line for line in found] == [False, True, True, True, False, False]
    assert ["results" in line for line in lines if "error" not in line] == [True, True, False]
    for line, other in zip(found, plain, strict=True):
        assert line["time"] == other["time"]
        assert "error" in line or rows(line) == rows(other)
    cluster.clock.advance(RETRY_MS)


def test_later_changes_of_the_same_transaction_are_replaced_too(cluster):
    cluster.coordinator.register("q", text("q", BODIES["rows"]), topic="own", changes=True)
    cluster.advance("s", 100_000)
    cluster.run()
    push(cluster, FIRST, events(FIRST))
    cluster.log.configure("own", 2_000)
    cluster.paused += cluster.engines.values()
    for second in (FIRST + 1, FIRST + 2, FIRST + 3):
        for i in range(50 if second == FIRST + 2 else 1):
            cluster.push("s", second * 1_000 - 800, f"<urn:s> <urn:p> <urn:{second}:{i:020}> .")
    cluster.advance("s", (FIRST + 3) * 1_000)
    cluster.run()
    cluster.paused.clear()
    cluster.run()
    for second in range(FIRST + 4, FIRST + 8):
        push(cluster, second, events(second))
    found = read(cluster, "own")["q"]
    assert [line.get("error", "")[:17] for line in found[:4]] == ["", "", "the answer is a r", "an earlier record"]
    assert "results" in found[-1]
    assert len(found) == 8


def test_the_first_record_of_a_replacement_is_complete(cluster):
    cluster.send(cluster.topics.names.queries, "q", text("q", BODIES["rows"]), changes="true")
    cluster.run()
    cluster.advance("s", 100_000)
    cluster.run()
    push(cluster, FIRST, events(FIRST))
    assert cluster.coordinator.register("q", text("q", BODIES["rows"]), changes=True).changes
    assert cluster.coordinator.queries["q"].number == 2, "an equal registration has no effect"
    cluster.send(cluster.topics.names.queries, "q", text("q", BODIES["groups"]), changes="true")
    cluster.run()
    push(cluster, FIRST + 1, events(FIRST + 1))
    push(cluster, FIRST + 2, events(FIRST + 2))
    lines = cluster.results()
    assert ["results" in line for line in lines] == [True, True, False]
    assert lines[1]["head"]["vars"] == ["s", "n"]
    assert lines[2]["added"]["head"]["vars"] == ["s", "n"]
    cluster.send(cluster.topics.names.queries, "q", text("q", BODIES["groups"]))
    cluster.run()
    push(cluster, FIRST + 3, events(FIRST + 3))
    assert "added" not in cluster.results()[-1], "the same text without the option replaces the query"
