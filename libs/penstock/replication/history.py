"""Which batches were closed at which step of the spine: the cluster's plan from snapshots to vector timestamps.

An engine that takes a bucket over may be far ahead of the last commit. What it evaluates then must still see
the stored graph as
it was when the instant became due (semantics.md §3): the history gives, for that step, the last batch of every stream.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NOTHING = -(1 << 62)
"""A time before every time."""
FOR_EVER = 1 << 62
"""A time after every time: a derived stream that has ended holds nothing up."""
INSERTIONS = (1 << 20) - 1
"""The stream number under which the store keeps insertions: theirs are bounded like a stream's batches."""


@dataclass(slots=True)
class Track:
    """One stream: at steps[i] it came to closed[i] (ms; for insertions their number). `batch_ms` turns it into
    a batch.
    """

    number: int
    batch_ms: int
    steps: list[int] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)

    def at(self, step: int) -> int | None:
        """Return how far it had come after a step."""
        i = bisect_right(self.steps, step)
        return self.closed[i - 1] if i else None

    def reached(self, time: int) -> int | None:
        """Return the step at which it had closed everything up to a time."""
        i = bisect_left(self.closed, time)
        return self.steps[i] if i < len(self.steps) else None

    def batch(self, closed: int | None) -> int:
        """Return the last batch that is closed."""
        if self.number == INSERTIONS:
            return closed or 0
        return NOTHING // self.batch_ms if closed is None else closed // self.batch_ms - 1

    def prune(self, step: int) -> None:
        """Forget what no look at this step or a later one needs."""
        keep = max(bisect_right(self.steps, step) - 1, 0)
        del self.steps[:keep], self.closed[:keep]


class History:
    """Tracks by stream IRI; insertions under the empty one. `gone`: those of dropped streams, as long as somebody may
    look at the graph before what they absorbed last.
    """

    def __init__(self) -> None:
        self.tracks: dict[str, Track] = {"": Track(INSERTIONS, 1)}
        self.gone: list[Track] = []
        self.step = 0

    def add(self, iri: str, number: int, batch_ms: int) -> None:
        """Follow a stream from now on."""
        self.tracks[iri] = Track(number, batch_ms)

    def drop(self, iri: str) -> None:
        """Follow a stream no more. What it has absorbed stays, and is later than some instants yet to be evaluated."""
        track = self.tracks.pop(iri, None)
        if track is not None and track.steps:
            self.gone.append(track)

    def record(self, iri: str, closed: int) -> None:
        """Note how far a stream has come at the present step."""
        track = self.tracks[iri]
        if track.steps and track.steps[-1] == self.step:
            track.closed[-1] = closed
        else:
            track.steps.append(self.step)
            track.closed.append(closed)

    def due(self, streams: Iterable[str], time: int) -> int:
        """Return the step at which an instant of a query over these streams became due (the present one, if
        not before).
        """
        steps = [self.tracks[iri].reached(time) for iri in streams]
        return max((self.step if step is None else step for step in steps), default=self.step)

    def bounds(self, streams: Iterable[str], time: int) -> list[tuple[int, int]]:
        """Return (number, last batch) of every other stream as of then; nothing where that is now."""
        named = set(streams)
        step = self.due(named, time)
        if step >= self.step:
            return []
        others = [track for iri, track in self.tracks.items() if iri not in named and track.steps]
        return [(track.number, track.batch(track.at(step))) for track in (*others, *self.gone)]

    def prune(self, step: int) -> list[Track]:
        """Forget what no look at this step or a later one needs; returns the streams that are gone for everybody."""
        for track in (*self.tracks.values(), *self.gone):
            track.prune(step)
        over = [track for track in self.gone if track.steps[-1] <= step]
        self.gone = [track for track in self.gone if track.steps[-1] > step]
        return over

    def save(self) -> list[object]:
        """Return the history as JSON's data model."""
        tracks = [*self.tracks.items(), *((None, track) for track in self.gone)]
        return [[iri, t.number, t.batch_ms, list(t.steps), list(t.closed)] for iri, t in tracks]

    def restore(self, saved: Iterable[tuple[str | None, int, int, list[int], list[int]]], step: int) -> None:
        """Take over what `save` returned."""
        self.step = step
        tracks = [(iri, Track(number, batch_ms, steps, closed)) for iri, number, batch_ms, steps, closed in saved]
        self.tracks = {iri: track for iri, track in tracks if iri is not None}
        self.gone = [track for iri, track in tracks if iri is None]

    def __iter__(self) -> Iterator[Track]:
        return iter(self.tracks.values())
