"""Garbage collection of terms. The dictionary drops a term under two conditions: only timing data has used the term,
and nothing refers to the term any more (ADR 2).

Terms of the stored graph are permanent. For any other term, the dictionary records the tick of the term's last use. A
tick is a number of closed batches. A collection first marks some terms as used at the current tick: the terms of plans,
of members, and of the previous answers of ISTREAM and DSTREAM queries. The collection then drops the terms that were
last used before the tick of the oldest tuple in any slice. Terms that the lease of an answer retains are not dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.core import _native as native
    from penstock.core._native import Ids
    from penstock.engine.intake.streams import Streams

_SWEEP_EVERY = 64  # ticks
# in ticks: an eviction tries these ages, one after the other, until the cache is small enough
_AGES = (1_024, 256, 64, 16, 4, 0)


class Forgetting:
    """Advances the tick of a dictionary, and drops terms to which nothing refers. `roots` returns the ids of the terms
    that each collection marks as used (see the module docstring). A collection first calls `renew`, which replaces the
    leases of answers by new leases. The collection then marks the terms of `roots`.

    A partial dictionary is a cache. Such a dictionary drops terms only if it is larger than `cached_bytes`. The least
    recently used terms are dropped first. `forgotten` is the number of dropped terms.
    """

    def __init__(
        self,
        dictionary: native.Dictionary,
        streams: Streams,
        roots: Callable[[], Iterable[Ids]],
        cached_bytes: int = 1 << 62,
        renew: Callable[[], object] = lambda: None,
    ) -> None:
        self._dictionary = dictionary
        self._cached_bytes = cached_bytes
        self._trimmed_to = 0
        self._streams = streams
        self._roots = roots
        self._renew = renew
        self._swept_at = dictionary.tick()
        self.forgotten = 0

    def tick(self, batches: int) -> None:
        """Record that `batches` additional batches with tuples have closed. A late call has only one effect: terms are
        retained for longer.
        """
        if batches:
            self._dictionary.set_tick(self._dictionary.tick() + batches)

    def sweep_if_due(self) -> None:
        """Drop terms to which nothing refers, if enough batches have closed since the last collection. A partial
        dictionary drops terms only if the dictionary is too large. Do not call this method during an evaluation.
        """
        if self._dictionary.partial:
            self._trim()
        elif self._dictionary.tick() - self._swept_at >= _SWEEP_EVERY:
            self.sweep()

    def _trim(self) -> None:
        """Evict terms from a partial dictionary that is too large. The dictionary can still be too large afterwards,
        because too many terms are in use. In that case, the next eviction takes place when the dictionary has grown by
        a tenth.
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
        """Evict terms from a partial dictionary: the terms that were not used in the last `age` ticks. Returns the
        number of evicted terms.
        """
        # a new tick, so that the terms of `roots` become the most recently used terms
        tick = self._dictionary.tick() + 1
        self._dictionary.set_tick(tick)
        self._renew()
        for ids in self._roots():
            self._dictionary.touch(ids)
        gone = self._dictionary.sweep(max(tick - age, 0))
        self.forgotten += gone
        return gone

    def sweep(self) -> int:
        """Drop all terms to which nothing refers. Returns the number of dropped terms."""
        self._renew()
        for ids in self._roots():
            self._dictionary.touch(ids)
        tick = self._dictionary.tick()
        oldest = min((t for s in self._streams if (t := s.core.oldest_tick()) is not None), default=tick)
        gone = self._dictionary.sweep(min(oldest, tick))
        self._swept_at = tick
        self.forgotten += gone
        return gone
