"""The engine queue: the pending evaluations of all standing queries of an engine. Query sets are not included."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from penstock.engine.answers.delivery import Delivery
from penstock.engine.answers.result_blocks import Evaluations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.engine.answers.block_log import BlockLog, Unpolled
    from penstock.engine.answers.delivery import Leaving, Listeners
    from penstock.engine.answers.result_blocks import Evaluation

_ALL = 1 << 60


class EngineQueue(Delivery):
    """The pending evaluations of all single queries of an engine. (A single query is a query that is not a query set.)
    Queries with a subscriber of their own are excluded.

    The block logs own the evaluations. Either this queue or the result queue of a query returns an evaluation. Each
    evaluation is returned only once. This queue reads only logs that have blocks. Queries without results therefore
    cost nothing.
    """

    __slots__ = ("_heads", "_stopped", "_unpolled")

    def __init__(self, unpolled: Unpolled, listeners: Listeners) -> None:
        super().__init__(listeners)
        self._unpolled = unpolled
        # (instant, order of the log, number of a block, log, numbers of later blocks): the first block of each log that
        # can have pending evaluations
        self._heads: list[tuple[int, int, int, BlockLog, Iterator[int]]] = []
        self._stopped: deque[tuple[Evaluation, Leaving]] = deque()

    @property
    def subscribed(self) -> bool:
        """Whether there is a subscriber."""
        return bool(self._subscribers)

    def _subscribers_changed(self) -> None:
        self._listeners.all_heard = self.subscribed

    def take(self, limit: int | None = None) -> Evaluations:
        """Remove and return pending evaluations, at most `limit` of them (None: all). The evaluations are ordered by
        instant, then by log, then by the registration of their queries.
        """
        taken = Evaluations()
        most = _ALL if limit is None else limit
        with self._listeners.taking:
            self._begin()
            for log in self._unpolled.claim():
                self._add_head(log, -1, iter(()))
            while self._heads and len(taken) < most:
                time, _, number, log, following = self._heads[0]
                if self._stopped and self._stopped[0][0].time <= time:
                    self._take_stopped(taken)
                    continue
                block, members = log.take(number, most - len(taken), self._listeners.heard)
                if block is not None:
                    taken.add(block, members)
                if len(taken) < most:
                    heappop(self._heads)
                    self._add_head(log, number, following)
            while self._stopped and len(taken) < most:
                self._take_stopped(taken)
        return taken

    def _add_head(self, log: BlockLog, number: int, following: Iterator[int]) -> None:
        """Find the first block of a log after block `number`, and add it to `_heads`. `following` yields the numbers of
        the known later blocks.
        """
        while True:
            for later in following:
                number = later
                if (block := log.block(number)) is not None:
                    heappush(self._heads, (block.reading.time, log.order, number, log, following))
                    return
            known = log.following(number)
            if not known:
                return
            following = iter(known)

    def _begin(self) -> None:
        """Add the evaluations of the queries that were stopped before the first use of this queue. Only the first call
        has an effect. A query's evaluations are added only if the program still refers to the query's `Query` object.
        """
        if self._listeners.together:
            return
        self._listeners.together = True
        found = [(each, queue) for queue in list(self._listeners.stopped) for each in queue.left()]
        self._stopped.extend(sorted(found, key=lambda pair: pair[0].time))
        self._listeners.stopped.clear()

    def _take_stopped(self, taken: Evaluations) -> None:
        evaluation, queue = self._stopped.popleft()
        if queue.give_up(evaluation):
            taken.add(*evaluation.place)

    def end(self) -> None:
        """End the queue, because the engine is closed. Pending evaluations stay available."""
        self.ended = True
        self._listeners.queues.discard(self)
        self.deliver()
