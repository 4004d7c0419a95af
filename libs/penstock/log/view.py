"""Tools for any back end: a compacted view of a topic, record look-up by offset, and consumer lag."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from penstock.log.errors import TransientError
from penstock.log.port import START, Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from penstock.log.port import Log, Message, Reader

_POLL_S = 0.2
_BATCH = 10_000
_NEAR = 1_000  # gaps up to this many records are read instead of skipped


class CompactedView:
    """The last record of each key of some partitions. The view is the same before and after Kafka compacts the topic.

    Records without a key are ignored. Records that the function `accepts` rejects are ignored, too. The memory is
    proportional to the number of live keys.
    """

    def __init__(
        self, log: Log, partitions: Iterable[Partition], accepts: Callable[[Message], bool] = lambda _: True
    ) -> None:
        self._accepts = accepts
        self._reader: Reader = log.reader(dict.fromkeys(partitions, START))
        self.latest: dict[bytes, Message] = {}

    def catch_up(self, timeout_s: float = 60.0) -> dict[bytes, Message]:
        """Read to the current end of each partition. TransientError after the timeout."""
        deadline = time.monotonic() + timeout_s
        while True:
            self.refresh(min(_POLL_S, timeout_s))
            if self._reader.caught_up():
                return self.latest
            if time.monotonic() > deadline:
                raise TransientError(f"the compacted view did not reach its end within {timeout_s} s")

    def refresh(self, timeout_s: float = 0.0) -> list[Message]:
        """Apply newly received records. Returns the records that took effect, in order."""
        taken = []
        for message in self._reader.poll(_BATCH, timeout_s):
            if message.key is None:
                continue
            if message.value is None:
                self.latest.pop(message.key, None)
            elif self._accepts(message):
                self.latest[message.key] = message
            else:
                continue
            taken.append(message)
        return taken

    def positions(self) -> dict[Partition, int]:
        """Return the next offset to read of each partition."""
        return self._reader.positions()

    def close(self) -> None:
        """Close the reader. `latest` stays available."""
        self._reader.close()


def partitions_of(log: Log, topic: str) -> list[Partition]:
    """Return a topic's partitions. The list is empty if the topic does not exist."""
    return [Partition(topic, i) for i in range(log.topics().get(topic, 0))]


def records_behind(log: Log, positions: Mapping[Partition, int]) -> dict[str, int]:
    """Return, for each topic, the number of offsets from the given positions to the ends of the partitions. Queries the
    brokers.
    """
    found: dict[str, int] = {}
    for name, span in log.spans(positions).items():
        found[name.topic] = found.get(name.topic, 0) + max(0, span.end - max(positions[name], span.start))
    return found


class Lookup:
    """Look-up of single records by offset, with one shared reader."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._reader: Reader | None = None

    def fetch(
        self, requested: Mapping[Partition, Iterable[int]], timeout_s: float = 10.0
    ) -> dict[Partition, dict[int, Message]]:
        """Return the records at these offsets, except for records that retention or compaction has removed.

        All partitions are fetched together, because a client can need most of a second to find the leaders of new
        topics. TransientError if the log does not respond in time.
        """
        spans = self._log.spans(requested)
        left = {
            name: deque(offset for offset in sorted(set(offsets)) if spans[name].start <= offset < spans[name].end)
            for name, offsets in requested.items()
        }
        found: dict[Partition, dict[int, Message]] = {name: {} for name in requested}
        left = {name: offsets for name, offsets in left.items() if offsets}
        if left:
            self._reader = self._reader or self._log.reader()
            try:
                self._read(self._reader, left, found, time.monotonic() + timeout_s)
            finally:
                self._reader.unassign(list(self._reader.positions()))
        return found

    def _read(
        self,
        reader: Reader,
        left: dict[Partition, deque[int]],
        found: dict[Partition, dict[int, Message]],
        deadline: float,
    ) -> None:
        reader.assign({name: offsets[0] for name, offsets in left.items()})
        sought = {name: frozenset(offsets) for name, offsets in left.items()}
        while left:
            at = reader.positions()
            room = sum(max(offsets[-1] - at[name], 0) + 1 for name, offsets in left.items())
            for message in reader.poll(min(_BATCH, room), _POLL_S):
                name = Partition(message.topic, message.partition)
                if message.offset in sought[name]:
                    found[name][message.offset] = message
            done, far = _passed(left, reader.positions(), ended=reader.caught_up())
            if done:
                reader.unassign(done)
            if far:
                reader.assign(far)
            if left and time.monotonic() > deadline:
                raise TransientError(f"{len(left)} partitions did not respond in time, including {next(iter(left))}")

    def close(self) -> None:
        """Close the reader."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None


def _passed(
    left: dict[Partition, deque[int]], positions: Mapping[Partition, int], *, ended: bool
) -> tuple[list[Partition], dict[Partition, int]]:
    """Drop requested offsets that the reader has passed. The records at these offsets were found, or do not exist any
    more.

    Returns the partitions without remaining offsets, and a dict of positions. The dict contains each partition in which
    the next requested offset is far ahead. The reader should move to the position in the dict.
    """
    done, far = [], {}
    for name, offsets in list(left.items()):
        while offsets and (ended or offsets[0] < positions[name]):
            offsets.popleft()
        if not offsets:
            done.append(name)
            del left[name]
        elif offsets[0] > positions[name] + _NEAR:
            far[name] = offsets[0]
    return done, far
