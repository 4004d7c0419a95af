"""The user's handle of a registered query: poll, subscribe, iterate, stop."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.engine.standing.query_status import QueryStatus, status_of
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from weakref import WeakMethod

    from penstock.engine.answers.result_blocks import Evaluation
    from penstock.engine.standing.groups import Member
    from penstock.event_time.gaps import Gap


class Query:
    """A standing query. Its evaluations are pending until they are polled, iterated over or delivered to subscribers.

    Thread-safe. A reference to it does not keep its engine alive.
    """

    def __init__(self, member: Member, stop: WeakMethod[Callable[[Member], None]]) -> None:
        self._member = member
        self._stop = stop

    def __repr__(self) -> str:
        return f"<Query {self.name}{' (stopped)' if self.stopped else ''}>"

    @property
    def name(self) -> str:
        """The name, unique in its engine."""
        return self._member.name

    @property
    def text(self) -> str:
        """The registered text."""
        return self._member.ir.text

    @property
    def base(self) -> str | None:
        """The base IRI given at registration."""
        return self._member.base

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings of the parser and planner."""
        return self._member.ir.warnings

    @property
    def registration_point(self) -> int | None:
        """The registration point P: the query only sees later tuples. None until a stream of the query has progress."""
        return self._member.point

    @property
    def gaps(self) -> list[Gap]:
        """The ranges of instants that were skipped, at most the latest `MAX_GAPS` (10,000)."""
        return list(self._member.gaps)

    def status(self) -> QueryStatus:
        """Return what the query waits for, and which input would release it."""
        return status_of(self._member)

    @property
    def stopped(self) -> bool:
        """Whether the query was stopped (by `stop`, or with its engine)."""
        return self._member.result_queue.ended

    def poll(self, limit: int | None = None) -> list[Evaluation]:
        """Remove and return pending evaluations in time order, at most `limit` (None = all)."""
        return self._member.result_queue.take(limit)

    def unpolled(self) -> int:
        """Return the number of pending evaluations."""
        return len(self._member.result_queue)

    def subscribe(self, callback: Callable[[Evaluation], object]) -> Callable[[], None]:
        """Call `callback` with every pending and future evaluation, in order and one at a time. `poll` then returns [].

        The callback runs within a call of the engine, on the caller's thread, and may itself call the engine. Its
        exceptions are logged and have no other effect. Returns a function that ends the subscription.
        """
        return self._member.result_queue.subscribe(callback)

    async def __aiter__(self) -> AsyncIterator[Evaluation]:
        """Yield evaluations as they occur. Ends when the query is stopped and all evaluations are consumed.

        PenstockError if a subscriber receives them.
        """
        if self._member.result_queue.subscribed:
            raise PenstockError(f"the evaluations of {self.name} go to its subscriber: nothing is left to iterate over")
        loop, ready = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop was closed during the iteration
                loop.call_soon_threadsafe(ready.set)

        forget = self._member.result_queue.wake(wake)
        try:
            while True:
                ready.clear()
                last = self.stopped
                for evaluation in self.poll():
                    yield evaluation
                if last:
                    return
                if not self.stopped:
                    await ready.wait()
        finally:
            forget()

    def stop(self) -> None:
        """Stop the query. Pending evaluations can still be polled. A stream that the query published ends."""
        if not self.stopped and (stop := self._stop()) is not None:
            stop(self._member)
