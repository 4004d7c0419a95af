"""Gaps: instants of a query that are skipped because event time advanced past them in one leap
(docs/semantics.md §2).
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_GAPS = 10_000
"""Maximum number of gaps retained per query; the oldest are dropped first."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Skipped instants: `count` of them in (after, until]."""

    after: int
    until: int
    count: int
