"""Steps of the log are applied to the replica, in part where something is away."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import UnavailableError
from penstock.services.query_engine import step_applier
from support.engine_parts import IRI, EngineParts, times_of


@pytest.fixture
def parts() -> EngineParts:
    return EngineParts()


def interrupting(parts: EngineParts, times: int) -> None:
    """Have the next evaluations fail as where a store is away."""
    evaluator = parts.replica.runtime.evaluator
    evaluate: Any = evaluator.evaluate
    left = times

    def unavailable(*given: Any) -> Any:
        nonlocal left
        if left:
            left -= 1
            raise UnavailableError("a store is unavailable")
        return evaluate(*given)

    evaluator.evaluate = unavailable


def test_steps_are_applied_in_order_and_their_results_collected(parts):
    bucket = parts.open()
    parts.declare()
    parts.batch(0)
    parts.register("q")
    parts.batch(1, objects=["one"])
    assert parts.apply()
    assert parts.replica.history.step == 4
    assert times_of(bucket.pending) == ["q@200"]
    assert parts.replica.whole


def test_without_records_nothing_is_applied(parts):
    assert not parts.apply()
    assert parts.near_end == [False]


def test_an_interrupted_step_is_held_and_resumed_without_loss_or_repetition(parts):
    bucket = parts.open()
    parts.declare()
    parts.batch(0)
    parts.register("q")
    parts.apply()
    interrupting(parts, 2)
    parts.batch(1, objects=["one"])
    parts.batch(2, objects=["two"])
    with pytest.raises(UnavailableError):
        parts.apply()
    assert parts.replica.held is not None
    with pytest.raises(UnavailableError):
        parts.steps.resume()
    parts.steps.resume()
    assert parts.replica.held is None
    parts.apply()
    assert times_of(bucket.pending) == ["q@200", "q@300"]


def test_while_a_step_is_held_no_record_is_read(parts):
    parts.open()
    parts.declare()
    parts.batch(0)
    parts.register("q")
    parts.apply()
    interrupting(parts, 1)
    parts.batch(1, objects=["one"])
    with pytest.raises(UnavailableError):
        parts.apply()
    before = parts.steps._reader.positions()
    parts.batch(2)
    parts.apply()
    assert parts.steps._reader.positions() == before


def test_an_interrupted_call_applies_one_step_and_the_next_call_the_others(parts):
    parts.declare()
    for k in range(3):
        parts.batch(k)
    parts.catch_up.slice_over = lambda: lambda: True
    assert parts.steps.read(0.0, lambda: True)
    assert parts.replica.history.step == 1
    for _ in range(3):
        parts.steps.read(0.0, lambda: True)
    assert parts.replica.history.step == 4


def test_many_pending_results_are_committed_in_the_middle_of_a_step(parts, monkeypatch):
    monkeypatch.setattr(step_applier, "_COMMIT_AT", 1)
    parts.open()
    parts.declare()
    parts.batch(0)
    parts.register("q")
    parts.batch(1, objects=["one"])
    parts.apply()
    assert parts.commits > 0


def test_a_stream_is_dropped_only_after_its_stopped_queries_have_committed(parts):
    bucket = parts.open()
    parts.declare()
    parts.batch(0)
    parts.register("q")
    parts.batch(1)
    parts.stop("q")
    parts.declare()  # another declaration replaces the stream
    parts.apply()
    assert parts.replica.declared[IRI] == 1
    assert parts.replica.held is not None
    parts.retained.record(0, bucket.committed, parts.replica.history.step)
    parts.apply()
    assert parts.replica.declared[IRI] == 4


def test_a_leap_of_event_time_is_a_gap_and_its_instants_are_omitted(parts):
    bucket = parts.open()
    parts.declare()
    parts.batch(0)
    parts.register("q", max_catch_up=3)
    parts.batch(1, 20)
    parts.apply()
    (registration,) = parts.replica.registrations.values()
    assert len(registration.gaps) == 1
    gap = registration.gaps[0]
    assert gap.count == parts.metrics.skipped
    assert all(int(key.partition("@")[2]) > gap.until for key in times_of(bucket.pending))


def test_new_registration_points_are_retained_before_data_is_released(parts):
    floors = []
    apply_floor = parts.retained.apply_floor
    parts.retained.apply_floor = lambda: (floors.append(parts.replica.history.step), apply_floor())
    parts.declare()
    parts.register("q")  # its stream has no progress yet
    parts.batch(0)
    parts.apply()
    assert floors == [2, 3], "at the registration, and at the first batch of its stream"
