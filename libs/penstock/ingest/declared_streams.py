"""The declared streams and their predicate filters, from the control topic."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from penstock.log import Partition, TransientError
from penstock.quarantine import InternalRecords
from penstock.quarantine.kinds import CONTROL
from penstock.wire import StreamDeclaration, StreamPredicates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.log import Log, Message
    from penstock.log.topics import TopicNames

OPENING_S = 60.0
"""Maximum time in s in which a starting service reads a topic. After this time, the service raises TransientError."""
_POLL_S = 0.05


class DeclaredStreams:
    """The declarations of the streams with an events topic, by IRI. Derived streams have no events topic. A declaration
    is in the shards topic before it is in the control topic, from which this object reads. The records of the stream
    therefore follow the declaration in all partitions of the shards topic.

    `filters`: the predicate filters, by IRI of the stream.
    """

    def __init__(self, log: Log, names: TopicNames, timeout_s: float = OPENING_S) -> None:
        self._log, self._names, self._timeout_s = log, names, timeout_s
        self._records = InternalRecords(log, names)
        self._view = self._records.view([Partition(names.control)], CONTROL)
        self.by_iri: dict[str, StreamDeclaration] = {}
        self.filters: dict[str, StreamPredicates] = {}
        self.changes = 0
        self._by_topic: dict[str, StreamDeclaration] = {}
        self._mapped = 0
        self._keys: dict[bytes, str] = {}
        for key, message in self._view.catch_up(timeout_s).items():
            self._apply(key, message)

    def by_topic(self) -> Mapping[str, StreamDeclaration]:
        """Return the streams by the name of their events topic. The result is the same object until a declaration
        changes.
        """
        if self._mapped != self.changes:
            self._by_topic = {self._names.events(each.name): each for each in self.by_iri.values()}
            self._mapped = self.changes
        return self._by_topic

    def refresh(self, timeout_s: float = 0.0) -> bool:
        """Read new records. Wait at most `timeout_s` seconds for records. Return whether a declaration or filter has
        changed.
        """
        before = self.changes
        for message in self._view.refresh(timeout_s):
            if message.key is not None:
                self._apply(message.key, message)
        return self.changes > before

    def catch_up(self) -> None:
        """Read all records before the current end of the topic. TransientError if this takes longer than the
        constructor's `timeout_s`.
        """
        partition = Partition(self._names.control)
        end = self._log.spans([partition])[partition].end
        deadline = time.monotonic() + self._timeout_s
        while self._view.positions()[partition] < end:
            self.refresh(_POLL_S)
            if time.monotonic() > deadline and self._view.positions()[partition] < end:
                raise TransientError("the coordinator's log did not reach its end in time")

    def _apply(self, key: bytes, message: Message) -> None:
        record = None if message.value is None else self._records.read(message, CONTROL)
        known = self._keys.pop(key, None)
        if known is not None:
            del self.by_iri[known]
            self.changes += 1
        if isinstance(record, StreamDeclaration) and record.publisher is None:
            self._keys[key] = record.iri
            self.by_iri[record.iri] = record
            self.changes += 1
        if isinstance(record, StreamPredicates):
            self.filters[record.stream] = record
            self.changes += 1

    def close(self) -> None:
        """Close the reader."""
        self._view.close()
