"""Event time of one stream: late events, the watermark, and closed batches (docs/semantics.md §2).

The rules are the same as in the embedded engine. The native core decides about events (`Stream.decide_partition`), and
`event_time.grid` divides time into batches. This module adds multiple source partitions and restarts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.core import _native as native
from penstock.event_time.grid import batch_of, batch_start, closed_until
from penstock.event_time.lateness import watermarks_met
from penstock.event_time.watermark import NEVER
from penstock.services.dispatcher import refused_runs
from penstock.services.dispatcher.open_batches import OpenBatches, Origin, Rows
from penstock.services.dispatcher.refused_runs import Refused, RefusedRuns, places
from penstock.wire import DispatcherState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.wire import StreamDeclaration, Tuples

_ACCEPTED, _LATE = 0, 1  # outcomes of the native core (stream.hpp)
_LAST = (1 << 63) - 1
MAX_BATCH_TUPLES = 1 << 22
"""Maximum number of tuples of a batch. A batch is one transaction, and one commit of the stored graph."""


class ClosedBatch(NamedTuple):
    """The batches `first` to `last`, which close together. Only `last` can have tuples (`rows`). `begin_ms`: the time
    after which the stream begins, if these are the stream's first batches; otherwise None.
    """

    first: int
    last: int
    rows: Rows
    begin_ms: int | None


@dataclass(slots=True)
class Tallies:
    """Counters of the input. `far_advances`: number of rejected heartbeats, whose time is too far ahead. `outdated`:
    number of skipped records, to which an older filter version was applied (ADR 45).
    """

    events: int = 0
    duplicates: int = 0
    far_advances: int = 0
    outdated: int = 0

    def __add__(self, other: Tallies) -> Tallies:
        return Tallies(
            self.events + other.events,
            self.duplicates + other.duplicates,
            self.far_advances + other.far_advances,
            self.outdated + other.outdated,
        )


@dataclass(slots=True)
class SourcePartition:
    """One partition of the stream's events. `filter_version`: a version of the predicate filter. A record is outdated
    if an older version of the filter was applied to the record (ADR 45).
    """

    own_ms: int = NEVER  # the partition's watermark
    next_offset: int = 0  # of the source
    position: int = 0  # next offset in the tuples topic
    heard_ms: int = 0  # wall-clock time of the last record
    idle: bool = False
    filter_version: int = 0
    refused: RefusedRuns = field(default_factory=RefusedRuns)

    def outdated(self, tuples: Tuples) -> bool:
        """Return whether an older filter version possibly discarded tuples of a record.

        The adaptor then writes the record's tuples again, before it commits the source offsets (ADR 45).
        """
        return 0 < tuples.filter_version < self.filter_version


class StreamTime:
    """The event time of one stream. `wall_ms` is always the current wall-clock time in ms."""

    def __init__(
        self, declaration: StreamDeclaration, partitions: int, wall_ms: int, max_batch_tuples: int = MAX_BATCH_TUPLES
    ) -> None:
        self.declaration = declaration
        self._max_batch_tuples = max_batch_tuples
        self.partitions = [SourcePartition(heard_ms=wall_ms) for _ in range(partitions)]
        self.open = OpenBatches(declaration.batch_ms)
        self.watermark_ms = NEVER
        self.closed: int | None = None
        self.begin_ms: int | None = None
        self.follows_wall = False
        self.tallies = Tallies()
        self.changed = False
        self.known = 0
        self._cut: dict[int, int] = {}  # by open batch: the minimum filter version of its events

    def grow(self, partitions: int, wall_ms: int) -> None:
        """Add new partitions of the source. `partitions`: the new number of partitions. The filter version in `known`
        remains valid, because adaptors apply this version or a later version to the new partitions.
        """
        more = range(len(self.partitions), partitions)
        self.partitions += [SourcePartition(heard_ms=wall_ms, filter_version=self.known) for _ in more]

    # ---- input
    def take(self, number: int, tuples: Tuples, position: int, wall_ms: int) -> list[Refused]:
        """Process the tuples record at offset `position` of partition `number`. Returns the refused events."""
        part = self.partitions[number]
        part.position = position + 1
        if part.outdated(tuples):
            self.tallies.outdated += 1
            return []
        events = _Events.after(tuples, part.next_offset)
        self.tallies.duplicates += len(tuples.offsets) - len(events.offsets)
        origin = Origin(number, position, part.next_offset, part.filter_version)
        if len(tuples.offsets) or tuples.advance_ms is not None:
            part.heard_ms, part.idle = wall_ms, False
        part.filter_version = max(part.filter_version, tuples.filter_version)
        refused = self._decide(part, events, origin, wall_ms)
        if tuples.advance_ms is not None:
            self._advance_part(part, tuples.advance_ms, wall_ms)
        self._raise()
        self._learn()
        return refused

    def _decide(self, part: SourcePartition, events: _Events, origin: Origin, wall_ms: int) -> list[Refused]:
        if len(events.offsets) == 0:
            return []
        set_, own_ms = self.declaration, part.own_ms
        others = min((p.own_ms for p in self.partitions if p is not part and not p.idle), default=_LAST)
        outcomes, part.own_ms = native.Stream.decide_partition(
            events.times, self.watermark_ms, part.own_ms, others, set_.lateness_ms, wall_ms, set_.max_ahead_ms
        )
        part.next_offset = int(events.offsets[-1]) + 1
        self.tallies.events += len(outcomes)
        full = self._overfull(events, outcomes == _ACCEPTED)
        crowded = len(part.refused) >= max(1, refused_runs.MAX_RUNS // len(self.partitions))
        accepted = (outcomes == _ACCEPTED) & ~full & (not crowded)
        part.refused.record(places(events.offsets), events.times, ~accepted, origin.position)
        if accepted.any():
            times = events.times[accepted]
            self._begin(batch_start(int(times[0]), set_.batch_ms))
            self.follows_wall = abs(wall_ms - int(times.max())) <= set_.idle_timeout_ms + set_.lateness_ms
            self.open.add(events.rows(accepted), origin)
            if events.filter_version:
                for number in np.unique(batch_of(times, set_.batch_ms)).tolist():
                    self._cut[number] = min(self._cut.get(number, events.filter_version), events.filter_version)
        if accepted.all():
            return []
        self.changed = True
        own = watermarks_met(events.times, accepted, own_ms, set_.lateness_ms)
        met = np.maximum(self.watermark_ms, np.minimum(own, others))
        refused: dict[tuple[int, bool], Refused] = {}
        for i in np.flatnonzero(~accepted).tolist():
            offset, time, late = int(events.offsets[i]), int(events.times[i]), bool(outcomes[i] == _LATE)
            if (first := refused.get((offset, late))) is not None:
                refused[offset, late] = first._replace(events=first.events + 1)
                continue
            bound = int(met[i]) if late else max(int(met[i]), wall_ms) + set_.max_ahead_ms
            limit = self._limit(full=bool(full[i])) if outcomes[i] == _ACCEPTED else ""
            refused[offset, late] = Refused(origin.partition, offset, time, late, bound, limit)
        return list(refused.values())

    def _limit(self, *, full: bool) -> str:
        """Describe the limit for which an event is refused. The event is neither late nor too far ahead in time."""
        if full:
            most = self._max_batch_tuples
            return f"its batch is full: {most} tuples (PENSTOCK_MAX_BATCH_TUPLES); a smaller batch_ms closes earlier"
        return f"its stream has {refused_runs.MAX_RUNS} runs of refused events in open batches (MAX_RUNS)"

    def _overfull(self, events: _Events, accepted: np.ndarray) -> np.ndarray:
        """Return a mask of the accepted events that would exceed the maximum size of a batch."""
        full = np.zeros(len(accepted), np.bool_)
        if self.open.tuples + len(events.tuples) <= self._max_batch_tuples:
            return full
        numbers: np.ndarray = batch_of(events.times, self.declaration.batch_ms)  # type: ignore[arg-type,assignment]
        for number in np.unique(numbers[accepted]).tolist():
            rows = np.flatnonzero(accepted & (numbers == number))
            full[rows] = self.open.held(number) + np.cumsum(events.counts[rows]) > self._max_batch_tuples
        return full

    def _advance_part(self, part: SourcePartition, time_ms: int, wall_ms: int) -> None:
        if time_ms > max(self.watermark_ms, wall_ms) + self.declaration.max_ahead_ms:
            self.tallies.far_advances += 1  # one wrong clock must not close all batches
            return
        part.own_ms = max(part.own_ms, time_ms)
        self._begin(time_ms)

    def _begin(self, point_ms: int) -> None:
        if self.begin_ms is None:
            self.begin_ms = point_ms

    # ---- filter versions
    def _learn(self) -> None:
        """Update `known`, the minimum filter version of all future tuples."""
        known = min(part.filter_version for part in self.partitions)
        if known != self.known:
            self.known, self.changed = known, True

    def demand(self, version: int) -> None:
        """From now on, skip tuples with filter versions before `version`. The control topic must contain `version`."""
        for part in self.partitions:
            part.filter_version = max(part.filter_version, version)
        self._learn()

    # ---- progress
    def _raise(self) -> None:
        least = min((p.own_ms for p in self.partitions if not p.idle), default=NEVER)
        self.watermark_ms = max(self.watermark_ms, least)

    @property
    def idle(self) -> bool:
        """Whether all partitions are idle."""
        return all(part.idle for part in self.partitions)

    def overdue(self, wall_ms: int) -> list[int]:
        """Return the partitions that had no record for the idle timeout, and are not marked as idle yet."""
        since = wall_ms - self.declaration.idle_timeout_ms
        return [i for i, part in enumerate(self.partitions) if not part.idle and part.heard_ms <= since]

    def leave_out(self, number: int) -> None:
        """Mark a partition as idle. The watermark excludes the partition until its next record."""
        self.partitions[number].idle = True
        self._raise()

    def advance(self, time_ms: int) -> None:
        """Advance the watermark of an idle stream to `time_ms`, like a heartbeat."""
        if time_ms > self.watermark_ms:
            self._begin(time_ms)
            self.watermark_ms = time_ms

    def would_close(self, time_ms: int) -> bool:
        """Return whether advancing the watermark to `time_ms` would close a batch."""
        batch_ms = self.declaration.batch_ms
        return time_ms > self.watermark_ms and closed_until(time_ms, batch_ms) > (
            NEVER if self.closed is None else (self.closed + 1) * batch_ms
        )

    def leading(self) -> list[int]:
        """Return the partitions whose watermark is ahead of the watermark of the slowest partition. The dispatcher can
        pause these partitions.
        """
        active = [part.own_ms for part in self.partitions if not part.idle]
        least = min(active, default=NEVER)
        return [i for i, part in enumerate(self.partitions) if not part.idle and part.own_ms > least]

    def close(self) -> Iterator[ClosedBatch]:
        """Close all batches that the watermark permits. Yields each nonempty batch together with the empty batches
        directly before. Finally yields the empty batches after the last nonempty batch.
        """
        if self.watermark_ms == NEVER:
            return
        batch_ms = self.declaration.batch_ms
        target = closed_until(self.watermark_ms, batch_ms) // batch_ms - 1
        if self.closed is not None and target <= self.closed:
            return
        numbers = self.open.until(target)
        for number in numbers if numbers and numbers[-1] == target else [*numbers, target]:
            first, begin = (number, self.begin_ms) if self.closed is None else (self.closed + 1, None)
            self.closed = number
            yield ClosedBatch(first, number, self.open.take(number), begin)
        self.changed = True
        self._cut = {number: version for number, version in self._cut.items() if number > target}

    # ---- restart
    def state(self) -> DispatcherState:
        """Return the state for a restart. Runs of refused events (`RefusedRuns`) that no restart needs are removed."""
        closed_ms = NEVER if self.closed is None else (self.closed + 1) * self.declaration.batch_ms
        replay = [
            self.open.oldest(i) or Origin(i, p.position, p.next_offset, p.filter_version)
            for i, p in enumerate(self.partitions)
        ]
        for part, origin in zip(self.partitions, replay, strict=True):
            part.refused.settle(origin.position, closed_ms)
        refused = [(i, *run) for i, part in enumerate(self.partitions) for run in part.refused.saved()]
        self.changed = False
        return DispatcherState(
            self.declaration.iri,
            self.declaration.number,
            _column(part.own_ms for part in self.partitions),
            _column(part.next_offset for part in self.partitions),
            _column(part.position for part in self.partitions),
            _column(origin.position for origin in replay),
            _column(origin.next_offset for origin in replay),
            _column(number for number, _, _ in refused),
            _column(first for _, first, _ in refused),
            _column(last for _, _, last in refused),
            None if self.watermark_ms == NEVER else self.watermark_ms,
            self.closed,
            self.begin_ms,
            self.follows_wall,
            _column(part.filter_version for part in self.partitions),
            _column(origin.filter_version for origin in replay),
            _column(iter(self._cut)),
            _column(iter(self._cut.values())),
            self.known,
        )

    def restore(self, state: DispatcherState) -> None:
        """Restore a state. Afterwards, call `replay` for the records from `replay_positions` (inclusive) to `positions`
        (exclusive) of the state, and then call `replayed`.
        """
        self.watermark_ms = NEVER if state.watermark_ms is None else state.watermark_ms
        self.closed, self.begin_ms, self.follows_wall = state.closed, state.begin_ms, state.follows_wall
        for i, part in enumerate(self.partitions[: len(state.own_ms)]):
            part.own_ms = int(state.own_ms[i])
            part.next_offset = int(state.replay_offsets[i])
            part.position = int(state.replay_positions[i])
        for part in self.partitions:
            part.filter_version = state.known  # for new partitions
        for part, filter_version in zip(self.partitions, state.replay_filter_versions.tolist(), strict=False):
            part.filter_version = filter_version
        self._cut = dict(zip(state.cut_batches.tolist(), state.cut_filter_versions.tolist(), strict=True))
        self.known = state.known
        runs = np.stack([state.refused_first, state.refused_last], axis=1)
        for number in np.unique(state.refused_partitions).tolist():
            self.partitions[number].refused = RefusedRuns(runs[state.refused_partitions == number])

    def begin_after(self, state: DispatcherState) -> None:
        """Begin as a new stream with the topics of a dropped stream. `state`: the dropped stream's state.

        The declaration of the new stream contains the offsets at which this stream begins. Some records after these
        offsets were possibly read for the dropped stream. These records belong to the new stream, and are read again.
        """
        declared = self.declaration
        for i, part in enumerate(self.partitions[: len(state.positions)]):
            part.next_offset = min((int(state.next_offsets[i]), *declared.events_before[i : i + 1]))
            part.position = min((int(state.positions[i]), *declared.tuples_before[i : i + 1]))

    def replayed(self, state: DispatcherState) -> None:
        """Finish the replay. Sets the filter versions of the partitions to the versions in `state`."""
        for part, filter_version in zip(self.partitions, state.filter_versions.tolist(), strict=False):
            part.filter_version = filter_version
        for part in self.partitions:
            part.refused.replayed()

    def replay(self, number: int, tuples: Tuples, position: int) -> None:
        """Process a record again after a restart, for open batches only. The method does not decide about events again.
        Refused events are recognised by their places, and events of closed batches by their times.
        """
        part = self.partitions[number]
        part.position = position + 1
        if part.outdated(tuples):
            return
        events = _Events.after(tuples, part.next_offset)
        origin = Origin(number, position, part.next_offset, part.filter_version)
        part.filter_version = max(part.filter_version, tuples.filter_version)
        if len(events.offsets) == 0:
            return
        part.next_offset = int(events.offsets[-1]) + 1
        closed_ms = NEVER if self.closed is None else (self.closed + 1) * self.declaration.batch_ms
        where = places(events.offsets)
        refused = part.refused.known(where)
        part.refused.record(where, events.times, refused, position)
        self.open.add(events.rows((events.times > closed_ms) & ~refused), origin)


class _Events(NamedTuple):
    """The events of a record that were not processed before."""

    offsets: np.ndarray
    times: np.ndarray
    counts: np.ndarray
    tuples: Rows
    filter_version: int

    @classmethod
    def after(cls, record: Tuples, next_offset: int) -> _Events:
        times = np.repeat(record.times, record.counts)
        rows = Rows.of(record, times)
        # A record covers a contiguous range of its source, so the events that were processed before are a prefix.
        fresh = int(np.searchsorted(record.offsets, next_offset))
        if fresh == 0:
            return cls(record.offsets, record.times, record.counts, rows, record.filter_version)
        skipped = int(record.counts[:fresh].sum())
        columns = record.offsets[fresh:], record.times[fresh:], record.counts[fresh:]
        return cls(*columns, rows.after(skipped), record.filter_version)

    def rows(self, chosen: np.ndarray) -> Rows:
        """Return the tuples of the chosen events."""
        return self.tuples if chosen.all() else self.tuples.where(np.repeat(chosen, self.counts))


def _column(values: Iterator[int]) -> np.ndarray:
    return np.fromiter(values, np.int64)
