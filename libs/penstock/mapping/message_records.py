"""Messages, and the records in messages: JSON values and CSV rows."""

from __future__ import annotations

import csv
import io
import json
from codecs import BOM_UTF8
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from penstock.errors import DataError
from penstock.rdf.checks import JsonDepth

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.mapping.mapping_limits import MappingLimits


class SourceMessage(NamedTuple):
    """A message as the producer has sent it. `timestamp_ms`: the timestamp of the message, for example of a Kafka
    record. None if the message has no timestamp.
    """

    value: bytes
    timestamp_ms: int | None = None
    key: bytes | None = None
    headers: Mapping[str, bytes] = {}


class RealNumber(str):
    """The text of a JSON number with a fraction or an exponent."""

    __slots__ = ()


def _refuse(constant: str) -> NoReturn:
    raise DataError(f"the JSON text has {constant}, which is not JSON")


_DECODER = json.JSONDecoder(parse_float=RealNumber, parse_constant=_refuse)


def json_value(data: bytes, limits: MappingLimits) -> Any:
    """Return the value of a JSON text in UTF-8. DataError if the text is not UTF-8 or not JSON, or if it is nested too
    deeply. The error contains the position of the invalid byte, or the line and column.
    """
    if data.count(b"{") + data.count(b"[") > limits.max_json_depth:
        JsonDepth(limits.max_json_depth).feed(data)
    try:
        return _DECODER.decode((data[3:] if data.startswith(BOM_UTF8) else data).decode())
    except UnicodeDecodeError as error:
        raise DataError(f"the message is not UTF-8: byte {error.start + 1}") from error
    except json.JSONDecodeError as error:
        raise DataError(f"the message is not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits
        raise DataError(f"the JSON text cannot be read: {error}") from error


def json_lines(data: bytes, limits: MappingLimits, lines_before: int = 0) -> list[Any]:
    """Return the values of NDJSON, which has one JSON text per line. DataError if a line is invalid, or if there are
    too many lines. The error contains the number of the invalid line. `lines_before`: the number of lines before
    `data`, for this number.
    """
    values = []
    for number, line in enumerate(data.split(b"\n"), lines_before + 1):
        if not line.strip():
            continue
        try:
            values.append(json_value(line, limits))
        except DataError as error:
            raise DataError(f"line {number}: {error}") from error
        if len(values) > limits.max_values:
            raise DataError(f"more than {limits.max_values} lines (max_values)")
    return values


def csv_rows(
    data: bytes, nulls: tuple[str, ...], limits: MappingLimits, most: int | None = None, *, lines_before: int = 0
) -> list[Any]:
    """Return the rows of a CSV text in UTF-8 whose first line names the columns (RFC 4180). A cell has no value if its
    text is in `nulls`. `most`: maximum number of rows. None: the limit `max_values`. `lines_before`: the number of the
    file's lines that are missing between the header and the first row of the text. DataError if the text is invalid, or
    if it has too many rows.
    """
    most = limits.max_values if most is None else most
    try:
        reader = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        header = next(reader, None)
        if header is None:
            raise DataError("the CSV text has no header line")
        if len(set(header)) != len(header):
            raise DataError("the CSV header names a column twice")
        rows = []
        for cells in reader:
            if not cells:
                continue  # an empty line
            if len(cells) != len(header):
                line = reader.line_num + lines_before
                raise DataError(f"line {line}: {len(cells)} cells, but the header has {len(header)} columns")
            row: dict[str, str | None] = dict(zip(header, cells, strict=True))
            for name, cell in row.items():
                if cell in nulls:
                    row[name] = None
            rows.append(row)
            if len(rows) > most:
                raise DataError(f"more than {most} rows (max_values)")
    except UnicodeDecodeError as error:
        raise DataError(f"the CSV text is not UTF-8: byte {error.start + 1}") from error
    except csv.Error as error:
        raise DataError(f"the CSV text cannot be read: {error}") from error
    return rows
