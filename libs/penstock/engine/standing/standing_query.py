"""`Query`: the object with which users poll, subscribe to, iterate over and stop a standing query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.answers.delivery import as_they_occur, poll
from penstock.engine.standing.query_status import QueryStatus, status_of
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from weakref import WeakMethod

    from penstock.engine.answers.result_blocks import Evaluation
    from penstock.engine.standing.groups import Member
    from penstock.event_time.gaps import Gap


@dataclass(frozen=True, slots=True)
class Operations:
    """The operations of an engine that standing queries call. The references to the engine's methods are weak, so they
    do not keep the engine alive.
    """

    stop: WeakMethod[Callable[[Member], None]]
    catch_up: WeakMethod[Callable[[Member], bool]]


class Query:
    """A standing query. An evaluation of the query is pending until the evaluation is polled, yielded by an iteration,
    or delivered to subscribers.

    Any thread can call the methods. A reference to a query does not keep its engine alive.
    """

    __slots__ = ("__weakref__", "_member", "_operations")

    def __init__(self, member: Member, operations: Operations) -> None:
        self._member = member
        self._operations = operations

    def __repr__(self) -> str:
        return f"<Query {self.name}{' (stopped)' if self.stopped else ''}>"

    @property
    def name(self) -> str:
        """The name of the query, which is unique in its engine."""
        return self._member.name

    @property
    def text(self) -> str:
        """The text of the query."""
        return self._member.text

    @property
    def base(self) -> str | None:
        """The base IRI that was given at the registration, or None."""
        return self._member.base

    @property
    def changes(self) -> bool:
        """Whether the query was registered with `changes`. If so, its evaluations have `added` and `removed`."""
        return self._member.changes

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the text of the query."""
        return self._member.warnings

    @property
    def registration_point(self) -> int | None:
        """The registration point P: only tuples after P are visible. P is None until a stream of the query has
        progress.
        """
        return self._member.point

    @property
    def gaps(self) -> list[Gap]:
        """The gaps, that is, the ranges of skipped instants. Only the latest 10,000 gaps (`MAX_GAPS`) are available."""
        return list(self._member.gaps)

    def status(self) -> QueryStatus:
        """Return the status of the query: the streams for which the query waits, and the input that would end the
        wait.
        """
        return status_of(self._member)

    @property
    def stopped(self) -> bool:
        """Whether the query was stopped, either by `stop` or because the engine was closed."""
        return self._member.result_queue.ended

    def poll(self, limit: int | None = None) -> list[Evaluation]:
        """Remove and return pending evaluations, at most `limit` of them (None: all), in order of time.

        If the query began in the past and has not caught up yet, the call first evaluates instants. The evaluation
        stops when the query has caught up, or when the call can return `limit` evaluations (None: 100,000).
        """
        return poll(self._member.result_queue.take, limit, self._catch_up)

    def _catch_up(self) -> bool:
        """Evaluate some instants of a query that began in the past. Returns whether an evaluation took place."""
        catch_up = self._operations.catch_up()
        return catch_up is not None and catch_up(self._member)

    def unpolled(self) -> int:
        """Return the number of pending evaluations."""
        return len(self._member.result_queue)

    def subscribe(self, callback: Callable[[Evaluation], object]) -> Callable[[], None]:
        """Call `callback` with every pending and future evaluation, one at a time and in order. This method returns a
        function that ends the subscription. While there is a subscriber, `poll` returns nothing.

        The engine calls `callback` during the calls that produce evaluations, such as `push`, in the thread of the
        caller. `callback` is allowed to call the engine. Exceptions of `callback` are logged and have no other effect.
        """
        ended = self._member.result_queue.subscribe(callback)
        while self._member.result_queue.subscribed and self._catch_up():
            pass
        return ended

    async def __aiter__(self) -> AsyncIterator[Evaluation]:
        """Yield each evaluation when it occurs. The iteration ends when the query is stopped and all evaluations are
        consumed.

        PenstockError if the query has a subscriber, which receives the evaluations instead.
        """
        if self._member.result_queue.subscribed:
            raise PenstockError(f"the evaluations of {self.name} go to its subscriber: nothing is left to iterate over")
        async for evaluation in as_they_occur(self._member.result_queue, self.poll):
            yield evaluation

    def stop(self) -> None:
        """Stop the query. Pending evaluations can still be polled. If the query publishes a stream, the stream ends."""
        if not self.stopped and (stop := self._operations.stop()) is not None:
            stop(self._member)
