"""Queries become members of open buckets, and leave them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.errors import UnavailableError
from penstock.event_time.gaps import Gap
from support.engine_parts import EngineParts, times_of

if TYPE_CHECKING:
    from penstock.services.query_engine.buckets import Bucket


@pytest.fixture
def parts() -> EngineParts:
    made = EngineParts()
    made.declare()
    made.batch(0)
    return made


def applied(parts: EngineParts, *names: str) -> Bucket:
    for name in names:
        parts.register(name)
    parts.apply()
    return parts.open(enrolled=False)


def test_the_queries_of_a_bucket_are_enrolled_in_order_of_registration(parts):
    bucket = applied(parts, "a", "b")
    parts.enrolment.enrol_waiting()
    assert bucket.enrolled
    assert [registration.record.name for _, registration in bucket.members.values()] == ["a", "b"]


def test_a_bucket_waits_until_the_replica_has_reached_its_last_commit(parts):
    bucket = applied(parts, "a")
    bucket.waits_for = parts.replica.history.step + 1
    parts.enrolment.enrol_waiting()
    assert not bucket.enrolled
    parts.batch(1)
    parts.apply()
    assert bucket.enrolled


def test_what_became_due_before_the_bucket_was_opened_is_evaluated_at_enrolment(parts):
    parts.register("a")
    parts.batch(1, objects=["one"])
    parts.batch(2, objects=["two"])
    bucket = applied(parts)
    parts.enrolment.enrol_waiting()
    assert times_of(bucket.pending) == ["a@200", "a@300"]


def test_a_new_registration_is_announced_with_the_first_commit(parts):
    bucket = applied(parts, "a")
    parts.enrolment.enrol_waiting()
    assert parts.topics.names.status in {record.topic for record in bucket.pending}


def test_constants_are_looked_up_before_a_query_is_planned(parts):
    bucket = applied(parts, "a")

    def unavailable(_: object) -> None:
        raise UnavailableError("the dictionary is unavailable")

    parts.service.encode = unavailable
    with pytest.raises(UnavailableError):
        parts.enrolment.enrol_waiting()
    assert not bucket.enrolled
    assert not bucket.members
    del parts.service.encode
    parts.enrolment.enrol_waiting()
    assert len(bucket.members) == 1


def test_a_query_stopped_after_the_last_commit_is_evaluated_up_to_the_stop_and_leaves(parts):
    parts.register("a")
    parts.batch(1, objects=["one"])
    parts.stop("a")
    parts.batch(2, objects=["two"])
    bucket = applied(parts)
    parts.enrolment.enrol_waiting()
    assert times_of(bucket.pending) == ["a@200"]
    assert not bucket.members
    assert bucket.dirty


def test_a_stopped_query_is_finished_once(parts):
    parts.register("a")
    parts.batch(1, objects=["one"])
    parts.stop("a")
    bucket = applied(parts)
    parts.enrolment.enrol_waiting()
    before = list(bucket.pending)
    for registration in parts.replica.registrations.values():
        parts.enrolment.finish(bucket, registration, lambda: False)
    assert bucket.pending == before


def test_a_step_that_stops_a_query_ends_its_membership(parts):
    bucket = applied(parts, "a", "b")
    parts.enrolment.enrol_waiting()
    parts.enrolment.end("a")
    assert [registration.record.name for _, registration in bucket.members.values()] == ["b"]
    parts.enrolment.end("unknown")


def test_a_registration_of_a_bucket_that_is_not_open_is_left_to_other_engines(parts):
    parts.register("a")
    parts.apply()
    assert not parts.replica.runtime.registry.members


def test_omitted_instants_are_not_evaluated_and_are_counted(parts):
    bucket = applied(parts, "a")
    parts.enrolment.enrol_waiting()
    ((_, registration),) = bucket.members.values()
    parts.enrolment.omit(registration, Gap(100, 300, 2))
    parts.batch(1, 3)
    parts.apply()
    assert times_of(bucket.pending) == ["a@400"]
    assert parts.metrics.gaps == 1
    assert parts.metrics.skipped == 2
