"""The formats of results records: whatever the format, a topic has the same evaluations, each once, and they survive
limits on records, rejections, errors of single members and kills.
"""

from __future__ import annotations

import json
from collections import Counter

import pyarrow as pa
import pytest

from penstock.client.results import ClusterEvaluation, Results
from penstock.engine.answers import evaluation_records
from penstock.engine.answers.record_lines import format_of, lines_of
from penstock.errors import DataError
from penstock.log import MAX_RECORD_BYTES
from penstock.log.sizes import wire_bytes
from penstock.services.query_engine.result_sinks import RETRY_MS
from support.held_rows import HeldRows
from support.small_cluster import SmallCluster

IRI = "http://x/s"
FIRST = 101
FORMATS = ("json", "json-batch", "arrow")
WINDOW = f"FROM STREAM <{IRI}> [RANGE 2s STEP 1s]"
BODIES = {
    "select": f"SELECT ?o ?z {WINDOW} WHERE {{ <urn:s%d> <urn:p> ?o OPTIONAL {{ ?o <urn:q> ?z }} }}",
    "ask": f"ASK {WINDOW} WHERE {{ <urn:s%d> <urn:p> ?o }}",
    "triples": f"CONSTRUCT {{ ?o <urn:of> <urn:s%d> }} {WINDOW} WHERE {{ <urn:s%d> <urn:p> ?o }}",
    "product": f"SELECT ?o ?z {WINDOW} WHERE {{ <urn:s%d> <urn:p> ?o . <urn:s%d> <urn:p> ?z }}",
    "counts": f"SELECT (COUNT(*) AS ?n) {WINDOW} WHERE {{ <urn:s%d> <urn:p> ?o }}",
    "nonempty": f"REPORT NONEMPTY AS SELECT ?o {WINDOW} WHERE {{ <urn:s%d> <urn:p> ?o }}",
    "empty": f"SELECT * {WINDOW} WHERE {{ <urn:s%d> <urn:p> <urn:o1> }}",
}
XSD = "http://www.w3.org/2001/XMLSchema#"
TERMS = ["<urn:o1>", '"a \\"b\\" \\n \u2028"', '"chat"@fr', f'"4.25"^^<{XSD}decimal>', '"x"^^<urn:d>', "_:b"]


@pytest.fixture
def cluster():
    made = SmallCluster(engines=2)
    made.coordinator.declare(IRI, "s", batch_ms=500)
    yield made
    made.close()


def text(name: str, body: str, subject: int) -> str:
    opening = f"REGISTER QUERY {name} " + ("" if body.startswith("REPORT") else "AS ")
    return opening + body.replace("%d", str(subject))


def begin(cluster: SmallCluster) -> None:
    cluster.advance("s", 100_000)
    cluster.run()


def push(cluster: SmallCluster, second: int, subjects: int = 3, objects: int = 4) -> None:
    data = [
        f"<urn:s{i}> <urn:p> {TERMS[(second + i + k) % len(TERMS)]} ."
        for i in range(subjects)
        for k in range(objects * (i % 2))
    ]
    cluster.push("s", second * 1_000 - 800, "\n".join([*data, f'<urn:o1> <urn:q> "5"^^<{XSD}integer> .']))
    cluster.advance("s", second * 1_000)
    cluster.run()


def lines(cluster: SmallCluster, topic: str | None = None) -> dict[tuple[str, int], dict]:
    """All evaluations: none is there twice."""
    found: dict[tuple[str, int], dict] = {}
    for message in cluster.messages(topic or cluster.topics.names.results):
        inside = [dict(line) for line in lines_of(message.value, message.headers)]
        assert message.key == f"{inside[0]['query']}@{inside[0]['time']}".encode()
        assert len({line["time"] for line in inside}) == 1
        for line in inside:
            key = line["query"], line["time"]
            assert key not in found
            found[key] = line
    return found


def answer(line: dict) -> object:
    line = {name: value for name, value in line.items() if name not in ("query", "attempt")}
    if "results" in line:
        line["results"] = Counter(json.dumps(row, sort_keys=True) for row in line["results"]["bindings"])
    return line


@pytest.mark.parametrize("body", BODIES)
def test_all_formats_have_the_same_evaluations(cluster, body):
    for kind in FORMATS:
        for i in range(6):
            name = f"q_{kind.replace('-', '_')}_{i}"
            cluster.coordinator.register(name, text(name, BODIES[body], i % 3), result_format=kind)
    begin(cluster)
    for second in range(FIRST, FIRST + 4):
        push(cluster, second)
    found = lines(cluster)
    assert {name for name, _ in found} >= {f"q_{kind}_1" for kind in ("json", "json_batch", "arrow")}
    for (name, time), line in found.items():
        other = found[f"q_json_{name[-1]}", time]
        assert list(other)[:5] == ["query", "time", "windows", "snapshot", "attempt"]
        assert answer(line) == answer(other), name
    assert not cluster.messages(cluster.topics.names.dead_letter)
    assert {time for _, time in found} == {(FIRST + i) * 1_000 for i in range(4)}
    headers = Counter(format_of(m.headers) for m in cluster.messages(cluster.topics.names.results))
    assert headers["json"] >= headers["json-batch"] > 0
    assert headers["arrow"] == headers["json-batch"]


def test_a_record_has_all_evaluations_of_an_instant_and_partition(cluster):
    for i in range(40):
        cluster.coordinator.register(f"q{i}", text(f"q{i}", BODIES["select"], i), result_format="arrow", topic="own")
    begin(cluster)
    push(cluster, FIRST, subjects=40)
    (message,) = cluster.messages("own")
    with pa.ipc.open_stream(message.value) as reader:
        table = reader.read_all()
    assert table.column_names == ["query", "time", "results"]
    assert table["query"].to_pylist() == [f"q{i}" for i in range(40)]
    assert table["results"].type.value_type.field("o").type.field("value").type == pa.string()
    assert json.loads(table.schema.metadata[b"evaluations"])["windows"] == {IRI: [99_000, 101_000]}
    assert [len(rows) for rows in table["results"].to_pylist()] == [4 * (i % 2) for i in range(40)]


@pytest.mark.parametrize("kind", ["json-batch", "arrow"])
def test_a_batch_is_divided_at_its_limit(cluster, kind, monkeypatch):
    assert evaluation_records.RESULT_BATCH_BYTES < MAX_RECORD_BYTES
    monkeypatch.setattr("penstock.services.query_engine.result_sinks.RESULT_BATCH_BYTES", 8_000)
    for i in range(40):
        cluster.coordinator.register(f"q{i}", text(f"q{i}", BODIES["select"], i), result_format=kind, topic="own")
    begin(cluster)
    push(cluster, FIRST, subjects=40, objects=6)
    messages = cluster.messages("own")
    assert len(messages) > 1
    assert all(len(message.value) <= 8_000 for message in messages)
    assert len(lines(cluster, "own")) == 40


@pytest.mark.parametrize("kind", ["json-batch", "arrow"])
@pytest.mark.parametrize("changes", [False, True])
def test_a_topic_with_a_limit_gets_smaller_batches_and_errors_for_long_answers(cluster, kind, changes):
    for i in range(20):
        options = {"result_format": kind, "topic": "own", "changes": changes}
        cluster.coordinator.register(f"q{i}", text(f"q{i}", BODIES["select"], i), **options)
    begin(cluster)
    push(cluster, FIRST, subjects=20)
    cluster.log.configure("own", 12_000)
    for second in (FIRST + 1, FIRST + 2):
        cluster.push("s", second * 1_000 - 700, "\n".join(f"<urn:s4> <urn:p> <urn:{i:0100}> ." for i in range(200)))
        push(cluster, second, subjects=20)
    found = lines(cluster, "own")
    assert len(found) == 3 * 20
    failed = {key for key, line in found.items() if "error" in line}
    assert failed >= {("q4", 102_000)}
    assert {name for name, _ in failed} == {"q4"}
    assert "takes 12000 bytes (max.message.bytes)" in found["q4", 102_000]["error"]
    late = [m for m in cluster.messages("own") if b"@101000" not in m.key]
    assert max(wire_bytes(m) for m in late) <= 12_000  # type: ignore[arg-type]
    cluster.log.configure("own", 1 << 20)
    cluster.clock.advance(RETRY_MS)
    for second in range(FIRST + 3, FIRST + 6):
        push(cluster, second, subjects=20)
    found = lines(cluster, "own")
    assert len(found) == 6 * 20
    assert "error" not in found["q4", 106_000]


@pytest.mark.parametrize("kind", ["json-batch", "arrow"])
def test_evaluations_of_a_topic_that_cannot_be_written_are_errors_in_the_results_topic(cluster, kind):
    for i in range(9):
        cluster.coordinator.register(f"q{i}", text(f"q{i}", BODIES["select"], i), result_format=kind, topic="own")
    begin(cluster)
    cluster.log.deny("own")
    for second in (FIRST, FIRST + 1):
        push(cluster, second)
    found = lines(cluster)
    assert len(found) == 18
    assert all("cannot be written" in line["error"] for line in found.values())


@pytest.mark.parametrize("form", ["select", "ask", "triples"])
@pytest.mark.parametrize("kind", FORMATS)
def test_changes_give_the_answer_over_kills(cluster, kind, form):
    for i in range(6):
        cluster.coordinator.register(f"p{i}", text(f"p{i}", BODIES[form], i), result_format="json")
        name = f"c{i}"
        cluster.coordinator.register(name, text(name, BODIES[form], i), result_format=kind, changes=True)
    begin(cluster)
    for step in range(6):
        push(cluster, FIRST + step, subjects=6, objects=step % 3 + 1)
        if step in (1, 3):
            for name in list(cluster.engines):
                cluster.kill(name)
            cluster.start_engine(f"e{step + 5}")
            cluster.run(200)
    found = lines(cluster)
    tables: dict[str, HeldRows] = {}
    complete = Counter()
    for (name, time), line in found.items():
        if name.startswith("c"):
            complete[name] += "added" not in line
            held = tables.setdefault(name, HeldRows()).read(json.dumps(line).encode())
            assert answer(held) == answer(found["p" + name[1:], time])
    assert len(found) == 6 * 12
    assert set(complete.values()) == {1}


def test_a_client_reads_all_formats(cluster):
    names = {kind: f"q_{kind.replace('-', '_')}" for kind in FORMATS}
    results = Results(cluster.log)
    for kind, name in names.items():
        cluster.coordinator.register(name, text(name, BODIES["select"], 1), result_format=kind)
        results.follow(cluster.topics.names.results, name)
    begin(cluster)
    push(cluster, FIRST)
    found = {kind: results.take(name, None, 0.0) for kind, name in names.items()}
    for kind, evaluations in found.items():
        (evaluation,) = evaluations
        assert isinstance(evaluation, ClusterEvaluation)
        assert evaluation.query == names[kind]
        assert evaluation.windows == {IRI: (99_000, 101_000)}
        if kind != "json":
            assert Counter(map(str, evaluation.answer)) == Counter(map(str, found["json"][0].answer))
    results.close()


def test_an_unknown_format_is_refused(cluster):
    with pytest.raises(DataError, match="result_format must be one of json, json-batch, arrow, avro, not 'xml'"):
        cluster.coordinator.register("q", text("q", BODIES["select"], 1), result_format="xml")
    cluster.send(cluster.topics.names.queries, "q", text("q", BODIES["select"], 1), result_format="xml")
    cluster.run()
    refused = [json.loads(m.value) for m in cluster.messages(cluster.topics.names.status)]
    assert "result_format must be one of" in refused[-1]["message"]


def test_another_format_replaces_the_query(cluster):
    cluster.send(cluster.topics.names.queries, "q", text("q", BODIES["select"], 1), result_format="arrow")
    cluster.run()
    begin(cluster)
    push(cluster, FIRST)
    before = cluster.coordinator.queries["q"].number
    cluster.send(cluster.topics.names.queries, "q", text("q", BODIES["select"], 1), result_format="json-batch")
    cluster.run()
    assert cluster.coordinator.queries["q"].replaces == before
    push(cluster, FIRST + 1)
    messages = cluster.messages(cluster.topics.names.results)
    assert [format_of(message.headers) for message in messages] == ["arrow", "json-batch"]
