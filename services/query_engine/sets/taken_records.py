"""The records of a parameters topic that have taken effect, and the registration points of these records. Both are a
part of the committed progress of a query set (ADR 92).
"""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

MAX_RUNS = 10_000
"""Maximum number of runs of a query set. While a set has this number of runs, the set takes no further records."""
REFUSED = "refused"
"""The point of a run whose records were refused, because the set had `max_members` members."""


class Run(NamedTuple):
    """Records with offsets from `first` to `end`, exclusive. `point`: the registration point, in ms, of the members in
    these records, or `REFUSED`. None means that the point is still unknown, because no stream of the set has progress
    yet.
    """

    first: int
    end: int
    point: int | str | None


@dataclass(slots=True)
class TakenRecords:
    """The records that have taken effect: all records with offsets below `end`.

    `runs` contains two kinds of these records, in ascending order of offsets: records that were refused, and records
    whose members have a registration point inside a current window. The registration points of the other records have
    no effect any more.
    """

    end: int = 0
    runs: list[Run] = field(default_factory=list)

    @classmethod
    def of(cls, saved: str | None) -> TakenRecords:
        """Restore an object from a text that `as_json` has returned. If `saved` is None, the object records that no
        record has taken effect.
        """
        if saved is None:
            return cls()
        end, runs = json.loads(saved)
        return cls(end, [Run(*run) for run in runs])

    def as_json(self) -> str:
        """Return the object as JSON text."""
        return json.dumps([self.end, self.runs])

    def add(self, offset: int, point: int | str | None, previous: int) -> None:
        """Record the point of a record. Offsets must ascend. `previous`: the offset after the previous record that the
        set has read. Between the two records, there can be records of other parts of the set. A run can contain them.
        """
        last = self.runs[-1] if self.runs else None
        if last is not None and last.point == point and last.end >= previous:
            self.runs[-1] = Run(last.first, offset + 1, point)
        else:
            self.runs.append(Run(offset, offset + 1, point))

    def run_of(self, offset: int) -> Run | None:
        """Return the run of a record, or None."""
        place = bisect_right(self.runs, offset, key=lambda run: run.first) - 1
        return self.runs[place] if place >= 0 and offset < self.runs[place].end else None

    def settle(self, begun: int | None, points: Collection[int | None], last_ms: int | None) -> None:
        """Remove the runs whose point no longer matters. `begun`: the point of the runs whose `point` is None, if this
        point is known by now. `points`: the points that lie inside a current window. `last_ms`: the last instant that
        the progress contains. A point after `last_ms` still matters, because the set's other members have instants
        between `last_ms` and this point.
        """
        named = (run._replace(point=begun) if run.point is None else run for run in self.runs)
        self.runs = [run for run in named if run.point in points or _is_after(run.point, last_ms)]

    @property
    def full(self) -> bool:
        """Whether there are `MAX_RUNS` runs. If so, the property first tries to remove the oldest runs of refused
        records. The records of a removed run are considered again after the next restart.
        """
        while len(self.runs) >= MAX_RUNS:
            refused = next((i for i, run in enumerate(self.runs) if run.point == REFUSED), None)
            if refused is None:
                return True
            del self.runs[refused]
        return False


def _is_after(point: int | str | None, last_ms: int | None) -> bool:
    """Return whether a point is after an instant. The point `REFUSED` counts as after all instants."""
    return isinstance(point, str) or (point is not None and (last_ms is None or point > last_ms))
