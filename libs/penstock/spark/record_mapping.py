"""Runs the stage `parse` of a bulk load for data files (NDJSON, JSON, CSV, Parquet), in Spark tasks.

A mapping converts the records of a file to RDF statements. The statements contain term ids of the task's own
dictionary.
"""

from __future__ import annotations

from functools import cache
from itertools import count, groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.core import arrow as co
from penstock.errors import DataError
from penstock.mapping.files.data_files import CHUNK_BYTES, csv_chunks
from penstock.mapping.files.file_mapping import DataFormat, FileMapping
from penstock.mapping.files.row_texts import json_rows
from penstock.rdf.parsing import Quads
from penstock.spark.statement_parsing import WHOLE_DOCUMENT, ParseSettings, StagedPart, pieces_of, stream_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def map_lines(settings: ParseSettings, batches: Iterable[Any]) -> Iterator[Any]:
    """Map rows (file, start, text) of NDJSON files. Each text is one line, including its line end."""
    part = _MappedPart(settings)
    for file, start, text in pieces_of(batches):
        yield from part.lines(file, start, text)
    yield from part.ends()


def map_documents(settings: ParseSettings, batches: Iterable[Any]) -> Iterator[Any]:
    """Map rows (file, start, text) of JSON and CSV files. A file's rows are consecutive and in order."""
    part = _MappedPart(settings)
    for file, pieces in groupby(pieces_of(batches), key=lambda piece: piece[0]):
        texts = (text for _, _, text in pieces)
        yield from part.document(file, texts)
        for _ in texts:  # Spark requires that a task consumes its input, even after an error
            pass
    yield from part.ends()


def map_columns(settings: ParseSettings, batches: Iterable[Any]) -> Iterator[Any]:
    """Map rows (file, row) of Parquet files. `row` is a struct of the columns."""
    part = _MappedPart(settings)
    for batch in batches:
        for first, end in co.runs(batch.column(0).to_numpy(zero_copy_only=False)):
            file = batch.column(0)[first].as_py()
            yield from part.rows(file, pa.RecordBatch.from_struct_array(batch.column(1).slice(first, end - first)))
    yield from part.ends()


class _MappedPart(StagedPart):
    """A task's dictionary and output, with the mappings of its files."""

    def __init__(self, settings: ParseSettings) -> None:
        super().__init__(settings)
        self._chunks = count()
        self._mapping = cache(self._compiled)

    def _compiled(self, format: DataFormat) -> FileMapping:  # noqa: A002 - as in the settings
        assert self._settings.mapping is not None
        return FileMapping(self._settings.mapping, format)

    def _mapped(self, file: int, text: bytes, lines_before: int = 0) -> Quads:
        format, _ = self._settings.files[file]  # noqa: A001
        assert isinstance(format, DataFormat)
        chunk = f"{self._number}_{next(self._chunks)}_"
        scope = self.scope(file)
        return self._mapping(format).triples(self.dictionary, text, scope, chunk=chunk, lines_before=lines_before)

    def lines(self, file: int, start: int, text: bytes) -> Iterator[Any]:
        """Yield the rows for lines of NDJSON, which belong to the split at `start`."""
        lines = text.split(b"\n")[:-1]
        before = self.read(file, start, len(lines))
        if self.has_failed:
            return
        try:
            yield self.triples(self._mapped(file, text))
        except DataError:  # of some lines
            yield from self._line_by_line(file, start, lines, before)

    def _line_by_line(self, file: int, start: int, lines: list[bytes], before: int) -> Iterator[Any]:
        good, bad = [], []
        for number, line in enumerate(lines, before + 1):
            try:
                good.append(self._mapped(file, line))
            except DataError as error:
                bad.append((number, line, str(error).removeprefix("line 1: ")))
        yield self.triples(Quads.joined(good))
        yield from self.bad(file, start, bad[: self._settings.max_bad + 1], len(bad))

    def document(self, file: int, pieces: Iterator[bytes]) -> Iterator[Any]:
        """Yield the rows for a JSON or CSV file."""
        format, _ = self._settings.files[file]  # noqa: A001
        try:
            if format is DataFormat.CSV:
                for text, lines_before in csv_chunks(stream_of(pieces), CHUNK_BYTES):
                    yield self.triples(self._mapped(file, text, lines_before))
            else:
                yield self.triples(self._mapped(file, b"".join(pieces)))
        except DataError as error:
            yield from self.bad(file, 0, [(WHOLE_DOCUMENT, b"", str(error))], 1)

    def rows(self, file: int, batch: pa.RecordBatch) -> Iterator[Any]:
        """Yield the rows for rows of a Parquet file."""
        try:
            yield self.triples(self._mapped(file, json_rows(batch)))
        except DataError as error:
            yield from self.bad(file, 0, [(WHOLE_DOCUMENT, b"", str(error))], 1)
