"""Detects when a process has nearly reached the end of the log. Heartbeats report to the coordinator whether this is
the case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.log import Message, Reader
    from penstock.log.clock import Clock

NEAR_MS = 500
"""A reader is near the end of the log if the last record that it has read is at most this number of ms old. Newer
records can be unread.
"""


class LogEnd:
    """Observes one reader. `near`: whether the reader has been near the end at least once. `near` then stays True, so
    that a process that lags later keeps its shards or buckets.
    """

    def __init__(self, reader: Reader, clock: Clock) -> None:
        self._reader, self._clock = reader, clock
        self._last_ms: int | None = None
        self.near = False

    def look(self, messages: Sequence[Message]) -> None:
        """Update `near`. Call after the records of a poll (`messages`) have been applied."""
        if self.near:
            return
        for message in messages:
            self._last_ms = max(message.timestamp_ms, self._last_ms or message.timestamp_ms)
        fresh = self._last_ms is not None and self._clock.now_ms() - self._last_ms <= NEAR_MS
        self.near = fresh or self._reader.caught_up()
