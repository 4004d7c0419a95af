"""The pending answers of an engine: their total size, and the logs that have some."""

from __future__ import annotations

from itertools import count
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.engine.answers.block_log import BlockLog


class Unpolled:
    """The total size in bytes of the blocks in all block logs of an engine, and the logs with blocks of single queries.

    `lock` also protects the logs: threads that poll remove blocks while evaluations append others.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.bytes = 0
        self._orders = count()
        self._filled: dict[BlockLog, None] = {}

    def order(self) -> int:
        """Return the place of a new log among all logs."""
        return next(self._orders)

    def filled(self, log: BlockLog) -> None:
        """Record that a log has blocks. The caller holds the lock."""
        self._filled[log] = None

    def emptied(self, log: BlockLog) -> None:
        """Record that a log has no blocks. The caller holds the lock."""
        self._filled.pop(log, None)

    def claim(self) -> list[BlockLog]:
        """Return the logs of single queries that have blocks, without those that an earlier call has returned. A log is
        returned again after `BlockLog.following` has returned nothing.
        """
        if not self._filled:
            return []
        with self.lock:
            claimed = list(self._filled)
            for log in claimed:
                log.claimed = True
            self._filled.clear()
        return claimed
