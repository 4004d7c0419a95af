"""Whether a process that follows the log has come near its end: only then may it get shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.log import Message, Reader
    from penstock.log.clock import Clock

NEAR_MS = 500
"""Age of the last record read at which a reader is near the end, where more records come without a pause."""


class LogEnd:
    """`near` stays true once it is: a process that falls behind later keeps what it has."""

    def __init__(self, reader: Reader, clock: Clock) -> None:
        self._reader, self._clock = reader, clock
        self._last_ms: int | None = None
        self.near = False

    def look(self, messages: Sequence[Message]) -> None:
        """Note a poll's records, once they are applied."""
        if self.near:
            return
        for message in messages:
            self._last_ms = max(message.timestamp_ms, self._last_ms or message.timestamp_ms)
        fresh = self._last_ms is not None and self._clock.now_ms() - self._last_ms <= NEAR_MS
        self.near = fresh or self._reader.caught_up()
