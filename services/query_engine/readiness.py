"""The readiness of an engine for buckets, and the preparation of a bucket before the opening (ADR 58).

When an engine opens a bucket, the previous engine can no longer evaluate the bucket. The new engine therefore does as
much work as possible before the opening.
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
"""Time in ms that a service step spends on the preparation of queries."""


class Readiness:
    """Decides when an engine is ready to get buckets. `ready` becomes True at a moment when the engine is near the end
    of the log. At this moment, the engine must also have buckets or be able to read the stored graph. Afterwards,
    `ready` stays True.
    """

    def __init__(self, reader: Reader, clock: Clock, graph: StoresGraph | None) -> None:
        self._end, self._graph = LogEnd(reader, clock), graph
        self.ready = False

    def look(self, messages: Sequence[Message], *, busy: bool) -> None:
        """Update `ready`. Call after the records of a poll (`messages`) have been applied. `busy`: whether the engine
        has open buckets.
        """
        if self.ready:
            return
        self._end.look(messages)
        self.ready = self._end.near and (busy or self._reaches())

    def _reaches(self) -> bool:
        """Return whether the engine can read the stored graph. The engine can read the graph if it holds the graph
        itself, or has valid leases of all stores. Also requests missing leases, because an engine without buckets has
        no evaluations that would request leases.
        """
        if self._graph is None:
            return True
        if not self._graph.links.valid:
            self._graph.links.mend(self._graph, doubtful=False)
        return self._graph.links.valid


class Preparation:
    """Calls `prepare` for each query of a bucket before the bucket is opened, for a limited time per service step."""

    def __init__(self, clock: Clock, prepare: Callable[[QueryRegistration], None]) -> None:
        self._clock, self._prepare = clock, prepare
        self._left: dict[int, Iterator[QueryRegistration]] = {}
        self._next: dict[int, QueryRegistration] = {}  # queries whose preparation failed

    def step(self, bucket: int, queries: Iterable[QueryRegistration]) -> bool:
        """Prepare further queries of a bucket, for about `PREPARE_MS`. Returns whether all queries are prepared.
        `queries`: the bucket's queries. Only the first call for a bucket uses this argument.

        After an error, the next call retries the same query.
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
        """Discard the preparation of a bucket."""
        self._left.pop(bucket, None)
        self._next.pop(bucket, None)

    def keep(self, buckets: Iterable[int]) -> None:
        """Discard the preparation of all buckets except the buckets in `buckets`."""
        for bucket in self._left.keys() - set(buckets):
            self.forget(bucket)
