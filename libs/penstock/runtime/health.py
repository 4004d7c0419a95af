"""Health checks. A service is live if its loop has recently finished an iteration. A service is ready if three
conditions hold: the service is live, its last step has not failed, and every check succeeds.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

STALL_S = 300.0
"""Default time in s after which a loop without progress is not live. Services use their `give_up_s` instead."""


class Health:
    """Health of a service. The service calls `check`, `beat` and `progress`; the web server's thread calls `alive` and
    `ready`.
    """

    def __init__(self, stall_s: float = STALL_S, now: Callable[[], float] = time.monotonic) -> None:
        self._stall_s = stall_s
        self._now = now
        self._beat = now()
        self._last_error: str | None = "starting"
        self._checks: dict[str, Callable[[], str | None]] = {}

    def check(self, name: str, probe: Callable[[], str | None]) -> None:
        """Add a check. `probe` returns None if the check succeeds, and otherwise the reason. A call of `probe` can take
        a second. An exception of `probe` counts as a reason.
        """
        self._checks[name] = probe

    def beat(self, last_error: str | None = None) -> None:
        """Record an iteration of the loop. `last_error`: the transient error because of which the loop will repeat the
        step, or None.
        """
        self._beat = self._now()
        self._last_error = last_error

    def progress(self) -> None:
        """Record progress within a long step, so that the loop does not count as stalled."""
        self._beat = self._now()

    def alive(self) -> str | None:
        """Return the reason to restart the process, or None."""
        idle_s = self._now() - self._beat
        return f"no iteration of the loop for {idle_s:.0f} s" if idle_s > self._stall_s else None

    def ready(self) -> dict[str, str]:
        """Return the failing checks with their reasons; empty if the service is ready."""
        wrong = {}
        if (stalled := self.alive()) is not None:
            wrong["loop"] = stalled
        elif self._last_error is not None:
            wrong["loop"] = self._last_error
        for name, probe in self._checks.items():
            try:
                reason = probe()
            except Exception as error:  # noqa: BLE001 - any exception is the check's result
                reason = repr(error)
            if reason is not None:
                wrong[name] = reason
        return wrong
