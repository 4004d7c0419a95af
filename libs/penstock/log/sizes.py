"""Record sizes and their limit. Every back end checks sizes before it produces a record."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from penstock.log.errors import RecordTooLargeError
from penstock.log.port import MAX_RECORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.log.port import Headers, Record

_VALUE, _KEY, _HEADERS = itemgetter(1), itemgetter(2), itemgetter(4)  # fields of a `Record`
_BATCH_BYTES = 61  # overhead of Kafka's record batch for a single record
_RECORD_BYTES = 36  # upper bound for a record without its key, value and headers
_HEADER_BYTES = 10  # upper bound for the lengths of a header's name and value


def headers_bytes(headers: Headers) -> int:
    """Return the bytes that headers add to a record."""
    size = 0
    for name, value in headers:
        size += len(name.encode()) + len(value) + _HEADER_BYTES
    return size


def wire_bytes(record: Record) -> int:
    """Return an upper bound of a record's uncompressed bytes in a topic."""
    size = _BATCH_BYTES + _RECORD_BYTES + len(record.key or b"") + len(record.value or b"")
    return size + headers_bytes(record.headers) if record.headers else size


def check_sizes(records: Sequence[Record], limit: int = MAX_RECORD_BYTES) -> None:
    """Raise RecordTooLargeError for the first record above the limit."""
    if not any(map(_HEADERS, records)):  # the common case: no record is larger than the limit if all together are not
        texts = sum(map(len, filter(None, map(_VALUE, records)))) + sum(map(len, filter(None, map(_KEY, records))))
        if texts + _BATCH_BYTES + _RECORD_BYTES <= limit:
            return
    for record in records:
        size = wire_bytes(record)
        if size > limit:
            raise RecordTooLargeError(
                f"{record.topic}[{record.partition}]: a record of {size} bytes exceeds max.message.bytes ({limit})",
                record.topic,
            )
