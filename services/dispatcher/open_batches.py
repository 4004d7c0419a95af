"""The tuples of a stream's open batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.event_time.grid import batch_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from penstock.core._native import Ids
    from penstock.wire.records import Flags, Numbers, Tuples


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Tuples in order of arrival, as columns: times in ms, term ids, and a flag that is 1 for a removed tuple."""

    times: Numbers
    subjects: Ids
    predicates: Ids
    objects: Ids
    removed: Flags

    def __len__(self) -> int:
        return len(self.times)

    @classmethod
    def of(cls, record: Tuples, times: Numbers) -> Rows:
        """Return the tuples of a record. `times`: the time of each tuple."""
        removed = record.removed if len(record.removed) else np.zeros(len(times), np.uint8)
        return cls(times, record.subjects, record.predicates, record.objects, removed)

    def where(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> Rows:
        """Return a selection of the rows. `chosen`: a mask, or an array of positions."""
        columns = self.subjects[chosen], self.predicates[chosen], self.objects[chosen]
        return Rows(self.times[chosen], *columns, self.removed[chosen])

    def after(self, first: int) -> Rows:
        """Return the rows from position `first` on."""
        columns = self.subjects[first:], self.predicates[first:], self.objects[first:]
        return Rows(self.times[first:], *columns, self.removed[first:])

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Concatenate rows."""
        if len(parts) == 1:
            return parts[0]
        none = np.empty(0, np.uint64)
        return cls(
            np.concatenate([np.empty(0, np.int64), *(part.times for part in parts)]),
            np.concatenate([none, *(part.subjects for part in parts)]),
            np.concatenate([none, *(part.predicates for part in parts)]),
            np.concatenate([none, *(part.objects for part in parts)]),
            np.concatenate([np.empty(0, np.uint8), *(part.removed for part in parts)]),
        )


class Origin(NamedTuple):
    """The origin of tuples: the partition of the tuples topic, and the offset (`position`) of the tuples' record in
    this partition. `next_offset`, `filter_version`: the partition's next source offset and filter version before this
    record is processed.
    """

    partition: int
    position: int
    next_offset: int
    filter_version: int


class OpenBatches:
    """The tuples of a stream's open batches, by batch number."""

    def __init__(self, batch_ms: int) -> None:
        self._batch_ms = batch_ms
        self._batches: dict[int, list[tuple[Origin, Rows]]] = {}
        self._held: dict[int, int] = {}
        self.tuples = 0

    @property
    def bytes(self) -> int:
        """Size of the columns, in bytes: four numbers and a flag per tuple."""
        return 33 * self.tuples

    def add(self, rows: Rows, origin: Origin) -> None:
        """Add each tuple to its batch."""
        if len(rows) == 0:
            return
        numbers = batch_of(rows.times, self._batch_ms)  # type: ignore[arg-type]  # the formula holds for columns too
        for number in np.unique(numbers).tolist():
            own = rows.where(numbers == number)
            self._batches.setdefault(number, []).append((origin, own))
            self._held[number] = self.held(number) + len(own)
        self.tuples += len(rows)

    def held(self, number: int) -> int:
        """Return the number of tuples in the open batch with that number."""
        return self._held.get(number, 0)

    def until(self, last: int) -> list[int]:
        """Return the numbers of batches with tuples, up to and including `last`, in ascending order."""
        return sorted(number for number in self._batches if number <= last)

    def take(self, number: int) -> Rows:
        """Remove a batch and return its tuples in order of arrival."""
        rows = Rows.joined([rows for _, rows in self._batches.pop(number, [])])
        self.tuples -= len(rows)
        self._held.pop(number, None)
        return rows

    def oldest(self, partition: int) -> Origin | None:
        """Return the oldest record of a partition that still has tuples in open batches, or None."""
        origins = (origin for chunks in self._batches.values() for origin, _ in chunks if origin.partition == partition)
        return min(origins, default=None)
