"""Generations of transient terms: when they begin, and when the dictionary removes terms (ADR 50)."""

from __future__ import annotations

import pytest

from penstock.errors import DataError
from penstock.event_time.watermark import NEVER
from penstock.log import TransientError
from penstock.services.coordinator.generations.term_generations import TermGenerations
from penstock.wire import Heartbeat, StreamDeclaration
from support.active_coordinator import ActiveCoordinator

IRI, OTHER = "http://x/s", "http://x/other"
AFTER_MS = 5_000


class Known:
    """The end of the last batch of an older version; None: adaptors have not all reached the version."""

    def __init__(self) -> None:
        self.version, self.end_ms = 0, 1_000

    def complete_from(self, stream: StreamDeclaration, version: int) -> int | None:
        return self.end_ms if version <= self.version else None

    def close(self) -> None:
        pass


class Remover:
    """Removes terms in transactions of 2."""

    def __init__(self) -> None:
        self.left, self.asked = 3, []
        self.error: Exception | None = None

    def forget(self, generation: int) -> int:
        self.asked.append(generation)
        if self.error is not None:
            raise self.error
        removed = min(self.left, 2)
        self.left -= removed
        return removed


class Made:
    def __init__(self) -> None:
        self.active = ActiveCoordinator().active
        self.active.streams.declare([(IRI, "s", {"timing": "all"}), (OTHER, "o", {})])
        self.known, self.remover, self.now_ms = Known(), Remover(), 0
        self.generations = self.new()

    def new(self) -> TermGenerations:
        return TermGenerations(self.active.state, self.active.writer, self.known, self.remover, AFTER_MS)  # type: ignore[arg-type]

    @property
    def filter(self):
        return self.active.state.filters.get(IRI)

    def step(self, later_ms: int = 1_000, floor_ms: int | None = None, **more: int) -> None:
        self.now_ms += later_ms
        number = str(self.active.registrar.streams[IRI].number)
        floors = {} if floor_ms is None else {number: floor_ms, **more}
        self.generations.step([Heartbeat("query-engine", "e", "e-1", 0, floors=floors)], self.now_ms)


@pytest.fixture
def made() -> Made:
    made = Made()
    made.step(0)
    return made


def test_a_generation_begins_after_its_duration(made):
    made.step(AFTER_MS - 1)
    assert made.filter is None
    made.step(1)
    assert (made.filter.version, made.filter.generation, made.filter.all_since) == (1, 1, 0)
    assert OTHER not in made.active.state.filters  # it has no timing tuples


def test_terms_are_removed_once_no_window_contains_them(made):
    made.step(AFTER_MS)
    made.step(floor_ms=5_000)
    assert made.remover.asked == []  # adaptors still write records of earlier versions
    made.known.version = 1
    made.step(floor_ms=999)
    made.step()
    assert made.remover.asked == []
    for _ in range(3):
        made.step(floor_ms=1_000)
    assert made.remover.asked == [1, 1, 1]
    assert made.generations.removed == 3


def test_the_next_generation_begins_when_terms_are_removed(made):
    made.known.version = 9
    made.step(AFTER_MS)
    for _ in range(4):
        made.step(floor_ms=1_000)
    made.step(AFTER_MS)
    assert (made.filter.version, made.filter.generation) == (2, 2)


def test_a_stream_that_was_empty_is_not_in_any_report(made):
    made.known.version, made.known.end_ms = 9, NEVER
    made.step(AFTER_MS)
    made.step(floor_ms=-1)
    assert made.remover.asked == [1]


def test_an_engine_that_has_not_applied_a_drop_does_not_count(made):
    made.known.version = 9
    made.step(AFTER_MS)
    made.step(floor_ms=5_000, **{"77": 5_000})
    assert made.remover.asked == []
    made.step(floor_ms=5_000)
    assert made.remover.asked == [1]


def test_a_dropped_stream_delays_nothing(made):
    made.active.streams.declare([("http://x/third", "third", {"timing": "all"})])
    made.step(AFTER_MS)
    made.known.version = 9
    made.active.streams.drop("http://x/third")
    made.step(floor_ms=5_000)
    assert made.remover.asked == [1]


def test_a_stream_that_is_declared_again_begins_without_a_generation(made):
    made.step(AFTER_MS)
    made.active.streams.drop(IRI)
    made.active.streams.declare([(IRI, "s", {"timing": "all"})])
    assert (made.filter.version, made.filter.generation) == (2, 0)


def test_the_next_instance_continues_the_generation(made):
    made.step(AFTER_MS)
    made.generations, made.known.version = made.new(), 1
    made.step(0)
    made.step(AFTER_MS)
    assert (made.filter.version, made.filter.generation) == (1, 1)
    made.step(floor_ms=5_000)
    assert made.remover.asked == [1]


def test_a_dictionary_that_is_unavailable_is_asked_again(made):
    made.known.version = 9
    made.step(AFTER_MS)
    made.remover.error = TransientError("down")
    made.step(floor_ms=5_000)
    made.remover.error = None
    made.step(floor_ms=5_000)
    assert made.remover.asked == [1, 1]
    assert made.generations.removed == 2


def test_a_dictionary_without_an_archive_is_reported_once(made, caplog):
    made.known.version = 99
    made.remover.error = DataError("needs an archive")
    for _ in range(5):
        made.step(AFTER_MS)
        made.step(floor_ms=5_000)
    assert made.generations.error == "needs an archive"
    assert len([r for r in caplog.records if "cannot remove" in r.message]) == 1
