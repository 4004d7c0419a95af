"""From evaluations to pending records of buckets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.engine_parts import EngineParts, times_of


@pytest.fixture
def parts() -> EngineParts:
    made = EngineParts()
    made.declare()
    made.batch(0)
    made.register("q")
    made.apply()
    return made


def evaluate(parts: EngineParts, first: int, *objects: str) -> None:
    """Evaluate without collecting: the replica applies the batch by itself."""
    parts.batch(first, objects=objects)
    parts.steps._collector = Deaf()
    parts.apply()
    parts.steps._collector = parts.collector


class Deaf:
    """Collects nothing."""

    def collect(self, _: object) -> None: ...


def test_evaluations_become_records_of_their_bucket_with_the_answer(parts):
    bucket = parts.open(enrolled=False)
    parts.enrolment.enrol_waiting()
    bucket.pending.clear()
    evaluate(parts, 1, "one")
    assert bucket.pending == []
    parts.collector.collect(parts.buckets)
    (record,) = bucket.pending
    assert record.topic == parts.topics.names.results
    assert record.key == b"q@200"
    line: dict[str, Any] = json.loads(record.value or b"")
    assert line["time"] == 200
    assert "http://x/one" in str(line)


def test_a_collected_group_has_its_last_instant_and_is_part_of_the_next_commit(parts):
    bucket = parts.open(enrolled=False)
    parts.enrolment.enrol_waiting()
    evaluate(parts, 1, "one")
    evaluate(parts, 2, "two")
    parts.collector.collect(parts.buckets)
    assert bucket.fired == set(bucket.groups)
    assert set(bucket.last_ms.values()) == {300}


def test_what_was_collected_is_not_collected_again(parts):
    bucket = parts.open(enrolled=False)
    parts.enrolment.enrol_waiting()
    evaluate(parts, 1, "one")
    parts.collector.collect(parts.buckets)
    before = list(bucket.pending)
    parts.collector.collect(parts.buckets)
    assert bucket.pending == before


def test_each_evaluation_reports_progress(parts):
    parts.open(enrolled=False)
    parts.enrolment.enrol_waiting()
    evaluate(parts, 1, "one")
    evaluate(parts, 2)
    assert parts.progressed == 2


def test_what_the_report_of_progress_raises_ends_the_step(parts):
    parts.open(enrolled=False)
    parts.enrolment.enrol_waiting()

    def overdue() -> None:
        raise KeyboardInterrupt

    parts.collector._progress = overdue
    parts.batch(1, objects=["one"])
    with pytest.raises(KeyboardInterrupt):
        parts.apply()


def test_discarded_evaluations_are_not_collected_as_fired(parts):
    bucket = parts.open(enrolled=False)
    parts.enrolment.enrol_waiting()
    evaluate(parts, 1, "one")
    for group in bucket.groups.values():
        parts.collector.discard(group)
    parts.collector.collect(parts.buckets)
    assert times_of(bucket.pending) == []
    assert not bucket.fired


def test_instants_after_the_stop_of_a_query_are_left_out(parts):
    bucket = parts.open(enrolled=False)
    parts.enrolment.enrol_waiting()
    ((member, registration),) = bucket.members.values()
    evaluate(parts, 1, "one")
    evaluate(parts, 2, "two")
    registration.until = 200
    bucket.pending.clear()
    parts.collector.drain(bucket, bucket, registration, member)
    assert times_of(bucket.pending) == ["q@200"]
