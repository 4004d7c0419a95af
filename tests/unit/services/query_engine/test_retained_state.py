"""What a replica retains, by the progress that buckets have committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.replication.progress_log import BucketState, GroupState, ProgressWriter
from support.engine_parts import IRI, EngineParts

if TYPE_CHECKING:
    from penstock.log import Record


@pytest.fixture
def parts() -> EngineParts:
    made = EngineParts()
    made.declare(retention_ms=0)
    made.batch(0, objects=["zero"])
    made.register("q")
    for k in range(1, 6):
        made.batch(k, objects=[f"o{k}"])
    made.apply()
    return made


def floor_of(parts: EngineParts) -> tuple[int | None, int | None]:
    stream = parts.replica.runtime.streams.get(IRI)
    return stream.retained_from, stream.evaluated_from


def progress(number: int, last_ms: int, retained: int) -> GroupState:
    return GroupState(number, last_ms, {IRI: retained})


def test_without_any_commit_everything_after_the_registration_point_is_retained(parts):
    assert floor_of(parts) == (100, 100)


def test_a_commit_of_this_engine_moves_the_floor(parts):
    parts.retained.record(0, {2: progress(2, 400, 200)}, parts.replica.history.step)
    assert floor_of(parts) == (200, 400)


def test_a_commit_of_another_engine_moves_the_floor_once_it_is_read(parts):
    group = progress(2, 500, 300)
    state = BucketState(0, 1, parts.replica.history.step, (group,))
    records: list[Record] = list(ProgressWriter(parts.topics.progress, 0, {}).records(state, {2}))
    parts.log.transactional("bucket.0").commit(records)
    assert floor_of(parts) == (100, 100)
    assert parts.retained.learn(own=())
    assert floor_of(parts) == (300, 500)
    assert not parts.retained.learn(own=())


def test_a_foreign_commit_of_an_own_bucket_counts_once_the_bucket_is_released(parts):
    parts.retained.record(0, {2: progress(2, 300, 100)}, parts.replica.history.step)
    state = BucketState(0, 2, parts.replica.history.step, (progress(2, 500, 300),))
    parts.log.transactional("bucket.0").commit(list(ProgressWriter(parts.topics.progress, 0, {}).records(state, {2})))
    assert not parts.retained.learn(own=[0])
    assert floor_of(parts) == (100, 300)
    parts.retained.release(0)
    assert floor_of(parts) == (300, 500)


def test_without_queries_no_tuple_is_retained(parts):
    parts.stop("q")
    parts.apply()
    parts.retained.record(0, {}, parts.replica.history.step)
    assert not parts.replica.registrations, "its bucket has committed since the stop"
    assert floor_of(parts)[0] is None


def test_a_stopped_query_is_retained_for_until_its_bucket_commits(parts):
    parts.stop("q")
    parts.apply()
    parts.retained.apply_floor()
    assert list(parts.replica.registrations) == [2]
    assert floor_of(parts)[0] == 100


def test_the_history_before_the_floor_is_pruned(parts):
    track = parts.replica.history.tracks[IRI]
    assert len(track.steps) > 2
    parts.retained.record(0, {2: progress(2, 600, 500)}, parts.replica.history.step)
    assert len(track.steps) == 1


def test_the_stored_graph_is_retained_as_of_the_retained_instants_if_the_stream_says_so():
    made = EngineParts()
    made.declare(retention_ms=300, graph_history=True)
    for k in range(10):
        made.batch(k, objects=[f"o{k}"])
        made.apply()
    assert floor_of(made) == (None, 700)
    history = made.replica.history
    steps = {time: history.due([IRI], time) for time in (700, 701, 1_000)}
    assert steps == {700: history.step - 3, 701: history.step - 2, 1_000: history.step}
    assert history.tracks[IRI].steps[0] == steps[700], "earlier steps are pruned"


def test_a_query_in_the_past_retains_the_stored_graph_from_its_first_instant_on():
    made = EngineParts()
    made.declare(retention_ms=300, graph_history=True)
    for k in range(10):
        made.batch(k, objects=[f"o{k}"])
    made.register("q", past=True, windows=(0, 100, 100), alone=True)
    for k in range(10, 20):
        made.batch(k)
    made.apply()
    registration = next(iter(made.replica.registrations.values()))
    assert registration.begins_after is not None
    assert 700 <= registration.begins_after < 1_000
    assert floor_of(made)[1] == registration.begins_after
    made.retained.record(0, {registration.record.group: progress(registration.record.group, 1_500, 1_400)}, 10**6)
    assert floor_of(made)[1] == 1_500
    made.retained.record(0, {registration.record.group: progress(registration.record.group, 2_000, 1_900)}, 10**6)
    assert floor_of(made)[1] == 1_700
