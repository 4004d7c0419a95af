"""Conversion of input: documents to bodies of HTTP requests, and events to Kafka records."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.engine.intake.events import checked_time, original_bytes
from penstock.errors import DataError
from penstock.log import Record
from penstock.mapping.stream_mapping import mapped_media_type
from penstock.rdf.bulk_files import Source
from penstock.rdf.formats import Format
from penstock.rdf.patches import event_media_type

if TYPE_CHECKING:
    from os import PathLike

    from penstock.engine.intake.events import EventData


def document_of(
    source: str | PathLike[str] | bytes, syntax: str | None, base: str | None
) -> tuple[bytes, Format, str | None]:
    """Return the bytes, format and base IRI of a document. DataError if the document cannot be read, or if its format
    is unknown.
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


def event_of(topic: str, time_ms: int | None, data: EventData, syntax: str | None) -> Record:
    """Return the Kafka record of an event, or of a message for a stream's mapping (docs/kafka.md). DataError if its
    time or format is invalid.

    If `syntax` is None, a text gets no content type. The adaptor then reads the text in the format of the stream's
    mapping or, without a mapping, as N-Triples. If `time_ms` is None, the time is the timestamp of the Kafka record. An
    event that is not a message for a mapping needs a time.
    """
    value = original_bytes(data if isinstance(data, str | bytes) else list(data))
    headers: list[tuple[str, bytes]] = []
    may_lack_time = False
    if not isinstance(data, str | bytes):
        headers.append(("content-type", Format.N_TRIPLES.media_type.encode()))
    elif syntax is None:
        may_lack_time = True
    else:
        mapped = mapped_media_type(syntax)
        headers.append(("content-type", (mapped or event_media_type(syntax)).encode()))
        may_lack_time = mapped is not None
    if time_ms is not None or not may_lack_time:
        headers.append(("timestamp", str(checked_time(time_ms)).encode()))
    return Record(topic, value, headers=tuple(headers))
