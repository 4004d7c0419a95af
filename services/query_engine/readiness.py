"""When an engine may get buckets, and what it does for a bucket before it opens it (docs/adr/0058).

Opening a bucket ends the evaluations of the engine that has it, so whatever can be done before is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.replication.log_end import LogEnd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from penstock.log import Message, Reader
    from penstock.log.clock import Clock
    from penstock.remote.stores_graph import StoresGraph
    from penstock.wire import QueryRegistration

PREPARE_MS = 100
"""How long a step prepares queries."""


class Readiness:
    """`ready` stays true once it is: near the end of the log, with leases on the stores, where those are read."""

    def __init__(self, reader: Reader, clock: Clock, graph: StoresGraph | None) -> None:
        self._end, self._graph = LogEnd(reader, clock), graph
        self.ready = False

    def look(self, messages: Sequence[Message], *, busy: bool) -> None:
        """Note a poll's records, once they are applied. `busy`: the engine evaluates already, ready or not."""
        if self.ready:
            return
        self._end.look(messages)
        self.ready = self._end.near and (busy or self._reaches())

    def _reaches(self) -> bool:
        """Whether there are leases on the stores. They are asked for here: no evaluation does yet."""
        if self._graph is None:
            return True
        if not self._graph.links.valid:
            self._graph.links.mend(self._graph, doubtful=False)
        return self._graph.links.valid


class Preparation:
    """Prepares the queries of buckets that are to be opened, in slices. `prepare` is called for each, once."""

    def __init__(self, clock: Clock, prepare: Callable[[QueryRegistration], None]) -> None:
        self._clock, self._prepare = clock, prepare
        self._left: dict[int, Iterator[QueryRegistration]] = {}
        self._next: dict[int, QueryRegistration] = {}  # whose preparation has failed

    def step(self, bucket: int, queries: Iterable[QueryRegistration]) -> bool:
        """Prepare what is left of a bucket's queries, for `PREPARE_MS`; True once all are prepared. After an error, the
        next step goes on with the same query.
        """
        if bucket not in self._left:
            self._left[bucket] = iter(list(queries))
        left = self._left[bucket]
        until = self._clock.now_ms() + PREPARE_MS
        while (query := self._next.pop(bucket, None) or next(left, None)) is not None:
            self._next[bucket] = query
            self._prepare(query)
            del self._next[bucket]
            if self._clock.now_ms() >= until:
                return False
        self.forget(bucket)
        return True

    def forget(self, bucket: int) -> None:
        """End the preparation of a bucket."""
        self._left.pop(bucket, None)
        self._next.pop(bucket, None)

    def keep(self, buckets: Iterable[int]) -> None:
        """End the preparation of all other buckets."""
        for bucket in self._left.keys() - set(buckets):
            self.forget(bucket)
