"""The evaluations of one query on their way to its user: taken by poll, or handed to subscribers; each once, in
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

    from penstock.engine.standing.member import Member

_log = logging.getLogger("penstock.engine")


@dataclass(slots=True)
class Segment:
    """A stretch of a block log that is still to be taken: from `next` up to `end` (None = what is to come as well)."""

    log: BlockLog
    next: int
    end: int | None = None

    @property
    def until(self) -> int:
        """Where the stretch ends as of now."""
        return self.log.next if self.end is None else self.end


class ResultQueue:
    """What waits for one member's user. Its own lock is held for moments only, and never while user code runs.

    A member that moves to another cohort goes on in that one's log: hence segments. `listeners` is the engine's set of
    inboxes that someone listens to.
    """

    def __init__(self, member: Member, listeners: set[ResultQueue]) -> None:
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

    # ---- taking
    def take(self, limit: int | None = None) -> list[Evaluation]:
        """Return what has fired and was not yet taken, in order of time; at most `limit` evaluations."""
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
        """Return the size of the blocks that wait, which other queries may share."""
        with self._taking:
            return sum(block.bytes for s in self._segments for _, block, _ in self._concerning(s, s.until))

    # ---- listening
    @property
    def subscribed(self) -> bool:
        """Whether evaluations are handed to someone as they fire."""
        return bool(self._subscribers)

    def subscribe(self, callback: Callable[[Evaluation], object]) -> Callable[[], None]:
        """Hand everything to `callback` from now on. Returns a function that ends this."""
        self._subscribers.append(callback)
        self._listeners.add(self)
        self.deliver()

        def unsubscribe() -> None:
            if callback in self._subscribers:
                self._subscribers.remove(callback)

        return unsubscribe

    def wake(self, waker: Callable[[], object]) -> Callable[[], None]:
        """Call `waker` whenever something may have fired, or the query has ended. Returns a function that ends this."""
        self._wakers.append(waker)
        self._listeners.add(self)
        return lambda: self._wakers.remove(waker)

    def deliver(self) -> None:
        """Give what waits to the subscribers, and wake those who wait. The engine calls it after each pass.

        Where another thread (or this one, from within a callback) is at it already, that one goes on with what is new:
        no lock is waited for, so that a callback can do as it likes.
        """
        for waker in list(self._wakers):
            waker()
        self._undelivered = True
        while self._undelivered and self._subscribers and self._delivering.acquire(blocking=False):
            try:
                self._undelivered = False
                # One by one: what nobody was handed yet, as nobody listens any more or Ctrl-C came, waits as before.
                while self._subscribers and (taken := self.take(1)):
                    self._hand_over(*taken)
            finally:
                self._delivering.release()

    def _hand_over(self, evaluation: Evaluation) -> None:
        for callback in list(self._subscribers):
            try:
                callback(evaluation)
            except Exception:  # noqa: BLE001 - whatever a user's function raises
                _log.exception("a subscriber of %s failed on its evaluation at %d", evaluation.query, evaluation.time)

    # ---- the engine's side
    def follow(self, log: BlockLog) -> None:
        """Take from this log what comes from now on; of the one before, only what is in it."""
        with self._taking:
            if self._segments and self._segments[-1].end is None:
                self._segments[-1].end = self._segments[-1].log.next
            self._segments.append(Segment(log, log.next))

    def end(self) -> None:
        """Follow no log any more: what waits becomes the inbox's own, and can still be taken."""
        with self._taking:
            left = self.take()
            self._left.extend(left)
            self._segments.clear()
            self.ended = True
        self._listeners.discard(self)
        self.deliver()

    def segments(self) -> list[tuple[BlockLog, int, int | None]]:
        """Return (log, first block to take, end) of each stretch, for checkpoints."""
        with self._taking:
            return [(segment.log, segment.next, segment.end) for segment in self._segments]

    def restore(self, segments: list[tuple[BlockLog, int, int | None]]) -> None:
        """Take over what `segments` returned; the logs' blocks then wait for this member too."""
        self._segments = deque(Segment(log, first, end) for log, first, end in segments)
        for segment in self._segments:
            for _, block, _ in self._concerning(segment, segment.until):
                block.waiting += 1
