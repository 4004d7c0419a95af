"""The total size of the pending answers of an engine."""

from __future__ import annotations

from threading import Lock


class Unpolled:
    """The total size in bytes of the blocks in all block logs of an engine. Threads that poll may subtract while
    evaluations add.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self.bytes = 0

    def add(self, size: int) -> None:
        """Add `size` bytes. A negative size subtracts."""
        with self._lock:
            self.bytes += size
