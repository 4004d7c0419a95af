"""The streams of an engine. Each stream has a watermark and closed batches. `Streams` finds a stream by its IRI
(semantics.md §1, §2).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.engine.intake.rejected_events import LateEvent, Output
from penstock.engine.limits import MAX_TIME_MS
from penstock.errors import DataError, LimitError, UnknownStreamError
from penstock.event_time.grid import batch_end, batch_of, closed_until
from penstock.event_time.watermark import NEVER
from penstock.rdf.terms import IRI

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from numpy.typing import ArrayLike, NDArray

    from penstock.core._native import Ids
    from penstock.engine.intake.declaration import Declaration
    from penstock.engine.limits import Limits
    from penstock.engine.stored_graph import StoredGraph


class LiveStream:
    """A stream and its progress. All access must be under the engine's lock. Times are in ms.

    `watermark` and `target_ms` are None before the first progress. `move` changes both. `target_ms` is the end of the
    last batch that can close at this watermark. `closed_ms` is the end of the last closed batch. `closed_ms` is behind
    `target_ms` only while the schedule runs.
    """

    def __init__(self, declaration: Declaration, number: int, core: native.Stream, limits: Limits) -> None:
        self.iri = declaration.iri
        self.number = number
        self.watermark: int | None = None
        self.target_ms: int | None = None
        self.declare(declaration, core)
        self.closed_ms: int | None = None
        # the number of the stream in the order in which streams had their first progress, and the registration point of
        # queries that have waited for this progress; None before the first progress
        self.begun: tuple[int, int] | None = None
        self.publisher: str | None = None
        self.depth = 0  # number of queries between input streams and this stream
        self.ended = False
        # In a cluster, the retention floors of all queries. None: no query needs more than the queries of this process.
        self.retained_from: int | None = None  # queries still read tuples after this time
        self.evaluated_from: int | None = None  # all later views contain the batches up to this time
        self.late: Output[LateEvent] = Output(limits.max_refused, limits.refused_bytes)
        self.events = 0
        self.tuples = 0
        self.stored_before = 0  # tuples absorbed before the checkpoint from which the stream was restored
        self._beyond = native.Beyond()
        self._refused_beyond = native.Beyond()
        self._max_refused = limits.max_refused

    def __repr__(self) -> str:
        return f"<LiveStream {self.iri} w={self.watermark} closed={self.closed_ms}>"

    def declare(self, declaration: Declaration, core: native.Stream) -> None:
        """Replace the declaration and the native stream. The new declaration must have the same IRI."""
        self.declaration = declaration
        self.batch_ms = declaration.batch_ms
        self.mapping = declaration.compiled_mapping
        self.core = core
        if self.watermark is not None:
            self.target_ms = closed_until(self.watermark, self.batch_ms)

    @property
    def stored_tuples(self) -> int:
        """The number of tuples absorbed into the stored graph, including duplicates."""
        return self.stored_before + self.core.stored_tuples()

    # ---- progress
    def move(self, watermark: int) -> None:
        """Advance the stream's watermark to the time `watermark`. The call has no effect if this time is before the
        current watermark.
        """
        if self.watermark is None or watermark > self.watermark:
            self.watermark = watermark
            self.target_ms = closed_until(watermark, self.batch_ms)

    def resume(self, watermark: int | None, closed_ms: int | None) -> None:
        """Restore the progress of the stream from a checkpoint."""
        if watermark is not None:
            self.move(watermark)
        self.closed_ms = closed_ms

    def first_open(self) -> int | None:
        """The end in ms of the first open batch with tuples, or None if there is no such batch."""
        first = self.core.first_open()
        return None if first is None else (first + 1) * self.batch_ms

    def next_stop(self) -> int | None:
        """Return the end in ms of the next batch to close, or None if no batch can close yet. The next batch is the
        first open batch with tuples, or the batch that ends at `target_ms`, whichever is earlier.
        """
        target, closed = self.target_ms, self.closed_ms
        if target is None:
            return None
        if closed is not None and closed + self.batch_ms >= target:
            return target if closed < target else None
        first = self.first_open()
        return target if first is None else min(first, target)

    def close_until(self, end: int) -> int:
        """Close every batch that ends at or before `end`. `end` must be the end of a batch. Returns the number of
        closed batches with tuples.
        """
        held = self.core.close(self._batch_to(end))
        self.closed_ms = end
        return held

    @staticmethod
    def close_together(streams: Collection[LiveStream], end: int) -> list[int]:
        """Close the batches of several streams as `close_until` does, in one call of the native module. Returns, for
        each stream, the number of closed batches with tuples.
        """
        held = native.Stream.close_together([(stream.core, stream._batch_to(end)) for stream in streams])  # noqa: SLF001
        for stream in streams:
            stream.closed_ms = end
        return held

    def _batch_to(self, end: int) -> int:
        """Return the number of the batch that ends at `end`."""
        assert end % self.batch_ms == 0, (end, self.batch_ms)
        return batch_of(end, self.batch_ms)

    def close_for(self, time: int) -> int:
        """Close the batch that contains `time`, and all earlier batches. Returns the number of closed batches with
        tuples.
        """
        return self.close_until(batch_end(time, self.batch_ms))

    def has_closed(self, time: int) -> bool:
        """Return whether the batch that contains `time` is closed."""
        return self.closed_ms is not None and self.closed_ms >= time

    # ---- tuples
    def take(self, times: ArrayLike, s: ArrayLike, p: ArrayLike, o: ArrayLike) -> bool:
        """Append events of one tuple each, in one call of the native module. If an event is not accepted, or if a batch
        closes, the call returns False and has no effect. The caller then uses the slower `append`.

        This method accepts an event only if the event is at most `max_ahead_ms` ahead of the watermark. The slower
        method also accepts an event that is at most `max_ahead_ms` ahead of the wall clock.
        """
        core, before, closed = self.core, self.watermark, self.closed_ms
        if before is None or closed is None or self.publisher is not None:
            return False
        setting = self.declaration
        lateness, most_ahead, until = setting.lateness_ms, setting.max_ahead_ms, closed + setting.batch_ms - 1
        try:
            watermark = core.take(times, s, p, o, self._beyond, before, lateness, most_ahead, MAX_TIME_MS, until)
        except TypeError:
            return False  # the slower path can convert other values to columns
        except LimitError as error:
            raise LimitError(f"<{self.iri}>: {error}") from error
        if watermark is None:
            return False
        rows = len(times)  # type: ignore[arg-type] # the native module has checked that it is a column
        self.tuples += rows
        self.events += rows
        self.watermark = watermark
        return True

    def append(self, times: np.ndarray, s: Ids, p: Ids, o: Ids, removed: NDArray[np.uint8] | None = None) -> None:
        """Append tuples to the open batches that contain the tuples' times. `removed` contains 1 for each triple that
        an event removes, and 0 for each other triple. LimitError if the stream's memory limit would be exceeded.
        """
        try:
            if removed is None or not removed.any():
                self.core.append(times, s, p, o)
            else:
                self.core.append_changes(times, s, p, o, removed)
        except LimitError as error:
            raise LimitError(f"<{self.iri}>: {error}") from error
        self.tuples += len(times)

    def record(self, times: np.ndarray) -> None:
        """Count accepted events, and record the times of accepted events after the watermark. A producer that pushes
        events again after a restart must skip the counted events (`push_again` of `stream_stats`).
        """
        self.events += len(times)
        self._beyond.add(times, self._passed)

    def record_refused(self, times: list[int]) -> None:
        """Record the times of refused events after the watermark, at most `max_refused` of them. A producer that pushes
        events again after a restart must skip the refused events, too (`push_again` of `stream_stats`).
        """
        room = self._max_refused - self._refused_beyond.held()
        if times and room > 0:
            self._refused_beyond.add(np.array(times[:room], np.int64), self._passed)

    @property
    def arrived_beyond(self) -> int:
        """The number of accepted and refused events with times after the watermark."""
        return len(self._after_watermark())

    def restore_beyond(self, counts: dict[int, int]) -> None:
        """Restore the counts that `beyond` has returned."""
        self._beyond = native.Beyond()
        times = np.repeat(np.array(list(counts), np.int64), np.array(list(counts.values()), np.int64))
        self._beyond.add(times, NEVER)

    @property
    def beyond(self) -> dict[int, int]:
        """The number of accepted and refused events for each time (in ms) after the watermark."""
        times, counts = np.unique(self._after_watermark(), return_counts=True)
        return dict(zip(times.tolist(), counts.tolist(), strict=True))

    def _after_watermark(self) -> np.ndarray:
        passed = self._passed
        return np.concatenate([self._beyond.after(passed), self._refused_beyond.after(passed)])

    @property
    def _passed(self) -> int:
        return NEVER if self.watermark is None else self.watermark


class Streams:
    """All streams of an engine, by IRI. Commits and views of the stored graph refer to stream numbers. Stream numbers
    are therefore never reused.
    """

    def __init__(
        self,
        store: StoredGraph,
        dictionary: native.Dictionary,
        limits: Limits,
        iri_id: Callable[[str], int] | None = None,
        *,
        releases: bool = True,
    ) -> None:
        self._store = store
        self._dictionary = dictionary
        self._iri_id = iri_id or (lambda iri: dictionary.intern(IRI, iri))
        self._limits = limits
        self._by_iri: dict[str, LiveStream] = {}
        self._closed: dict[str, int] | None = None
        self.next_number = 1
        self._begun = 0
        self.retaining = 0  # number of streams with a retention
        self._releases = releases

    def __contains__(self, iri: object) -> bool:
        return iri in self._by_iri

    def __iter__(self) -> Iterator[LiveStream]:
        return iter(self._by_iri.values())

    def __len__(self) -> int:
        return len(self._by_iri)

    def closed_batches(self) -> dict[str, int]:
        """Return the engine's vector timestamp: by IRI, the number of the stream's last closed batch. Streams without a
        closed batch are left out.
        """
        if self._closed is None:
            known = ((s.iri, s.closed_ms, s.batch_ms) for s in self._by_iri.values())
            self._closed = {iri: closed // batch_ms - 1 for iri, closed, batch_ms in known if closed is not None}
        return self._closed

    def progressed(self) -> None:
        """Discard the cached result of `closed_batches`, because a stream has closed batches."""
        self._closed = None

    def get(self, iri: str) -> LiveStream:
        """Return the stream with this IRI. UnknownStreamError if the stream was not declared, or was dropped."""
        stream = self._by_iri.get(iri)
        if stream is None:
            raise UnknownStreamError(f"unknown stream <{iri}>: declare it first")
        return stream

    def find(self, iri: str) -> LiveStream | None:
        """Return the stream with this IRI, or None if there is no such stream."""
        return self._by_iri.get(iri)

    def declare(self, declaration: Declaration) -> LiveStream:
        """Add a stream, and return it. A repeated declaration has no effect. DataError if the declaration conflicts
        with an earlier declaration, LimitError if there are too many streams.
        """
        known = self._by_iri.get(declaration.iri)
        if known is not None:
            if known.declaration != declaration:
                raise DataError(f"stream <{declaration.iri}> is already declared differently: {known.declaration}")
            return known
        if len(self._by_iri) >= self._limits.max_streams:
            raise LimitError(f"there are already {len(self._by_iri)} streams (max_streams)")
        return self.add(declaration, self.next_number)

    def add(self, declaration: Declaration, number: int) -> LiveStream:
        """Add a stream with a given number, for example from a checkpoint."""
        stream = LiveStream(declaration, number, self._core(declaration, number), self._limits)
        self._by_iri[declaration.iri] = stream
        self.retaining += declaration.retention_ms > 0
        self.next_number = max(self.next_number, number + 1)
        return stream

    def publish(self, declaration: Declaration, publisher: str, batch_ms: int) -> LiveStream:
        """Return the stream that the query `publisher` publishes. If the stream does not exist, the call adds the
        stream. If the stream exists already, the call changes only the batch interval and the lateness in the stream's
        declaration.
        """
        known = self._by_iri.get(declaration.iri)
        required = replace(known.declaration if known else declaration, batch_ms=batch_ms, lateness_ms=0)
        if known is None:
            stream = self.declare(required)
        else:
            stream = known
            if known.declaration != required:
                known.declare(required, self._core(required, known.number))
        stream.publisher = publisher
        return stream

    def begin(self, stream: LiveStream, point: int) -> None:
        """Record the first progress of a stream. `point` is the registration point, in ms, of the queries that have
        waited for this progress. The call has no effect if the stream has made progress already.
        """
        if stream.begun is None:
            self.restore_begun(stream, (self._begun + 1, point))

    def restore_begun(self, stream: LiveStream, begun: tuple[int, int]) -> None:
        """Restore the first progress of a stream from a checkpoint."""
        stream.begun = begun
        self._begun = max(self._begun, begun[0])

    def drop(self, iri: str) -> None:
        """Drop a stream. The triples that the stream has absorbed remain in the stored graph."""
        stream = self.get(iri)
        del self._by_iri[iri]
        self.retaining -= stream.declaration.retention_ms > 0
        self._closed = None
        if stream.closed_ms is not None:
            stream.core.release(stream.closed_ms // stream.batch_ms - 1)
            if self._releases:
                self._store.release(stream.number, stream.closed_ms // stream.batch_ms)

    def _core(self, declaration: Declaration, number: int) -> native.Stream:
        return self._store.stream(declaration, number, self._dictionary, self._iri_id)
