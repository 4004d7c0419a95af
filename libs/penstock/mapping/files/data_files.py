"""Data files that a mapping converts to triples, read in chunks of whole records."""

from __future__ import annotations

import gzip
import io
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.core._native import BlankScope, complete_csv_rows
from penstock.errors import DataError
from penstock.mapping.files.file_mapping import DataFormat
from penstock.mapping.files.row_texts import json_rows
from penstock.rdf.bulk_files import MAX_LINE_BYTES, naming, whole_lines

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from penstock.core._native import Dictionary
    from penstock.mapping.files.file_mapping import FileMapping
    from penstock.rdf.parsing import Quads

CHUNK_BYTES = 4 << 20
PARQUET_ROWS = 16_384
"""Number of rows of a Parquet file that become one chunk."""


def read_mapped(
    dictionary: Dictionary,
    source: str | os.PathLike[str] | bytes,
    mapping: FileMapping,
    progress: Callable[[int, int], None] | None = None,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[Quads]:
    """Yield the triples of a data file, or of bytes, in parts. Files named *.gz are decompressed.

    At most one chunk is in memory. A JSON file is an exception: the whole file is read into memory. For `progress`, and
    for the terms that stay in the dictionary after an error, see `penstock.rdf.bulk_files.read`. DataError "file:
    reason" if a record cannot be mapped. The reason contains the number of the line or of the record. OSError if the
    file cannot be read.
    """
    path = None if isinstance(source, bytes) else Path(source)
    scope = BlankScope()
    with ExitStack() as stack:
        stack.enter_context(naming("<bytes>" if path is None else str(path)))
        raw: IO[bytes] = io.BytesIO(source) if isinstance(source, bytes) else stack.enter_context(_opened(source))
        total = len(source) if isinstance(source, bytes) else Path(source).stat().st_size
        unpacked = path is not None and path.suffix.lower() == ".gz"
        file = cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if unpacked else raw
        for number, (text, lines_before) in enumerate(_chunks(file, mapping.format, chunk_bytes)):
            part = mapping.triples(dictionary, text, scope, chunk=f"{number}_", lines_before=lines_before)
            if progress is not None:
                progress(raw.tell(), total)
            if len(part) > 0:
                yield part


def _opened(source: str | os.PathLike[str]) -> IO[bytes]:
    return Path(source).open("rb")


def _chunks(file: IO[bytes], format: DataFormat, chunk_bytes: int) -> Iterator[tuple[bytes, int]]:  # noqa: A002
    """Yield texts of whole records, and the number of lines before each text."""
    match format:
        case DataFormat.NDJSON:
            lines = 0
            for text in whole_lines(file, chunk_bytes):
                yield text, lines
                lines += text.count(b"\n")
        case DataFormat.CSV:
            yield from csv_chunks(file, chunk_bytes)
        case DataFormat.PARQUET:
            yield from _parquet_chunks(file)
        case _:
            yield file.read(), 0


def csv_chunks(file: IO[bytes], chunk_bytes: int) -> Iterator[tuple[bytes, int]]:
    """Yield the chunks of a CSV file. Each chunk begins with the header of the file. DataError if a row is too long."""
    header, rest, lines = b"", b"", 0
    while block := file.read(chunk_bytes):
        rest += block
        if not header:
            header, rest = _csv_header(rest)
        complete = complete_csv_rows(rest) if header else 0
        if complete == 0 and len(rest) > MAX_LINE_BYTES:
            raise DataError(f"a row longer than {MAX_LINE_BYTES} bytes")
        if complete:
            yield header + rest[:complete], lines
            lines += rest.count(b"\n", 0, complete)
            rest = rest[complete:]
    if rest or not header:
        yield header + rest, lines


def _csv_header(text: bytes) -> tuple[bytes, bytes]:
    """Return the first row and the rest of a text. If the text contains only a part of the first row, return an empty
    first row.
    """
    text = text.removeprefix(b"\xef\xbb\xbf")
    end = text.find(b"\n") + 1
    while end and complete_csv_rows(text[:end]) == 0:
        end = text.find(b"\n", end) + 1
    return text[:end], text[end:]


def _parquet_chunks(file: IO[bytes]) -> Iterator[tuple[bytes, int]]:
    try:
        rows = 0
        for batch in pq.ParquetFile(file).iter_batches(PARQUET_ROWS):
            yield json_rows(batch), rows
            rows += batch.num_rows
    except pa.ArrowException as error:
        raise DataError(f"the Parquet file cannot be read: {error}") from error
