"""The result queue of a query: its evaluations until they are polled or delivered to subscribers, each once and in
order.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass
from threading import Lock, RLock
from typing import TYPE_CHECKING

from penstock.engine.answers.result_blocks import Block, BlockLog, Evaluation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.engine.answers.membership import Recipient

_log = logging.getLogger("penstock.engine")


@dataclass(slots=True)
class Segment:
    """The blocks of a log that a member still has to consume: from number `next` to `end`, exclusive. `end` None: all
    blocks from `next` on, including future ones.
    """

    log: BlockLog
    next: int
    end: int | None = None

    @property
    def until(self) -> int:
        """The current exclusive end of the range: `end`, or the log's current end if `end` is None."""
        return self.log.next if self.end is None else self.end


class ResultQueue:
    """The pending results of a member.

    There are two locks. `_taking` protects the queue; it is held only briefly, and never while user code runs.
    `_delivering` is held while subscribers run, but no thread waits for it.

    If a member moves to another cohort, it consumes the log of that cohort from then on. A queue is therefore a list of
    segments of logs. A queue with a subscriber or a waker adds itself to `listeners`; the engine calls `deliver` of
    each listener.
    """

    def __init__(self, member: Recipient, listeners: set[ResultQueue]) -> None:
        self._member = member
        self._listeners = listeners
        self._segments: deque[Segment] = deque()
        self._left: deque[Evaluation] = deque()
        self._taking = RLock()
        self._delivering = Lock()
        self._undelivered = False
        self._subscribers: list[Callable[[Evaluation], object]] = []
        self._wakers: list[Callable[[], object]] = []
        self.ended = False

    # ---- polling
    def take(self, limit: int | None = None) -> list[Evaluation]:
        """Remove and return pending evaluations, at most `limit` of them (None: all), in order of time."""
        with self._taking:
            taken: list[Evaluation] = []
            while self._left and (limit is None or len(taken) < limit):
                taken.append(self._left.popleft())
            for segment in list(self._segments):
                self._take_from(segment, taken, limit)
            return taken

    def _take_from(self, segment: Segment, taken: list[Evaluation], limit: int | None) -> None:
        until = segment.until
        for number, block, member in self._concerning(segment, until):
            if limit is not None and len(taken) >= limit:
                segment.next = number
                return
            segment.log.taken(number)
            taken.append(Evaluation(self._member.name, block, member))
        segment.next = until
        if segment.end is not None:
            self._segments.remove(segment)

    def _concerning(self, segment: Segment, until: int) -> Iterator[tuple[int, Block, int]]:
        for number, block in segment.log.blocks(segment.next, until):
            member = block.members.number_of(self._member)
            if member is not None and block.concerns(member):
                yield number, block, member

    def __len__(self) -> int:
        with self._taking:
            waiting = sum(1 for segment in self._segments for _ in self._concerning(segment, segment.until))
            return len(self._left) + waiting

    def bytes(self) -> int:
        """Return the size in bytes of the blocks with pending evaluations. Other queries may share these blocks."""
        with self._taking:
            return sum(block.bytes for s in self._segments for _, block, _ in self._concerning(s, s.until))

    # ---- subscribers
    @property
    def subscribed(self) -> bool:
        """Whether there is a subscriber."""
        return bool(self._subscribers)

    def subscribe(self, callback: Callable[[Evaluation], object]) -> Callable[[], None]:
        """Add a subscriber: `callback` is called with each pending and future evaluation. Returns a function that ends
        the subscription.
        """
        self._subscribers.append(callback)
        self._listeners.add(self)
        self.deliver()

        def unsubscribe() -> None:
            if callback in self._subscribers:
                self._subscribers.remove(callback)

        return unsubscribe

    def wake(self, waker: Callable[[], object]) -> Callable[[], None]:
        """Add a waker: it is called when there may be new evaluations, and when the query has ended. Returns a function
        that removes the waker.
        """
        self._wakers.append(waker)
        self._listeners.add(self)
        return lambda: self._wakers.remove(waker)

    def deliver(self) -> None:
        """Call the wakers, then deliver pending evaluations to subscribers. The engine calls this after each change.

        If a delivery is already in progress, in another thread or further up the call stack, that delivery includes the
        new evaluations. This method does not wait for it, so that a subscriber may call the engine.
        """
        for waker in list(self._wakers):
            waker()
        self._undelivered = True
        while self._undelivered and self._subscribers and self._delivering.acquire(blocking=False):
            try:
                self._undelivered = False
                # Take one evaluation at a time: if the subscriber unsubscribes or Ctrl-C interrupts it, the others stay
                # pending.
                while self._subscribers and (taken := self.take(1)):
                    self._hand_over(*taken)
            finally:
                self._delivering.release()

    def _hand_over(self, evaluation: Evaluation) -> None:
        for callback in list(self._subscribers):
            try:
                callback(evaluation)
            except Exception:  # noqa: BLE001 - a user's function may raise anything
                _log.exception("a subscriber of %s failed on its evaluation at %d", evaluation.query, evaluation.time)

    # ---- engine side
    def follow(self, log: BlockLog) -> None:
        """Consume `log` from its current end on. The previous log is consumed only up to its current end."""
        with self._taking:
            if self._segments and self._segments[-1].end is None:
                self._segments[-1].end = self._segments[-1].log.next
            self._segments.append(Segment(log, log.next))

    def end(self) -> None:
        """End the queue, because the query has ended. Pending evaluations stay available."""
        with self._taking:
            left = self.take()
            self._left.extend(left)
            self._segments.clear()
            self.ended = True
        self._listeners.discard(self)
        self.deliver()

    def segments(self) -> list[tuple[BlockLog, int, int | None]]:
        """Return the segments as (log, next block, end), for a checkpoint."""
        with self._taking:
            return [(segment.log, segment.next, segment.end) for segment in self._segments]

    def restore(self, segments: list[tuple[BlockLog, int, int | None]]) -> None:
        """Restore the segments of a checkpoint. Counts this member as a reader of each block from which it has a
        pending evaluation.
        """
        self._segments = deque(Segment(log, first, end) for log, first, end in segments)
        for segment in self._segments:
            for _, block, _ in self._concerning(segment, segment.until):
                block.waiting += 1
