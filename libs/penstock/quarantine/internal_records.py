"""Decoding of the records of internal topics, for all services."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import UnavailableError
from penstock.log import LogError, Partition
from penstock.log.view import CompactedView
from penstock.quarantine.place import Place, UnreadableRecordError
from penstock.wire import WireError, decode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.log import Log, Message
    from penstock.log.topics import TopicNames
    from penstock.quarantine.kinds import Kinds
    from penstock.wire.codec import Wire

_CONSULT_S: Final = 30.0
_QUIET_S: Final = 10.0  # minimum interval in s between two warnings
_log = logging.getLogger("penstock.quarantine")


class InternalRecords:
    """Decodes the records of a cluster's internal topics. Skips records in quarantine.

    Only records that cannot be decoded are looked up in quarantine. A record that can be decoded is never skipped,
    because other services have perhaps already applied the record. `ignored`: number of records that `read_or_ignore`
    has skipped.
    """

    def __init__(self, log: Log, names: TopicNames) -> None:
        self._log, self._topic = log, names.quarantine
        self.ignored = 0
        self._warned = -_QUIET_S

    def read(self, message: Message, kinds: Kinds) -> Any:
        """Return the record in a message, or None if the record is in quarantine. `kinds`: the permitted kinds of
        records. UnreadableRecordError if the record cannot be decoded or has another kind, and the position of the
        record is not found in the quarantine topic.

        This method never raises TransientError. The position of the caller's reader is already after the record, so
        that a retry would skip the record.
        """
        try:
            return _decoded(message, kinds)
        except WireError as error:
            place = Place.of(message)
            if not self._set_aside(place, str(error)):
                raise UnreadableRecordError(place, str(error)) from error
            _log.warning("skipping a record in quarantine", extra={"record": str(place), "reason": str(error)})
            return None

    def read_or_ignore(self, message: Message, kinds: Kinds) -> Any:
        """Return the record in a message, or None if the record cannot be decoded. Only for topics in which no single
        record is essential.
        """
        try:
            return _decoded(message, kinds)
        except WireError as error:
            self.ignored += 1
            if time.monotonic() - self._warned >= _QUIET_S:
                self._warned = time.monotonic()
                fields = {"record": str(Place.of(message)), "reason": str(error), "ignored": self.ignored}
                _log.warning("ignoring an unreadable record", extra=fields)
            return None

    def view(self, partitions: Iterable[Partition], kinds: Kinds) -> CompactedView:
        """Return a compacted view of partitions. If a record is in quarantine, the previous record with the same key
        stays in the view.
        """
        return CompactedView(self._log, partitions, lambda message: self.read(message, kinds) is not None)

    def _set_aside(self, place: Place, why: str) -> bool:
        try:
            if self._topic not in self._log.topics():
                return False
            view = CompactedView(self._log, [Partition(self._topic)])
            try:
                return str(place).encode() in view.catch_up(_CONSULT_S)
            finally:
                view.close()
        except (LogError, UnavailableError) as error:
            raise UnreadableRecordError(place, f"{why}; topic {self._topic} cannot be read: {error}") from error


def _decoded(message: Message, kinds: Kinds) -> Wire:
    record = decode(message.value or b"")
    if not isinstance(record, kinds):
        expected = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise WireError(f"a {type(record).__name__} in place of {expected}")
    return record


def readable(message: Message, kinds: Kinds) -> str | None:
    """Return the reason why a record cannot be decoded, or None if it can be decoded."""
    try:
        _decoded(message, kinds)
    except WireError as error:
        return str(error)
    return None
