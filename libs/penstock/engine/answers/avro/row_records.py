"""Writes the records of evaluations in Avro (docs/kafka.md). The native module encodes the rows of a block, without a
Python object for each term.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from penstock.core import _native as native
from penstock.query.ir import Form

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from penstock.core._native import Ids, QueryNames
    from penstock.engine.answers.result_blocks import Block

_MAGIC: Final = b"\0"
_NULL: Final = b"\0"
_VALUE: Final = b"\2"  # index 1 of a union, zigzag-encoded
_ID_BYTES: Final = 5  # the magic byte, and the id of the schema


@dataclass(frozen=True, slots=True)
class RowFormat:
    """The format of a query's records. `schema_id`: the id of the schema in the registry. `row_types`: see `RowSchema`.
    `of_set`: true if the query is a query set, whose records contain the key of a member.
    """

    schema_id: int
    row_types: str | None
    of_set: bool = False

    @property
    def head(self) -> bytes:
        """The bytes with which each record begins."""
        return _MAGIC + self.schema_id.to_bytes(_ID_BYTES - 1, "big")


class EncodedRows(NamedTuple):
    """The records of an execution. `keys` and `values` have one element for each record. `counts` has one element for
    each member: the number of the member's records.

    The key of a member's first record is `QUERY@TIME`. The key of each further record is `QUERY@TIME/ROW`.
    """

    keys: Sequence[bytes]
    values: Sequence[bytes]
    counts: Sequence[int]


def encode_rows(block: Block, names: QueryNames, numbers: Ids, row_format: RowFormat) -> EncodedRows:
    """Return the records of the queries with the member numbers `numbers`. The numbers must be ascending, and the
    members must have an answer. LimitError if a term does not have the type of the field.
    """
    return _encoded(block, _rows(block, numbers), names, numbers, row_format)


def encode_members(
    block: Block, query_set: str, keys: Sequence[str], numbers: Ids, row_format: RowFormat
) -> EncodedRows:
    """Return the records of members of a query set. `keys`: the key of each member in `numbers`. For other parameters
    and errors, see `encode_rows`.
    """
    columns, present, starts = _rows(block, numbers)
    places = np.minimum(np.searchsorted(numbers, present), len(numbers) - 1)
    present = np.where(numbers[places] == present, places + 1, 0).astype(np.uint64)  # the positions in `keys`, from 1
    rows = _Rows(columns, present, starts)
    return _encoded(
        block, rows, native.QueryNames(keys), np.arange(1, len(keys) + 1, dtype=np.uint64), row_format, query_set
    )


class _Rows(NamedTuple):
    """Rows of answers, sorted by member. `columns` contains the columns of the rows. `present` contains the numbers of
    the members that have rows. `starts` contains the position of the first row of each member in `present`, followed by
    the total number of rows.
    """

    columns: tuple[Ids, ...]
    present: Ids
    starts: NDArray[np.int64]


def _rows(block: Block, numbers: Ids) -> _Rows:
    if block.changes is not None:
        rows = block.changes.now.rows_of(numbers)
    elif block.product is not None:
        rows = block.product.rows()
    else:
        return _Rows(block.columns, block.present, block.starts)
    return _Rows(rows.columns, *rows.spans())


def _encoded(
    block: Block, rows: _Rows, names: QueryNames, numbers: Ids, row_format: RowFormat, query_set: str | None = None
) -> EncodedRows:
    time = block.reading.time
    return EncodedRows(
        *native.avro_records(
            names,
            numbers,
            time,
            "" if query_set is None else f"{query_set}/",
            row_format.head + (b"" if query_set is None else _string(query_set)),
            _long(time) + _long(block.reading.snapshot),
            block.form.value,
            row_format.row_types or "",
            () if block.form is Form.ASK else rows.columns,
            rows.present,
            rows.starts,
            block.decoder or native.TextTerms(),
        )
    )


# ---- errors
def error_value(line: bytes, row_format: RowFormat) -> bytes:
    """Return the value of a record with an error in place of an answer. `line`: the evaluation with the error, as JSON
    (`json_lines`).
    """
    given = json.loads(line)
    value = row_format.head + _string(given["query"])
    if row_format.of_set:
        value += _string(str(given["member"]))
    value += _long(given["time"]) + _long(given["snapshot"]) + _VALUE + _string(given["error"])
    if row_format.row_types is None:
        return value + _NULL
    return value + _long(0) + _long(0) + _NULL * len(row_format.row_types)  # no rows


def schema_id_of(value: bytes) -> int:
    """Return the schema id of a record's value."""
    return int.from_bytes(value[1:_ID_BYTES], "big")


def line_of(value: bytes, *, of_set: bool) -> dict[str, Any]:
    """Return the evaluation of a record as a JSON object (`json_lines`), without the answer. If the record has an error
    in place of the answer, the object has this error.
    """
    reader = _Reader(value, _ID_BYTES)
    line: dict[str, Any] = {"query": reader.string()}
    if of_set:
        line["member"] = reader.string()
    line |= {"time": reader.long(), "snapshot": reader.long()}
    if reader.long():
        line["error"] = reader.string()
    return line


def query_of(value: bytes) -> str:
    """Return the name of the query or of the query set in a record's value."""
    return _Reader(value, _ID_BYTES).string()


class _Reader:
    """Reads successive values from bytes, from a given position on."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def long(self) -> int:
        found = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (found >> 1) ^ -(found & 1)

    def string(self) -> str:
        size = self.long()
        self._at += size
        return self._data[self._at - size : self._at].decode()


def _long(value: int) -> bytes:
    rest, found = (value << 1) ^ (value >> 63), bytearray()
    while rest >= 0x80:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def _string(text: str) -> bytes:
    data = text.encode()
    return _long(len(data)) + data
