"""Delivery of new results to subscribers and to waiting iterations."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from contextlib import suppress
from threading import Lock, RLock
from typing import TYPE_CHECKING, Protocol, Self, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from penstock.engine.answers.membership import Recipient
    from penstock.engine.answers.result_blocks import Evaluation

_log = logging.getLogger("penstock.engine")
AT_ONCE = 100_000
"""Maximum number of evaluations that a poll without a limit adds for queries that catch up."""
_AT_ONCE_ASYNC = 1_000
FunctionT = TypeVar("FunctionT", bound="Callable[..., object]")
ItemT = TypeVar("ItemT")


class Leaving(Protocol):
    """The queue of a query that was stopped."""

    def left(self) -> list[Evaluation]:
        """Return the pending evaluations."""

    def give_up(self, evaluation: Evaluation) -> bool:
        """Remove an evaluation that `left` has returned. Returns False if the evaluation was consumed before."""


class Listeners:
    """The queues of an engine that have subscribers or wakers. After each change, the engine calls the method `deliver`
    of each queue in `queues`.

    The lock `taking` protects all queues. A thread holds this lock only briefly, and never while user code runs.

    `heard`: the queries with a subscriber of their own. `all_heard`: whether there is a subscriber for all single
    queries (queries that are not query sets). `together`: whether the engine queue was polled at least once. If a query
    is stopped after the first poll of the engine queue, the query's pending evaluations remain in the query's log.
    `stopped`: the queues of the queries that were stopped before this first poll.
    """

    def __init__(self) -> None:
        self.taking = RLock()
        self.queues: set[Delivery] = set()
        self.heard: set[Recipient] = set()
        self.all_heard = False
        self.together = False
        self.stopped: WeakKeyDictionary[Leaving, None] = WeakKeyDictionary()


class Delivery(ABC):
    """A queue of evaluations. Evaluations are polled, or delivered to subscribers. A queue adds itself to `listeners`
    when it gets a subscriber or a waker.

    The lock `_delivering` is held while subscribers run, but no thread waits for this lock. The lock is created at the
    first subscription. Each query has a queue, so a queue without subscribers must be small.
    """

    __slots__ = ("_delivering", "_listeners", "_subscribers", "_undelivered", "_wakers", "ended")

    def __init__(self, listeners: Listeners) -> None:
        self._listeners = listeners
        self._delivering: Lock | None = None
        self._undelivered = False
        self._subscribers: tuple[Callable[[Evaluation], object], ...] = ()
        self._wakers: tuple[Callable[[], object], ...] = ()
        self.ended = False

    @abstractmethod
    def take(self, limit: int | None = None) -> Sequence[Evaluation]:
        """Remove and return pending evaluations, at most `limit` of them (None: all)."""

    @abstractmethod
    def _subscribers_changed(self) -> None:
        """React to a subscriber that was added or removed."""

    def subscribe(self, callback: Callable[[Evaluation], object]) -> Callable[[], None]:
        """Add a subscriber. `callback` is called with each pending and future evaluation. The call returns a function
        that ends the subscription.
        """
        self._delivering = self._delivering or Lock()
        self._subscribers += (callback,)
        self._listen()
        self._subscribers_changed()
        self.deliver()

        def unsubscribe() -> None:
            if callback in self._subscribers:
                self._subscribers = _without(self._subscribers, callback)
                self._subscribers_changed()

        return unsubscribe

    def wake(self, waker: Callable[[], object]) -> Callable[[], None]:
        """Add a waker. The waker is called when there can be new evaluations, and when the queue has ended. The call
        returns a function that removes the waker.
        """
        self._wakers += (waker,)
        self._listen()

        def forget() -> None:
            self._wakers = _without(self._wakers, waker)

        return forget

    def _listen(self) -> None:
        if not self.ended:
            self._listeners.queues.add(self)

    def deliver(self) -> None:
        """Call the wakers, then deliver pending evaluations to subscribers. The engine calls this method after each
        change.

        An earlier delivery can still be in progress, in another thread or further up the call stack. In that case, the
        earlier delivery also delivers the new evaluations. This method does not wait for the earlier delivery, so that
        a subscriber can call the engine.
        """
        for waker in self._wakers:
            waker()
        self._undelivered = True
        while self._undelivered and self._subscribers and (lock := self._delivering) and lock.acquire(blocking=False):
            try:
                self._undelivered = False
                # Take one evaluation at a time: if the subscriber unsubscribes or Ctrl-C interrupts the call, the
                # other evaluations stay pending.
                while self._subscribers and (taken := self.take(1)):
                    self._hand_over(*taken)
            finally:
                lock.release()

    def _hand_over(self, evaluation: Evaluation) -> None:
        for callback in self._subscribers:
            try:
                callback(evaluation)
            except Exception:  # noqa: BLE001 - a user's function can raise anything
                _log.exception("a subscriber of %s failed on its evaluation at %d", evaluation.query, evaluation.time)


def _without(functions: tuple[FunctionT, ...], one: FunctionT) -> tuple[FunctionT, ...]:
    """Return `functions` without the first element that is equal to `one`."""
    at = functions.index(one)
    return functions[:at] + functions[at + 1 :]


class Taken(Protocol):
    """A sequence of evaluations that can be extended."""

    def __len__(self) -> int:
        """Return the number of evaluations."""

    def extend(self, others: Self, /) -> None:
        """Append evaluations."""


TakenT = TypeVar("TakenT", bound=Taken)


def poll(take: Callable[[int | None], TakenT], limit: int | None, catch_up: Callable[[], bool]) -> TakenT:
    """Return pending evaluations, at most `limit` of them (None: all). The function `take` removes evaluations from a
    queue.

    The function `catch_up` evaluates some instants of queries that began in the past. `catch_up` returns False if there
    was nothing to evaluate. `poll` calls `catch_up` until `catch_up` returns False, or until `limit` evaluations (None:
    AT_ONCE) are collected.
    """
    taken, most = take(limit), AT_ONCE if limit is None else limit
    while len(taken) < most and catch_up():
        taken.extend(take(None if limit is None else limit - len(taken)))
    return taken


async def as_they_occur(queue: Delivery, take: Callable[[int], Sequence[ItemT]]) -> AsyncIterator[ItemT]:
    """Yield each item of a queue when it occurs. The items are evaluations of queries, or steps of a query set. The
    iteration ends when the queue has ended and all items are consumed. The function `take` removes and returns pending
    items. The argument of `take` is the maximum number of items.
    """
    loop, ready = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with suppress(RuntimeError):  # raised if the event loop was closed during the iteration
            loop.call_soon_threadsafe(ready.set)

    forget = queue.wake(wake)
    try:
        while True:
            ready.clear()
            last = queue.ended
            for item in (taken := take(_AT_ONCE_ASYNC)):
                yield item
            if taken:
                continue
            if last:
                return
            if not queue.ended:
                await ready.wait()
    finally:
        forget()
