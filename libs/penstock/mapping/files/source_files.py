"""Files as the logical sources of a program."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any

from penstock.errors import DataError
from penstock.mapping.executor import Executor
from penstock.mapping.mapping_limits import FILE_LIMITS, MappingLimits
from penstock.mapping.message_records import SourceMessage, csv_rows, json_value

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.mapping.program import Program, Source


def mapped_files(program: Program, folder: Path, limits: MappingLimits = FILE_LIMITS) -> bytes:
    """Return the triples of all files that a program names, as N-Quads. Relative names are relative to `folder`.
    DataError if a file does not exist or cannot be mapped.
    """
    records: dict[Source, Any] = {}
    size = 0
    for rule in program.rules:
        source = rule.source
        if source not in records:
            data = _content(source, folder)
            size += len(data)
            try:
                records[source] = (
                    json_value(data, limits) if source.formulation == "json" else csv_rows(data, source.nulls, limits)
                )
            except DataError as error:
                raise DataError(f"{source.location}: {error}") from error
    return Executor(program, limits).text(records, SourceMessage(b""), size)


def _content(source: Source, folder: Path) -> bytes:
    if not source.location:
        raise DataError("a logical source of the mapping names no file")
    try:
        data = (folder / source.location).read_bytes()
        if source.compression == "gzip":
            data = gzip.decompress(data)
    except OSError as error:
        raise DataError(f"{source.location}: {error.strerror or error}") from error
    if source.encoding == "utf-8":
        return data
    try:
        return data.decode(source.encoding).encode()
    except UnicodeDecodeError as error:
        raise DataError(f"{source.location}: not {source.encoding}") from error
