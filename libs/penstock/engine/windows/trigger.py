"""Triggers: the instants of a cohort. The instants come from a grid (time windows) or from the reports of count
windows.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from penstock.core import _native as native
from penstock.errors import QueryError
from penstock.event_time.grid import Grid
from penstock.query.ir import ContinuousQuery, CountRange, TimeRange

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.engine.intake.streams import LiveStream
    from penstock.event_time.gaps import Gap


class Trigger(Protocol):
    """The sequence of a cohort's instants. All times are in ms."""

    last: int
    """The last instant that was evaluated, or initially the registration point."""

    @property
    def next(self) -> int | None:
        """The next instant, or None if it is unknown."""

    def take(self) -> int:
        """Return the next instant and advance the trigger past this instant."""

    def count(self, until: int) -> int:
        """Return the number of known instants up to and including `until`."""

    def exceeds(self, most: int, until: int) -> bool:
        """Return whether more than `most` instants can be due up to and including `until`."""


class GridTrigger:
    """The instants of a grid after `last`, except the instants in `gaps`. `last` is the registration point or the last
    evaluated instant.
    """

    def __init__(self, grid: Grid, last: int, gaps: Iterable[Gap] = ()) -> None:
        self.grid = grid
        self.last = last
        self._gaps = [gap for gap in gaps if gap.until > last]
        self.next: int = self._following(last)

    def take(self) -> int:
        """Return the next instant and advance the trigger past this instant."""
        self.last, self.next = self.next, self._following(self.next)
        return self.last

    def _following(self, time: int) -> int:
        following = self.grid.next_after(time)
        if self._gaps:
            self._gaps = [gap for gap in self._gaps if gap.until > time]
            for gap in self._gaps:  # in time order
                if gap.after < following <= gap.until:
                    following = self.grid.next_after(gap.until)
        return following

    def count(self, until: int) -> int:
        """Return the number of instants after the last evaluated instant, up to and including `until`."""
        found = self.grid.count(self.last, until)
        return found - sum(self.grid.count(max(gap.after, self.last), min(gap.until, until)) for gap in self._gaps)

    def exceeds(self, most: int, until: int) -> bool:
        """Return whether more than `most` instants are due up to and including `until`."""
        return until - self.last > most and self.count(until) > most

    def skip(self, until: int) -> int:
        """Skip every instant up to and including `until`. Returns the number of skipped instants."""
        skipped = self.count(until)
        if skipped:
            self.last, self.next = until, self._following(until)
        return skipped

    def omit(self, gap: Gap) -> None:
        """Leave out the instants of a gap. Calls must be in the order of the gaps' times. A repeated gap has no
        effect.
        """
        if not self._gaps or gap.until > self._gaps[-1].until:
            self._gaps.append(gap)
            self.next = self._following(self.last)


@dataclass(slots=True)
class CountSource:
    """A count window over the tuples of a stream after the registration point `point`. `size` and `step` are numbers of
    tuples. `made` is the native window, which is created on first use.
    """

    stream: LiveStream
    size: int
    step: int
    point: int
    made: native.CountWindow | None = None

    @property
    def core(self) -> native.CountWindow:
        """The native window."""
        if self.made is None:
            self.made = native.CountWindow(self.stream.core, self.size, self.step, self.point)
        return self.made


class CountTrigger:
    """The reports of the count windows of a cohort. A report becomes known when the batch that contains the report
    closes (docs/semantics.md §3).

    Each window has a queue of reports (time, position). The position is the number of tuples since the registration
    point. The next instant is the earliest time at the head of a queue. This instant can be evaluated only when every
    stream has closed the batch that contains the instant. From then on, no earlier report can occur.
    """

    def __init__(self, sources: list[CountSource], last: int) -> None:
        self.sources = sources
        self._reports: list[deque[tuple[int, int]]] = [deque() for _ in sources]
        self._reached: list[tuple[int, int] | None] = [None] * len(sources)
        self.last = last
        self.next: int | None = None

    def closed(self, stream: LiveStream) -> None:
        """Add the reports of the batches that a stream has closed since the last call."""
        assert stream.closed_ms is not None
        batch = stream.closed_ms // stream.batch_ms - 1
        for source, reports in zip(self.sources, self._reports, strict=True):
            if source.stream is stream:
                reports.extend(source.core.take(batch))
        self._find_next()

    def take(self) -> int:
        """Return the next instant, and advance the trigger past this instant. Each report at this instant becomes the
        latest report of the report's window.
        """
        assert self.next is not None
        self.last = self.next
        for i, reports in enumerate(self._reports):
            self._reached[i] = self.reached(i, self.last)
            while reports and reports[0][0] <= self.last:
                reports.popleft()
        self._find_next()
        return self.last

    def reached(self, window: int, time: int) -> tuple[int, int] | None:
        """Return the latest report of a window at or before `time`, as (time, position). `window` is the number of the
        window. Return None if there is no report. `time` must be the next instant, or the instant that was taken last.
        """
        latest = self._reached[window]
        for report in self._reports[window]:
            if report[0] > time:
                break
            latest = report
        return latest

    def exceeds(self, most: int, until: int) -> bool:
        """Return whether more than `most` reports are known. `until` has no effect."""
        del until
        return sum(map(len, self._reports)) > most

    def count(self, until: int) -> int:
        """Return the number of known instants up to and including `until`."""
        return len({time for reports in self._reports for time, _ in reports if time <= until})

    def save(self) -> dict[str, Any]:
        """Return the state of the trigger for a checkpoint, as a JSON object with bytes in hexadecimal."""
        return {
            "last": self.last,
            "reports": [list(reports) for reports in self._reports],
            "reached": self._reached,
            "windows": [None if source.made is None else source.made.save().hex() for source in self.sources],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore a state that `save` has returned. The trigger must be new, and its streams must be restored
        already.
        """
        self.last = saved["last"]
        self._reports = [deque((time, position) for time, position in reports) for reports in saved["reports"]]
        self._reached = [None if report is None else (report[0], report[1]) for report in saved["reached"]]
        for source, window in zip(self.sources, saved["windows"], strict=True):
            if window is not None:
                source.core.restore(bytes.fromhex(window))
        self._find_next()

    def _find_next(self) -> None:
        self.next = min((reports[0][0] for reports in self._reports if reports), default=None)


def grid_of(query: ContinuousQuery) -> Grid | None:
    """Return the grid of a resolved query's time windows, or None for count windows. QueryError in two cases: the query
    has both kinds of windows, or the query has count windows and also COMPUTED EVERY or STARTING AT.
    """
    ranges = [clause.range for clause in query.windows]
    counted = [r for r in ranges if isinstance(r, CountRange)]
    if counted and len(counted) < len(ranges):
        raise QueryError("count windows and time windows cannot be combined in a query", 1, 1, text=query.text)
    if counted:
        if query.computed_every_ms is not None or query.starting_at_ms is not None:
            raise QueryError("COMPUTED EVERY and STARTING AT need time windows", 1, 1, text=query.text)
        return None
    steps = tuple(sorted({step_of(query, r) for r in ranges if isinstance(r, TimeRange)}))
    return Grid(query.starting_at_ms or 0, steps, bounded=query.starting_at_ms is not None)


def step_of(query: ContinuousQuery, window: TimeRange) -> int:
    """Return the step of a time window in ms. COMPUTED EVERY overrides the steps of all windows."""
    return query.computed_every_ms or window.step_ms
