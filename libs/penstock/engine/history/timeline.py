"""The timeline. For each earlier instant, the timeline records the commits of the stored graph that a standing query
would have seen (ADR 87).

A pass of the schedule closes batches and evaluates the instants that become due. For each stream, the timeline records
the end of the last closed batch after a pass, and the snapshots before and after the pass.

An instant of a query becomes due in the first pass after which every stream of the query has closed the batch that
contains the instant. At this instant, the query sees all commits from before this pass. The query also sees those
commits of this pass whose batches end at or before the instant.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.errors import StorageError
from penstock.event_time.watermark import NEVER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from penstock.core import _native as native
    from penstock.engine.intake.streams import LiveStream, Streams

_TRIM_EVERY = 64  # passes


@dataclass(slots=True)
class _Course:
    """The passes in which a stream has closed batches, in order. `ends` contains, for each pass, the end in ms of the
    stream's last closed batch after the pass. `befores` and `afters` contain the latest snapshots before and after each
    pass. If the end of a pass is at or before `unknown`, the pass is not recorded any more.
    """

    unknown: int = NEVER
    ends: list[int] = field(default_factory=list)
    befores: list[int] = field(default_factory=list)
    afters: list[int] = field(default_factory=list)

    def add(self, end: int, before: int, after: int) -> None:
        """Add a pass. If neither this pass nor the previous pass has commits, and there is no commit between the two
        passes, the call merges this pass into the previous pass.
        """
        if self.afters and self.befores[-1] == self.afters[-1] == before == after:
            self.ends[-1] = end
        else:
            self.ends.append(end)
            self.befores.append(before)
            self.afters.append(after)

    def drop(self, time: int) -> None:
        """Drop the passes that are needed only by instants at or before `time`."""
        count = bisect_right(self.ends, time)
        if count:
            self.unknown = self.ends[count - 1]
            del self.ends[:count], self.befores[:count], self.afters[:count]


class Timeline:
    """The timeline of an engine. The timeline is recorded while at least one stream has a retention. The stored graph
    retains the commits to which the timeline refers. All access must be under the engine's lock. Times are in ms.
    """

    def __init__(self, store: native.Store, streams: Streams) -> None:
        self._store = store
        self._streams = streams
        self._courses: dict[LiveStream, _Course] = {}
        self._closed: dict[LiveStream, None] = {}
        self._before: int | None = None  # the snapshot before the running pass
        self._passes = 0
        self.active = False

    # ---- recording
    def begin(self) -> None:
        """Handle the beginning of a pass, or of the completion of an interrupted pass."""
        if not self.active:
            if not self._streams.retaining:
                return
            self.active = True
            self._store.keep(self._store.latest())
            for stream in self._streams:
                if stream.closed_ms is not None:
                    self._courses[stream] = _Course(stream.closed_ms)
        if self._before is None:
            self._before = self._store.latest()

    def closed(self, stream: LiveStream) -> None:
        """Record that a stream has closed batches in this pass."""
        if self.active:
            self._closed[stream] = None

    def end(self, next_read: Callable[[LiveStream], int | None]) -> None:
        """Handle the end of a pass. `next_read` returns the earliest instant that queries in the past have yet to
        evaluate over a stream, or None.
        """
        if self._before is None:
            return
        latest = self._store.latest()
        for stream in self._closed:
            assert stream.closed_ms is not None
            self._courses.setdefault(stream, _Course()).add(stream.closed_ms, self._before, latest)
        self._closed.clear()
        self._before = None
        self._passes += 1
        if self._passes % _TRIM_EVERY == 0:
            self._trim(next_read)

    def _trim(self, next_read: Callable[[LiveStream], int | None]) -> None:
        """Drop the passes that no query will need, and release the commits to which only these passes refer."""
        for stream in [stream for stream in self._courses if self._streams.find(stream.iri) is not stream]:
            del self._courses[stream]
        least = self._store.latest()
        unbounded = self._retained_overall()
        for stream, course in self._courses.items():
            following = next_read(stream)
            until = max(unbounded, retained_from(stream))
            course.drop(until if following is None else min(until, following - 1))
            least = min([least, *course.befores[:1]])
        if self._streams.retaining or any(next_read(stream) is not None for stream in self._courses):
            self._store.keep(least)
        else:
            self._store.keep(None)
            self._courses.clear()
            self.active = False

    def _retained_overall(self) -> int:
        """Return a time in ms. No stream retains the passes for instants at or before this time. Idle streams are
        included, because otherwise an idle stream would retain commits for ever.
        """
        closed = [stream.closed_ms for stream in self._streams if stream.closed_ms is not None]
        return max(closed, default=NEVER) - max((s.declaration.retention_ms for s in self._streams), default=0)

    # ---- reading
    def known_from(self, stream: LiveStream) -> int:
        """Return an event time in ms, for queries over a stream. The timeline knows the state of the stored graph as of
        each instant after this time, so the queries can read this state. For earlier instants, the timeline does not
        know the state any more.
        """
        course = self._courses.get(stream)
        if course is None:
            return NEVER if stream.closed_ms is None else stream.closed_ms
        return max(course.unknown, retained_from(stream), self._retained_overall())

    def period(self, streams: Iterable[LiveStream], time: int) -> tuple[int, int]:
        """Return two snapshot numbers. An instant `time` of a query over `streams` became due in some pass. The two
        snapshots are the latest snapshots before and after this pass. StorageError if the pass is not retained.
        """
        before, after = -1, -1
        for stream in streams:
            course = self._courses.get(stream)
            place = -1 if course is None else bisect_left(course.ends, time)
            if course is not None and time > course.unknown and place < len(course.ends):
                if course.afters[place] > after:
                    before, after = course.befores[place], course.afters[place]
            elif self._before is not None and stream in self._closed and stream.has_closed(time):
                before, after = self._before, self._store.latest()  # the running pass
            elif not stream.ended:
                raise StorageError(f"the stored graph as of {time} is not retained for stream <{stream.iri}>")
        if after < 0:
            before = after = self._store.latest()  # all streams have ended before the instant
        return before, after

    def view(self, streams: Sequence[LiveStream], time: int) -> native.Source:
        """Return a view of the stored graph as of the instant `time`, for a query over `streams`. StorageError if this
        state is not retained.
        """
        before, after = self.period(streams, time)
        included = [(stream.number, (time - 1) // stream.batch_ms) for stream in streams]
        others = [(s.number, time // s.batch_ms - 1) for s in self._streams if s not in streams]
        return self._store.view_past(before, after, included, others)

    # ---- checkpoints
    def save(self) -> list[list[Any]] | None:
        """Return the timeline for a checkpoint, as JSON. Return None if the timeline is not recorded."""
        if not self.active:
            return None
        return [[stream.iri, c.unknown, c.ends, c.befores, c.afters] for stream, c in self._courses.items()]

    def restore(self, saved: list[list[Any]] | None) -> None:
        """Restore a timeline that `save` has returned. The streams and the stored graph must be restored already."""
        if saved is None:
            return
        self.active = True
        for iri, *course in saved:
            if (stream := self._streams.find(iri)) is not None:
                self._courses[stream] = _Course(*course)


def retained_from(stream: LiveStream) -> int:
    """Return the exclusive start, in ms, of the period for which the stream's retention keeps tuples."""
    return NEVER if stream.closed_ms is None else stream.closed_ms - stream.declaration.retention_ms
