"""Gaps: instants of a query that are not evaluated, because one advance of event time made too many instants due
(docs/semantics.md §2).
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_GAPS = 10_000
"""Maximum number of gaps retained per query; beyond it, the oldest are removed."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Skipped instants: the `count` instants in (after, until], times in ms."""

    after: int
    until: int
    count: int
