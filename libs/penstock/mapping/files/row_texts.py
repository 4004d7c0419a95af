"""Rows of Arrow tables as NDJSON, which mappings read."""

from __future__ import annotations

import base64
import datetime as dt
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from penstock.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


def json_rows(batch: pa.RecordBatch) -> bytes:
    """Return a line of JSON for each row of a batch. Each line is an object with a member for each column.

    Dates, times and timestamps become texts in ISO 8601. Durations become numbers of seconds. Decimals become texts,
    and binary values become texts in base64. DataError if a column has another type that JSON cannot represent, or if a
    number is infinite or NaN.
    """
    try:
        lines = [json.dumps(row, ensure_ascii=False, allow_nan=False, default=_text) for row in batch.to_pylist()]
        return "".join([f"{line}\n" for line in lines]).encode()
    except (ValueError, TypeError) as error:  # also UnicodeEncodeError
        raise DataError(f"a row cannot be written as JSON: {error}") from error


def _text(value: Any) -> Any:
    match value:
        case dt.datetime() | dt.date() | dt.time():
            return value.isoformat()
        case dt.timedelta():
            return value.total_seconds()
        case Decimal():
            return format(value, "f")
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            raise TypeError(f"a value of type {type(value).__name__}")
