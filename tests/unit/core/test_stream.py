"""The bound Stream and its windows: columns in, batches closed, windows moved."""

from __future__ import annotations

import gc
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest

from penstock.core import _native
from penstock.errors import DataError, LimitError, PenstockError, StorageError

if TYPE_CHECKING:
    from pathlib import Path

OUT, IN = 0, 1
ACCEPTED, LATE, TOO_FAR_AHEAD = 0, 1, 2
LIKES, AT = 1, 2  # numbers of IRIs


class StateMachine:
    """A store, a dictionary of forty IRIs, and streams over them; AT is a timing predicate."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.dictionary = _native.Dictionary()
        self.store = _native.Store(str(directory), reserve_bytes=1 << 30)
        self.iris = np.array([self.dictionary.intern(1, f"urn:{i}") for i in range(40)], dtype=np.uint64)

    def stream(self, number: int = 1, *, timing: bool = False, memory_bytes: int = 0) -> _native.Stream:
        return _native.Stream(
            self.store,
            self.dictionary,
            number=number,
            batch_ms=100,
            timing=None if timing else self.iris[AT : AT + 1],
            memory_bytes=memory_bytes,
        )

    def append(self, stream: _native.Stream, *tuples: tuple[int, int, int, int]) -> None:
        ts, s, p, o = (np.array(column) for column in zip(*tuples, strict=True))
        stream.append(ts, self.iris[s], self.iris[p], self.iris[o])

    def label(self, predicate: int) -> int:
        return self.store.label(0, int(self.iris[predicate]))

    def degree(self, source: _native.Source, vertex: int, predicate: int, direction: int = OUT) -> int:
        return _native.source_degree(source, int(self.iris[vertex]), self.label(predicate), direction)


@pytest.fixture
def state_machine(tmp_path: Path) -> StateMachine:
    return StateMachine(tmp_path)


def test_outcomes_come_with_the_watermark_after_the_last_row() -> None:
    outcomes, watermark = _native.Stream.decide(np.array([100, 100, 95, 10_000, 120]), 50, 10, 0, 1000)
    assert outcomes is not None
    assert outcomes.tolist() == [ACCEPTED, ACCEPTED, ACCEPTED, TOO_FAR_AHEAD, ACCEPTED]
    assert watermark == 109
    outcomes, watermark = _native.Stream.decide(np.array([109, 110]), watermark, 10, 0, 1000)
    assert outcomes is not None
    assert outcomes.tolist() == [LATE, ACCEPTED]
    assert _native.Stream.decide(np.array([110, 111]), watermark, 10, 0, 1000)[0] is None


def test_a_closed_batch_is_absorbed_and_seen_by_windows(state_machine: StateMachine) -> None:
    stream = state_machine.stream()
    assert stream.closed() is None
    assert stream.oldest_tick() is None
    state_machine.append(stream, (50, 10, LIKES, 11), (60, 10, AT, 12), (150, 10, LIKES, 11))
    assert stream.first_open() == 0
    assert stream.close(0) == 1
    assert stream.first_open() == 1
    assert stream.closed() == 0
    assert state_machine.store.edge_count() == 1
    window = _native.TimeWindow(stream)
    window.advance(0, 100)
    assert isinstance(window, _native.Source)
    assert (
        state_machine.degree(window, 10, LIKES),
        state_machine.degree(window, 10, AT),
        state_machine.degree(window, 12, AT, IN),
    ) == (
        1,
        1,
        1,
    )
    stream.close(1)
    window.advance(100, 200)
    assert window.size() == 1
    assert window.bytes() > 0
    assert _native.source_stats(window, state_machine.label(LIKES)) == (1, 1, 1)


def test_columns_of_unequal_length_and_closed_batches_are_data_errors(state_machine: StateMachine) -> None:
    stream = state_machine.stream()
    stream.close(0)
    with pytest.raises(DataError, match="batch 0 is closed"):
        state_machine.append(stream, (50, 10, LIKES, 11))
    with pytest.raises(DataError, match="length"):
        stream.append(np.array([150]), state_machine.iris[:1], state_machine.iris[:2], state_machine.iris[:1])
    assert stream.live_tuples() == 0


def test_a_budget_is_a_limit_error_and_release_makes_room(state_machine: StateMachine) -> None:
    stream = state_machine.stream(timing=True, memory_bytes=10_000)
    state_machine.append(stream, *[(50, 10, LIKES, 11)] * 100)
    with pytest.raises(LimitError, match="budget"):
        state_machine.append(stream, *[(50, 10, LIKES, 11)] * 100)
    stream.close(0)
    stream.release(0)
    assert stream.live_bytes() == 0
    state_machine.append(stream, *[(150, 10, LIKES, 11)] * 100)


def test_a_stream_comes_back_from_its_bytes(state_machine: StateMachine) -> None:
    stream = state_machine.stream()
    state_machine.append(stream, (50, 10, AT, 12), (250, 10, LIKES, 11))
    stream.close(0)
    saved = stream.save()
    back = state_machine.stream()
    back.restore(saved)
    assert (back.closed(), back.first_open(), back.live_tuples()) == (0, 2, 2)
    assert back.save() == saved
    with pytest.raises(StorageError, match="checksum"):
        state_machine.stream().restore(saved[:-1] + b"x")


def test_count_windows_report_move_and_come_back(state_machine: StateMachine) -> None:
    stream = state_machine.stream()
    state_machine.append(stream, (10, 10, AT, 11), (20, 10, AT, 12), (20, 10, AT, 13), (130, 10, AT, 14))
    window = _native.CountWindow(stream, 2, 1, 10)
    with pytest.raises(PenstockError, match="still open"):
        window.take(0)
    stream.close(1)
    assert window.take(1) == [(20, 2), (130, 3)]
    assert window.bounds() == (0, 0)
    window.advance(2)
    assert (window.bounds(), window.size()) == ((19, 20), 2)
    back = _native.CountWindow(stream, 2, 1, 10)
    back.restore(window.save())
    back.advance(3)
    assert (back.bounds(), state_machine.degree(back, 14, AT, IN), back.oldest_batch()) == ((19, 130), 1, 0)


def test_windows_keep_their_stream_and_streams_their_store(tmp_path: Path) -> None:
    state_machine = StateMachine(tmp_path)
    stream = state_machine.stream()
    state_machine.append(stream, (50, 10, AT, 12))
    stream.close(0)
    window = _native.TimeWindow(stream)
    del state_machine, stream
    gc.collect()
    window.advance(0, 100)
    assert window.size() == 1
    del window
    gc.collect()
    assert list(tmp_path.iterdir()) == []  # the regions have gone with their owners


def test_a_released_stream_leaves_no_file(state_machine: StateMachine) -> None:
    stream = state_machine.stream(number=7)
    state_machine.append(stream, (50, 10, AT, 12))
    stream.close(0)
    region = state_machine.directory / "stream-7.region"
    assert region.exists()
    del stream
    gc.collect()
    assert not region.exists()


def test_columns_from_outside_are_checked(state_machine):
    check = partial(_native.Stream.check, state_machine.dictionary)
    iri, literal = (
        int(state_machine.iris[0]),
        state_machine.dictionary.intern(3, "a text that is too long to be inline"),
    )

    def ids(*numbers: int) -> np.ndarray:
        return np.array(numbers, np.uint64)

    times = np.array([1])
    check(times, ids(iri), ids(iri), ids(literal), 100)
    for columns, reason in [
        ((times, ids(iri, iri), ids(iri), ids(iri)), "unequal length"),
        ((np.array([100]), ids(iri), ids(iri), ids(iri)), "timestamp is out of range"),
        ((np.array([-100]), ids(iri), ids(iri), ids(iri)), "timestamp is out of range"),
        ((times, ids(0), ids(iri), ids(iri)), "id 0 is no term"),
        ((times, ids(literal), ids(iri), ids(iri)), "cannot be a subject"),
        ((times, ids(iri), ids(literal), ids(iri)), "must be an IRI"),
        ((times, ids(iri), ids(iri), ids(11 << 60)), "no id of this engine"),
        ((times, ids(iri), ids(iri), ids(iri + 1000)), "names nothing"),
        ((times, ids(iri), ids(iri), ids(iri | 2 << 60)), "names nothing"),  # an IRI's slot as a literal
        ((times, ids(iri), ids(iri), ids(1 << 60)), "names nothing"),  # a blank node that was never made
    ]:
        with pytest.raises(DataError, match=reason):
            check(*columns, 100)
