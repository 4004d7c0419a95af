"""Health that is tested: alive = the loop has come round lately; ready = alive, and every check passes when asked."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

STALL_S = 300.0
"""A loop that makes no progress for so long is not alive; services use their `give_up_s`."""


class Health:
    """`beat` is called by the service's loop, the rest by the web server's thread."""

    def __init__(self, stall_s: float = STALL_S, now: Callable[[], float] = time.monotonic) -> None:
        self._stall_s = stall_s
        self._now = now
        self._beat = now()
        self._last_error: str | None = "starting"
        self._checks: dict[str, Callable[[], str | None]] = {}

    def check(self, name: str, probe: Callable[[], str | None]) -> None:
        """Add a check: None where all is well, else the reason. It may take a second; an exception is a reason."""
        self._checks[name] = probe

    def beat(self, last_error: str | None = None) -> None:
        """The loop has come round; `trouble` is what it is trying over."""
        self._beat = self._now()
        self._last_error = last_error

    def progress(self) -> None:
        """The loop is busy, and makes progress: how much there is to do says nothing about being alive."""
        self._beat = self._now()

    def alive(self) -> str | None:
        """Return why the process should be killed, or None."""
        silent = self._now() - self._beat
        return f"the loop has not come round for {silent:.0f} s" if silent > self._stall_s else None

    def ready(self) -> dict[str, str]:
        """Return what is wrong, by check; empty where the service does its work."""
        wrong = {}
        if (stalled := self.alive()) is not None:
            wrong["loop"] = stalled
        elif self._last_error is not None:
            wrong["loop"] = self._last_error
        for name, probe in self._checks.items():
            try:
                reason = probe()
            except Exception as error:  # noqa: BLE001 - whatever a check meets is its answer
                reason = repr(error)
            if reason is not None:
                wrong[name] = reason
        return wrong
