"""Opening and release of buckets, on a memory log, by a placement that the test sets."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.log import FencedError, MemoryLog, TransientError
from penstock.log.clock import VirtualClock
from penstock.log.topics import TopicNames
from penstock.quarantine import InternalRecords
from penstock.replication.cluster_topics import ClusterTopics
from penstock.replication.progress_log import BucketState, ProgressWriter
from penstock.services.query_engine.bucket_assignment import FENCED_MS, BucketAssignment
from penstock.services.query_engine.buckets import BucketSet


class Parts:
    """One engine's assignment. `mine`: the buckets that the placement gives it, None before the first placement."""

    def __init__(self) -> None:
        self.clock = VirtualClock(1_000)
        self.log = MemoryLog(self.clock)
        self.topics = topics = ClusterTopics(TopicNames(), shards=1, buckets=4)
        self.log.create(topics.all())
        self.mine: set[int] | None = None
        self.recorded: list[tuple[int, int]] = []
        self.enrolled: list[int] = []
        self.confirmed: list[tuple[int, set[int]]] = []
        self.core = SimpleNamespace(attempt=1)
        placement: Any = SimpleNamespace(buckets_of=lambda _: self.mine, epoch=5, lost=lambda *_: None)
        replica: Any = SimpleNamespace(runtime=SimpleNamespace(core=self.core))
        retained: Any = SimpleNamespace(
            record=lambda number, _, step: self.recorded.append((number, step)), release=lambda _: None
        )
        commits: Any = SimpleNamespace(confirm=lambda every_ms, gone: self.confirmed.append((every_ms, set(gone))))
        enrolment: Any = SimpleNamespace(
            standing_in=lambda _: iter(()),
            learn_constants=lambda _: None,
            enrol_queries_of=lambda bucket: self.enrolled.append(bucket.number),
        )
        self.buckets = BucketSet(topics.buckets, replica.runtime, placement, retained)
        records = InternalRecords(self.log, topics.names)
        self.assignment = BucketAssignment(
            self.log,
            topics,
            self.clock,
            "e0",
            records,
            placement,
            replica,
            self.buckets,
            commits,
            enrolment,
            retained,
        )

    def update(self, times: int = 6, *, gains: bool = True) -> None:
        for _ in range(times):
            self.assignment.update(gains=gains)


@pytest.fixture
def parts() -> Parts:
    return Parts()


def test_without_a_placement_nothing_is_opened(parts):
    assert not parts.assignment.update(gains=True)
    assert not parts.buckets.by_number
    assert not parts.assignment.holds_all


def test_the_buckets_of_the_placement_are_opened_and_their_queries_enrolled(parts):
    parts.mine = {0, 2}
    parts.update()
    assert set(parts.buckets.by_number) == {0, 2}
    assert parts.enrolled == [0, 2]
    assert parts.assignment.holds_all
    assert not parts.assignment.opening
    assert not parts.assignment.update(gains=True), "nothing is left to do"


def test_a_bucket_continues_after_the_committed_progress(parts):
    writer = parts.log.transactional(f"{parts.topics.names.prefix}.bucket.1")
    before = BucketState(1, 4, 9)
    writer.commit([ProgressWriter(parts.topics.progress, 1, {}).confirmation(before)])
    parts.mine = {1}
    parts.update()
    bucket = parts.buckets.by_number[1]
    assert (bucket.epoch, bucket.waits_for, bucket.opened) == (5, 9, 5)
    assert parts.core.attempt == 5
    assert parts.recorded == [(1, 9)]


def test_a_leaving_engine_opens_no_bucket(parts):
    parts.mine = {0}
    parts.update(gains=False)
    assert not parts.buckets.by_number
    assert not parts.assignment.opening


def test_a_reassigned_bucket_remains_open_until_its_next_engine_has_opened_it(parts):
    parts.mine = {0, 1}
    parts.update()
    parts.mine = {1}
    parts.update(1)
    assert set(parts.buckets.by_number) == {0, 1}
    assert parts.confirmed == [(FENCED_MS, {0})]
    assert not parts.assignment.holds_all


def test_a_bucket_that_is_reassigned_while_its_progress_is_read_is_released(parts):
    parts.mine = {3}
    parts.assignment.begin(3)
    parts.assignment.open(3)
    parts.mine = set()
    parts.update(1)
    assert not parts.assignment.opening
    assert not parts.buckets.by_number


def test_closing_releases_everything(parts):
    parts.mine = {0}
    parts.update()
    parts.assignment.begin(1)
    parts.assignment.open(1)
    parts.assignment.close()
    assert not parts.buckets.by_number
    assert not parts.assignment.opening


def progress(parts: Parts, step: int, writer: Any) -> None:
    writer.commit([ProgressWriter(parts.topics.progress, 1, {}).confirmation(BucketState(1, 4, step))])


def test_a_bucket_is_opened_only_once_its_progress_has_been_read(parts):
    """A thousand commits; the last engine continues while they are read, and is fenced when little is left."""
    holder = parts.log.transactional(f"{parts.topics.names.prefix}.bucket.1")
    for step in range(1_000):
        progress(parts, step, holder)
        parts.clock.advance(1_000)
    parts.mine = {1}
    parts.update(3)
    assert parts.assignment.opening[1].writer is None
    progress(parts, 1_000, holder)
    while 1 not in parts.buckets.by_number:
        parts.update(1)
    assert parts.buckets.by_number[1].waits_for == 1_000
    with pytest.raises(FencedError):
        progress(parts, 1_001, holder)


def test_what_is_committed_until_a_bucket_is_opened_is_read(parts):
    """The progress has been read to its end when the last engine commits once more."""
    holder = parts.log.transactional(f"{parts.topics.names.prefix}.bucket.1")
    progress(parts, 7, holder)
    parts.mine = {1}
    parts.assignment.begin(1)
    assert parts.assignment.opening[1].read()
    assert parts.assignment.opening[1].log_end.near
    progress(parts, 8, holder)
    parts.assignment.open(1)
    assert not parts.assignment.opening[1].whole
    parts.update(2)
    assert parts.buckets.by_number[1].waits_for == 8


def test_an_end_that_could_not_be_asked_for_is_asked_for_again(parts, monkeypatch):
    spans, failures = parts.log.spans, [TransientError("unavailable")]

    def fail(places: Any) -> Any:
        if failures:
            raise failures.pop()
        return spans(places)

    monkeypatch.setattr(parts.log, "spans", fail)
    parts.mine = {0}
    with pytest.raises(TransientError):
        parts.update()
    parts.update()
    assert set(parts.buckets.by_number) == {0}
