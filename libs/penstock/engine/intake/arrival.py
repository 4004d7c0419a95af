"""The outcome of each event on arrival: accepted, late or rejected. Accepted events advance their streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.core import _native as native
from penstock.engine.intake.rejected_events import DeadLetter, LateEvent
from penstock.engine.intake.removals import checked_removals
from penstock.errors import DataError
from penstock.event_time.grid import batch_start, closed_until
from penstock.event_time.lateness import watermarks_met
from penstock.event_time.time_units import unit_hint
from penstock.event_time.watermark import NEVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from penstock.engine.engine_core import EngineCore
    from penstock.engine.intake.events import BadEvent, Events
    from penstock.engine.intake.rejected_events import Output
    from penstock.engine.intake.streams import LiveStream
    from penstock.engine.standing.registry import Registry
    from penstock.engine.windows.schedule import Schedule

_ACCEPTED, _LATE = 0, 1  # outcomes of the native module (stream.hpp)


@dataclass(frozen=True, slots=True)
class PushReport:
    """The numbers of the accepted, late and rejected events of a push. Rejected events become dead letters."""

    accepted: int = 0
    late: int = 0
    rejected: int = 0

    def __add__(self, other: PushReport) -> PushReport:
        return PushReport(self.accepted + other.accepted, self.late + other.late, self.rejected + other.rejected)


@dataclass(frozen=True, slots=True)
class Taken:
    """The result of `Intake.take`: the number of events with each outcome, and the dead letters."""

    report: PushReport
    letters: list[DeadLetter]


class Intake:
    """Adds parsed events to streams."""

    def __init__(self, core: EngineCore, registry: Registry, schedule: Schedule, dead: Output[DeadLetter]) -> None:
        self._core = core
        self._registry = registry
        self._schedule = schedule
        self._dead = dead

    def take(self, stream: LiveStream, events: Events, bad: Sequence[BadEvent]) -> Taken:
        """Accept the valid events that are neither late nor too far ahead, and advance the stream. Three kinds of
        events become dead letters: events that are too far ahead, events that could not be parsed (`bad`), and events
        that remove a triple of a timing predicate. LimitError if the push would exceed a limit. In this case, the push
        has no effect.
        """
        if events.removed is not None:
            events, invalid = checked_removals(events, stream.declaration.timing, self._core.dictionary)
            bad = [*bad, *invalid]
        before = NEVER if stream.watermark is None else stream.watermark
        setting, wall = stream.declaration, self._core.clock()
        outcomes, watermark = native.Stream.decide(
            events.times, before, setting.lateness_ms, wall, setting.max_ahead_ms
        )
        letters = [DeadLetter(stream.iri, event.time, event.reason, event.data) for event in bad]
        late_before, taken = stream.late.total, len(events.times)
        if outcomes is None:
            self._accept(stream, events, None, watermark)
        elif len(refused := np.flatnonzero(outcomes)):
            accepted = outcomes == _ACCEPTED
            if len(refused) < len(outcomes):
                self._accept(stream, events, accepted, watermark)
            met = watermarks_met(events.times, accepted, before, setting.lateness_ms)
            letters += self._refuse(stream, events, refused, outcomes, met, max(before, wall) + setting.max_ahead_ms)
        for letter in letters:
            self._dead.put(letter)
        stream.record_refused([letter.timestamp for letter in letters if letter.timestamp is not None])
        late, rejected = stream.late.total - late_before, len(letters)
        return Taken(PushReport(taken + len(bad) - late - rejected, late, rejected), letters)

    def _accept(self, stream: LiveStream, events: Events, accepted: NDArray[np.bool_] | None, watermark: int) -> None:
        """Add the events that the mask `accepted` selects. None selects all events. Also advance the stream to
        `watermark`.
        """
        times = events.times if accepted is None else events.times[accepted]
        point = batch_start(int(times[0]), stream.batch_ms)
        if stream.target_ms is None or closed_until(watermark, stream.batch_ms) > stream.target_ms:
            self._schedule.check([stream], watermark, point)
        if accepted is None:
            stream.append(events.of_triples(events.times), events.s, events.p, events.o, events.removed)
        else:
            rows = events.of_triples(accepted)
            removed = None if events.removed is None else events.removed[rows]
            columns = events.s[rows], events.p[rows], events.o[rows]
            stream.append(events.of_triples(events.times)[rows], *columns, removed)
        self._registry.begin(stream, point)
        stream.move(watermark)
        stream.record(times)

    def _refuse(
        self,
        stream: LiveStream,
        events: Events,
        refused: NDArray[np.intp],
        outcomes: NDArray[np.uint8],
        met: NDArray[np.int64],
        limit: int,
    ) -> list[DeadLetter]:
        letters = []
        for i in refused.tolist():
            time, data = int(events.times[i]), events.original(i)
            if outcomes[i] == _LATE:
                stream.late.put(LateEvent(stream.iri, time, int(met[i]), data))
            else:
                reason = f"its time {time} is further ahead than {limit} (max_ahead_ms){unit_hint(limit, time)}"
                letters.append(DeadLetter(stream.iri, time, reason, data))
        return letters


def as_column(values: ArrayLike, dtype: type[np.int64 | np.uint64]) -> NDArray[Any]:
    """Return the values as a contiguous column of the type `dtype`. DataError if the values are not a one-dimensional
    array of integers, or if a value does not fit into this type.
    """
    if type(values) is np.ndarray and values.dtype == dtype and values.ndim == 1 and values.flags.c_contiguous:
        return values  # the common case
    column = np.asarray(values)
    if column.ndim != 1 or (len(column) and column.dtype.kind not in "iu"):
        raise DataError(f"not a column of integers: {column.ndim} dimensions of {column.dtype}")
    if len(column) and column.dtype != dtype:
        least, greatest = int(column.min()), int(column.max())
        if not np.iinfo(dtype).min <= least <= greatest <= np.iinfo(dtype).max:
            raise DataError(f"a number does not fit into {np.dtype(dtype)}")
    return np.ascontiguousarray(column, dtype)
