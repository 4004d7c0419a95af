"""The loop around a service's steps. The loop retries transient failures with increasing pauses. Any other error ends
the loop. A transient failure that lasts longer than `give_up_s` also ends the loop.
"""

from __future__ import annotations

import signal
import threading
import time
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from penstock.log.errors import Backpressure, TransientError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from structlog.typing import FilteringBoundLogger

    from penstock.runtime.health import Health
    from penstock.runtime.metrics import Metrics

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 5.0
LEAVE_S = 5.0
"""Default time in s that a service has to hand over its work after the stop request."""


class OverdueError(Exception):
    """A service did not hand over its work within `leave_s` after a stop request."""


class ServiceCore(Protocol):
    """A service core: a service without its process."""

    def step(self, timeout_s: float) -> bool:
        """Perform due work. Waits at most `timeout_s` seconds for input. Returns whether there was any work."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


@runtime_checkable
class Leaving(Protocol):
    """A service core with a handover: before the end, other processes take over its shards or buckets."""

    @property
    def left(self) -> bool:
        """Whether the handover has ended: this instance serves nothing any more, or no other process can take over."""

    def leave(self) -> None:
        """Request the handover. Steps continue meanwhile."""


class Stopping:
    """The stop flag, which SIGTERM and SIGINT set. Once the flag is set, the current step finishes. Then the service
    hands over its work and shuts down.

    A long step tests the flag and calls `check` between its parts. If the flag is set, the step ends early. `leave_s`:
    time in s that the service has to hand over its work after the stop request.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic, leave_s: float = LEAVE_S) -> None:
        self.leave_s = leave_s
        self._event = threading.Event()
        self._now = now
        self._asked_s = 0.0

    def listen(self) -> None:
        """Install the signal handlers. Main thread only."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if self._event.is_set():
            signal.signal(number, signal.SIG_DFL)  # a second signal ends the process at once
            signal.raise_signal(number)
        self.stop()

    def stop(self) -> None:
        """Request the stop."""
        self._asked_s = self._now()
        self._event.set()

    @property
    def overdue(self) -> bool:
        """Whether the stop was requested more than `leave_s` ago."""
        return bool(self) and self._now() >= self._asked_s + self.leave_s

    def check(self) -> None:
        """Raise OverdueError if the stop is overdue. After this error, the caller must not continue the interrupted
        step.
        """
        if self.overdue:
            raise OverdueError

    def __bool__(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        """Sleep for `seconds`, or until a stop request. If a stop is already requested, sleep for at most
        `_FIRST_PAUSE_S`.
        """
        if self:
            time.sleep(min(seconds, _FIRST_PAUSE_S))
        else:
            self._event.wait(seconds)


class Loop:
    """Runs the steps of a service, and the handover at its end."""

    def __init__(
        self,
        stopping: Stopping,
        health: Health,
        metrics: Metrics,
        logger: FilteringBoundLogger,
        give_up_s: float,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stopping, self._health, self._metrics, self._logger = stopping, health, metrics, logger
        self._give_up_s = give_up_s
        self._now = now

    def run(self, core: ServiceCore, timeout_s: float) -> None:
        """Run steps until a stop is requested. If the service core has a handover (`Leaving`), then run steps until the
        handover is over. Raises errors that are not transient. Raises a transient error that lasts longer than
        `give_up_s`.
        """
        try:
            self._run(core, timeout_s)
            if isinstance(core, Leaving):
                self._leave(core, core.step, timeout_s)
        except OverdueError:
            self._logger.warning(
                "stopped without a handover", reason=f"it takes longer than {self._stopping.leave_s:g} s"
            )

    def _run(self, core: ServiceCore, timeout_s: float) -> None:
        failing_since: float | None = None
        pause_s = _FIRST_PAUSE_S
        while not self._stopping:
            began = self._now()
            try:
                worked = core.step(timeout_s)
            except (TransientError, Backpressure) as error:
                failing_since = began if failing_since is None else failing_since
                if self._now() - failing_since > self._give_up_s:
                    raise
                self._metrics.retries.inc()
                self._logger.warning("retrying", reason=str(error), pause_s=pause_s)
                self._health.beat(f"retrying: {error}")
                self._stopping.wait(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                continue
            failing_since, pause_s = None, _FIRST_PAUSE_S
            self._health.beat()
            if worked:
                self._metrics.step.observe(self._now() - began)

    def _leave(self, leaving: Leaving, step: Callable[[float], bool], timeout_s: float) -> None:
        """Keep serving until other processes have taken over, for at most `leave_s`. Transient errors are retried."""
        leaving.leave()
        while True:
            self._stopping.check()
            try:
                if leaving.left:
                    return
                step(timeout_s)
            except (TransientError, Backpressure) as error:
                self._logger.warning("retrying", reason=str(error), pause_s=_FIRST_PAUSE_S)
                self._stopping.wait(_FIRST_PAUSE_S)
