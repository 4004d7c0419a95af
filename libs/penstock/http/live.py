"""Live evaluations over HTTP, as server-sent events.

A feed retains the latest evaluations of its query. Each listener reads at its own speed. If a listener is so slow that
the feed has dropped evaluations, the listener receives the number of missed evaluations. An evaluation is serialised
only when a listener reads the evaluation.

This module writes the framing of the events itself, because the library sse-starlette replaces a method of uvicorn's
`Server` for the whole process. The replacement would also affect servers of an application that embeds Penstock.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

from penstock.engine import Evaluation, QuerySet, Step
from penstock.engine.answers.json_lines import json_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator

    from penstock.engine import Engine, Query
    from penstock.engine.answers.result_blocks import Raw

RETAINED_EVALUATIONS = 100
"""Maximum number of evaluations that a feed retains, for listeners that connect late or reconnect."""
RETAINED_ROWS = 1_000_000
"""Maximum number of rows of the retained evaluations. The last evaluation is always retained."""
_HEARTBEAT_S = 15.0  # proxies close idle connections
_DISCOVERY_S = 1.0  # interval at which a listener to all feeds checks for new feeds
_HEARTBEAT = b": heartbeat\n\n"


class Feed:
    """The latest evaluations of a query, or the latest steps of a query set. Any thread can use a feed."""

    def __init__(
        self, query: Query | QuerySet, max_evaluations: int = RETAINED_EVALUATIONS, max_rows: int = RETAINED_ROWS
    ) -> None:
        self.of_set = isinstance(query, QuerySet)
        self._retained: deque[tuple[int, Evaluation | Step]] = deque()
        self._most, self._most_rows = max_evaluations, max_rows
        self._rows = 0
        self._count = 0
        self._lock = Lock()
        self._wakers: set[Callable[[], None]] = set()
        self.ended = self.closed = False
        self._unsubscribe = query.subscribe(self._add)

    def _add(self, evaluation: Evaluation | Step) -> None:
        with self._lock:
            self._retained.append((self._count, evaluation))
            self._count += 1
            self._rows += _rows(evaluation)
            while len(self._retained) > 1 and (len(self._retained) > self._most or self._rows > self._most_rows):
                self._rows -= _rows(self._retained.popleft()[1])
        self._wake()

    def end(self) -> None:
        """End the feed because its query was stopped. Listeners get the retained evaluations, then an end event."""
        self._unsubscribe()
        self.ended = True
        self._wake()

    def close(self) -> None:
        """Disconnect the listeners because the server stops. The listeners get no end event, because the query
        continues.
        """
        self._unsubscribe()
        self.closed = True
        self._wake()

    # ---- listeners
    def add_listener(self, waker: Callable[[], None]) -> None:
        """Call `waker`, from any thread, when there are new evaluations, and when the feed ends or is closed."""
        self._wakers.add(waker)

    def remove_listener(self, waker: Callable[[], None]) -> None:
        """Stop calling `waker`."""
        self._wakers.discard(waker)

    def _wake(self) -> None:
        for waker in list(self._wakers):
            with suppress(RuntimeError):  # the listener's event loop has ended
                waker()

    def position(self, after: int | None = None) -> int:
        """Return the number of the first retained evaluation with a time after `after` (in ms; None means any time). If
        there is no such evaluation, return the number of the next evaluation.
        """
        with self._lock:
            return next((n for n, e in self._retained if after is None or e.time > after), self._count)

    def follows(self, position: int, after: int | None) -> bool:
        """Return whether the evaluation at `position` - 1 is retained and has the time `after` (ms)."""
        with self._lock:
            return any(n == position - 1 and e.time == after for n, e in self._retained)

    @property
    def last(self) -> int:
        """The number of the last evaluation, counted from 0. Also 0 if there are no evaluations."""
        return max(self._count - 1, 0)

    def since(self, position: int) -> tuple[list[Evaluation | Step], int, int]:
        """Return three values about the evaluations from `position` on: the retained evaluations, the number of
        evaluations that are no longer retained, and the next position.
        """
        with self._lock:
            fresh = [(n, e) for n, e in self._retained if n >= position]
            dropped = (fresh[0][0] if fresh else self._count) - position
            return [e for _, e in fresh], dropped, self._count


class _Waker:
    """Wakes a listener in its event loop."""

    def __init__(self) -> None:
        self._loop, self._event = asyncio.get_running_loop(), asyncio.Event()
        self.clear = self._event.clear

    def __call__(self) -> None:
        self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, seconds: float) -> bool:
        """Wait for new evaluations. Returns False after the timeout."""
        try:
            return await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return False


class Feeds:
    """The feeds of an engine's queries and query sets, by name. Any thread can use this object."""

    def __init__(self, queries: Iterable[Query | QuerySet]) -> None:
        self._by_name = {query.name: Feed(query) for query in queries}
        self.closed = False

    @classmethod
    def of(cls, engine: Engine) -> Feeds:
        """Return the feeds of all queries and query sets of an engine."""
        return cls([*engine.queries.values(), *engine.query_sets.values()])

    def __iter__(self) -> Iterator[Feed]:
        return iter(list(self._by_name.values()))

    def get(self, name: str) -> Feed | None:
        """Return the feed of a query or query set, or None."""
        return self._by_name.get(name)

    def add(self, query: Query | QuerySet) -> None:
        """Add the feed of a new query or query set."""
        self._by_name[query.name] = Feed(query)

    def end(self, name: str) -> None:
        """End the feed of a query that was stopped."""
        if (feed := self._by_name.pop(name, None)) is not None:
            feed.end()

    def close(self) -> None:
        """Disconnect all listeners because the server stops."""
        self.closed = True
        for feed in self:
            feed.close()


async def events(feed: Feed, after: int | None = None, member: object = None) -> AsyncIterator[bytes]:
    """Yield server-sent events: retained evaluations with a time after `after` (in ms), then each new evaluation.

    The id of an event is the evaluation's time. If the query was registered with `changes`, an event has the added and
    removed rows. If the listener possibly lacks the evaluation before an event, the event has the complete answer, too.
    For a query set, only the evaluations of the member with the key `member` are sent.
    """
    waker, position = _Waker(), feed.position(after)
    whole = not feed.follows(position, after)
    feed.add_listener(waker)
    try:
        while True:
            waker.clear()
            ended = feed.ended  # read before the evaluations, so that none before the end is missed
            fresh, dropped, position = feed.since(position)
            if dropped:
                whole = True
                yield b"event: lost\ndata: %d\n\n" % dropped
            for found in fresh:
                evaluation = (
                    found if isinstance(found, Evaluation) else await run_in_threadpool(found.evaluation, member)
                )
                if evaluation is None:
                    continue
                whole = whole or evaluation.complete
                yield b"id: %d\n%b" % (evaluation.time, await _data_lines(evaluation, whole=whole))
                whole = whole and evaluation.error is not None
            if ended:
                yield b"event: end\ndata: the query has stopped\n\n"
            if ended or feed.closed:
                return
            if not await waker.wait(_HEARTBEAT_S):
                yield _HEARTBEAT
    finally:
        feed.remove_listener(waker)


async def all_events(feeds: Feeds) -> AsyncIterator[bytes]:
    """Yield the last evaluation of each query, then all new evaluations. Includes queries that are registered later,
    but no query sets.

    Browsers open at most six connections to a server, so a page cannot open a connection for each query.
    """
    waker, positions, sent_at = _Waker(), dict[Feed, int](), time.monotonic()
    try:
        while not feeds.closed:
            waker.clear()
            for feed in feeds:
                if feed.of_set:
                    continue
                if feed not in positions:
                    feed.add_listener(waker)
                    positions[feed] = feed.last
                fresh, _, positions[feed] = feed.since(positions[feed])
                for evaluation in fresh:
                    assert isinstance(evaluation, Evaluation)
                    yield await _data_lines(evaluation, whole=True)
                    sent_at = time.monotonic()
            if not await waker.wait(_DISCOVERY_S) and time.monotonic() - sent_at > _HEARTBEAT_S:
                yield _HEARTBEAT
                sent_at = time.monotonic()
            for feed in [feed for feed in positions if feed.ended]:
                feed.remove_listener(waker)
                del positions[feed]
    finally:
        for feed in positions:
            feed.remove_listener(waker)


def _rows(evaluation: Evaluation | Step) -> int:
    if isinstance(evaluation, Step):
        return evaluation.rows
    if evaluation.has_changes and evaluation.error is None:
        return sum(map(_size, evaluation.raw_changes))
    return 1 if evaluation.error is not None else _size(evaluation.raw)


def _size(answer: Raw) -> int:
    return 1 if isinstance(answer, bool) else len(answer)


async def _data_lines(evaluation: Evaluation, *, whole: bool) -> bytes:
    return b"data: %b\n\n" % await run_in_threadpool(json_line, evaluation, whole=whole)
