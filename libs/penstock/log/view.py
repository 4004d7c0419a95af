"""What is the same over any back end: the compacted view of a topic, single records by their offset, lag."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from penstock.log.errors import TransientError
from penstock.log.port import START, Partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.log.port import Log, Message, Reader

_POLL_S = 0.2
_BATCH = 10_000
_NEAR = 1_000  # records that are rather read over than jumped over


class CompactedView:
    """The last record of each key of some partitions: what compaction would leave, whether it has run or not.

    Records without a key are passed over. Memory is that of the live keys.
    """

    def __init__(self, log: Log, partitions: Iterable[Partition]) -> None:
        self._reader: Reader = log.reader(dict.fromkeys(partitions, START))
        self.latest: dict[bytes, Message] = {}

    def catch_up(self, timeout_s: float = 60.0) -> dict[bytes, Message]:
        """Read on to the end of each partition as it is now; TransientError where that takes too long."""
        deadline = time.monotonic() + timeout_s
        while True:
            self.refresh(min(_POLL_S, timeout_s))
            if self._reader.caught_up():
                return self.latest
            if time.monotonic() > deadline:
                raise TransientError(f"the compacted view was not read to its end within {timeout_s} s")

    def refresh(self, timeout_s: float = 0.0) -> list[Message]:
        """Take in what has come, and return it in order."""
        messages = self._reader.poll(_BATCH, timeout_s)
        for message in messages:
            if message.key is None:
                continue
            if message.value is None:
                self.latest.pop(message.key, None)
            else:
                self.latest[message.key] = message
        return messages

    def positions(self) -> dict[Partition, int]:
        """Return how far each partition has been read."""
        return self._reader.positions()

    def close(self) -> None:
        """Let go of the reader; `latest` stays."""
        self._reader.close()


def records_behind(log: Log, positions: Mapping[Partition, int]) -> dict[str, int]:
    """Return how many records of each topic lie behind positions of its partitions: a question to the brokers."""
    found: dict[str, int] = {}
    for name, span in log.spans(positions).items():
        found[name.topic] = found.get(name.topic, 0) + max(0, span.end - max(positions[name], span.start))
    return found


class Lookup:
    """Single records by their offset, with one reader for all look-ups."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._reader: Reader | None = None

    def fetch(self, partition: Partition, offsets: Iterable[int], timeout_s: float = 10.0) -> dict[int, Message]:
        """Return the records at these offsets; those that retention or compaction removed are left out.

        TransientError where the log does not answer in time.
        """
        span = self._log.spans([partition])[partition]
        wanted = [offset for offset in sorted(set(offsets)) if span.start <= offset < span.end]
        if not wanted:
            return {}
        if self._reader is None:
            self._reader = self._log.reader()
        try:
            return self._read(self._reader, partition, wanted, time.monotonic() + timeout_s)
        finally:
            self._reader.unassign([partition])

    def _read(self, reader: Reader, partition: Partition, wanted: list[int], deadline: float) -> dict[int, Message]:
        found: dict[int, Message] = {}
        position = -1
        for offset in wanted:
            if offset < position:
                continue  # it was passed by: found, or gone
            if position < 0 or offset > position + _NEAR:
                reader.assign({partition: offset})
            while (position := reader.positions()[partition]) <= offset and not reader.caught_up():
                if time.monotonic() > deadline:
                    raise TransientError(f"{partition.topic}[{partition.number}]: no answer in time")
                found.update(
                    (message.offset, message)
                    for message in reader.poll(min(_BATCH, wanted[-1] - position + 1), _POLL_S)
                )
        return {offset: found[offset] for offset in wanted if offset in found}

    def close(self) -> None:
        """Let go of the reader."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
