"""Gaps. A gap is a range of instants that a query does not evaluate, because one advance of event time has made too
many instants due (docs/semantics.md §2).
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_GAPS = 10_000
"""Maximum number of gaps that are retained per query. Beyond this number, the oldest gaps are removed."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Skipped instants. They are the `count` instants in (after, until]. Times are in ms."""

    after: int
    until: int
    count: int
