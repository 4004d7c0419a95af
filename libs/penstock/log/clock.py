"""Wall clock as a port: services take one, so that tests and the simulation decide what time it is."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Milliseconds since the Unix epoch."""

    def now_ms(self) -> int:
        """Return the time of day; it may jump, so never measure durations by it."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Return the time of day."""
        return time.time_ns() // 1_000_000


class VirtualClock:
    """A clock that moves only when it is told to."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        """Return the time it was set to."""
        return self._now_ms

    def advance(self, by_ms: int) -> int:
        """Move forward and return the new time."""
        assert by_ms >= 0, by_ms
        self._now_ms += by_ms
        return self._now_ms
