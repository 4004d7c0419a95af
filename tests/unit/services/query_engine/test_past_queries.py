"""A query that begins in the past, in the replica and the bucket of one query engine (ADR 107)."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import pytest

from penstock.errors import StorageError
from penstock.services.query_engine import catch_up
from penstock.wire import QueryRegistration
from support.engine_parts import IRI, TEXT, EngineParts

PAST: dict[str, Any] = {"windows": (0, 200, 100), "alone": True, "past": True}


def made(retention_ms: int, batches: int = 10) -> EngineParts:
    """Return an engine after some batches with one tuple each. The first batch ends at 300 ms."""
    parts = EngineParts()
    parts.declare(retention_ms)
    for batch in range(2, 2 + batches):
        parts.batch(batch, objects=[f"o{batch}"])
    parts.apply()
    return parts


def begins(parts: EngineParts, name: str = "q", **more: Any) -> tuple[int | None, int | None]:
    number = parts.register(name, **{**PAST, **more})
    parts.apply()
    registration = parts.replica.registrations[number]
    return registration.point, registration.begins_after


def answers(parts: EngineParts) -> dict[int, list[str]]:
    found = {}
    for record in parts.buckets.by_number[0].pending:
        line = json.loads(record.value or b"")
        if record.topic == parts.topics.names.results:
            found[line["time"]] = [row["o"]["value"].removeprefix("http://x/") for row in line["results"]["bindings"]]
    return found


def test_everything_is_retained_and_the_query_begins_with_the_first_progress():
    parts = made(retention_ms=10_000)
    parts.open()
    assert begins(parts) == (200, 200)
    found = answers(parts)
    assert list(found) == list(range(300, 1_300, 100))
    assert (found[300], found[400], found[1_200]) == (["o2"], ["o2", "o3"], ["o10", "o11"])


def test_the_query_begins_with_the_first_complete_window_otherwise():
    parts = made(retention_ms=500)
    parts.open()
    assert begins(parts) == (700, 899)  # the windows of 800 ms and earlier begin before 700 ms
    found = answers(parts)
    assert list(found) == [900, 1_000, 1_100, 1_200]
    assert found[900] == ["o7", "o8"]


@pytest.mark.parametrize(
    ("retention_ms", "start", "expected"),
    [
        (10_000, 850, [850, 950, 1_050, 1_150]),
        (500, 850, [950, 1_050, 1_150]),
        (500, 250, [950, 1_050, 1_150]),
        (10_000, 1_200, [1_200]),
        (10_000, 1_201, []),
    ],
)
def test_starting_at_is_a_lower_bound_of_the_first_instant(retention_ms, start, expected):
    parts = made(retention_ms)
    parts.open()
    begins(parts, text=TEXT.replace(" AS", f" STARTING AT {start} AS"), starting_at_ms=start)
    assert list(answers(parts)) == expected


def test_without_progress_the_query_waits_for_the_first_one():
    parts = made(retention_ms=10_000, batches=0)
    assert begins(parts) == (None, None)


def test_a_stream_that_is_declared_again_has_no_past():
    parts = made(retention_ms=10_000)
    replica = parts.replica
    assert replica.begun == {IRI: (2, 200)}
    replica._drop(IRI)
    assert replica.begun == {}


def test_tuples_are_retained_until_the_query_has_read_them():
    parts = made(retention_ms=500)
    begins(parts)
    stream = parts.replica.runtime.streams.get(IRI)
    assert (stream.retained_from, stream.evaluated_from) == (700, 1_200)
    for batch in range(12, 20):
        parts.batch(batch, objects=[f"o{batch}"])
    parts.apply()
    assert (stream.retained_from, stream.evaluated_from) == (700, 1_200)
    parts.retained.apply_floor()
    assert (stream.retained_from, stream.evaluated_from) == (700, 2_000), "it reads no append logs of due instants"


def test_many_instants_are_left_to_the_backlog():
    with patch.object(catch_up, "AT_ONCE", 3):
        parts = made(retention_ms=10_000)
    parts.open()
    begins(parts)
    assert answers(parts) == {}
    assert parts.catch_up
    parts.batch(12, objects=["o12"])
    parts.apply()
    assert answers(parts) == {}, "a live batch does not evaluate the backlog"
    while parts.steps.catch_up():
        pass
    assert list(answers(parts)) == list(range(300, 1_400, 100))


def test_an_engine_with_a_backlog_reads_on_while_its_slices_do_not_grow():
    with patch.object(catch_up, "AT_ONCE", 3):
        parts = made(retention_ms=10_000)
    parts.open()
    begins(parts)
    held = sum(stream.core.live_bytes() for stream in parts.replica.runtime.streams)
    with patch.object(catch_up, "BACKLOG_BYTES", held // 2):
        parts.clock.advance(2_000)
        assert not parts.catch_up.full()
        for batch in range(12, 40):
            parts.batch(batch, objects=[f"o{batch}"])
        parts.apply()
        parts.clock.advance(2_000)
        assert parts.catch_up.full()


def test_an_engine_whose_log_has_lost_its_beginning_applies_no_registration():
    """It would not know which tuples are missing."""
    parts = EngineParts()
    parts.batch(3, objects=["o3"])
    parts.write(QueryRegistration(2, "q", "", 2, (IRI,), **PAST))
    with pytest.raises(StorageError, match="the log goes from command 0 to command 2"):
        parts.apply()


def test_a_leap_after_the_registration_skips_no_instant_of_the_past():
    with patch.object(catch_up, "AT_ONCE", 3):
        parts = made(retention_ms=10_000)
    parts.open()
    begins(parts, max_catch_up=5)  # ten instants of the past are due, which is no leap
    parts.batch(12, 40)
    parts.batch(41, objects=["o41"])
    parts.apply()
    [registration] = parts.replica.registrations.values()
    assert [(gap.after, gap.until, gap.count) for gap in registration.gaps] == [(1_200, 4_000, 28)]
    while parts.steps.catch_up():
        pass
    assert list(answers(parts)) == [*range(300, 1_300, 100), 4_100, 4_200]


def test_turns_are_short_while_other_queries_have_results():
    with patch.object(catch_up, "AT_ONCE", 3):
        parts = made(retention_ms=10_000, batches=60)
    parts.open()
    parts.collector._progress = lambda: parts.clock.advance(10)  # an evaluation takes 10 ms
    begins(parts)

    def turn() -> int:
        before = len(answers(parts))
        parts.steps.catch_up()
        return len(answers(parts)) - before

    assert turn() == catch_up.SLICE_MS // 10
    parts.catch_up.record_live()
    assert turn() == catch_up.LIVE_SLICE_MS // 10
    parts.clock.advance(catch_up.LIVE_MS)
    assert turn() == catch_up.SLICE_MS // 10
