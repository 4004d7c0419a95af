"""Outputs for what was not accepted: late events of each stream, and dead letters. Bounded; what is pushed out is
counted.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


@dataclass(frozen=True, slots=True)
class LateEvent:
    """An event that came after its time had been closed: τ ≤ watermark on arrival. It changed nothing (semantics.md
    §2).
    """

    stream: str
    timestamp: int
    watermark: int
    data: bytes

    @property
    def reason(self) -> str:
        """Why it was refused, in words."""
        return f"late: its time {self.timestamp} is not after the watermark {self.watermark}"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Input that could not be used: unparsable, over a limit, or for an unknown stream. `data` is the original
    bytes.
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
    """A bounded queue: the oldest entries make room, and `lost` counts them; `total` counts all that ever came."""

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
        """Add an entry, at the cost of the oldest ones where a bound is reached."""
        self.total += 1
        self._entries.append(entry)
        self._bytes += len(entry.data)
        while self._entries and (len(self._entries) > self._max_entries or self._bytes > self._max_bytes):
            self._bytes -= len(self._entries.popleft().data)
            self.lost += 1

    def entries(self) -> list[T]:
        """Return all entries, oldest first, and keep them."""
        return list(self._entries)

    def take(self) -> list[T]:
        """Return all entries, oldest first, and forget them."""
        taken, self._entries, self._bytes = list(self._entries), deque(), 0
        return taken
