"""The loop around a service's steps: what is transient is tried over with a growing pause, everything else ends it."""

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
"""How long a service that ends hands over what it serves."""


class EngineCore(Protocol):
    """A service without its process."""

    def step(self, timeout_s: float) -> bool:
        """Do what is due, waiting at most so long for input; return whether there was anything."""
        ...

    def close(self) -> None:
        """Let go."""
        ...


@runtime_checkable
class Leaving(Protocol):
    """A service that hands over what it serves before it ends."""

    @property
    def left(self) -> bool:
        """Whether nothing is served here any more, or no process takes it over."""

    def leave(self) -> None:
        """Ask for another process; steps go on meanwhile."""


class Stopping:
    """Set by SIGTERM or SIGINT: the step that runs is finished, then the service ends in order."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def listen(self) -> None:
        """Take the signals; only in the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if self._event.is_set():
            signal.signal(number, signal.SIG_DFL)  # a second one ends it at once
            signal.raise_signal(number)
        self._event.set()

    def stop(self) -> None:
        """Ask for the end."""
        self._event.set()

    def __bool__(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float) -> None:
        """Sleep, unless the end is asked for."""
        self._event.wait(seconds)


class Loop:
    """Runs steps until it is asked to stop."""

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

    def run(self, core: EngineCore, timeout_s: float) -> None:
        """Step until the end is asked for. What is transient too long, and anything else, is raised."""
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
                self._logger.warning("trying again", reason=str(error), pause_s=pause_s)
                self._health.beat(f"trying again: {error}")
                self._stopping.wait(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                continue
            failing_since, pause_s = None, _FIRST_PAUSE_S
            self._health.beat()
            if worked:
                self._metrics.step.observe(self._now() - began)
        if isinstance(core, Leaving):
            self._leave(core, core.step, timeout_s)

    def _leave(self, leaving: Leaving, step: Callable[[float], bool], timeout_s: float) -> None:
        """Serve on until others do, within `LEAVE_S`."""
        until = self._now() + LEAVE_S
        try:
            leaving.leave()
            while not leaving.left and self._now() < until:
                step(timeout_s)
        except (TransientError, Backpressure) as error:
            self._logger.warning("left without a handover", reason=str(error))
