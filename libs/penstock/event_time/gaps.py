"""Gaps: instants of a query that are not evaluated, because event time leapt over them (docs/semantics.md §2)."""

from __future__ import annotations

from dataclasses import dataclass

MAX_GAPS = 10_000
"""Gaps that a query keeps; the oldest make room."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Instants that are not evaluated: `count` of them in (after, until]."""

    after: int
    until: int
    count: int
