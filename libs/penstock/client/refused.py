"""Late events and dead letters of a cluster, each taken once by each client."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from penstock.engine import refused as embedded
from penstock.ingest import refused as told
from penstock.log import START
from penstock.log.view import partitions_of

if TYPE_CHECKING:
    from penstock.log import Log, Message, Reader
    from penstock.log.topics import TopicNames

_POLL, _WAIT_S = 1_000, 0.2


class Refused:
    """Follows the topics of what was refused, from their beginning, once somebody asks."""

    def __init__(self, log: Log, names: TopicNames) -> None:
        self._log = log
        self._topics = names.late, names.dead_letter
        self._readers: dict[str, Reader] = {}
        self._late: defaultdict[str, list[embedded.LateEvent]] = defaultdict(list)

    def late(self, stream: str) -> list[embedded.LateEvent]:
        """Take the late events of a stream."""
        for message in self._new(self._topics[0]):
            event = told.read_refused(message)
            assert isinstance(event, told.LateEvent)
            late = embedded.LateEvent(event.stream, event.time_ms, event.watermark_ms, event.data)
            self._late[event.stream].append(late)
        return self._late.pop(stream, [])

    def dead_letters(self) -> list[embedded.DeadLetter]:
        """Take the dead letters."""
        letters = [told.read_refused(message) for message in self._new(self._topics[1])]
        return [
            embedded.DeadLetter(letter.stream or "", letter.time_ms, letter.reason, letter.data)
            for letter in letters
            if isinstance(letter, told.DeadLetter)
        ]

    def _new(self, topic: str) -> list[Message]:
        """Return what has come since the last look."""
        if topic not in self._readers:
            self._readers[topic] = self._log.reader(dict.fromkeys(partitions_of(self._log, topic), START))
        reader, found = self._readers[topic], []
        while (messages := reader.poll(_POLL, _WAIT_S)) or not reader.caught_up():
            found += messages
        return found

    def close(self) -> None:
        """Let go."""
        for reader in self._readers.values():
            reader.close()
