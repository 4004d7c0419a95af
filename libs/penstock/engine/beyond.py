"""Accepted events that lie after their stream's watermark, by time: a replay learns from a checkpoint which it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_PARTS = 64  # columns put together at a time


class Beyond:
    """Times of such events. They are kept as they come, and looked through when someone asks, or too many lie about."""

    def __init__(self) -> None:
        self._parts: list[NDArray[np.int64]] = []

    def add(self, times: NDArray[np.int64], watermark: int) -> None:
        """Note accepted events, whose column is given away; `watermark` is where their stream's is by now."""
        self._parts.append(times)
        if len(self._parts) > _MOST_PARTS:
            self._compact(watermark)

    def counts(self, watermark: int) -> dict[int, int]:
        """Return how many events there are after the watermark, by time in ms."""
        self._compact(watermark)
        times, counts = np.unique(self._times, return_counts=True)
        return dict(zip(times.tolist(), counts.tolist(), strict=True))

    def total(self, watermark: int) -> int:
        """Return how many there are in all."""
        self._compact(watermark)
        return len(self._times)

    def restore(self, counts: dict[int, int]) -> None:
        """Take over what `counts` returned."""
        self._parts = [np.repeat(np.array(list(counts), np.int64), np.array(list(counts.values()), np.int64))]

    @property
    def _times(self) -> NDArray[np.int64]:
        return self._parts[0]

    def _compact(self, watermark: int) -> None:
        times = np.concatenate([np.empty(0, np.int64), *self._parts])
        self._parts = [times[times > watermark]]
