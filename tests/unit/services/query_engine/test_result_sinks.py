"""Results topics that reject records: which topic takes an evaluation instead, and for how long."""

from __future__ import annotations

import json

import pytest

from penstock.engine.answers.avro.row_records import error_value, line_of
from penstock.log import MemoryLog, Record, RecordTooLargeError, Topic, TransientError, UnknownTopicError
from penstock.log.clock import VirtualClock
from penstock.log.sizes import wire_bytes
from penstock.log.topics import TopicNames
from penstock.replication.cluster_topics import ClusterTopics
from penstock.services.query_engine.derived_stream_sink import DerivedStreamSink
from penstock.services.query_engine.result_sinks import RETRY_MS, ResultSinks
from penstock.services.query_engine.result_targets import row_format_of
from penstock.wire import QueryRegistration

LINE = {"query": "q", "time": 1, "windows": {}, "snapshot": 0, "attempt": 0, "rows": []}
RECORD = Record("own", json.dumps(LINE).encode(), b"q@1", 0)


class Parts:
    """The sinks of an engine on a memory log, with one query whose own topic was deleted."""

    def __init__(self) -> None:
        self.clock = VirtualClock(1_000)
        self.log = MemoryLog(self.clock)
        self.topics = ClusterTopics(TopicNames(), shards=1, buckets=1)
        self.log.create(self.topics.all())
        self.sinks = ResultSinks(self.log, self.topics, self.clock)
        assert self.sinks.refuse(UnknownTopicError("unknown topic", "own"), [RECORD])

    def topic_of_result(self) -> str:
        return self.sinks.replaced([RECORD], {}, set())[0].topic


@pytest.fixture
def parts() -> Parts:
    return Parts()


def test_evaluations_of_a_deleted_topic_become_errors_in_the_results_topic(parts):
    (found,) = parts.sinks.replaced([RECORD], {}, set())
    assert found.topic == parts.topics.names.results
    assert "own cannot be written" in json.loads(found.value)["error"]


def test_a_deleted_topic_is_not_retried_before_it_exists_again(parts):
    for _ in range(3):
        parts.clock.advance(RETRY_MS)
        assert parts.topic_of_result() == parts.topics.names.results
    parts.log.create([Topic("own", 1)])
    assert parts.topic_of_result() == parts.topics.names.results, "the interval has not passed"
    parts.clock.advance(RETRY_MS)
    assert parts.topic_of_result() == "own"


def test_a_deleted_topic_is_not_retried_while_no_broker_answers(parts, monkeypatch):
    def unreachable() -> dict[str, int]:
        raise TransientError("no broker answers")

    parts.clock.advance(RETRY_MS)
    monkeypatch.setattr(parts.log, "topics", unreachable)
    assert parts.topic_of_result() == parts.topics.names.results


# ---- records in Avro
ROWS = QueryRegistration(1, "q", "", 1, (), topic="own", result_format="avro", schema_id=7, row_types="s")
GRAPH = QueryRegistration(2, "g", "", 2, (), topic="own", result_format="avro", schema_id=8)


def row(query: QueryRegistration, time: int, number: int, size: int = 1) -> Record:
    """A row of an answer of three rows, or a graph."""
    line = json.dumps({"query": query.name, "time": time, "snapshot": 5, "error": ""}).encode()
    head = error_value(line, row_format_of(query))[: -3 if query.row_types is None else -5] + b"\0"
    value = b"\x06" + bytes([2 * number]) if query.row_types else b""
    text = b"x" * size
    key = f"{query.name}@{time}" + (f"/{number}" if number else "")
    return Record(
        "own",
        head + value + b"\2" + bytes([2 * size & 127 | 128, 2 * size >> 7]) + text,
        key.encode(),
        0,
        (("result_format", b"avro"),),
    )


@pytest.fixture
def sinks():
    made = ResultSinks(MemoryLog(VirtualClock(1_000)), ClusterTopics(TopicNames(), 1, 1), VirtualClock(1_000))
    for query in (ROWS, GRAPH):
        made.place_of(query)
    return made


def test_an_error_replaces_all_rows_of_an_answer_if_a_topic_rejects_one(sinks, monkeypatch):
    pending = [
        row(ROWS, 1, 0),
        row(ROWS, 1, 1, 200),
        row(ROWS, 1, 2),
        row(ROWS, 2, 0),
        row(ROWS, 2, 1),
        row(GRAPH, 1, 0),
    ]
    limit = wire_bytes(pending[1]) - 1
    monkeypatch.setattr(sinks._log, "limits", lambda topics: dict.fromkeys(topics, limit))
    assert sinks.refuse(RecordTooLargeError("too large", "own"), pending)
    found = sinks.replaced(pending, {}, set())
    assert [record.key for record in found] == [b"q@1", b"q@2", b"q@2/1", b"g@1"]
    assert "takes" in line_of(found[0].value, of_set=False)["error"]
    assert found[0].headers == pending[0].headers
    assert found[1:] == pending[3:]
    assert sinks.refused == 1


def test_rows_of_a_topic_that_cannot_be_written_become_one_error_in_the_results_topic(sinks):
    pending = [row(ROWS, 1, 0), row(ROWS, 1, 1), row(GRAPH, 1, 0)]
    sinks.refuse(UnknownTopicError("unknown topic", "own"), pending)
    found = sinks.replaced(pending, {}, set())
    assert [(record.topic, record.key, record.headers) for record in found] == [
        ("penstock.results", b"q@1", ()),
        ("penstock.results", b"g@1", ()),
    ]
    lines = [json.loads(record.value) for record in found]
    assert [(line["query"], line["time"], line["snapshot"]) for line in lines] == [("q", 1, 5), ("g", 1, 5)]
    assert all("own cannot be written" in line["error"] for line in lines)


def test_an_error_replaces_a_graph_that_the_derived_stream_refuses(sinks):
    refusing = DerivedStreamSink("urn:g", 1, 100, "g")
    refusing.refused = [(1, "stream urn:g cannot contain the answer")]
    pending = [row(GRAPH, 1, 0), row(GRAPH, 2, 0)]
    replaced, other = sinks.without_refused(pending, refusing)
    assert other == pending[1]
    assert (replaced.key, replaced.headers) == (b"g@1", pending[0].headers)
    line = line_of(replaced.value, of_set=False)
    assert line == {"query": "g", "time": 1, "snapshot": 5, "error": "stream urn:g cannot contain the answer"}
