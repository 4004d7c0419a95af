"""The result queue of a query. The queue holds the evaluations of the query, in order. An evaluation stays in the queue
until the evaluation is polled, or is delivered to subscribers.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from penstock.engine.answers.delivery import Delivery
from penstock.engine.answers.result_blocks import Block, Evaluation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import RLock

    from penstock.engine.answers.block_log import BlockLog
    from penstock.engine.answers.delivery import Listeners
    from penstock.engine.answers.membership import Recipient


_NOTHING: deque[Evaluation] = deque()
"""The remaining evaluations of a query that has not ended. This object stays empty."""


@dataclass(slots=True)
class Segment:
    """The blocks of a log that a member has not consumed yet: from number `next` (inclusive) to number `end`
    (exclusive). If `end` is None, the segment has all blocks from `next` on, including future blocks.
    """

    log: BlockLog
    next: int
    end: int | None = None

    @property
    def until(self) -> int:
        """The current exclusive end of the range: `end`, or the log's current end if `end` is None."""
        return self.log.next if self.end is None else self.end


class ResultQueue(Delivery):
    """The pending results of a member.

    A member can move to another cohort. From then on, the member consumes the log of that cohort. A queue is therefore
    a sequence of segments of logs. The engine queue (`EngineQueue`) can consume evaluations of the same blocks. The
    engine queue does not change the segments. A segment can therefore contain blocks that are consumed already.

    `single`: whether this is the queue of a single query, and not of a query set. The engine queue can consume the
    evaluations of single queries.
    """

    __slots__ = ("__weakref__", "_left", "_member", "_segments")

    single: ClassVar[bool] = True

    def __init__(self, member: Recipient, listeners: Listeners) -> None:
        super().__init__(listeners)
        self._member = member
        self._segments: tuple[Segment, ...] = ()  # takes less memory than a list
        self._left: deque[Evaluation] = _NOTHING

    @property
    def _taking(self) -> RLock:
        return self._listeners.taking

    # ---- polling
    def take(self, limit: int | None = None) -> list[Evaluation]:
        """Remove and return pending evaluations, at most `limit` of them (None: all), in order of time."""
        with self._taking:
            taken: list[Evaluation] = []
            while self._left and (limit is None or len(taken) < limit):
                taken.append(self._left.popleft())
            for segment in self._segments:
                self._take_from(segment, taken, limit)
            return taken

    def _take_from(self, segment: Segment, taken: list[Evaluation], limit: int | None) -> None:
        until = segment.until
        for number, block, member in self._pending_in(segment, until):
            if limit is not None and len(taken) >= limit:
                segment.next = number
                return
            if segment.log.take_one(number, member):
                taken.append(Evaluation(self._member.name, block, member))
        segment.next = until
        if segment.end is not None:
            self._remove(segment)

    def _pending_in(self, segment: Segment, until: int) -> Iterator[tuple[int, Block, int]]:
        for number, block in segment.log.blocks(segment.next, until):
            member = block.members.number_of(self._member)
            if member is not None and block.pending(member):
                yield number, block, member

    def __len__(self) -> int:
        with self._taking:
            waiting = sum(1 for segment in self._segments for _ in self._pending_in(segment, segment.until))
            return len(self._left) + waiting

    def bytes(self) -> int:
        """Return the size in bytes of the blocks with pending evaluations. Other queries can share these blocks."""
        with self._taking:
            return sum(block.bytes for s in self._segments for _, block, _ in self._pending_in(s, s.until))

    # ---- subscribers
    @property
    def subscribed(self) -> bool:
        """Whether this queue has a subscriber. For the queue of a single query, a subscriber of all single queries also
        counts.
        """
        return bool(self._subscribers) or (self.single and self._listeners.all_heard)

    def _subscribers_changed(self) -> None:
        if self._subscribers and not self.ended:
            self._listeners.heard.add(self._member)
        else:
            self._listeners.heard.discard(self._member)

    # ---- engine side
    def follow(self, log: BlockLog) -> None:
        """Consume the blocks that are appended to `log` from now on. The queue consumes only those blocks of the
        previous log that the previous log contains now.
        """
        with self._taking:
            self._close_last()
            self._append(Segment(log, log.next))

    def _append(self, segment: Segment) -> None:
        self._segments = (*self._segments, segment)

    def _remove(self, segment: Segment) -> None:
        self._segments = tuple([each for each in self._segments if each is not segment])

    def _close_last(self) -> None:
        if self._segments and self._segments[-1].end is None:
            self._segments[-1].end = self._segments[-1].log.next

    def end(self) -> None:
        """End the queue, because the query has ended. Pending evaluations stay available."""
        with self._taking:
            if self.single and self._listeners.together:
                self._close_last()
            else:
                left = self.take()
                self._left = deque(left)
                self._segments = ()
                if left and self.single:
                    self._listeners.stopped[self] = None
            self.ended = True
        self._listeners.queues.discard(self)
        self.deliver()
        self._listeners.heard.discard(self._member)

    def left(self) -> list[Evaluation]:
        """Return the pending evaluations of a query that was stopped before the first use of the engine queue. For any
        other query, the result is empty.
        """
        with self._taking:
            return list(self._left)

    def give_up(self, evaluation: Evaluation) -> bool:
        """Remove an evaluation that `left` has returned. Returns False if the evaluation was consumed before."""
        with self._taking:
            if not self._left or self._left[0] is not evaluation:
                return False
            self._left.popleft()
            return True

    # ---- checkpoints
    def segments(self) -> list[tuple[BlockLog, int, int | None]]:
        """Return the segments as (log, next block, end), for a checkpoint. For a single query, the next block is the
        first block with a pending evaluation.
        """
        with self._taking:
            return [(segment.log, self._next_in(segment), segment.end) for segment in self._segments]

    def _next_in(self, segment: Segment) -> int:
        if not self.single:
            return segment.next
        until = segment.until
        return next((number for number, _, _ in self._pending_in(segment, until)), until)

    def restore(self, segments: list[tuple[BlockLog, int, int | None]]) -> None:
        """Restore the segments of a checkpoint, and this member's evaluations in the blocks of these segments."""
        self._segments = tuple([Segment(log, first, end) for log, first, end in segments])
        for segment in self._segments:
            segment.log.reopen(self._member, segment.next, segment.until)
