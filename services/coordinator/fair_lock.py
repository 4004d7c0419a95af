"""A lock that goes to whoever has waited longest.

`threading.Lock` may go again and again to a thread that releases and takes it in a loop, as a service's steps do while
there is work: requests over HTTP would wait for as long.
"""

from __future__ import annotations

import threading
from collections import deque


class FairLock:
    """A context manager. Not reentrant."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._held = False
        self._waiting: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        """Wait for the lock, behind all who wait already."""
        with self._mutex:
            if not self._held:
                self._held = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def __exit__(self, *_: object) -> None:
        """Pass the lock to the one that has waited longest."""
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False
