"""The late events and dead letters of a cluster. Each client receives each late event and each dead letter once."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from penstock.engine.intake import rejected_events as embedded
from penstock.errors import DataError
from penstock.ingest import refused_records as records
from penstock.log import START
from penstock.log.view import partitions_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log import Log, Message, Reader
    from penstock.log.topics import TopicNames

_POLL, _WAIT_S = 1_000, 0.2
T = TypeVar("T", records.LateEvent, records.DeadLetter)


class Refused:
    """Consumes the topics of late events and dead letters, from the start of the topics."""

    def __init__(self, log: Log, names: TopicNames) -> None:
        self._log = log
        self._topics = names.late, names.dead_letter
        self._readers: dict[str, Reader] = {}
        self._late: defaultdict[str, list[embedded.LateEvent]] = defaultdict(list)

    def late(self, stream: str) -> list[embedded.LateEvent]:
        """Return the late events of a stream that were not returned before."""
        for event in self._refused(self._topics[0], records.LateEvent):
            late = embedded.LateEvent(event.stream, event.time_ms, event.watermark_ms, event.data)
            self._late[event.stream].append(late)
        return self._late.pop(stream, [])

    def dead_letters(self) -> list[embedded.DeadLetter]:
        """Return the dead letters that were not returned before."""
        letters = self._refused(self._topics[1], records.DeadLetter)
        return [embedded.DeadLetter(each.stream, each.time_ms, _reason(each), each.data) for each in letters]

    def _refused(self, topic: str, kind: type[T]) -> Iterator[T]:
        """Yield the new late events or dead letters of a topic. `kind`: the class of the results. Ignores records of
        another kind, and records that cannot be decoded.
        """
        for message in self._new(topic):
            with suppress(DataError):
                refused = records.read_refused(message)
                if isinstance(refused, kind):
                    yield refused

    def _new(self, topic: str) -> list[Message]:
        """Read a topic to its end, and return the messages that were not returned before."""
        if topic not in self._readers:
            self._readers[topic] = self._log.reader(dict.fromkeys(partitions_of(self._log, topic), START))
        reader, found = self._readers[topic], []
        while (messages := reader.poll(_POLL, _WAIT_S)) or not reader.caught_up():
            found += messages
        return found

    def close(self) -> None:
        """Close the readers."""
        for reader in self._readers.values():
            reader.close()


def _reason(letter: records.DeadLetter) -> str:
    if letter.truncated is None:
        return letter.reason
    return f"{letter.reason} (truncated: the original has {letter.truncated} bytes)"
