"""The result queue of a query set. The queue holds a step of the set until the step is polled or delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from penstock.engine.answers.result_queue import ResultQueue, Segment
from penstock.engine.sets.steps import Step

if TYPE_CHECKING:
    from penstock.engine.answers.block_log import BlockLog
    from penstock.engine.answers.result_blocks import Block
    from penstock.engine.sets.steps import KeyedSet


class StepQueue(ResultQueue):
    """The pending steps of a query set. The set consumes the logs of all cohorts of the set at the same time. A step
    consists of the blocks of one instant.

    Callers hold the engine's lock, because an evaluation of the set appends blocks to several logs.
    """

    single = False
    _member: KeyedSet

    def take(self, limit: int | None = None) -> list[Step]:  # type: ignore[override]
        """Remove and return pending steps, at most `limit` of them (None: all), in order of time."""
        with self._taking:
            taken = [cast("Step", self._left.popleft()) for _ in range(min(len(self._left), self._most(limit)))]
            pending = self._pending()
            chosen = sorted(pending)[: self._most(limit) - len(taken)]
            for instant in chosen:
                for segment, number, _ in pending[instant]:
                    segment.log.taken(number)
                    segment.next = number + 1
                taken.append(Step(self._member, [block for _, _, block in pending[instant]]))
            if len(chosen) == len(pending):
                for segment in self._segments:
                    segment.next = segment.until
            for segment in [each for each in self._segments if each.end is not None and each.next >= each.end]:
                self._remove(segment)
            return taken

    @staticmethod
    def _most(limit: int | None) -> int:
        return 1 << 60 if limit is None else max(limit, 0)

    def _pending(self) -> dict[tuple[int, int], list[tuple[Segment, int, Block]]]:
        """Return the pending blocks by (instant, place). `place` is the index of a block among the blocks of the same
        cohort at this instant.
        """
        found: dict[tuple[int, int], list[tuple[Segment, int, Block]]] = {}
        for segment in self._segments:
            last, place = None, 0
            for number, block in segment.log.blocks(segment.next, segment.until):
                time = block.reading.time
                place = place + 1 if time == last else 0  # count windows can report twice at an instant
                last = time
                found.setdefault((time, place), []).append((segment, number, block))
        return found

    def __len__(self) -> int:
        with self._taking:
            return len(self._left) + len(self._pending())

    def bytes(self) -> int:
        """Return the size in bytes of the blocks with pending results."""
        with self._taking:
            return sum(block.bytes for blocks in self._pending().values() for _, _, block in blocks)

    def follow(self, log: BlockLog) -> None:
        """Also consume the log of another cohort, from the next block on that is appended to this log."""
        with self._taking:
            self._append(Segment(log, log.next))

    def leave(self, log: BlockLog) -> None:
        """Stop the consumption of a log at the log's current end."""
        with self._taking:
            for segment in [each for each in self._segments if each.log is log and each.end is None]:
                segment.end = log.next
                if segment.next >= log.next:
                    self._remove(segment)

    def restore(self, segments: list[tuple[BlockLog, int, int | None]]) -> None:
        """Restore the segments of a checkpoint. The set counts as one reader of each pending block."""
        self._segments = tuple([Segment(log, first, end) for log, first, end in segments])
        for blocks in self._pending().values():
            for _, _, block in blocks:
                block.waiting += 1
