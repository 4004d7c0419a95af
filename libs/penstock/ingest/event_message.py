"""One event as its producer sent it: format, time, heartbeats (docs/kafka.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.engine.limits import MAX_TIME_MS
from penstock.errors import DataError
from penstock.rdf.formats import Format

if TYPE_CHECKING:
    from penstock.log import Message
    from penstock.log.port import Headers

CONTENT_TYPE = "content-type"
TIMESTAMP = "timestamp"
_N_TRIPLES = Format.N_TRIPLES.value
_LONG = len(str(MAX_TIME_MS))
HEARTBEAT = "heartbeat"
"""A header with a time in ms, of a message without a value: no event of this partition at or before it will follow."""


class Event(NamedTuple):  # one an event of Python's time: made in half of a dataclass's
    """`advance_ms` is set for heartbeats, which carry no data."""

    offset: int
    time_ms: int
    syntax: str
    data: bytes
    advance_ms: int | None = None
    headers: Headers = ()

    @property
    def bytes(self) -> int:
        """Size of its copy, were it refused: value and headers."""
        size = len(self.data)
        for name, value in self.headers:
            size += len(name) + len(value)
        return size


def read_event(message: Message) -> Event:
    """Return the event; DataError where its headers make no sense."""
    headers = {name.lower(): value for name, value in message.headers}
    beat = headers.get(HEARTBEAT)
    if beat is not None:
        if message.value:
            raise DataError(f"a message with the header {HEARTBEAT!r} carries no event")
        advance_ms = _time(HEARTBEAT, beat)
        return Event(message.offset, advance_ms, "nt", b"", advance_ms)
    if message.value is None:
        raise DataError("a message without a value")
    stamp = headers.get(TIMESTAMP)
    time_ms = message.timestamp_ms if stamp is None else _time(TIMESTAMP, stamp)
    content_type = headers.get(CONTENT_TYPE)
    syntax = _N_TRIPLES if content_type is None else Format.named(content_type.decode("utf-8", "replace")).value
    return Event(message.offset, time_ms, syntax, message.value, None, message.headers)


def _time(header: str, value: bytes) -> int:
    if len(value) < _LONG and value.isdigit():  # ASCII digits: nearly all
        return int(value)
    text = value.decode("ascii", "replace").strip()
    digits = text.removeprefix("-")
    # int() alone would take underscores and digits of other scripts.
    if not (digits.isascii() and digits.isdigit()) or len(digits) > len(str(MAX_TIME_MS)):
        raise DataError(f"header {header!r} is no integer of milliseconds: {text[:40]!r}")
    return int(text)
