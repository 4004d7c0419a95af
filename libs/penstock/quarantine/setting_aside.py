"""Puts records into quarantine, for `penstock quarantine`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import DataError
from penstock.log import Partition, Record, Topic
from penstock.log.view import CompactedView, Lookup
from penstock.quarantine.internal_records import readable
from penstock.quarantine.kinds import kinds_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.log import Log, Message
    from penstock.log.topics import TopicNames
    from penstock.quarantine.place import Place

_READ_S = 60.0


class Quarantined(NamedTuple):
    """A record in quarantine. `place`: the position of the record as text. `bytes`: the size of the record's value.
    `fresh`: whether this call of `set_aside` has put the record into quarantine.
    """

    place: str
    reason: str
    bytes: int
    fresh: bool = False


def listed(log: Log, names: TopicNames) -> list[Quarantined]:
    """Return the records in quarantine, sorted by position."""
    if names.quarantine not in log.topics():
        return []
    view = CompactedView(log, [Partition(names.quarantine)])
    try:
        found = [_entry(key, message.value or b"") for key, message in view.catch_up(_READ_S).items()]
    finally:
        view.close()
    return sorted(found)


def set_aside(log: Log, names: TopicNames, place: Place, copy: Callable[[Message, str], Record]) -> Quarantined:
    """Put the record at `place` into quarantine. In the same transaction, append the record that `copy(message,
    reason)` returns.

    If the record is already in quarantine, the call has no effect. DataError if the record does not exist or can be
    decoded, or if its topic is not internal.
    """
    for known in listed(log, names):
        if known.place == str(place):
            return known
    kinds = kinds_of(names, place.topic)
    if kinds is None:
        raise DataError(
            f"{place.topic} is not an internal topic of the cluster {names.prefix!r}: its records need no quarantine"
        )
    message = _found(log, place)
    reason = readable(message, kinds)
    if reason is None:
        raise DataError(f"{place} is readable: services do not skip it")
    log.create([Topic(names.quarantine, 1, "compact")])
    size = len(message.value or b"")
    value = json.dumps({"reason": reason, "bytes": size}).encode()
    writer = log.transactional(f"{names.prefix}.quarantine")
    try:
        writer.commit([copy(message, reason), Record(names.quarantine, value, str(place).encode())])
    finally:
        writer.close()
    return Quarantined(str(place), reason, size, fresh=True)


def _found(log: Log, place: Place) -> Message:
    topics = log.topics()
    if place.number >= topics.get(place.topic, 0):
        raise DataError(f"there is no partition {place.number} of topic {place.topic}")
    lookup = Lookup(log)
    try:
        message = lookup.fetch({place.partition: [place.offset]})[place.partition].get(place.offset)
    finally:
        lookup.close()
    if message is None:
        span = log.spans([place.partition])[place.partition]
        raise DataError(
            f"there is no record {place}: the partition has offsets {span.start} to {span.end - 1}, with gaps"
        )
    return message


def _entry(key: bytes, value: bytes) -> Quarantined:
    """Return an entry of the quarantine topic. `key`: the position of the record. `value`: JSON with the reason and the
    size, for information only.
    """
    try:
        said = json.loads(value)
        reason, size = str(said["reason"]), int(said["bytes"])
    except (ValueError, KeyError, TypeError):
        reason, size = "", 0
    return Quarantined(key.decode("utf-8", "replace"), reason, size)
