"""Commits of buckets without queries: what is written, what is confirmed, and when a bucket is released."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.log import START, MemoryLog, Partition, Record, RecordRefusedError, TransientError, UnknownTopicError
from penstock.log.clock import VirtualClock
from penstock.log.topics import TopicNames
from penstock.replication.cluster_topics import ClusterTopics
from penstock.replication.progress_log import ProgressWriter
from penstock.services.query_engine.bucket_commits import CONFIRM_MS, BucketCommits
from penstock.services.query_engine.buckets import Bucket, BucketSet
from penstock.services.query_engine.measures.commit_metrics import CommitMetrics
from penstock.services.query_engine.result_sinks import Evaluated, ResultSinks

STEP = 7


class Parts:
    """The commits of two empty buckets on a memory log, and what their collaborators were asked."""

    def __init__(self) -> None:
        self.clock = VirtualClock(1_000)
        self.log = MemoryLog(self.clock)
        self.topics = topics = ClusterTopics(TopicNames(), shards=1, buckets=2)
        self.log.create(topics.all())
        self.calls: list[tuple[Any, ...]] = []
        runtime = SimpleNamespace(core=SimpleNamespace(dictionary=None))
        replica: Any = SimpleNamespace(
            runtime=runtime, history=SimpleNamespace(step=STEP), terms=SimpleNamespace(service=None)
        )
        retained: Any = SimpleNamespace(
            record=lambda number, _, step: self.calls.append(("record", number, step)),
            release=lambda number: self.calls.append(("release", number)),
        )
        placement: Any = SimpleNamespace(lost=lambda number, opened: self.calls.append(("lost", number, opened)))
        self.metrics = CommitMetrics(self.clock)
        sinks = ResultSinks(self.log, topics, self.clock)
        self.buckets = BucketSet(topics.buckets, replica.runtime, placement, retained)
        self.commits = BucketCommits(self.log, topics, self.clock, replica, self.buckets, sinks, self.metrics, retained)
        for number in range(topics.buckets):
            writer = self.log.transactional(self.writer_id(number))
            progress = ProgressWriter(topics.progress, number, {})
            bucket = Bucket(number, writer, progress, None, self.buckets.next_incarnation())
            bucket.enrolled, bucket.opened = True, 3
            self.buckets.by_number[number] = bucket

    @staticmethod
    def writer_id(number: int) -> str:
        return f"bucket.{number}"

    def result(self, text: bytes) -> Record:
        return Record(self.topics.names.results, text, b"q@1", 0)

    def written(self, topic: str, partition: int = 0) -> list[bytes | None]:
        return [message.value for message in self.log.reader({Partition(topic, partition): START}).poll()]


@pytest.fixture
def parts() -> Parts:
    return Parts()


def refuse(bucket: Bucket, error: Exception) -> None:
    """Have the bucket's next commit fail."""
    writer: Any = bucket.writer
    commit = writer.commit

    def refused(_: object) -> None:
        writer.commit = commit
        raise error

    writer.commit = refused


def test_a_commit_writes_results_with_progress_and_records_the_step(parts):
    parts.buckets.by_number[0].add(Evaluated([parts.result(b"{}")], 1))
    parts.commits.commit()
    assert parts.written(parts.topics.names.results) == [b"{}"]
    assert len(parts.written(parts.topics.progress, 0)) == 1
    assert parts.written(parts.topics.progress, 1) == [], "the other bucket has nothing to commit"
    assert parts.calls == [("record", 0, STEP)]
    assert parts.metrics.evaluations == 1
    assert parts.buckets.pending() == (0, 0)


def test_a_bucket_that_is_not_enrolled_commits_nothing(parts):
    bucket = parts.buckets.by_number[0]
    bucket.enrolled, bucket.dirty = False, True
    parts.commits.commit()
    assert parts.written(parts.topics.progress, 0) == []
    assert bucket.dirty


def test_a_bucket_that_another_engine_has_opened_is_released_and_the_others_commit(parts):
    for bucket in parts.buckets:
        bucket.dirty = True
    parts.log.transactional(parts.writer_id(0))
    parts.commits.commit()
    assert list(parts.buckets.by_number) == [1]
    assert parts.calls == [("release", 0), ("lost", 0, 3), ("record", 1, STEP)]


def test_a_transient_error_leaves_the_results_pending(parts):
    bucket = parts.buckets.by_number[0]
    bucket.pending.append(parts.result(b"{}"))
    refuse(bucket, TransientError("later"))
    parts.commits.commit_or_wait()
    assert parts.buckets.pending() == (1, 0)
    parts.commits.commit_or_wait()
    assert parts.written(parts.topics.names.results) == [b"{}"]


def test_a_deleted_results_topic_is_created_again(parts):
    bucket = parts.buckets.by_number[0]
    bucket.dirty = True
    created: list[Any] = []
    parts.log.create = created.extend  # type: ignore[method-assign]
    results = parts.topics.names.results
    refuse(bucket, UnknownTopicError("unknown topic", results))
    with pytest.raises(TransientError):
        parts.commits.commit()
    assert results in {topic.name for topic in created}


def test_a_refusal_that_ends_the_writer_releases_the_bucket(parts):
    bucket = parts.buckets.by_number[0]
    bucket.dirty = True
    refuse(bucket, RecordRefusedError("denied", "", over=True))
    parts.commits.commit()
    assert list(parts.buckets.by_number) == [1]
    assert parts.calls == [("release", 0)], "the placement may give it back at once"


def test_a_refusal_by_a_topic_of_the_cluster_is_raised(parts):
    parts.buckets.by_number[0].dirty = True
    refuse(parts.buckets.by_number[0], RecordRefusedError("denied", parts.topics.progress))
    with pytest.raises(RecordRefusedError):
        parts.commits.commit()


def test_confirming_finds_the_buckets_that_other_engines_have_opened(parts):
    parts.log.transactional(parts.writer_id(1))
    assert not parts.commits.confirm(), "not before CONFIRM_MS"
    parts.clock.advance(CONFIRM_MS)
    assert parts.commits.confirm()
    assert list(parts.buckets.by_number) == [0]
    parts.clock.advance(CONFIRM_MS)
    assert not parts.commits.confirm()


def test_confirming_some_buckets_leaves_the_others(parts):
    for number in parts.buckets.by_number:
        parts.log.transactional(parts.writer_id(number))
    parts.clock.advance(50)
    assert parts.commits.confirm(50, [1])
    assert list(parts.buckets.by_number) == [0]
