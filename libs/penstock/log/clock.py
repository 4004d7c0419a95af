"""The wall clock as a port, so that tests and the simulation control the time."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Milliseconds since the Unix epoch."""

    def now_ms(self) -> int:
        """Return the time of day. It may jump, so durations must not be measured with it."""
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
        """Advance the clock and return the new time."""
        assert by_ms >= 0, by_ms
        self._now_ms += by_ms
        return self._now_ms
