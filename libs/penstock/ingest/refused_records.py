"""Records of late and rejected events, for users. Such a record is a copy of the original message, with the reason and
the source in headers (semantics.md §2, §6).

A copy has the value and headers of the original, including the content type. The copy also has these headers: `reason`,
`source` (topic/partition/offset), `stream`, `time` in ms if known, and `watermark` for late events. The key of the copy
has the same text as `source`. If several events of a message are late or rejected, there is only one copy. In this
case, `time` is the time of the first late or rejected event, and the header `events` is the number of these events.

A copy never exceeds MAX_RECORD_BYTES. A longer value is truncated, and the header `truncated` contains the size of the
original value in bytes. Headers beyond `MAX_HEADERS_BYTES` are omitted, and the header `headers-left-out` contains the
number of omitted headers. The original message remains in its source topic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import DataError
from penstock.log import MAX_RECORD_BYTES, Record
from penstock.log.sizes import headers_bytes, wire_bytes

if TYPE_CHECKING:
    from penstock.log import Message
    from penstock.log.port import Headers
    from penstock.log.topics import TopicNames

_TRUNCATED, _LEFT_OUT = "truncated", "headers-left-out"
_EVENTS = "events"
_OWN = frozenset({"reason", "source", "stream", "time", "watermark", _EVENTS, _TRUNCATED, _LEFT_OUT})
MAX_HEADERS_BYTES = 64 << 10
"""Maximum total size, in bytes, of the headers that are copied from the original."""
MAX_REASON_BYTES = 4 << 10
"""Maximum size of a reason in bytes. A reason can quote the input."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A rejected event, with its source, the reason, and the original bytes. `truncated`: None if `data` is the
    complete value of the original message. If `data` is only the beginning, `truncated` is the size of the complete
    value in bytes.
    """

    topic: str
    partition: int
    offset: int
    reason: str
    data: bytes
    stream: str
    time_ms: int | None = None
    truncated: int | None = None


@dataclass(frozen=True, slots=True)
class LateEvent:
    """A late event: its time was at or before the watermark. `truncated`: as in `DeadLetter`."""

    stream: str
    topic: str
    partition: int
    offset: int
    time_ms: int
    watermark_ms: int
    data: bytes
    truncated: int | None = None


def source_key(topic: str, partition: int, offset: int) -> bytes:
    """Return the key of the record of a refused event. The key contains the position of the event."""
    return f"{topic}/{partition}/{offset}".encode()


def dead_letter_record(names: TopicNames, letter: DeadLetter, headers: Headers = (), events: int = 1) -> Record:
    """Return the record of a dead letter. `headers`: the headers of the original message. `events`: the number of
    rejected events in this message. The time in `letter` is the time of the first of these events.
    """
    key = source_key(letter.topic, letter.partition, letter.offset)
    own = [("reason", _shortened(letter.reason)), ("source", key.decode()), ("stream", letter.stream)]
    own += [] if letter.time_ms is None else [("time", str(letter.time_ms))]
    own += [(_EVENTS, str(events))] if events > 1 else []
    return _copy(Record(names.dead_letter, letter.data, key), headers, own)


def late_record(names: TopicNames, event: LateEvent, headers: Headers = (), events: int = 1) -> Record:
    """Return the record of a late event. `headers`: the headers of the original message. `events`: the number of late
    events in this message. `event` is the first of these events.
    """
    key = source_key(event.topic, event.partition, event.offset)
    own = [
        ("reason", f"late: its time {event.time_ms} is not after the watermark {event.watermark_ms}"),
        ("source", key.decode()),
        ("stream", event.stream),
        ("time", str(event.time_ms)),
        ("watermark", str(event.watermark_ms)),
    ]
    own += [(_EVENTS, str(events))] if events > 1 else []
    return _copy(Record(names.late, event.data, key), headers, own)


def read_refused(message: Message) -> DeadLetter | LateEvent:
    """Parse a record of the dead-letter or late topic. DataError if the record is neither a dead letter
    nor a late event.
    """
    said = {name: value.decode("utf-8", "replace") for name, value in message.headers if name in _OWN}
    numbers = {
        name: int(said[name]) for name in ("time", "watermark", _TRUNCATED) if said.get(name, "").lstrip("-").isdigit()
    }
    data, truncated = message.value or b"", numbers.get(_TRUNCATED)
    try:
        topic, partition, offset = said["source"].rsplit("/", 2)
        place = topic, int(partition), int(offset)
        if "watermark" in said:
            return LateEvent(said["stream"], *place, numbers["time"], numbers["watermark"], data, truncated)
        return DeadLetter(*place, said["reason"], data, said["stream"], numbers.get("time"), truncated)
    except (KeyError, ValueError) as error:
        raise DataError(
            f"{message.topic}[{message.partition}], offset {message.offset}: not a refused event: {error!r}"
        ) from error


def _copy(record: Record, headers: Headers, own: list[tuple[str, str]]) -> Record:
    """Return the record with the headers of the original message and additional headers (`own`). The record's value is
    truncated so that the record does not exceed MAX_RECORD_BYTES.
    """
    copied, left_out = _bounded([(name, value) for name, value in headers if name not in _OWN])
    own += [(_LEFT_OUT, str(left_out))] if left_out else []
    made = record._replace(headers=(*copied, *((name, text.encode("utf-8", "replace")) for name, text in own)))
    if wire_bytes(made) <= MAX_RECORD_BYTES:
        return made
    value = made.value or b""  # a copy without a value always fits
    made = made._replace(headers=(*made.headers, (_TRUNCATED, str(len(value)).encode())))
    return made._replace(value=value[: len(value) + MAX_RECORD_BYTES - wire_bytes(made)])


def _bounded(headers: list[tuple[str, bytes]]) -> tuple[Headers, int]:
    """Return the first headers, with a total size of at most MAX_HEADERS_BYTES, and the number of omitted headers."""
    size = 0
    for i, header in enumerate(headers):
        size += headers_bytes((header,))
        if size > MAX_HEADERS_BYTES:
            return tuple(headers[:i]), len(headers) - i
    return tuple(headers), 0


def _shortened(reason: str) -> str:
    return reason.encode("utf-8", "replace")[:MAX_REASON_BYTES].decode("utf-8", "ignore")
