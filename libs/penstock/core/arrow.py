"""Zero-copy conversion between Arrow columns and native columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.core._native import Ids, Texts

IRI, BLANK = 1, 2


def texts_of(column: Any) -> Texts:
    """Return the offsets and bytes of a string or binary column."""
    _, offsets, data = column.buffers()
    every = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return every, np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def strings(texts: Texts) -> Any:
    """Return a string column for given offsets and bytes."""
    offsets, data = texts
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))


def ids_of(column: Any) -> Ids:
    """Return a column of 64-bit integers as ids. Spark has no unsigned integers."""
    numbers: Ids = column.to_numpy(zero_copy_only=False).view(np.uint64)
    return numbers


def longs(ids: Ids) -> Any:
    """Return ids as a column of signed integers, for Spark."""
    return pa.array(ids.view(np.int64))


def unpacked(column: Any, row: int) -> Ids:
    """Return the ids that are packed in a cell of a binary column."""
    return np.frombuffer(column[row].as_buffer(), np.uint64)


def packed(ids: Ids) -> bytes:
    """Pack ids into a cell of a binary column."""
    return np.ascontiguousarray(ids).tobytes()


def bytes_between(column: Any, first: int, end: int) -> bytes:
    """Return the concatenated texts of rows [first, end) of a string column."""
    offsets, data = texts_of(column)
    return data[offsets[first] : offsets[end]].tobytes()


def runs(*columns: NDArray[Any]) -> list[tuple[int, int]]:
    """Return (first, end) for each run of consecutive rows that are equal in all columns. `end` is exclusive."""
    n = len(columns[0])
    if n == 0:
        return []
    change = np.zeros(n - 1, bool)
    for column in columns:
        change |= column[1:] != column[:-1]
    starts = [0, *(np.flatnonzero(change) + 1).tolist()]
    return list(zip(starts, [*starts[1:], n], strict=True))
