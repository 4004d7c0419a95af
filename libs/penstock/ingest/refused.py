"""What was refused, as users read it: the original bytes as value, why and where from in headers (semantics.md §2, §6).

Headers of the original stay (its content type above all); beside them stand `reason`, `source` (topic/partition/offset,
the key too), `stream`, `time` in ms where it is known, and `watermark` of late events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.log import Record

if TYPE_CHECKING:
    from penstock.log import Message
    from penstock.log.port import Headers
    from penstock.log.topics import TopicNames

_OWN = frozenset({"reason", "source", "stream", "time", "watermark"})


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Input that could not be used."""

    topic: str
    partition: int
    offset: int
    reason: str
    data: bytes
    stream: str
    time_ms: int | None = None


@dataclass(frozen=True, slots=True)
class LateEvent:
    """An event whose time had been closed when it came."""

    stream: str
    topic: str
    partition: int
    offset: int
    time_ms: int
    watermark_ms: int
    data: bytes


def source_key(topic: str, partition: int, offset: int) -> bytes:
    """Return the key of refused input: where it came from."""
    return f"{topic}/{partition}/{offset}".encode()


def dead_letter_record(names: TopicNames, letter: DeadLetter, headers: Headers = ()) -> Record:
    """Return the record of a dead letter; `headers`: the original's."""
    key = source_key(letter.topic, letter.partition, letter.offset)
    own = [("reason", letter.reason), ("source", key.decode()), ("stream", letter.stream)]
    own += [] if letter.time_ms is None else [("time", str(letter.time_ms))]
    return Record(names.dead_letter, letter.data, key, headers=_with(headers, own))


def late_record(names: TopicNames, event: LateEvent, headers: Headers = ()) -> Record:
    """Return the record of a late event; `headers`: the original's."""
    key = source_key(event.topic, event.partition, event.offset)
    own = [
        ("reason", f"late: its time {event.time_ms} is not after the watermark {event.watermark_ms}"),
        ("source", key.decode()),
        ("stream", event.stream),
        ("time", str(event.time_ms)),
        ("watermark", str(event.watermark_ms)),
    ]
    return Record(names.late, event.data, key, headers=_with(headers, own))


def read_refused(message: Message) -> DeadLetter | LateEvent:
    """Return what a record of one of the two topics says."""
    told = {name: value.decode("utf-8", "replace") for name, value in message.headers if name in _OWN}
    topic, partition, offset = told["source"].rsplit("/", 2)
    data, time_ms = message.value or b"", told.get("time")
    if "watermark" in told:
        watermark_ms = int(told["watermark"])
        return LateEvent(told["stream"], topic, int(partition), int(offset), int(told["time"]), watermark_ms, data)
    time = None if time_ms is None else int(time_ms)
    return DeadLetter(topic, int(partition), int(offset), told["reason"], data, told["stream"], time)


def _with(headers: Headers, own: list[tuple[str, str]]) -> Headers:
    kept = tuple((name, value) for name, value in headers if name not in _OWN)
    return (*kept, *((name, text.encode()) for name, text in own))
