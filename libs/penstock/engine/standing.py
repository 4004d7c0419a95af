"""A registered query as its user holds it: poll, subscribe, iterate, stop."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from threading import Lock, RLock
from typing import TYPE_CHECKING, Protocol

from penstock.engine.blocks import BlockLog, Evaluation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from penstock.engine.cohorts import Cohort
    from penstock.engine.groups import Group
    from penstock.query.ir import ContinuousQuery
    from penstock.query.templates import Constant

_DELIVERY = 1_000  # evaluations handed to subscribers at a time
_log = logging.getLogger("penstock.engine")


class Owner(Protocol):
    """What a query needs of its engine."""

    listeners: set[Query]

    def stop(self, query: Query) -> None:
        """End the query."""


@dataclass(slots=True)
class Segment:
    """A stretch of a block log that a query has yet to take: from `next` up to `end` (None = what is to come as
    well).
    """

    log: BlockLog
    next: int
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """Instants that `advance(skip=True)` jumped over: `count` of them in (after, until]."""

    after: int
    until: int
    count: int


class Query:
    """A registered query. `name` is unique in its engine; `text` and `base` are as registered.

    Evaluations wait until they are polled, iterated over, or handed to subscribers; each is taken once.
    """

    def __init__(
        self,
        name: str,
        base: str | None,
        ir: ContinuousQuery,
        group: Group,
        constants: tuple[Constant, ...],
        parameters: tuple[int, ...],
        owner: Owner,
    ) -> None:
        self.name = name
        self.base = base
        self.ir = ir
        self.point: int | None = None
        self.gaps: list[Gap] = []
        self.group = group
        self.constants = constants
        self.parameters = parameters
        self.cohort: Cohort | None = None
        self.segments: deque[Segment] = deque()
        self._left: deque[Evaluation] = deque()
        self._subscribers: list[Callable[[Evaluation], object]] = []
        self._wakers: list[Callable[[], object]] = []
        self._taking = RLock()
        self._delivering = Lock()
        self._undelivered = False
        self._stopped = False
        self._owner = owner

    def __repr__(self) -> str:
        return f"<Query {self.name}{' (stopped)' if self._stopped else ''}>"

    @property
    def text(self) -> str:
        """The query's text."""
        return self.ir.text

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the front end found odd but not wrong."""
        return self.ir.warnings

    @property
    def registration_point(self) -> int | None:
        """P: only tuples later than this are seen. None while no stream of the query has any progress."""
        return self.point

    @property
    def stopped(self) -> bool:
        """Whether it was stopped (by `stop`, or with its engine)."""
        return self._stopped

    # ---- taking evaluations
    def poll(self, limit: int | None = None) -> list[Evaluation]:
        """Return evaluations that have fired and were not yet taken, in order of time; at most `limit` of them."""
        with self._taking:
            taken: list[Evaluation] = []
            while self._left and (limit is None or len(taken) < limit):
                taken.append(self._left.popleft())
            for segment in list(self.segments):
                self._take_from(segment, taken, limit)
            return taken

    def _take_from(self, segment: Segment, taken: list[Evaluation], limit: int | None) -> None:
        end = segment.log.next if segment.end is None else segment.end
        for number, block in segment.log.blocks(segment.next, end):
            if limit is not None and len(taken) >= limit:
                return
            segment.next = number + 1
            member = block.members.number_of(self)
            if member is not None and block.concerns(member):
                segment.log.taken(number)
                taken.append(Evaluation(self.name, block, member))
        segment.next = end
        if segment.end is not None:
            self.segments.remove(segment)

    def unpolled(self) -> int:
        """Return how many evaluations wait."""
        with self._taking:
            count = len(self._left)
            for segment in self.segments:
                end = segment.log.next if segment.end is None else segment.end
                for _, block in segment.log.blocks(segment.next, end):
                    member = block.members.number_of(self)
                    count += member is not None and block.concerns(member)
            return count

    def subscribe(self, callback: Callable[[Evaluation], object]) -> Callable[[], None]:
        """Hand every evaluation to `callback`, in order, one at a time, on a thread that pushes; poll() then finds
        none.

        The callback may call the engine. An exception of it is logged and ends nothing. Returns a function that ends
        the subscription.
        """
        self._subscribers.append(callback)
        self._owner.listeners.add(self)
        self.deliver()

        def unsubscribe() -> None:
            if callback in self._subscribers:
                self._subscribers.remove(callback)

        return unsubscribe

    def deliver(self) -> None:
        """Give what waits to the subscribers, and wake those who await. The engine calls it after each pass.

        Where another thread (or this one, from within a callback) is at it already, that one goes on with what is
        new: no lock is waited for, so that a callback can do as it likes.
        """
        for wake in list(self._wakers):
            wake()
        self._undelivered = True
        while self._undelivered and self._subscribers and self._delivering.acquire(blocking=False):
            try:
                self._undelivered = False
                while self._subscribers and (evaluations := self.poll(_DELIVERY)):
                    for evaluation in evaluations:
                        self._hand_over(evaluation)
            finally:
                self._delivering.release()

    def _hand_over(self, evaluation: Evaluation) -> None:
        for callback in list(self._subscribers):
            try:
                callback(evaluation)
            except Exception:  # noqa: BLE001 - whatever a user's function raises
                _log.exception("a subscriber of query %s failed on its evaluation at %d", self.name, evaluation.time)

    @property
    def subscribed(self) -> bool:
        """Whether evaluations are handed to someone as they fire."""
        return bool(self._subscribers)

    async def __aiter__(self) -> AsyncIterator[Evaluation]:
        """Yield evaluations as they fire; ends when the query is stopped and all was taken."""
        loop, ready = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(ready.set)

        self._wakers.append(wake)
        self._owner.listeners.add(self)
        try:
            while True:
                ready.clear()
                for evaluation in self.poll():
                    yield evaluation
                if self._stopped and not self.unpolled():
                    return
                await ready.wait()
        finally:
            self._wakers.remove(wake)

    # ---- ending
    def stop(self) -> None:
        """End the query. What has fired can still be polled; a stream that it published ends."""
        if not self._stopped:
            self._owner.stop(self)

    def ended(self) -> None:
        """Note that the engine has let the query go: what waits becomes its own."""
        with self._taking:
            left = self.poll()
            self._left.extend(left)
            self.segments.clear()
            self._stopped = True
        for wake in list(self._wakers):
            wake()

    # ---- the engine's side
    def restore_segments(self, segments: list[tuple[BlockLog, int, int | None]]) -> None:
        """Take over what a checkpoint says is still to be taken."""
        self.segments = deque(Segment(log, first, end) for log, first, end in segments)
        for log, first, end in segments:
            log.expect(self, first, log.next if end is None else end)

    def joins(self, cohort: Cohort) -> None:
        """Take part in a cohort's evaluations from now on."""
        with self._taking:
            if self.segments and self.segments[-1].end is None:
                self.segments[-1].end = self.segments[-1].log.next
            self.segments.append(Segment(cohort.log, cohort.log.next))
            self.cohort = cohort
