"""The rows of a request's body. The body is lines of JSON, CSV or an Arrow stream. Reading needs memory in proportion
to the size of the body.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.csv

from penstock.arrow_messages import check_metadata
from penstock.engine.answers.arrow_terms import ARROW_TERM
from penstock.errors import DataError
from penstock.http.protocol_requests import FORM
from penstock.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ARROW: Final = "application/vnd.apache.arrow.stream"
_LINES: Final = "application/x-ndjson"
_TERM_FIELDS: Final = {(field.name, field.type) for field in ARROW_TERM}
_SIMPLE: Final[tuple[Callable[[pa.DataType], bool], ...]] = (
    pa.types.is_null,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_temporal,
    pa.types.is_string,
    pa.types.is_large_string,
)


def rows_of(body: bytes, content_type: str, names: Sequence[str]) -> Any:
    """Return the rows of a body, in a form that `QuerySet.add` takes. The body is one JSON object per line (also if
    there is no content type), CSV with a header, or an Arrow stream. `names`: the columns to read. DataError if the
    body has another format or is invalid.
    """
    try:
        if content_type == ARROW:
            return _arrow_table(body, names)
        if content_type == "text/csv":
            return _csv_table(body, names)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # OSError: for damaged Arrow messages
        raise DataError(f"the members cannot be read as {content_type}: {error}") from error
    if content_type not in ("", FORM, _LINES):
        raise DataError(f"members are {_LINES}, text/csv or {ARROW}, not {content_type}")
    return _json_rows(body, names)


def check_key(name: str, registered: Sequence[str], asked: Sequence[str]) -> None:
    """Raise DataError if a request names other key columns than the registration of query set `name`. `asked`: the
    columns in the request; if empty, the columns of the registration are used.
    """
    if asked and tuple(asked) != tuple(registered):
        message = f"the key of query set {name} is {', '.join(registered)}, not {', '.join(asked)}"
        raise DataError(f"{message}: the columns of a key are set when the query set is registered")


def _json_rows(body: bytes, names: Sequence[str]) -> list[tuple[Any, ...]]:
    rows = []
    for number, line in enumerate(io.BytesIO(body), start=1):
        if not line.strip():
            continue
        row = parse_json(line, f"line {number}")
        if not isinstance(row, dict):
            raise DataError(f"line {number}: a member is a JSON object")
        rows.append(tuple(row.get(name) for name in names))
    return rows


def _csv_table(body: bytes, names: Sequence[str]) -> pa.Table:
    """Return the columns `names`. Other columns are not converted. Even an empty column costs kilobytes of memory. A
    small body with many columns would therefore cost much memory.
    """
    if not body.strip():
        return pa.table({name: [] for name in names})
    convert = pyarrow.csv.ConvertOptions(include_columns=list(names))
    try:
        return pyarrow.csv.read_csv(io.BytesIO(body), convert_options=convert)
    except pa.ArrowKeyError as error:
        raise DataError(f"the members need the columns {', '.join(names)}: one is missing") from error


def _arrow_table(body: bytes, names: Sequence[str]) -> pa.Table:
    """Return the columns `names` of an Arrow stream. DataError if a batch is compressed. DataError also if the type of
    one of these columns allows any number of values in a body of limited size. In both cases, a small body could expand
    to any size.
    """
    reader = pa.ipc.MessageReader.open_stream(body)
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            break
        check_metadata(message.metadata.to_pybytes())
    stream = pa.ipc.open_stream(body)
    for field in stream.schema:
        if field.name in names and not _accepted(field.type):
            raise DataError(f"column {field.name}: type {field.type} is not accepted in a request")
    table = stream.read_all()
    table = table.select([at for at, name in enumerate(table.column_names) if name in names])
    table.validate(full=True)
    return table


def _accepted(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return {(field.name, field.type) for field in kind} <= _TERM_FIELDS
    return any(is_kind(kind) for is_kind in _SIMPLE)
