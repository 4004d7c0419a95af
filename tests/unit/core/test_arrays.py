"""Which numpy arrays the core takes as columns: themselves, converted, or not at all (bindings/arrays)."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from penstock.core import _native

if TYPE_CHECKING:
    from numpy.typing import NDArray

MS = 1_000_000_000_000


class Sub(np.ndarray): ...


class StateMachine:
    """A stream whose `take` converts nothing, and a dictionary whose `settle` gives back what it was given."""

    def __init__(self) -> None:
        self.dictionary = _native.Dictionary()
        self.ids = self.dictionary.intern_many([(1, f"http://x/{i}", "", "") for i in range(8)])
        store = _native.Store("", 1)
        self.stream = _native.Stream(store, self.dictionary, number=1, batch_ms=100, timing=None)

    def take(self, times: Any, subjects: Any) -> int | None:
        """What a push of those times and subjects gives; always later than the last."""
        ids = self.ids[: len(times)]
        beyond = _native.Beyond()
        return self.stream.take(times, subjects, ids, ids, beyond, -1, 0, MS, MS, MS)

    def converted(self, column: Any) -> list[int]:
        """What the core sees of a column of ids."""
        return self.dictionary.settle(column).tolist()


@pytest.fixture
def state_machine() -> StateMachine:
    return StateMachine()


def read_only(column: NDArray[Any]) -> NDArray[Any]:
    column = column.copy()
    column.flags.writeable = False
    return column


def strided(column: NDArray[Any]) -> NDArray[Any]:
    return np.repeat(column, 2)[::2]


def unaligned(column: NDArray[Any]) -> NDArray[Any]:
    return np.frombuffer(b"x" + column.tobytes(), np.uint8)[1:].view(column.dtype)


@pytest.mark.parametrize(
    "same",
    [
        lambda column: column,
        read_only,
        lambda column: column.view(Sub),
        lambda column: column.astype(np.ulonglong),
        lambda column: strided(column[:1]),
    ],
    ids=["plain", "read-only", "subclass", "other name of the type", "one element"],
)
def test_arrays_of_the_type_are_taken_as_they_are(state_machine: StateMachine, same: Any) -> None:
    subjects = same(state_machine.ids[:3])
    assert state_machine.take(np.arange(1, len(subjects) + 1), subjects) == len(subjects) - 1
    assert state_machine.converted(subjects) == state_machine.ids[: len(subjects)].tolist()


def test_no_rows_are_a_column(state_machine: StateMachine) -> None:
    assert state_machine.take(np.empty(0, np.int64), state_machine.ids[:0]) is None
    assert state_machine.converted(state_machine.ids[:0]) == []


@pytest.mark.parametrize(
    "other",
    [
        strided,
        unaligned,
        lambda column: column.astype(column.dtype.newbyteorder()),
        lambda column: column.astype(np.int64),
        lambda column: column.astype(np.float64),
    ],
    ids=["strided", "unaligned", "swapped", "signed", "floats"],
)
def test_other_arrays_of_numbers_are_converted_where_that_is_allowed(state_machine: StateMachine, other: Any) -> None:
    small = np.zeros(3, np.uint64)
    assert state_machine.converted(other(small)) == [0, 0, 0]
    with pytest.raises(TypeError, match="incompatible function arguments"):
        state_machine.take(np.arange(1, 4), other(state_machine.ids[:3]))
    assert state_machine.stream.live_tuples() == 0


def test_a_converted_column_has_the_same_elements(state_machine: StateMachine) -> None:
    assert state_machine.converted(strided(state_machine.ids)) == state_machine.ids.tolist()
    assert state_machine.converted(unaligned(state_machine.ids)) == state_machine.ids.tolist()
    assert state_machine.converted(np.zeros(2, bool)) == [0, 0]


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        7,
        [1, 2, 3],
        array("Q", [1, 2, 3]),
        b"12345678",
        np.uint64(7),
        np.array(7, np.uint64),
        np.zeros((3, 1), np.uint64),
        np.zeros(3, np.complex128),
        np.zeros(3, object),
        np.zeros(3, "M8[ms]"),
        np.zeros(3, "V8"),
        np.array(["a", "b", "c"]),
    ],
    ids=str,
)
def test_whatever_is_no_column_of_numbers_is_a_type_error(state_machine: StateMachine, wrong: Any) -> None:
    with pytest.raises(TypeError, match="incompatible function arguments"):
        state_machine.converted(wrong)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        state_machine.take(np.arange(1, 4), wrong)


def test_none_is_a_column_only_where_it_says_something(state_machine: StateMachine) -> None:
    store = _native.Store("", 1)
    timing = _native.Stream(store, state_machine.dictionary, number=1, batch_ms=100, timing=state_machine.ids[:1])
    assert timing.closed() is None


def test_columns_of_a_list_live_until_they_are_read(state_machine: StateMachine) -> None:
    columns = (strided(state_machine.ids), state_machine.ids[::-1])
    assert _native.multiset_difference(columns, columns).tolist() == []
    with pytest.raises(TypeError):
        _native.multiset_difference((state_machine.ids, None), columns)  # type: ignore[list-item]


def test_runs_are_the_values_of_a_sorted_column_and_where_they_begin() -> None:
    for column in ([], [4], [4, 4], [1, 1, 2, 5, 5, 5]):
        values, starts = _native.runs(np.array(column, np.uint64))
        assert values.tolist() == sorted(set(column))
        assert starts.tolist() == [*(column.index(value) for value in values), len(column)]
