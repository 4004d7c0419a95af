"""The contents of windows: the tuples of each window at an instant, and the pool of windows that cohorts share.

Cohorts have the same progress if they belong to the same incarnation and their queries read the same streams. These
cohorts share windows with the same range, step, grid start and kind (added or removed tuples). At each instant, the
first cohort moves the shared window. If a window would begin before the registration point of a cohort, only cohorts
with the same registration point share this window.

Some windows differ only in the set of streams that their queries read. Such windows share one content until one of the
windows falls behind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakValueDictionary

from penstock.core import _native as native
from penstock.engine.windows.trigger import CountSource, CountTrigger, step_of
from penstock.query.ir import ContinuousQuery, CountRange, TimeRange, WindowClause

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.engine.answers.result_blocks import Bounds
    from penstock.engine.intake.streams import LiveStream
    from penstock.event_time.grid import Grid


_ANY: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class WindowKey:
    """The key of a time window. Cohorts share a window if their keys are equal.

    `range_ms` is the range, or None for `[ALL]`. `step_ms` is the step. `t0` is the start of the grid. `trigger` is the
    set of streams that the query reads. `incarnation` is the incarnation of the query's group. `cut` is the
    registration point P for as long as the window would otherwise begin before P. Afterwards, `cut` is None. `removed`:
    see `WindowClause`.
    """

    stream: str
    range_ms: int | None
    step_ms: int
    t0: int
    trigger: frozenset[str]
    cut: int | None
    incarnation: int = 0
    removed: bool = False


@dataclass(slots=True, eq=False, weakref_slot=True)
class Content:
    """The content of windows at an instant: the tuples with times in (start, end], in ms. Both bounds are None before
    the first instant.
    """

    made: native.TimeWindow | None = None
    start: int | None = None
    end: int | None = None


class SlidingWindow:
    """A time window over a stream. Evaluations read the window's content."""

    def __init__(self, key: WindowKey, stream: LiveStream, grid: Grid, content: Content) -> None:
        self.key = key
        self.stream = stream
        self.content = content
        self.users = 0
        self.grid = grid

    @property
    def made(self) -> native.TimeWindow | None:
        """The native window, or None before its first use."""
        return self.content.made

    @property
    def start(self) -> int | None:
        """The exclusive start of the content in ms, or None before the first instant."""
        return self.content.start

    @property
    def source(self) -> native.TimeWindow:
        """The native window. The first use creates the native window, because the stream's batch interval can change
        before the first use.
        """
        if self.content.made is None:
            core = self.stream.core
            self.content.made = native.TimeWindow(core.removals() if self.key.removed else core)
        return self.content.made

    def bounds(self, time: int) -> Bounds:
        """Return the window's nominal bounds (start, end] at instant `time`, in ms. `end` is the latest instant
        of the window's own STEP that is not after `time` (RSP-QL).
        """
        end = self.grid.latest(self.key.step_ms, time)
        return (None if self.key.range_ms is None else end - self.key.range_ms), end

    def held_from(self, time: int) -> int:
        """Return the exclusive start of the content at instant `time`. The result is the registration point P if P is
        later than the nominal start, or if there is no nominal start. Otherwise, the result is the nominal start.
        """
        return self._held_from(self.bounds(time)[0])

    def _held_from(self, start: int | None) -> int:
        cut = self.key.cut
        if cut is None:
            assert start is not None, self.key
            return start
        return cut if start is None else max(start, cut)

    def move(self, time: int) -> Bounds:
        """Move the content to the instant `time`. Returns the nominal bounds at this instant."""
        nominal = self.bounds(time)
        start = self._held_from(nominal[0])
        end = max(nominal[1], start)
        content = self.content
        if content.end is not None and end < content.end:
            content = self.content = Content()  # another window with this content has moved further
        if end != content.end or start != content.start:
            self.source.advance(start, end)
            content.start, content.end = start, end
        return nominal


class CountedWindow:
    """A count window over a stream, for one cohort. Cohorts cannot share a count window, because the window counts
    tuples from the registration point.
    """

    def __init__(self, index: int, trigger: CountTrigger) -> None:
        self.stream = trigger.sources[index].stream
        self._index = index
        self._trigger = trigger
        self._position = 0

    @property
    def made(self) -> native.CountWindow | None:
        """The native window, or None before its first use."""
        return self._trigger.sources[self._index].made

    @property
    def source(self) -> native.CountWindow:
        """The native window."""
        return self._trigger.sources[self._index].core

    def move(self, time: int) -> Bounds:
        """Move the content to the window's latest report at or before the instant `time`. Returns the bounds (start,
        end] in ms. The start is the time of the oldest tuple minus 1, and the end is the time of the report. Without a
        report, the result is (None, `time`).
        """
        report = self._trigger.reached(self._index, time)
        if report is None:
            return None, time
        reported, position = report
        if position != self._position:
            self.source.advance(position)
            self._position = position
        return self.source.bounds()[0], reported


Window: TypeAlias = SlidingWindow | CountedWindow


class WindowPool:
    """The time windows in use, by key. Windows with keys that differ only in `trigger` share one content at first."""

    def __init__(self) -> None:
        self._windows: dict[WindowKey, SlidingWindow] = {}
        self._contents: WeakValueDictionary[WindowKey, Content] = WeakValueDictionary()  # by key without trigger

    def __len__(self) -> int:
        return len(self._windows)

    def bytes(self) -> int:
        """Return the memory of the windows in bytes."""
        contents = {window.content for window in self._windows.values()}
        return sum(content.made.bytes() for content in contents if content.made is not None)

    def acquire(self, key: WindowKey, stream: LiveStream, grid: Grid) -> SlidingWindow:
        """Return the window with a key, and count a use of this window. The call creates the window on first use."""
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = SlidingWindow(key, stream, grid, self._content(key))
        window.users += 1
        return window

    def _content(self, key: WindowKey) -> Content:
        apart_from_trigger = replace(key, trigger=_ANY)
        content = self._contents.get(apart_from_trigger)
        if content is None:
            content = self._contents[apart_from_trigger] = Content()
        return content

    def release(self, window: SlidingWindow) -> None:
        """Release a use of a window. The call removes the window after its last use."""
        window.users -= 1
        if window.users == 0:
            del self._windows[window.key]

    def uncut(self, window: SlidingWindow) -> SlidingWindow:
        """Return the window to use when the registration point no longer cuts `window`. The result is a shared window
        that differs only in `cut`. If there is none and `window` has only one use, the result is `window` itself, which
        can be shared from now on.
        """
        if window.key.cut is None:
            return window
        key = replace(window.key, cut=None)
        if key not in self._windows and window.users == 1:
            del self._windows[window.key]
            window.key = key
            self._windows[key] = window
            self._join(window)
            return window
        shared = self.acquire(key, window.stream, window.grid)
        self.release(window)
        return shared

    def _join(self, window: SlidingWindow) -> None:
        """Let a window use the content of windows that differ only in `trigger`, if these windows are at the same
        instant. If there is no such content, later windows of this kind can use the content of `window`.
        """
        key = replace(window.key, trigger=_ANY)
        content = self._contents.setdefault(key, window.content)
        if (content.start, content.end) == (window.content.start, window.content.end):
            window.content = content


def range_of(clause: WindowClause, stream: LiveStream) -> int | None:
    """Return the range of a time window over a stream, in ms. A window `[ALL]` has one of two ranges. If the stream has
    timing predicates and a retention, the range is the retention. Otherwise, the window contains all tuples after the
    query's registration point. The result is then None.
    """
    assert isinstance(clause.range, TimeRange), clause
    range_ms = clause.range.range_ms
    if range_ms is None and stream.declaration.timing and stream.declaration.retention_ms:
        return stream.declaration.retention_ms
    return range_ms


def window_key(
    query: ContinuousQuery, clause: WindowClause, grid: Grid, cut: int, stream: LiveStream, incarnation: int = 0
) -> WindowKey:
    """Return the key of the window of a window clause over a stream. `cut` is the registration point."""
    assert isinstance(clause.range, TimeRange), clause
    range_ms = range_of(clause, stream)
    trigger = frozenset(c.stream for c in query.windows)
    step_ms = step_of(query, clause.range)
    return WindowKey(clause.stream, range_ms, step_ms, grid.t0, trigger, cut, incarnation, clause.removed)


def counted_windows(
    query: ContinuousQuery, streams: dict[str, LiveStream], point: int
) -> tuple[CountTrigger, tuple[CountedWindow, ...]]:
    """Return the trigger and the windows of a query with count windows. The windows cover tuples after `point` (ms)."""
    sources: list[CountSource] = []
    for clause in query.windows:
        assert isinstance(clause.range, CountRange), clause
        sources.append(CountSource(streams[clause.stream], clause.range.size, clause.range.step, point))
    trigger = CountTrigger(sources, point)
    return trigger, tuple(CountedWindow(i, trigger) for i in range(len(sources)))


def cuts(windows: Sequence[Window], time: int, point: int) -> bool:
    """Return whether the registration point `point` lies inside one of the windows of instant `time`. This is the case
    if the nominal start of the window is before `point`. The result is always True for count windows.
    """
    for window in windows:
        if isinstance(window, CountedWindow):
            return True
        start = window.bounds(time)[0]
        if start is None or start < point:
            return True
    return False
