"""A fair lock: threads acquire the lock in the order in which they began to wait.

A loop that releases and again acquires a `threading.Lock` can starve other threads. The steps of a busy service are
such a loop, and would delay HTTP requests.
"""

from __future__ import annotations

import threading
from collections import deque


class FairLock:
    """The lock, a context manager. Not reentrant."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._held = False
        self._waiting: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        """Acquire the lock after all threads that already wait for the lock."""
        with self._mutex:
            if not self._held:
                self._held = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def __exit__(self, *_: object) -> None:
        """Pass the lock to the thread that has waited longest."""
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False
