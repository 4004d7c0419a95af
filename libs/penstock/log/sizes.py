"""How large a record may be, and how large one is: checked before a record is produced, by every back end alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.log.errors import RecordTooLargeError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.log.port import Headers, Record

MAX_RECORD_BYTES: Final = 64 << 20
"""Largest record, with key, headers and envelope: `max.message.bytes` of the cluster's topics."""
_BATCH_BYTES = 61  # Kafka's record batch around a single record
_RECORD_BYTES = 36  # a record without its key, value and headers, at most
_HEADER_BYTES = 10  # the lengths of a header's name and value, at most


def headers_bytes(headers: Headers) -> int:
    """Return what headers add to a record."""
    return sum(len(name.encode()) + len(value) + _HEADER_BYTES for name, value in headers)


def wire_bytes(record: Record) -> int:
    """Return an upper bound of a record's uncompressed bytes in a topic."""
    return (
        _BATCH_BYTES + _RECORD_BYTES + len(record.key or b"") + len(record.value or b"") + headers_bytes(record.headers)
    )


def check_sizes(records: Iterable[Record], limit: int = MAX_RECORD_BYTES) -> None:
    """Raise RecordTooLargeError for the first record that is larger than the limit."""
    for record in records:
        size = wire_bytes(record)
        if size > limit:
            raise RecordTooLargeError(
                f"{record.topic}[{record.partition}]: a record of {size} bytes (at most {limit}: max.message.bytes)",
                record.topic,
            )
