"""What a query engine counts as it goes: evaluations committed, and how long each took from its batch to the log."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.event_time.gaps import Gap
    from penstock.log import Message, Record
    from penstock.log.clock import Clock
    from penstock.log.topics import TopicNames

_MAX_LATENCIES = 10_000
"""Latencies that nobody has asked for yet: a scrape takes them."""


class CommitMetrics:
    """Written by the engine's thread; totals and `take` from any."""

    def __init__(self, names: TopicNames, clock: Clock) -> None:
        self._clock = clock
        self._others = {names.status, names.shards}
        self.evaluations = self.transactions = 0
        self.gaps = self.skipped = 0
        self._leaps: dict[tuple[int, int], list[str]] = {}  # queries by the span that they do not evaluate
        self._oldest_ms: int | None = None  # record whose results are not committed yet
        self._latencies: deque[tuple[float, int]] = deque(maxlen=_MAX_LATENCIES)

    def read(self, messages: Sequence[Message]) -> None:
        """Records of the log are taken in: what they make due is measured from the first of them."""
        if messages and self._oldest_ms is None:
            self._oldest_ms = messages[0].timestamp_ms

    def committed(self, pending: Iterable[Record]) -> None:
        """A transaction is in the log; `pending` has what queries published and what was told of them, too."""
        count = sum(record.topic not in self._others for record in pending)
        self.transactions += 1
        self.evaluations += count
        if count and self._oldest_ms is not None:
            self._latencies.append((max(self._clock.now_ms() - self._oldest_ms, 0) / 1000, count))

    def omitted(self, query: str, gap: Gap) -> None:
        """A query of this engine does not evaluate the instants of a gap."""
        self.gaps += 1
        self.skipped += gap.count
        self._leaps.setdefault((gap.after, gap.until), []).append(query)

    def leaps(self) -> dict[tuple[int, int], list[str]]:
        """Return the queries that got a gap since the last call, by its span."""
        leaps, self._leaps = self._leaps, {}
        return leaps

    def idle(self) -> None:
        """All that was read is applied and committed."""
        self._oldest_ms = None

    def take(self) -> list[tuple[float, int]]:
        """Return (seconds, evaluations) of commits since the last call, at most 10,000."""
        taken = []
        while self._latencies:
            taken.append(self._latencies.popleft())
        return taken
