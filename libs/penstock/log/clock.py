"""The interface of the wall clock. Tests and the simulation have implementations of their own, to control the time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """A clock. Times are in milliseconds since the Unix epoch."""

    def now_ms(self) -> int:
        """Return the time of day. The clock can jump, so durations must not be measured with this method."""
        ...


class SystemClock:
    """The system clock."""

    def now_ms(self) -> int:
        """Return the time of day."""
        return time.time_ns() // 1_000_000


class VirtualClock:
    """A clock that moves only on `advance`."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        """Return the current virtual time."""
        return self._now_ms

    def advance(self, by_ms: int) -> int:
        """Advance the clock by a number of milliseconds, and return the new time."""
        assert by_ms >= 0, by_ms
        self._now_ms += by_ms
        return self._now_ms
