"""Catch-up: evaluates queries with many due instants in slices, between the engine's other work (ADR 57).

A slice is bounded in time and in instants, so a backlog does not delay commands, other queries or heartbeats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.engine.runtime import Runtime
    from penstock.engine.standing.groups import Group
    from penstock.log.clock import Clock

AT_ONCE = 128
"""Instants of one query that a step evaluates immediately. A query with more due instants is evaluated in slices."""
SLICE_MS = 100
"""Duration of a slice in ms. An evaluation that has started is completed."""
SLICE_INSTANTS = 1_000
"""Maximum instants per slice. Their results remain in memory until the commit."""
TURN_INSTANTS = 32
"""Instants after which queries over other streams have their turn."""
FINISH_MS = 200
"""How long a stopped query may evaluate instants that were due before the stop, in ms. The remaining ones are
skipped.
"""
BACKLOG_BYTES = 1 << 30
"""Bytes of slices above which an engine with a backlog reads no further records."""
_MEASURE_MS = 1_000


class CatchUp:
    """The backlog of one engine. If a method raises UnavailableError, call it again later."""

    def __init__(self, runtime: Runtime, clock: Clock) -> None:
        self._runtime, self._clock = runtime, clock
        self._backlog = runtime.schedule.backlog
        self._measured_ms, self._full = clock.now_ms(), False

    def __bool__(self) -> bool:
        return bool(self._backlog)

    @property
    def settled(self) -> bool:
        """Whether all cohorts of each group have reached the same instant, which a commit of progress requires."""
        return self._backlog.settled and not self._runtime.schedule.unfinished

    def slice(self) -> bool:
        """Evaluate one slice. Returns False if nothing is due."""
        if not self._backlog:
            return False
        over, left = self.slice_over(), SLICE_INSTANTS
        while self._backlog and left > 0 and not over():
            self._backlog.turn(self._runtime.firing.fire, _after(min(TURN_INSTANTS, left), over))
            left -= TURN_INSTANTS
        self._runtime.firing.tidy()
        return True

    def slice_over(self) -> Callable[[], bool]:
        """Return a function that returns whether the time of a slice that begins now is over."""
        return self._until(SLICE_MS)

    def finish(self, group: Group, over: Callable[[], bool]) -> bool:
        """Evaluate the due instants of a group until `over`. Returns whether all are evaluated."""
        done = self._backlog.finish(group, self._runtime.firing.fire, over)
        self._runtime.firing.tidy()
        return done

    def patience(self) -> Callable[[], bool]:
        """Return a function that returns whether the time of stopped queries is over."""
        return self._until(FINISH_MS)

    def full(self) -> bool:
        """Return whether the backlog retains too many tuples in memory to read further records."""
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
    """Return a function that returns True after `instants` calls, or when the time is over."""
    left = instants

    def stop() -> bool:
        nonlocal left
        left -= 1
        return left <= 0 or over()

    return stop
