"""Queries with many instants due are evaluated in slices between an engine's other work (docs/adr/0057).

A slice is bounded in time and in instants, so commands, other queries and liveness never wait for a backlog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.engine.runtime import Runtime
    from penstock.engine.standing.groups import Group
    from penstock.log.clock import Clock

AT_ONCE = 128
"""Instants of one query that a step of the log may fire at once; a query with more due is evaluated in slices."""
SLICE_MS = 100
"""How long one slice goes on beyond the instant that it evaluates."""
SLICE_INSTANTS = 1_000
"""Instants of one slice: their results wait in memory for its commit."""
TURN_INSTANTS = 32
"""Instants after which the queries over other streams have their turn."""
FINISH_MS = 500
"""How long a query that was stopped goes on with what was due before; what is left then is not evaluated."""
BACKLOG_BYTES = 1 << 30
"""Slices of streams beyond which an engine with a backlog reads nothing more of the log."""
_MEASURE_MS = 1_000


class CatchUp:
    """The backlog of one engine. Whatever raises AwayError is called again later."""

    def __init__(self, runtime: Runtime, clock: Clock) -> None:
        self._runtime, self._clock = runtime, clock
        self._backlog = runtime.schedule.backlog
        self._backlog.at_once = AT_ONCE
        self._measured_ms, self._full = clock.now_ms(), False

    def __bool__(self) -> bool:
        return bool(self._backlog)

    @property
    def settled(self) -> bool:
        """Whether all cohorts of each group stand at the same instant: only then may progress be committed."""
        return self._backlog.settled and not self._runtime.schedule.unfinished

    def slice(self) -> bool:
        """Evaluate one slice; False where nothing is due."""
        if not self._backlog:
            return False
        over, left = self.slice_over(), SLICE_INSTANTS
        while self._backlog and left > 0 and not over():
            self._backlog.turn(self._runtime.firing.fire, _after(min(TURN_INSTANTS, left), over))
            left -= TURN_INSTANTS
        self._runtime.firing.tidy()
        return True

    def slice_over(self) -> Callable[[], bool]:
        """Return what tells that a slice that begins now has had its time."""
        return self._until(SLICE_MS)

    def finish(self, group: Group, over: Callable[[], bool]) -> bool:
        """Evaluate what is due of a group until `over`; returns whether that was all."""
        done = self._backlog.finish(group, self._runtime.firing.fire, over)
        self._runtime.firing.tidy()
        return done

    def patience(self) -> Callable[[], bool]:
        """Return what tells that queries which were stopped have had their time."""
        return self._until(FINISH_MS)

    def full(self) -> bool:
        """Return whether the backlog keeps so many tuples in memory that no more are to be read."""
        if not self._backlog:
            return False
        now_ms = self._clock.now_ms()
        if now_ms >= self._measured_ms + _MEASURE_MS:
            self._measured_ms = now_ms
            self._full = sum(stream.core.live_bytes() for stream in self._runtime.streams) > BACKLOG_BYTES
        return self._full

    def _until(self, time_ms: int) -> Callable[[], bool]:
        deadline = self._clock.now_ms() + time_ms
        return lambda: self._clock.now_ms() >= deadline


def _after(instants: int, over: Callable[[], bool]) -> Callable[[], bool]:
    """Return what tells that so many instants were evaluated, or that the time is over."""
    left = instants

    def stop() -> bool:
        nonlocal left
        left -= 1
        return left <= 0 or over()

    return stop
