"""Bounded queues of refused events: the late events of each stream, and the dead letters of the engine."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


@dataclass(frozen=True, slots=True)
class LateEvent:
    """A late event. When the event arrived, the event's time τ was at or before the stream's watermark (both in ms).
    The event had no effect (semantics.md §2).
    """

    stream: str
    timestamp: int
    watermark: int
    data: bytes

    @property
    def reason(self) -> str:
        """Why the event was late, as text."""
        return f"late: its time {self.timestamp} is not after the watermark {self.watermark}"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A rejected event. An event is rejected if it is invalid, is too far ahead, exceeds a limit, or is for an unknown
    stream. `timestamp` is the time of the event in ms, or None if the event has no time. `data` contains the original
    bytes of the event.
    """

    stream: str
    timestamp: int | None
    reason: str
    data: bytes


class _Refused(Protocol):
    @property
    def data(self) -> bytes: ...


T = TypeVar("T", bound=_Refused)


class Output(Generic[T]):
    """A bounded queue. If the queue is full, new entries replace the oldest ones. `lost` is the number of entries that
    were replaced. `total` is the number of all entries that have been added since the creation of the queue.
    """

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        self._entries: deque[T] = deque()
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._bytes = 0
        self.total = 0
        self.lost = 0

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, entry: T) -> None:
        """Add an entry. The call removes the oldest entries if a limit is exceeded."""
        self.total += 1
        self._entries.append(entry)
        self._bytes += len(entry.data)
        while self._entries and (len(self._entries) > self._max_entries or self._bytes > self._max_bytes):
            self._bytes -= len(self._entries.popleft().data)
            self.lost += 1

    def entries(self) -> list[T]:
        """Return all entries, the oldest first."""
        return list(self._entries)

    def take(self) -> list[T]:
        """Remove and return all entries, the oldest first."""
        taken, self._entries, self._bytes = list(self._entries), deque(), 0
        return taken
