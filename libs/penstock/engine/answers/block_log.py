"""The log of a cohort's blocks, and the total size of all blocks in an engine. A block stays in the log until each
member has consumed the member's evaluation in the block.
"""

from __future__ import annotations

from itertools import count
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from penstock.engine.answers.membership import Recipient
    from penstock.engine.answers.result_blocks import Block

# `blocks` looks up each number of a range if the log has at least one block for this many numbers
_HOLES = 4


class Unpolled:
    """The total size in bytes of all blocks in an engine's block logs. Also the list of the logs that contain blocks of
    single queries.

    `lock` also protects the logs, because threads that poll can remove blocks while evaluations append blocks.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.bytes = 0
        self._orders = count()
        self._filled: dict[BlockLog, None] = {}

    def order(self) -> int:
        """Return the position of a new log in the order of all logs."""
        return next(self._orders)

    def filled(self, log: BlockLog) -> None:
        """Record that a log has blocks. The caller holds the lock."""
        self._filled[log] = None

    def emptied(self, log: BlockLog) -> None:
        """Record that a log has no blocks. The caller holds the lock."""
        self._filled.pop(log, None)

    def claim(self) -> list[BlockLog]:
        """Return the logs that have blocks and that no earlier call has returned. Logs of query sets are never
        returned. When `BlockLog.following` has returned nothing for a log, a later call can return this log again.
        """
        if not self._filled:
            return []
        with self.lock:
            claimed = list(self._filled)
            for log in claimed:
                log.claimed = True
            self._filled.clear()
        return claimed


class BlockLog:
    """The blocks of a cohort. A block stays in the log until every member has consumed the member's evaluation in the
    block. Other threads can read and consume blocks while the engine appends blocks.

    Either the result queue of a query (`take_one`) or the engine queue (`take`) consumes an evaluation of the query.
    `order` is the position of this log among the logs of the engine. `claimed` is true while the engine queue reads
    this log. This period begins when `Unpolled.claim` returns the log, and ends when `following` finds no later block.
    """

    def __init__(self, unpolled: Unpolled | None = None) -> None:
        self._unpolled = unpolled if unpolled is not None else Unpolled()
        self._lock = self._unpolled.lock
        self._blocks: dict[int, Block] = {}
        self.order = self._unpolled.order()
        self.claimed = False
        self.next = 0
        self.last_bytes = 0  # size of the latest block with an evaluation

    def __len__(self) -> int:
        return len(self._blocks)

    def append(self, block: Block) -> bool:
        """Add a block. Returns False if no member has an evaluation in the block."""
        block.waiting = block.readers()
        with self._lock:
            number, self.next = self.next, self.next + 1
            if not block.waiting:
                return False
            self._blocks[number] = block
            self.last_bytes = block.bytes
            self._unpolled.bytes += self.last_bytes
            if not (self.claimed or block.members.one_reader):
                self._unpolled.filled(self)
        return True

    def blocks(self, first: int, end: int) -> Iterator[tuple[int, Block]]:
        """Yield the blocks with numbers from `first` (inclusive) to `end` (exclusive), in order. A block that is
        removed meanwhile is skipped.
        """
        with self._lock:
            sparse = end - first > _HOLES * len(self._blocks)
            numbers = [i for i in self._blocks if first <= i < end] if sparse else range(first, end)
        for number in numbers:
            block = self._blocks.get(number)
            if block is not None:
                yield number, block

    # ---- consumption
    def taken(self, number: int) -> None:
        """Remove a block. The block's only reader has consumed the block."""
        with self._lock:
            block = self._blocks.get(number)
            if block is not None:
                self._consumed(number, block, 1)

    def take_one(self, number: int, member: int) -> bool:
        """Consume a member's evaluation in the block `number`. Returns False if the evaluation was consumed before."""
        with self._lock:
            block = self._blocks.get(number)
            if block is None or not block.pending(member):
                return False
            if block.waiting > 1:
                self._flags(block)[member] = 1
            self._consumed(number, block, 1)
            return True

    def take(self, number: int, most: int, excluded: Collection[Recipient]) -> tuple[Block | None, Sequence[int]]:
        """Consume at most `most` evaluations of a block. The evaluations of the queries in `excluded` are left out.
        Returns the block, or None if the block does not exist. Also returns the numbers of the members whose
        evaluations were consumed, ascending.
        """
        with self._lock:
            block = self._blocks.get(number)
            if block is None:
                return None, ()
            passed = {n for each in excluded if (n := block.members.number_of(each)) is not None and block.pending(n)}
            if most >= block.waiting and block.taken is None and not passed:
                members: Sequence[int] = block.concerned()
            else:
                members = _first_pending(block, self._flags(block), most, passed)
            self._consumed(number, block, len(members))
            return block, members

    def _flags(self, block: Block) -> bytearray:
        if block.taken is None:
            block.taken = block.none_taken()
            self._unpolled.bytes += len(block.taken)
        return block.taken

    def _consumed(self, number: int, block: Block, count: int) -> None:
        block.waiting -= count
        if block.waiting > 0:
            return
        del self._blocks[number]
        self._unpolled.bytes -= block.bytes
        if not self._blocks:
            self._unpolled.emptied(self)

    def block(self, number: int) -> Block | None:
        """Return a block, or None if the block does not exist."""
        return self._blocks.get(number)

    def following(self, number: int) -> list[int]:
        """Return the numbers of the blocks after block `number`, ascending. If there is no later block, the log is no
        longer claimed (see `Unpolled.claim`).
        """
        with self._lock:
            found = [each for each in self._blocks if each > number]
            if not found:
                self.claimed = False
                if self._blocks:
                    self._unpolled.filled(self)
            return found

    # ---- checkpoints
    def restore(self, following: int, blocks: dict[int, Block]) -> None:
        """Restore the blocks of a checkpoint, as if all members had consumed their evaluations. `following` is the
        number of the next new block. Some evaluations were in fact not consumed. After this call, `reopen` and
        `StepQueue.restore` make these evaluations pending again.
        """
        self.next = following
        self._blocks = blocks
        for block in blocks.values():
            if not block.members.one_reader:
                block.taken = bytearray(b"\1") * (len(block.members) + 1)
            self._unpolled.bytes += block.bytes

    def reopen(self, member: Recipient, first: int, end: int) -> None:
        """Make a member's evaluations in the restored blocks from `first` (inclusive) to `end` (exclusive) pending
        again.
        """
        for _, block in self.blocks(first, end):
            number = block.members.number_of(member)
            if number is not None and block.concerns(number):
                assert block.taken is not None
                block.taken[number] = 0
                block.waiting += 1

    def drop_read(self) -> None:
        """Drop the restored blocks that all members have consumed."""
        with self._lock:
            for number, block in list(self._blocks.items()):
                if block.taken is not None and block.waiting == block.readers() > 0:
                    self._unpolled.bytes -= len(block.taken)
                    block.taken = None
                elif block.waiting <= 0:
                    self._unpolled.bytes -= self._blocks.pop(number).bytes
            if any(not block.members.one_reader for block in self._blocks.values()):
                self._unpolled.filled(self)


def _first_pending(block: Block, taken: bytearray, most: int, passed: Collection[int]) -> list[int]:
    """Return the first members with a pending evaluation, at most `most` members. Mark these evaluations as consumed.
    Members in `passed` are left out.
    """
    found: list[int] = []
    at = block.first_pending
    while len(found) < most and (at := taken.find(0, at)) >= 0:
        if at not in passed:
            taken[at] = 1
            found.append(at)
        at += 1
    if not passed and at >= 0:
        block.first_pending = at
    return found
