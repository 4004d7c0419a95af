"""Limits the rate of requests per token."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.http.security.roles import Identity


_MAX_OWNERS: Final = 10_000


class RequestRates:
    """A bucket for each owner of a token, by name. The bucket contains the number of requests that are allowed now, and
    fills at the owner's rate. The maximum burst is the number of requests that the rate allows in a second, but at
    least one request.

    Retains at most `_MAX_OWNERS` buckets. Full buckets are dropped first, because a full bucket has no effect.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._levels: dict[str, tuple[float, float]] = {}  # by name: (requests left, time of this number)

    def wait_s(self, identity: Identity) -> float:
        """Count a request. Returns 0 if the request is allowed, else the time in s until the next request is
        allowed.
        """
        rate = identity.rate
        if rate is None:
            return 0.0
        burst, now = max(rate, 1.0), self._now()
        with self._lock:
            if len(self._levels) >= _MAX_OWNERS:
                self._drop(now - burst / rate)
            left, then = self._levels.get(identity.name, (burst, now))
            left = min(burst, left + (now - then) * rate)
            if left < 1.0:
                self._levels[identity.name] = left, now
                return (1.0 - left) / rate
            self._levels[identity.name] = left - 1.0, now
            return 0.0

    def _drop(self, full: float) -> None:
        """Drop the buckets that have filled up: buckets that were last used at the time `full` or earlier. If no bucket
        has filled up, drop the least recently used half of all buckets.
        """
        recent = sorted(self._levels, key=lambda name: self._levels[name][1])[len(self._levels) // 2 :]
        live = {name for name, (_, then) in self._levels.items() if then > full}
        retained = live if len(live) < _MAX_OWNERS else set(recent)
        self._levels = {name: level for name, level in self._levels.items() if name in retained}
