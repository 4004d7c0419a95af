"""Leaps of event time: producers whose clocks leap, and which instants of which query are a gap by docs/semantics.md §2.

The rule is written here a second time, and simply, so that neither the cluster's arithmetic nor the embedded engine's
decides what is expected: a gap is what one move of one stream makes due of a query, where it is more than the limit.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from math import lcm
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from random import Random

    from penstock.event_time.gaps import Gap
    from penstock.wire import QueryRegistration
    from simulation.producers import Source

LIMITS = (3, 8, 30)
"""Values of `max_catch_up` that make leaps frequent."""
_LEAPS = 0.12  # of operations, behind which a clock leaps
_ENDS = 0.02  # of operations, behind which a derived stream ends
_SECONDS_FIRST = 0.3  # of streams, whose first event has seconds for milliseconds
_SIZES_MS = ((400, 3_000), (3_000, 40_000), (100_000, 10_000_000))
_MOST_MS = 80_000_000  # events further ahead of the wall clock than a day are refused


class Clocks:
    """The producers' clocks, one a partition. Each event and heartbeat passes through its clock.

    `leaps`: how many there were.
    """

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._ahead: dict[str, list[int]] = {}
        self._next: dict[str, str] = {}  # what is wrong with a stream's next event
        self.leaps = 0

    def add(self, source: Source) -> None:
        """Start the clocks of a stream."""
        self._ahead[source.iri] = [0] * len(source.partitions)
        if self._rng.random() < _SECONDS_FIRST:
            self._next[source.iri] = "seconds"

    def event(self, iri: str, partition: int, time_ms: int) -> int:
        """Return the time that an event is given."""
        time_ms += self._ahead[iri][partition]
        kind = self._next.pop(iri, None)
        if kind is None:
            return time_ms
        self.leaps += 1
        if kind == "seconds":
            return max(time_ms // 1000, 1)
        if kind == "backward":
            return max(time_ms - self._size(), 1)
        return time_ms + self._rng.randint(1_000, 8_000)

    def heartbeat(self, iri: str, partition: int, time_ms: int) -> int:
        """Return the time that a heartbeat is given."""
        return time_ms + self._ahead[iri][partition]

    def step(self) -> None:
        """Now and then, something leaps."""
        rng = self._rng
        if not self._ahead or rng.random() >= _LEAPS:
            return
        iri = rng.choice(sorted(self._ahead))
        kind = rng.choice(["forward", "forward", "together", "partition", "partition", "ahead", "backward", "seconds"])
        if kind in ("ahead", "backward", "seconds"):
            self._next[iri] = kind
            return
        self.leaps += 1
        size, ahead = self._size(), self._ahead[iri]
        if kind == "together":
            for each in sorted(self._ahead):
                self._forward(each, range(len(self._ahead[each])), size)
        elif kind == "forward" or len(ahead) == 1:
            self._forward(iri, range(len(ahead)), size)
        elif min(ahead) < max(ahead):
            ahead[:] = [max(ahead)] * len(ahead)  # those that stayed behind follow
        else:
            self._forward(iri, [rng.randrange(len(ahead))], size)

    def ends(self) -> bool:
        """Whether a derived stream ends now, if there is one."""
        return self._rng.random() < _ENDS

    def _forward(self, iri: str, partitions: Iterable[int], size: int) -> None:
        for partition in partitions:
            self._ahead[iri][partition] = min(self._ahead[iri][partition] + size, _MOST_MS)

    def _size(self) -> int:
        return self._rng.randint(*self._rng.choice(_SIZES_MS))


class Omitted(NamedTuple):
    """A gap by its instants: two spans between which there are none are the same gap."""

    first: int
    last: int
    count: int


@dataclass(slots=True)
class _Instants:
    """The instants of a query after its registration point."""

    record: QueryRegistration
    point: int | None
    gaps: list[Omitted] = field(default_factory=list)

    def omitted(self, after: int, until: int) -> Omitted | None:
        """Return all instants in (after, until]; None where there are none."""
        t0, period = self.record.starting_at_ms, lcm(*self.record.steps)
        start = after + 1 if t0 is None else max(after + 1, t0)
        if start > until:
            return None
        whole, rest = divmod(until - start + 1, period)
        first = next(self._between(start, min(until, start + period)), None)
        if first is None:
            return None
        last = next(self._between(until, max(start, until - period), -1))
        count = sum(1 for _ in self._between(start, start + rest - 1))
        if whole:
            count += whole * sum(1 for _ in self._between(start, start + period - 1))
        return Omitted(first, last, count)

    def _between(self, start: int, end: int, way: int = 1) -> Iterator[int]:
        t0 = self.record.starting_at_ms or 0
        return (t for t in range(start, end + way, way) if any((t - t0) % step == 0 for step in self.record.steps))


class Gaps:
    """Gaps of queries, found by following the moves of streams. `most`: `max_catch_up`."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._closed: dict[str, int | None] = defaultdict(lambda: None)
        self._ended: set[str] = set()  # derived streams whose queries are stopped
        self._queries: dict[str, _Instants] = {}
        self.ended: list[Omitted] = []  # gaps of queries that were stopped

    def register(self, record: QueryRegistration) -> None:
        """Take a query in."""
        closed = [self._closed[iri] for iri in record.streams]
        point = max((end for end in (*closed, record.not_before_ms) if end is not None), default=None)
        self._queries[record.name] = _Instants(record, point)

    def stop(self, name: str) -> None:
        """Let a query go."""
        self.ended += self._queries.pop(name).gaps

    def standing(self) -> dict[str, list[Omitted]]:
        """Return the gaps of the queries that stand."""
        return {name: query.gaps for name, query in self._queries.items()}

    def all(self) -> list[Omitted]:
        """Return all gaps that there ever were."""
        return [*self.ended, *(gap for gaps in self.standing().values() for gap in gaps)]

    def begin(self, iri: str, point: int) -> None:
        """A stream has its first progress."""
        for query in self._queries.values():
            if query.point is None and iri in query.record.streams:
                query.point = point

    def drop(self, iri: str) -> None:
        """A stream is dropped: what is declared by its name has no progress."""
        self._closed.pop(iri, None)
        self._ended.discard(iri)

    def move(self, iri: str, until: int) -> None:
        """A stream is closed until there, by one move."""
        self._change(iri, lambda: self._closed.__setitem__(iri, until))

    def end(self, iri: str) -> None:
        """A stream has ended, which is a move too: it holds nothing back any more."""
        self._change(iri, lambda: self._ended.add(iri))

    def _change(self, iri: str, change: Callable[[], None]) -> None:
        readers = [query for query in self._queries.values() if iri in query.record.streams and query.record.steps]
        before = [self._stable(query) for query in readers]
        change()
        for query, due in zip(readers, before, strict=True):
            now = self._stable(query)
            if now is None:
                continue
            if query.point is None:  # its streams ended before they began
                continue
            found = query.omitted(query.point if due is None else max(due, query.point), now)
            if found is not None and found.count > self.most:
                query.gaps.append(found)

    def closed_ms(self, iri: str) -> int | None:
        """Return where a stream is closed."""
        return self._closed[iri]

    def _stable(self, query: _Instants) -> int | None:
        live = [self._closed[iri] for iri in query.record.streams if iri not in self._ended]
        if not live:
            return max((end for iri in query.record.streams if (end := self._closed[iri]) is not None), default=None)
        return None if None in live else min(end for end in live if end is not None)

    def of(self, name: str) -> list[Omitted]:
        """Return the gaps of a query that stands."""
        return self._queries[name].gaps

    def as_omitted(self, name: str, gaps: Iterable[Gap]) -> list[Omitted | None]:
        """Return gaps that others have found, by their instants, with the count that they have told."""
        query, found = self._queries[name], []
        for gap in gaps:
            omitted = query.omitted(gap.after, gap.until)
            found.append(None if omitted is None else omitted._replace(count=gap.count))
        return found
