"""Results topics that reject records: which topic takes an evaluation instead, and for how long."""

from __future__ import annotations

import json

import pytest

from penstock.log import MemoryLog, Record, Topic, TransientError, UnknownTopicError
from penstock.log.clock import VirtualClock
from penstock.log.topics import TopicNames
from penstock.replication.cluster_topics import ClusterTopics
from penstock.services.query_engine.result_sinks import RETRY_MS, ResultSinks

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
