"""Conversion of input: documents to bodies of HTTP requests, and events to Kafka records."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.engine.intake.events import checked_time, original_bytes
from penstock.errors import DataError
from penstock.log import Record
from penstock.rdf.bulk_files import Source
from penstock.rdf.formats import Format
from penstock.rdf.patches import format_in_cluster

if TYPE_CHECKING:
    from os import PathLike

    from penstock.engine.intake.events import EventData


def document_of(
    source: str | PathLike[str] | bytes, syntax: str | None, base: str | None
) -> tuple[bytes, Format, str | None]:
    """Return the bytes, format and base IRI of a document. DataError if it cannot be read, or if its format is
    unknown.
    """
    found = Source.of(source, syntax, base)
    if found.path is None:
        return found.data or b"", found.format, found.base
    try:
        data = Path(found.path).read_bytes()
        unpacked = gzip.decompress(data) if found.path.suffix.lower() == ".gz" else data
    except (OSError, EOFError) as error:
        raise DataError(f"{source!r} cannot be read: {error}") from error
    return unpacked, found.format, found.base


def event_of(topic: str, time_ms: int, data: EventData, syntax: str) -> Record:
    """Return the Kafka record of an event (docs/kafka.md). DataError if its time or format is invalid."""
    media = (format_in_cluster(syntax) if isinstance(data, str | bytes) else Format.N_TRIPLES).media_type
    stamp = str(checked_time(time_ms)).encode()
    value = original_bytes(data if isinstance(data, str | bytes) else list(data))
    return Record(topic, value, headers=(("content-type", media.encode()), ("timestamp", stamp)))
