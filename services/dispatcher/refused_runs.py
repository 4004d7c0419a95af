"""Refused events of open batches, as runs of places in the source partition.

A restarted dispatcher reads the tuples of open batches again, but does not decide again whether to accept the events.
The dispatcher's state therefore lists the refused events, as runs. A run is a range of places of refused events. A run
can also contain accepted events of closed batches, because a restarted dispatcher recognises these events by their
times. The number of runs therefore depends on the number of accepted events in open batches, not on the number of
refused events.

The place of an event is the offset of the event's message, and the number of the event in this message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.event_time.watermark import NEVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

MAX_RUNS = 1 << 18
"""Maximum number of runs of a stream. This number of runs takes 6 MiB of the stream's state. Each partition of the
stream has an equal share of the maximum. A partition that has reached its share accepts no events until a batch closes.
A single record can exceed the share.
"""


_NUMBER_BITS = 17  # bits of an event's number in its message; a message has at most `max_values` events
_OFFSET_BITS = 63 - _NUMBER_BITS


class Refused(NamedTuple):
    """An event that was not accepted. `bound_ms`: for a late event, the watermark; otherwise, the maximum time allowed.
    `limit`: if the event's batch or stream has reached a limit, a text that describes the limit; otherwise empty. One
    object stands for all late events of a message, or for all other refused events of a message. `events`: the number
    of these events.
    """

    partition: int
    offset: int
    time_ms: int
    late: bool
    bound_ms: int
    limit: str = ""
    events: int = 1


def places(offsets: Numbers) -> Numbers:
    """Return the places of the events of a record, as numbers in the order of the events. `offsets`: for each event,
    the offset of its message. A record contains either all events of a message or none.
    """
    if len(offsets) < 2 or bool((offsets[1:] > offsets[:-1]).all()):
        return offsets << _NUMBER_BITS
    begins = np.flatnonzero(np.concatenate([[True], offsets[1:] != offsets[:-1]]))
    numbers = np.arange(len(offsets)) - np.repeat(begins, np.diff(begins, append=len(offsets)))
    return (offsets << _NUMBER_BITS) + np.minimum(numbers, (1 << _NUMBER_BITS) - 1)


@dataclass(slots=True)
class _Run:
    """A run of refused events, from place `first` to place `last`. The last record that contains an event of the run
    has the offset `position` in the tuples topic. `time_ms`: latest time of the refused events. `before_ms`: latest
    time of the accepted events between the previous run and this run.
    """

    first: int
    last: int
    position: int
    time_ms: int
    before_ms: int


class RefusedRuns:
    """The runs of one source partition."""

    def __init__(self, saved: Sequence[tuple[int, int]] = ()) -> None:
        self._runs: list[_Run] = []
        self._after_ms = NEVER  # latest time of the accepted events after the last run
        found = np.array(saved, np.int64).reshape(-1, 2)
        self._saved = ((found & ((1 << _OFFSET_BITS) - 1)) << _NUMBER_BITS) + (found >> _OFFSET_BITS)

    def __len__(self) -> int:
        return len(self._runs)

    def record(self, places: Numbers, times: Numbers, refused: NDArray[np.bool_], position: int) -> None:
        """Record the events of one tuples record. `times` is in ms; `refused` is a mask of the refused events.

        `position`: the offset of the record in the tuples topic.
        """
        done = 0
        for place in np.flatnonzero(refused).tolist():
            self._accept(times[done:place])
            self._refuse(int(places[place]), int(times[place]), position)
            done = place + 1
        self._accept(times[done:])

    def _accept(self, times: Numbers) -> None:
        if self._runs and len(times):
            self._after_ms = max(self._after_ms, int(times.max()))

    def _refuse(self, place: int, time_ms: int, position: int) -> None:
        if not self._runs or self._after_ms != NEVER:
            self._runs.append(_Run(place, place, position, time_ms, self._after_ms))
            self._after_ms = NEVER
            return
        run = self._runs[-1]
        run.last, run.position, run.time_ms = place, position, max(run.time_ms, time_ms)

    def settle(self, position: int, closed_ms: int) -> None:
        """Remove runs that no restart needs. A restart reads tuples from offset `position` on. All batches that end at
        or before `closed_ms` are closed.
        """
        runs, self._runs = self._runs, []
        before_ms = NEVER
        for run in runs:
            before_ms = max(before_ms, run.before_ms)
            if run.position < position or run.time_ms <= closed_ms:
                continue
            if self._runs and before_ms <= closed_ms:
                last = self._runs[-1]
                last.last, last.position, last.time_ms = run.last, run.position, max(last.time_ms, run.time_ms)
            else:
                run.before_ms = before_ms
                self._runs.append(run)
            before_ms = NEVER
        self._after_ms = max(self._after_ms, before_ms) if self._runs else NEVER

    def saved(self) -> list[tuple[int, int]]:
        """Return the first and last place of each run, as numbers for the saved state. The low bits of such a number
        are the offset, and the high bits are the event's number in the message.
        """
        return [(_saved(run.first), _saved(run.last)) for run in self._runs]

    # ---- after a restart
    def known(self, places: Numbers) -> NDArray[np.bool_]:
        """Return a mask of the events that were refused before the restart, given the places of the events."""
        if len(self._saved) == 0:
            return np.zeros(len(places), np.bool_)
        run = np.searchsorted(self._saved[:, 0], places, side="right") - 1
        found: NDArray[np.bool_] = (run >= 0) & (places <= self._saved[run, 1])
        return found

    def replayed(self) -> None:
        """End the replay: discard the saved runs, which `record` has rebuilt."""
        self._saved = np.empty((0, 2), np.int64)


def _saved(place: int) -> int:
    return (place >> _NUMBER_BITS) + ((place & ((1 << _NUMBER_BITS) - 1)) << _OFFSET_BITS)
