"""A registered query as its user holds it: poll, subscribe, iterate, stop."""

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
    from penstock.engine.standing.member import Member
    from penstock.event_time.gaps import Gap


class Query:
    """A standing query. Its evaluations wait until they are polled, iterated over, or handed to subscribers.

    Safe to use from any thread. Who holds it does not hold its engine.
    """

    def __init__(self, member: Member, stop: WeakMethod[Callable[[Member], None]]) -> None:
        self._member = member
        self._stop = stop

    def __repr__(self) -> str:
        return f"<Query {self.name}{' (stopped)' if self.stopped else ''}>"

    @property
    def name(self) -> str:
        """Its name, unique in its engine."""
        return self._member.name

    @property
    def text(self) -> str:
        """Its text as registered."""
        return self._member.ir.text

    @property
    def base(self) -> str | None:
        """The base IRI that it was registered with."""
        return self._member.base

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the front end found odd but not wrong."""
        return self._member.ir.warnings

    @property
    def registration_point(self) -> int | None:
        """P: only tuples later than this are seen. None while no stream of the query has any progress."""
        return self._member.point

    @property
    def gaps(self) -> list[Gap]:
        """Instants that were jumped over on demand."""
        return list(self._member.gaps)

    def status(self) -> QueryStatus:
        """Return what the query waits for, and what would release it."""
        return status_of(self._member)

    @property
    def stopped(self) -> bool:
        """Whether it was stopped (by `stop`, or with its engine)."""
        return self._member.result_queue.ended

    def poll(self, limit: int | None = None) -> list[Evaluation]:
        """Return evaluations that have fired and were not yet taken, in order of time; at most `limit` of them."""
        return self._member.result_queue.take(limit)

    def unpolled(self) -> int:
        """Return how many evaluations wait."""
        return len(self._member.result_queue)

    def subscribe(self, callback: Callable[[Evaluation], object]) -> Callable[[], None]:
        """Hand every evaluation to `callback`, in order, one at a time, on a thread that pushes; poll() then finds
        none.

        The callback may call the engine. An exception of it is logged and ends nothing. Returns a function that ends
        the subscription.
        """
        return self._member.result_queue.subscribe(callback)

    async def __aiter__(self) -> AsyncIterator[Evaluation]:
        """Yield evaluations as they fire; ends when the query is stopped and all was taken.

        PenstockError where a subscriber takes them.
        """
        if self._member.result_queue.subscribed:
            raise PenstockError(f"the evaluations of {self.name} go to its subscriber: nothing is left to iterate over")
        loop, ready = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop was closed under the iteration
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
        """End the query. What has fired can still be polled; a stream that it published ends."""
        if not self.stopped and (stop := self._stop()) is not None:
            stop(self._member)
