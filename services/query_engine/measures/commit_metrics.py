"""Metrics of a query engine's commits: the number of committed evaluations, and the latency from batch to commit."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.event_time.gaps import Gap
    from penstock.log import Message
    from penstock.log.clock import Clock

_MAX_LATENCIES = 10_000
"""Maximum number of latencies that are retained between two scrapes."""


class CommitMetrics:
    """Totals and latencies of commits. The engine's thread records these values. Other threads can read the totals and
    call `take`.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.evaluations = self.transactions = 0
        self.gaps = self.skipped = 0
        self._leaps: dict[tuple[int, int], list[str]] = {}  # queries by skipped interval
        self._oldest_ms: int | None = None  # timestamp of the oldest record with uncommitted results
        self._latencies: deque[tuple[float, int]] = deque(maxlen=_MAX_LATENCIES)

    def read(self, messages: Sequence[Message]) -> None:
        """Start to measure a latency, from the timestamp of the first record of `messages`. Does nothing while results
        of earlier records are uncommitted.
        """
        if messages and self._oldest_ms is None:
            self._oldest_ms = messages[0].timestamp_ms

    def committed(self, count: int) -> None:
        """Record a committed transaction with `count` evaluations."""
        self.transactions += 1
        self.evaluations += count
        if count and self._oldest_ms is not None:
            self._latencies.append((max(self._clock.now_ms() - self._oldest_ms, 0) / 1000, count))

    def omitted(self, query: str, gap: Gap) -> None:
        """Record that a query of this engine skips the instants of a gap."""
        self.gaps += 1
        self.skipped += gap.count
        self._leaps.setdefault((gap.after, gap.until), []).append(query)

    def leaps(self) -> dict[tuple[int, int], list[str]]:
        """Return the gaps since the last call. A key is the gap's interval (after, until] in ms, and its value is the
        names of the queries that skip this interval.
        """
        leaps, self._leaps = self._leaps, {}
        return leaps

    def idle(self) -> None:
        """Record that all records read so far are applied, and that all results are committed."""
        self._oldest_ms = None

    def take(self) -> list[tuple[float, int]]:
        """Return (latency in s, number of evaluations) for each commit since the last call. Commits without evaluations
        are left out. If there were more than 10,000 commits, only the latest 10,000 are returned.
        """
        taken = []
        while self._latencies:
            taken.append(self._latencies.popleft())
        return taken
