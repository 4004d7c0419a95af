"""Evaluations as they fire, for whoever listens over HTTP: server-sent events.

A feed keeps the last evaluations of its query. Each listener goes along it at its own pace; one that is slower than
the feed's bound is told how many it has missed. Nothing is written for a feed that nobody listens to.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool

from penstock.engine.answers.json_lines import json_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from penstock.engine import Evaluation, Query

KEPT = 100
"""Evaluations that a feed keeps: what a listener that comes late, or back, still gets."""
KEPT_ROWS = 1_000_000
"""Rows that those have at most, but for the last one's."""
_QUIET_S = 15.0  # proxies cut connections on which nothing is said
_LOOK_S = 1.0  # how often a listener to all feeds looks for new ones
_QUIET = ": nothing new\n\n"


class Feed:
    """The last evaluations of one query. Any thread may add to it."""

    def __init__(self, query: Query, kept: int = KEPT, kept_rows: int = KEPT_ROWS) -> None:
        self._kept: deque[tuple[int, Evaluation]] = deque()
        self._most, self._most_rows = kept, kept_rows
        self._rows = 0
        self._count = 0
        self._lock = Lock()
        self._wakers: set[Callable[[], None]] = set()
        self.ended = False
        self._unsubscribe = query.subscribe(self._add)

    def _add(self, evaluation: Evaluation) -> None:
        with self._lock:
            self._kept.append((self._count, evaluation))
            self._count += 1
            self._rows += _rows(evaluation)
            while len(self._kept) > 1 and (len(self._kept) > self._most or self._rows > self._most_rows):
                self._rows -= _rows(self._kept.popleft()[1])
        self._wake()

    def end(self) -> None:
        """The query has stopped: listeners get what is kept, and are told."""
        self._unsubscribe()
        self.ended = True
        self._wake()

    # ---- listening
    def listen(self, waker: Callable[[], None]) -> None:
        """Call `waker`, from any thread, whenever there is something new."""
        self._wakers.add(waker)

    def leave(self, waker: Callable[[], None]) -> None:
        """Call it no more."""
        self._wakers.discard(waker)

    def _wake(self) -> None:
        for waker in list(self._wakers):
            with suppress(RuntimeError):  # its loop has ended
                waker()

    def place(self, after: int | None = None) -> int:
        """Return the number of the first evaluation that is kept, or of the first of the times after `after` (ms)."""
        with self._lock:
            return next((n for n, e in self._kept if after is None or e.time > after), self._count)

    @property
    def last(self) -> int:
        """The number of the last evaluation; of the first one to come where there is none."""
        return max(self._count - 1, 0)

    def since(self, place: int) -> tuple[list[Evaluation], int, int]:
        """Return what is kept from a place on, how many from there on are gone, and the place of what comes next."""
        with self._lock:
            fresh = [(n, e) for n, e in self._kept if n >= place]
            gone = (fresh[0][0] if fresh else self._count) - place
            return [e for _, e in fresh], gone, self._count


class _News:
    """Wakes one listener in its event loop."""

    def __init__(self) -> None:
        self._loop, self._event = asyncio.get_running_loop(), asyncio.Event()
        self.clear = self._event.clear

    def __call__(self) -> None:
        self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, seconds: float) -> bool:
        """Wait for news; False where none came."""
        try:
            return await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return False


async def events(feed: Feed, after: int | None = None) -> AsyncIterator[str]:
    """Yield what is kept of the times after `after` (ms), then each evaluation as it fires, as server-sent events.

    Their ids are their times.
    """
    news, place = _News(), feed.place(after)
    feed.listen(news)
    try:
        while True:
            news.clear()
            ended = feed.ended  # before looking: what came before the end is kept
            fresh, gone, place = feed.since(place)
            if gone:
                yield f"event: lost\ndata: {gone}\n\n"
            for evaluation in fresh:
                yield f"id: {evaluation.time}\n{await _data(evaluation)}"
            if ended:
                yield "event: end\ndata: the query has stopped\n\n"
                return
            if not await news.wait(_QUIET_S):
                yield _QUIET
    finally:
        feed.leave(news)


async def all_events(feeds: Mapping[str, Feed]) -> AsyncIterator[str]:
    """Yield the last evaluation of each query, then all that fire, of queries that come later too. Browsers open six
    connections to one server: too few for one a query.
    """
    news, places, spoken = _News(), dict[Feed, int](), time.monotonic()
    try:
        while True:
            news.clear()
            for feed in list(feeds.values()):
                if feed not in places:
                    feed.listen(news)
                    places[feed] = feed.last
                fresh, _, places[feed] = feed.since(places[feed])
                for evaluation in fresh:
                    yield await _data(evaluation)
                    spoken = time.monotonic()
            if not await news.wait(_LOOK_S) and time.monotonic() - spoken > _QUIET_S:
                yield _QUIET
                spoken = time.monotonic()
            for feed in [feed for feed in places if feed.ended]:
                feed.leave(news)
                del places[feed]
    finally:
        for feed in places:
            feed.leave(news)


def _rows(evaluation: Evaluation) -> int:
    answer = True if evaluation.error is not None else evaluation.raw
    return 1 if isinstance(answer, bool) else len(answer)


async def _data(evaluation: Evaluation) -> str:
    return f"data: {await run_in_threadpool(json_line, evaluation)}\n\n"
