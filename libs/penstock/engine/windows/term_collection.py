"""Forgetting terms: the dictionary drops what only timing data used, once nothing live can hold it (ADR 2).

The engine's clock counts closed batches ("ticks"). Slices know the tick of their oldest tuple, answers hold leases;
what plans, members and predecessors hold is touched just before a sweep, so it is always young.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.core import _native as native
    from penstock.engine.answers.answer_values import Ids
    from penstock.engine.intake.streams import Streams

_SWEEP_EVERY = 64  # ticks
_AGES = (1_024, 256, 64, 16, 4, 0)  # ticks: what was not used for so long goes, until little enough is left


class Forgetting:
    """Moves the dictionary's tick and sweeps. `roots` gives the ids that the engine itself holds at the time.

    Of a partial dictionary everything can be had again: it is swept only where it holds more than `cached_bytes`, what
    was used longest ago first.
    """

    def __init__(
        self,
        dictionary: native.Dictionary,
        streams: Streams,
        roots: Callable[[], Iterable[Ids]],
        cached_bytes: int = 1 << 62,
    ) -> None:
        self._dictionary = dictionary
        self._cached_bytes = cached_bytes
        self._trimmed_to = 0
        self._streams = streams
        self._roots = roots
        self._swept_at = dictionary.tick()
        self.forgotten = 0

    def tick(self, batches: int) -> None:
        """Note that so many batches with tuples have closed. It may be late: terms only look younger until then."""
        if batches:
            self._dictionary.set_tick(self._dictionary.tick() + batches)

    def sweep_if_due(self) -> None:
        """Sweep where enough has been closed since the last time. Not while an evaluation runs."""
        if self._dictionary.partial:
            self._trim()
        elif self._dictionary.tick() - self._swept_at >= _SWEEP_EVERY:
            self.sweep()

    def _trim(self) -> None:
        """Where what is held by right is beyond the bound, wait until it has grown by a tenth before looking again."""
        held = self._dictionary.live_bytes()
        if held <= max(self._cached_bytes, self._trimmed_to + self._trimmed_to // 10):
            return
        for age in _AGES:
            self.evict(age)
            if self._dictionary.live_bytes() <= self._cached_bytes * 3 // 4:
                break
        self._trimmed_to = self._dictionary.live_bytes()

    def evict(self, age: int = 0) -> int:
        """Let go of what a partial dictionary's engine has not looked at for so many ticks. Returns how many terms."""
        tick = self._dictionary.tick() + 1  # so that what is touched now is younger than all else
        self._dictionary.set_tick(tick)
        for ids in self._roots():
            self._dictionary.touch(ids)
        gone = self._dictionary.sweep(max(tick - age, 0))
        self.forgotten += gone
        return gone

    def sweep(self) -> int:
        """Forget every term that nothing holds. Returns how many."""
        for ids in self._roots():
            self._dictionary.touch(ids)
        tick = self._dictionary.tick()
        oldest = min((t for s in self._streams if (t := s.core.oldest_tick()) is not None), default=tick)
        gone = self._dictionary.sweep(min(oldest, tick))
        self._swept_at = tick
        self.forgotten += gone
        return gone
