"""Garbage collection of terms: the dictionary drops terms used only by timing data, once nothing references them (ADR
2).

Terms of the stored graph are permanent. For any other term, the dictionary records the tick (number of closed batches)
of its last use. A collection drops the terms that were last used before the tick of the oldest tuple in any slice,
unless an answer's lease retains them. It first marks the terms of plans, members and predecessors as used at the
current tick, which retains them, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.core import _native as native
    from penstock.core._native import Ids
    from penstock.engine.intake.streams import Streams

_SWEEP_EVERY = 64  # ticks
_AGES = (1_024, 256, 64, 16, 4, 0)  # in ticks: terms unused for this long are dropped, in rounds, until the cache fits


class Forgetting:
    """Advances the dictionary's tick, and drops unreferenced terms. `roots` returns the ids that plans, members and
    predecessors reference.

    A partial dictionary is a cache: it drops terms only above `cached_bytes`, least recently used ones first.
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
        """Record that `batches` more batches with tuples have closed. A late call only retains terms for longer."""
        if batches:
            self._dictionary.set_tick(self._dictionary.tick() + batches)

    def sweep_if_due(self) -> None:
        """Drop unreferenced terms if enough batches have closed since the last time. A partial dictionary drops them
        only if it is too large. Must not run during an evaluation.
        """
        if self._dictionary.partial:
            self._trim()
        elif self._dictionary.tick() - self._swept_at >= _SWEEP_EVERY:
            self.sweep()

    def _trim(self) -> None:
        """Evict terms if the cache is too large. If the referenced terms alone exceed the limit, the next eviction
        waits until they have grown by a tenth.
        """
        held = self._dictionary.live_bytes()
        if held <= max(self._cached_bytes, self._trimmed_to + self._trimmed_to // 10):
            return
        for age in _AGES:
            self.evict(age)
            if self._dictionary.live_bytes() <= self._cached_bytes * 3 // 4:
                break
        self._trimmed_to = self._dictionary.live_bytes()

    def evict(self, age: int = 0) -> int:
        """Evict terms that a partial dictionary has not used for `age` ticks. Returns their number."""
        tick = self._dictionary.tick() + 1  # makes the terms of `roots` the most recently used ones
        self._dictionary.set_tick(tick)
        for ids in self._roots():
            self._dictionary.touch(ids)
        gone = self._dictionary.sweep(max(tick - age, 0))
        self.forgotten += gone
        return gone

    def sweep(self) -> int:
        """Drop all unreferenced terms. Returns their number."""
        for ids in self._roots():
            self._dictionary.touch(ids)
        tick = self._dictionary.tick()
        oldest = min((t for s in self._streams if (t := s.core.oldest_tick()) is not None), default=tick)
        gone = self._dictionary.sweep(min(oldest, tick))
        self._swept_at = tick
        self.forgotten += gone
        return gone
