"""Catch-up: evaluates queries with many due instants, for a limited time per service step (ADR 57).

Because time and number of instants are limited, a backlog does not delay commands, other queries or heartbeats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.engine.runtime import Runtime
    from penstock.engine.standing.groups import Group
    from penstock.log.clock import Clock

AT_ONCE = 128
"""Maximum number of due instants of a query that are evaluated at once. A query with more due instants joins the
backlog.
"""
SLICE_MS = 100
"""Time for catch-up per service step, in ms. An evaluation that has started is completed."""
LIVE_SLICE_MS = 20
"""The value of SLICE_MS for an engine that has had results of other queries in the last LIVE_MS. These queries wait
meanwhile.
"""
LIVE_MS = 1_000
SLICE_INSTANTS = 1_000
"""Maximum number of instants for catch-up per service step. The results at these instants remain in memory until the
commit.
"""
TURN_INSTANTS = 32
"""Number of instants after which queries over other streams have their turn."""
FINISH_MS = 200
"""Time in ms that an engine spends on the due instants of a query that is stopped. The remaining instants are skipped.
"""
BACKLOG_BYTES = 1 << 30
"""Limit in bytes for the growth of all slices while an engine has a backlog. Above this limit, the engine reads no
further records. The slices that a declared retention keeps anyway do not count.
"""
_MEASURE_MS = 1_000


class CatchUp:
    """The due instants that an engine has not evaluated yet. The object is true if there are such instants. If a method
    raises UnavailableError, call the method again later.
    """

    def __init__(self, runtime: Runtime, clock: Clock) -> None:
        self._runtime, self._clock = runtime, clock
        self._backlog = runtime.schedule.backlog
        self._measured_ms, self._full = clock.now_ms(), False
        self._live_ms: int | None = None  # time of the last results of queries outside of the backlog
        self._before: int | None = None  # size of the slices when the backlog was first measured, in bytes

    def __bool__(self) -> bool:
        return bool(self._backlog)

    @property
    def settled(self) -> bool:
        """Whether all cohorts of each group have been evaluated up to the same instant. A commit of progress requires
        this.
        """
        return self._backlog.settled and not self._runtime.schedule.unfinished

    def slice(self) -> bool:
        """Evaluate due instants for a limited time. Returns False if no instants are due.

        The time limit is LIVE_SLICE_MS if other queries have had results in the last LIVE_MS. Otherwise, the time limit
        is SLICE_MS. One call evaluates at most about SLICE_INSTANTS instants.
        """
        if not self._backlog:
            return False
        live = self._live_ms is not None and self._clock.now_ms() < self._live_ms + LIVE_MS
        over, left = self._until(LIVE_SLICE_MS) if live else self.slice_over(), SLICE_INSTANTS
        while self._backlog and left > 0 and not over():
            self._backlog.turn(self._runtime.firing.fire, _after(min(TURN_INSTANTS, left), over))
            left -= TURN_INSTANTS
        self._runtime.firing.tidy()
        return True

    def record_live(self) -> None:
        """Record that there are results of queries outside of the backlog."""
        self._live_ms = self._clock.now_ms()

    def slice_over(self) -> Callable[[], bool]:
        """Return a function that tests whether SLICE_MS have passed since this call of `slice_over`."""
        return self._until(SLICE_MS)

    def finish(self, group: Group, over: Callable[[], bool]) -> bool:
        """Evaluate the due instants of a group until `over` returns True. Returns whether all due instants are
        evaluated.
        """
        done = self._backlog.finish(group, self._runtime.firing.fire, over)
        self._runtime.firing.tidy()
        return done

    def patience(self) -> Callable[[], bool]:
        """Return a function that tests whether FINISH_MS have passed since this call of `patience`."""
        return self._until(FINISH_MS)

    def full(self) -> bool:
        """Return whether there is a backlog and the slices have grown by more than BACKLOG_BYTES. The engine then reads
        no further records. The size is measured at most once per second.
        """
        if not self._backlog:
            self._before, self._full = None, False
            return False
        now_ms = self._clock.now_ms()
        if now_ms >= self._measured_ms + _MEASURE_MS:
            self._measured_ms = now_ms
            size = sum(stream.core.live_bytes() for stream in self._runtime.streams)
            self._before = size if self._before is None else self._before
            self._full = size - self._before > BACKLOG_BYTES
        return self._full

    def _until(self, time_ms: int) -> Callable[[], bool]:
        deadline = self._clock.now_ms() + time_ms
        return lambda: self._clock.now_ms() >= deadline


def _after(instants: int, over: Callable[[], bool]) -> Callable[[], bool]:
    """Return a function that returns True from call number `instants` on, or once `over` returns True."""
    left = instants

    def stop() -> bool:
        nonlocal left
        left -= 1
        return left <= 0 or over()

    return stop
