"""The records of evaluations in a results topic (docs/kafka.md, ADR 96). In the format `json`, a record has one
evaluation. In the formats `json-batch` and `arrow`, a record has the evaluations of many members at one instant. In the
format `avro`, a record has one row of an answer (`avro.row_records`).

The native module writes the evaluations from the columns of a block. `record_lines` reads the records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from penstock.core import _native as native
from penstock.engine.answers.answer_values import Solutions
from penstock.engine.answers.arrow_terms import ARROW_TERM, term_column
from penstock.engine.answers.json_lines import json_entry, json_line, shared_members
from penstock.engine.answers.result_blocks import Evaluation
from penstock.engine.answers.result_formats import in_order
from penstock.errors import DataError, LimitError
from penstock.query.ir import Form

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from penstock.core._native import Ids
    from penstock.engine.answers.answer_values import Decoder
    from penstock.engine.answers.result_blocks import Block, Raw
    from penstock.engine.answers.rows import Rows

RecordFormat: TypeAlias = Literal["json", "json-batch", "arrow", "avro"]
RECORD_FORMATS: Final[tuple[str, ...]] = get_args(RecordFormat)
FORMAT_HEADER: Final = "result_format"
"""The name of a header of results records. The header contains the format of the record's value. A record without this
header has the format `json`.
"""
SHARED: Final = b"evaluations"
"""A key in the metadata of an Arrow schema. The value is a JSON object with the members that all evaluations share."""
RESULT_BATCH_BYTES: Final = 1 << 20
"""Maximum size in bytes of a record with several evaluations."""


def record_format(text: str | None) -> RecordFormat:
    """Return the format with the name `text`. None stands for `json`. DataError if there is no such format."""
    if text is None:
        return "json"
    for found in get_args(RecordFormat):
        if text == found:
            return found  # type: ignore[no-any-return]
    raise DataError(f"result_format must be one of {', '.join(RECORD_FORMATS)}, not {text[:40]!r}")


class Encoded(NamedTuple):
    """Records of evaluations. The three fields are lists with one element per record: the keys, the values, and the
    numbers of evaluations in the records. The evaluations are in the order of their members. The key of a record is the
    text `QUERY@TIME` for the record's first evaluation.
    """

    keys: Sequence[bytes]
    values: Sequence[bytes]
    counts: Sequence[int]


class RecordNames:
    """The names of the queries that have answers in a block, by member number."""

    def __init__(self, names: Sequence[str]) -> None:
        self.native = native.QueryNames(names)
        self._names = names

    def of(self, numbers: Ids) -> list[str]:
        """Return the names of some members."""
        names = self._names
        return [names[number - 1] for number in numbers.tolist()]


def encode(
    block: Block,
    names: RecordNames,
    numbers: Ids,
    record_format: RecordFormat,
    most: int = RESULT_BATCH_BYTES,
    complete: Collection[int] = (),
) -> Encoded:
    """Return the records with the evaluations of the members `numbers`. The numbers must be ascending, and the members
    must have an answer.

    `most` is the maximum size in bytes of a record with several evaluations. `complete` has an effect only for queries
    with `changes`. The records of the members in `complete` have the complete answer in place of `added` and `removed`.
    LimitError if an answer is too large for Arrow.
    """
    if record_format == "arrow":
        return _arrow(block, names, numbers, most, complete)
    most = 0 if record_format == "json" else most
    if block.changes is not None or block.product is not None:
        return _entries(block, names, numbers, most, complete)
    decoder, form = block.decoder or native.TextTerms(), block.form
    rows = ((), ()) if form is Form.ASK else (block.variables if form is Form.SELECT else _TRIPLE, block.columns)
    shared, time = shared_members(block.reading), block.reading.time
    return Encoded(
        *native.evaluation_records(
            names.native, numbers, time, shared, form.value, *rows, block.present, block.starts, decoder, most
        )
    )


_TRIPLE = ("s", "p", "o")


# ---- JSON of products and of queries with `changes`
def _entries(block: Block, names: RecordNames, numbers: Ids, most: int, complete: Collection[int]) -> Encoded:
    """Return records in JSON. The evaluations are written one by one."""
    shared = shared_members(block.reading).encode()
    keys: list[bytes] = []
    values: list[bytes] = []
    counts: list[int] = []
    held: list[bytes] = []
    size = 0

    def close() -> None:
        if held:
            values.append(b'{%b, "evaluations": [%b]}' % (shared, b", ".join(held)))
            counts.append(len(held))
            held.clear()

    for number, name in zip(numbers.tolist(), names.of(numbers), strict=True):
        evaluation, whole = Evaluation(name, block, number), number in complete
        key = f"{name}@{block.reading.time}".encode()
        if not most:
            keys.append(key)
            values.append(json_line(evaluation, name, complete=whole))
            counts.append(1)
            continue
        entry = json_entry(evaluation, name, complete=whole)
        if held and size + len(entry) > most:
            close()
        if not held:
            keys.append(key)
            size = len(shared) + len(b'{, "evaluations": []}')
        held.append(entry)
        size += len(entry) + len(b", ")
    close()
    return Encoded(keys, values, counts)


# ---- Arrow
def _arrow(block: Block, names: RecordNames, numbers: Ids, most: int, complete: Collection[int]) -> Encoded:
    try:
        batch = _batch(block, names, numbers, complete)
    except _TooMuchTextError:
        if len(numbers) < 2:
            raise
        half = len(numbers) // 2
        parts = [_arrow(block, names, part, most, complete) for part in (numbers[:half], numbers[half:])]
        return Encoded(*([*a, *b] for a, b in zip(*parts, strict=True)))
    found = Encoded([], [], [])
    if len(numbers):
        _written(batch, block.reading.time, most, found)
    return found


def _written(batch: pa.RecordBatch, time: int, most: int, found: Encoded) -> None:
    """Add the records of a batch to `found`. Each record is an IPC stream of at most `most` bytes. A record with only
    one evaluation can be larger.
    """
    rows = batch.num_rows
    value = stream_of(batch) if rows == 1 or batch.get_total_buffer_size() < 4 * most else None
    if value is not None and (rows == 1 or len(value) <= most):
        found.keys.append(f"{batch.column(0)[0].as_py()}@{time}".encode())  # type: ignore[attr-defined]
        found.values.append(value)  # type: ignore[attr-defined]
        found.counts.append(rows)  # type: ignore[attr-defined]
        return
    for part in (batch.slice(0, rows // 2), batch.slice(rows // 2)):
        _written(part, time, most, found)


def stream_of(batch: pa.RecordBatch) -> bytes:
    """Return a record batch as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    text: bytes = sink.getvalue().to_pybytes()
    return text


class _TooMuchTextError(LimitError):
    """Raised if the texts of a column exceed the capacity of one Arrow array."""


def _batch(block: Block, names: RecordNames, numbers: Ids, complete: Collection[int]) -> pa.RecordBatch:
    """Return one row for each member. The row contains the member's answer."""
    columns: dict[str, pa.Array] = {
        "query": pa.array(names.of(numbers), pa.string()),
        "time": pa.array(np.full(len(numbers), block.reading.time, np.int64)),
    }
    variables, decoder = block.variables, block.decoder or native.TextTerms()
    if block.form is Form.SELECT and block.changes is not None:
        changes, whole = block.changes.changes, np.isin(numbers, np.fromiter(complete, np.uint64))
        answers = block.changes.now.rows_of(numbers[whole])
        columns["results"] = _lists(_spans(answers, numbers), answers.columns, variables, decoder, ~whole)
        columns["added"] = _lists(_spans(changes.added, numbers), changes.added.columns, variables, decoder, whole)
        columns["removed"] = _lists(
            _spans(changes.removed, numbers), changes.removed.columns, variables, decoder, whole
        )
    elif block.form is Form.SELECT:
        rows = None if block.product is None else block.product.rows()
        spans = _spans(rows, numbers) if rows is not None else _spans_of(block, numbers)
        columns["results"] = _lists(spans, block.columns if rows is None else rows.columns, variables, decoder)
    else:
        name, kind = ("boolean", pa.bool_()) if block.form is Form.ASK else ("graph", pa.string())
        columns |= {side: pa.array(values, kind) for side, values in _values(block, numbers, complete, name).items()}
    fields = [pa.field(name, column.type, nullable=column.null_count > 0) for name, column in columns.items()]
    schema = pa.schema(fields, metadata={SHARED: f"{{{shared_members(block.reading)}}}".encode()})
    return pa.record_batch(list(columns.values()), schema=schema)


def _values(block: Block, numbers: Ids, complete: Collection[int], name: str) -> dict[str, list[bool | str | None]]:
    """Return the columns of booleans or graphs. For a query with `changes`, these are the columns `added` and
    `removed`. For another query, this is one column, with the name `name`.
    """
    evaluations = [Evaluation("", block, number) for number in numbers.tolist()]
    if block.changes is None:
        return {name: [_value(evaluation.raw) for evaluation in evaluations]}
    columns: dict[str, list[bool | str | None]] = {name: [], "added": [], "removed": []}
    for number, evaluation in zip(numbers.tolist(), evaluations, strict=True):
        whole = number in complete
        parts = (evaluation.raw, None, None) if whole else (None, *evaluation.raw_changes)
        for column, part in zip(columns.values(), parts, strict=True):
            column.append(None if part is None else _value(part))
    return columns


def _value(answer: Raw) -> bool | str:
    assert not isinstance(answer, Solutions)
    return answer if isinstance(answer, bool) else in_order(answer.to_ntriples())


def _spans_of(block: Block, numbers: Ids) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the start and the end (exclusive) of each member's rows in a block."""
    if not len(block.present):
        nothing = np.zeros(len(numbers), np.int64)
        return nothing, nothing
    places = np.minimum(np.searchsorted(block.present, numbers), len(block.present) - 1)
    found = block.present[places] == numbers
    return np.where(found, block.starts[places], 0), np.where(found, block.starts[places + 1], 0)


def _spans(rows: Rows, numbers: Ids) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    first, end = (np.searchsorted(rows.member, numbers, side=side) for side in ("left", "right"))
    return first, end


def _lists(
    spans: tuple[NDArray[np.int64], NDArray[np.int64]],
    columns: Sequence[Ids],
    variables: Sequence[str],
    decoder: Decoder,
    absent: NDArray[np.bool_] | None = None,
) -> pa.Array:
    """Return a list of solutions for each member. For the members in `absent`, return null in place of the list."""
    first, end = spans
    counts = end - first
    if absent is not None:
        counts = np.where(absent, 0, counts)
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    rows = int(offsets[-1])
    if any(len(column) != rows for column in columns):
        places = np.arange(rows) + np.repeat(first - offsets[:-1], counts)
        columns = [column[places] for column in columns]
    terms = [term_column(column, decoder) for column in columns]
    if rows > np.iinfo(np.int32).max or any(column.num_chunks > 1 for column in terms):
        raise _TooMuchTextError(f"{rows} rows are too large for an Arrow list")
    solution = pa.struct([(name, ARROW_TERM) for name in variables])
    if terms:
        values = pa.StructArray.from_arrays([column.chunk(0) for column in terms], fields=list(solution))
    else:
        values = pa.array([{}] * rows, solution)
    starts = pa.array(offsets.astype(np.int32), mask=None if absent is None else np.append(absent, [False]))
    return pa.ListArray.from_arrays(starts, values, type=pa.list_(pa.field("item", solution, nullable=False)))
