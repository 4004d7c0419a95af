"""Messages of events topics: the format and time of an event, and heartbeats (docs/kafka.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.engine.limits import MAX_TIME_MS
from penstock.errors import DataError
from penstock.mapping.message_records import SourceMessage
from penstock.mapping.stream_mapping import mapped_format
from penstock.rdf import entity_mutations
from penstock.rdf.entity_mutations import decode_difference
from penstock.rdf.formats import Format
from penstock.rdf.patches import PATCH, event_format

if TYPE_CHECKING:
    from penstock.log import Message
    from penstock.log.port import Headers
    from penstock.mapping.encodings.schema_registry import SchemaRegistry
    from penstock.mapping.stream_mapping import StreamMapping

CONTENT_TYPE = "content-type"
TIMESTAMP = "timestamp"
_MUTATION = entity_mutations.MEDIA_TYPE.encode()
_N_TRIPLES = Format.N_TRIPLES.value
_LONG = len(str(MAX_TIME_MS))
HEARTBEAT = "heartbeat"
"""The name of the header of a heartbeat. A heartbeat is a message without a value. The header contains a time in ms.
Later events of the partition are late if their time is at or before the time of the heartbeat.
"""


class Event(NamedTuple):  # a NamedTuple, because there is one per event: creation takes half the time of a dataclass
    """An event of a message, or a heartbeat. `advance_ms`: the time of a heartbeat. None for an event. `triples`: if
    the stream has a mapping, the triples of the event as N-Triples. For a mutation (`penstock.rdf.entity_mutations`),
    the RDF Patch. None if the message is RDF.
    """

    offset: int
    time_ms: int
    syntax: str
    data: bytes
    advance_ms: int | None = None
    headers: Headers = ()
    triples: bytes | None = None

    @property
    def text(self) -> bytes:
        """The RDF text of the event in the format `syntax`: `triples` if they are given, otherwise `data`."""
        return self.data if self.triples is None else self.triples

    @property
    def bytes(self) -> int:
        """The total size of the message's value and headers in bytes."""
        size = len(self.data)
        for name, value in self.headers:
            size += len(name) + len(value)
        return size


def read_events(
    message: Message,
    mapping: StreamMapping | None = None,
    max_bytes: int = 64 << 20,
    registry: SchemaRegistry | None = None,
) -> list[Event]:
    """Return the events of a message, or a single heartbeat. `mapping`: the stream's mapping. `max_bytes`: maximum size
    of a mapped message or a mutation. `registry`: the registry with the schemas of messages in a binary format.

    DataError if the message could not be read, is too large or cannot be mapped. DataError also if a header is invalid,
    if an event has no value, or if a heartbeat has a value. UnavailableError if the registry is unavailable.
    """
    if message.error:
        raise DataError(message.error)
    headers = {name.lower(): value for name, value in message.headers}
    beat = headers.get(HEARTBEAT)
    if beat is not None:
        if message.value:
            raise DataError(f"a message with the header {HEARTBEAT!r} must not have a value")
        advance_ms = _time(HEARTBEAT, beat)
        return [Event(message.offset, advance_ms, "nt", b"", advance_ms)]
    if message.value is None:
        raise DataError("the message has no value")
    stamp = headers.get(TIMESTAMP)
    time_ms = message.timestamp_ms if stamp is None else _time(TIMESTAMP, stamp)
    content_type = headers.get(CONTENT_TYPE)
    if mapping is not None:
        named = None if content_type is None else content_type.decode("utf-8", "replace")
        if mapped_format(mapping, named) is not None:
            _check_size(message.value, max_bytes)
            source = SourceMessage(message.value, time_ms, message.key, headers)
            return [
                Event(message.offset, made.time_ms, "nt", message.value, None, message.headers, made.triples)
                for made in mapping.events(mapping.decoded(source, registry))
            ]
    if content_type == _MUTATION:
        _check_size(message.value, max_bytes)
        mutation = decode_difference(message.value)
        return [Event(message.offset, mutation.time_ms, PATCH, message.value, None, message.headers, mutation.patch)]
    syntax = _N_TRIPLES if content_type is None else event_format(content_type.decode("utf-8", "replace"))
    return [Event(message.offset, time_ms, syntax, message.value, None, message.headers)]


def _check_size(data: bytes, max_bytes: int) -> None:
    if len(data) > max_bytes:
        raise DataError(f"an event of {len(data)} bytes (max_event_bytes is {max_bytes})")


def _time(header: str, value: bytes) -> int:
    if len(value) < _LONG and value.isdigit():  # ASCII digits: the common case
        return int(value)
    text = value.decode("ascii", "replace").strip()
    digits = text.removeprefix("-")
    # `int` would also accept underscores and digits of other scripts
    if not (digits.isascii() and digits.isdigit()) or len(digits) > len(str(MAX_TIME_MS)):
        raise DataError(f"header {header!r} is not an integer of milliseconds: {text[:40]!r}")
    return int(text)
