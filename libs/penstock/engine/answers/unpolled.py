"""Accounting of pending answers: their total size in an engine, and the query with the largest share."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.engine.standing.member import Member


class Unpolled:
    """Size in bytes of the blocks in all logs of an engine. Polling threads subtract while evaluations add."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.bytes = 0

    def add(self, size: int) -> None:
        """Add pending bytes, or subtract (negative)."""
        with self._lock:
            self.bytes += size


def fullest(members: Iterable[Member]) -> Member | None:
    """Return the member without a subscriber that holds the most bytes; None if no such member holds any."""
    sizes = {member: member.result_queue.bytes() for member in members if not member.result_queue.subscribed}
    found = max(sizes, key=sizes.__getitem__, default=None)
    return found if found is not None and sizes[found] else None
