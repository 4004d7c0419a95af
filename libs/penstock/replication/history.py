"""The history of a replica. For each step of the total order, the history has the last closed batch of every stream.
The history thus maps steps to vector timestamps.

An engine that takes over a bucket can be ahead of the step of the bucket's last commit. The engine must evaluate an
instant on the stored graph as of the step at which the instant became due (semantics.md §3). From the history, the
engine gets the last closed batch of every stream at this step.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NOTHING = -(1 << 62)
"""A time before all others."""
FOR_EVER = 1 << 62
"""A time after all others. This time is the progress of an ended derived stream, so that no query waits for the stream.
"""
INSERTIONS = (1 << 20) - 1
"""The stream number of insertions in the store. A view excludes later insertions in the same way as it excludes later
batches of a stream.
"""


@dataclass(slots=True)
class Track:
    """The progress of one stream: after step `steps[i]`, the stream was closed up to `closed[i]`.

    `closed` contains times in ms, or insertion numbers in the track of insertions. `batch_ms` converts times to batch
    numbers.
    """

    number: int
    batch_ms: int
    steps: list[int] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)

    def at(self, step: int) -> int | None:
        """Return the stream's progress after a step, or None if the stream had no progress."""
        i = bisect_right(self.steps, step)
        return self.closed[i - 1] if i else None

    def reached(self, time: int) -> int | None:
        """Return the first step after which the stream was closed up to `time`. None if the stream is not closed that
        far.
        """
        i = bisect_left(self.closed, time)
        return self.steps[i] if i < len(self.steps) else None

    def batch(self, closed: int | None) -> int:
        """Return the number of the last batch that ends at or before the time `closed`. If `closed` is None, return a
        number before all batches. In the track of insertions, return `closed` itself, or 0 for None.
        """
        if self.number == INSERTIONS:
            return closed or 0
        return NOTHING // self.batch_ms if closed is None else closed // self.batch_ms - 1

    def prune(self, step: int) -> None:
        """Remove entries that look-ups at `step` or later do not need."""
        keep = max(bisect_right(self.steps, step) - 1, 0)
        del self.steps[:keep], self.closed[:keep]


class History:
    """The tracks of all streams, by IRI. The track of insertions has the empty IRI.

    `step`: the number of applied steps. `gone`: tracks of dropped streams. Such a track remains until no query can read
    a snapshot older than the stream's last batch.
    """

    def __init__(self) -> None:
        self.tracks: dict[str, Track] = {"": Track(INSERTIONS, 1)}
        self.gone: list[Track] = []
        self.step = 0

    def add(self, iri: str, number: int, batch_ms: int) -> None:
        """Start to record a stream."""
        self.tracks[iri] = Track(number, batch_ms)

    def drop(self, iri: str) -> None:
        """Stop recording a stream. If the stream has progress, its track moves to `gone`, because queries possibly
        still have to be evaluated at instants before the stream's last batch.
        """
        track = self.tracks.pop(iri, None)
        if track is not None and track.steps:
            self.gone.append(track)

    def record(self, iri: str, closed: int) -> None:
        """Record the progress of a stream at the current step."""
        track = self.tracks[iri]
        if track.steps and track.steps[-1] == self.step:
            track.closed[-1] = closed
        else:
            track.steps.append(self.step)
            track.closed.append(closed)

    def due(self, streams: Iterable[str], time: int) -> int:
        """Return the step at which instant `time` of a query over `streams` became due. If the instant is not due yet,
        return the current step.
        """
        steps = [self.tracks[iri].reached(time) for iri in streams]
        return max((self.step if step is None else step for step in steps), default=self.step)

    def bounds(self, streams: Iterable[str], time: int, since_step: int = 0) -> list[tuple[int, int]]:
        """Return the progress, at an earlier step, of the streams that a query does not name. The earlier step is the
        step at which instant `time` of the query became due. `streams`: the streams that the query names. The result
        contains (stream number, last closed batch) for each other stream. Insertions count as a stream. `since_step`: a
        lower bound of the earlier step.

        The result is empty if the instant became due at the current step, or is not due yet. The view then excludes
        nothing.
        """
        named = set(streams)
        step = max(self.due(named, time), since_step)
        if step >= self.step:
            return []
        others = [track for iri, track in self.tracks.items() if iri not in named and track.steps]
        return [(track.number, track.batch(track.at(step))) for track in (*others, *self.gone)]

    def prune(self, step: int) -> list[Track]:
        """Remove entries that look-ups at `step` or later do not need. Returns the tracks of dropped streams that this
        call has removed.
        """
        for track in (*self.tracks.values(), *self.gone):
            track.prune(step)
        over = [track for track in self.gone if track.steps[-1] <= step]
        self.gone = [track for track in self.gone if track.steps[-1] > step]
        return over

    def save(self) -> list[object]:
        """Return the history as JSON-compatible values."""
        tracks = [*self.tracks.items(), *((None, track) for track in self.gone)]
        return [[iri, t.number, t.batch_ms, list(t.steps), list(t.closed)] for iri, t in tracks]

    def restore(self, saved: Iterable[tuple[str | None, int, int, list[int], list[int]]], step: int) -> None:
        """Replace the history by the result of `save`. `step`: the step at which the history was saved."""
        self.step = step
        tracks = [(iri, Track(number, batch_ms, steps, closed)) for iri, number, batch_ms, steps, closed in saved]
        self.tracks = {iri: track for iri, track in tracks if iri is not None}
        self.gone = [track for iri, track in tracks if iri is None]

    def __iter__(self) -> Iterator[Track]:
        return iter(self.tracks.values())
