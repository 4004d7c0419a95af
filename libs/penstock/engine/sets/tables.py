"""Conversion of the members that users give (Arrow, pandas, polars, rows) to Arrow tables."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import rdflib

from penstock.engine.answers.arrow_terms import ARROW_TERM, KINDS
from penstock.errors import DataError
from penstock.rdf.terms import to_tuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TEXT, UNUSABLE = "text", "unusable"
"""Additional values of `type` in a column of terms. The first stands for text whose meaning follows from the use of the
parameter. The second stands for a Python object that is no term.
"""
_PLAIN = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


def as_table(rows: Any, names: Sequence[str]) -> pa.Table:
    """Return the columns `names` of a table. `rows` is an Arrow table or record batch, a pandas or polars frame, or an
    iterable of rows. A row is a dict, or a tuple of values in the order of `names`. If there is only one name, a row
    can also be the value itself.

    If all values of a column have the same simple type, the column becomes an Arrow column of this type. Otherwise, the
    column contains terms. DataError if a column is missing or occurs twice, if a row has the wrong length, or if `rows`
    has another type.
    """
    table = _arrow(rows)
    if table is None:
        table = _of_rows(rows, names)
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise DataError(f"the members need the columns {', '.join(names)}: {', '.join(missing)} is missing")
    if len(set(table.column_names)) < len(table.column_names):
        raise DataError("two columns of the members have the same name")
    return table.select(list(names))


def table_bytes(table: pa.Table) -> bytes:
    """Return a table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def table_of(data: bytes) -> pa.Table:
    """Return the table of an Arrow IPC stream."""
    return pa.ipc.open_stream(data).read_all()


def _arrow(rows: Any) -> pa.Table | None:
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, pa.RecordBatchReader):
        return rows.read_all()
    if hasattr(rows, "to_records") and hasattr(rows, "columns"):  # pandas
        return _of_pandas(rows)
    if hasattr(rows, "__arrow_c_stream__"):  # polars, and all other frames with Arrow's interface
        return pa.table(rows)
    return None


def _of_pandas(frame: Any) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # a column of mixed objects
        return pa.table({str(name): _column(frame[name].tolist()) for name in frame.columns})


def _of_rows(rows: Iterable[Any], names: Sequence[str]) -> pa.Table:
    if isinstance(rows, (str, bytes, dict)) or not hasattr(rows, "__iter__"):
        raise DataError(f"members are an Arrow table, a frame or rows, not {type(rows).__name__}")
    columns: list[list[Any]] = [[] for _ in names]
    for number, row in enumerate(rows, 1):
        if isinstance(row, dict):
            cells = [row.get(name) for name in names]
        elif isinstance(row, (tuple, list)):
            cells = list(row)
        else:
            cells = [row]
        if len(cells) != len(names):
            raise DataError(f"row {number} has {len(cells)} values, and the columns are {', '.join(names)}")
        for column, cell in zip(columns, cells, strict=True):
            column.append(cell)
    return pa.table([_column(column) for column in columns], names=list(names))


def _column(values: list[Any]) -> pa.Array:
    """Return Python values as a column of one simple type, or as a column of terms."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    kinds = {type(value) for value in plain if value is not None}
    if len(kinds) == 1 and (kind := _PLAIN.get(kinds.pop())) is not None:
        try:
            return pa.array(plain, kind)
        except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError):
            pass  # an integer above 64 bits, or text that is no Unicode
    return pa.array([None if value is None else _cell(value) for value in plain], ARROW_TERM)


def _cell(value: Any) -> dict[str, str | None]:
    if type(value) is str and not _has_surrogate(value):
        return {"type": TEXT, "value": value}
    if isinstance(value, dict):
        return _json_term(value)
    if isinstance(value, (bool, int, float, Decimal, datetime, date)):
        value = rdflib.Literal(value)
    try:
        kind, lexical, datatype, lang = to_tuple(value)
    except DataError:
        return {"type": UNUSABLE, "value": repr(value).encode(errors="replace").decode()}
    return {"type": KINDS[kind - 1], "value": lexical, "datatype": datatype or None, "lang": lang or None}


def _json_term(value: dict[str, Any]) -> dict[str, str | None]:
    """Return the cell of a term in the form of SPARQL Results JSON."""
    kind, lexical, datatype = value.get("type"), value.get("value"), value.get("datatype")
    lang = value.get("xml:lang", value.get("lang"))
    strings = all(isinstance(each, str) and not _has_surrogate(each) for each in (lexical, datatype or "", lang or ""))
    if kind not in KINDS or not strings or value.keys() - {"type", "value", "datatype", "xml:lang", "lang"}:
        return {"type": UNUSABLE, "value": repr(value)[:200].encode(errors="replace").decode()}
    return {"type": kind, "value": lexical, "datatype": datatype or None, "lang": lang or None}


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)
