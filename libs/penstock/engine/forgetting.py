"""Forgetting terms: the dictionary drops what only timing data used, once nothing live can hold it (DESIGN §3).

The engine's clock counts closed batches ("ticks"). Slices know the tick of their oldest tuple, answers hold leases;
what plans, members and predecessors hold is touched just before a sweep, so it is always young.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.engine.answers import Ids
    from penstock.engine.streams import Streams
    from penstock.store import _native as native

_SWEEP_EVERY = 64  # ticks


class Forgetting:
    """Moves the dictionary's tick and sweeps. `roots` gives the ids that the engine itself holds at the time."""

    def __init__(self, dictionary: native.Dictionary, streams: Streams, roots: Callable[[], Iterable[Ids]]) -> None:
        self._dictionary = dictionary
        self._streams = streams
        self._roots = roots
        self._swept_at = dictionary.tick()
        self.forgotten = 0

    def tick(self, batches: int) -> None:
        """Note that so many batches with tuples have closed."""
        self._dictionary.set_tick(self._dictionary.tick() + batches)

    def sweep_if_due(self) -> None:
        """Sweep where enough has been closed since the last time. Not while an evaluation runs."""
        if self._dictionary.tick() - self._swept_at >= _SWEEP_EVERY:
            self.sweep()

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
