"""Times in the wrong unit: what to say of times that look like seconds (or microseconds) given for milliseconds."""

from __future__ import annotations

from time import time_ns
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_FIRST_S, _LAST_S = 10**8, 10**11  # as seconds since the epoch: 1973 to 5138; as milliseconds: 1970 to 1973
EARLIEST_MS = 978_307_200_000
"""2001-01-01: a time of today in seconds is earlier than that, read as milliseconds."""


def unit_hint(before: int, time: int) -> str:
    """Return a hint where one of two times of a stream looks like seconds (or the later one like microseconds)."""
    if _FIRST_S <= before < _LAST_S <= time:
        return f"; {before} looks like seconds: times are milliseconds"
    if before >= _LAST_S and time >= before * 500:
        return f"; {time} looks like microseconds: times are milliseconds"
    return ""


def unit_warning(stream: str, times: Iterable[object], wall_ms: int | None = None) -> str | None:
    """Return what to say of times one of which may be in seconds; None where none is, or the clock is as early."""
    now_ms = time_ns() // 1_000_000 if wall_ms is None else wall_ms
    if now_ms < EARLIEST_MS:
        return None
    for found in times:
        if isinstance(found, int) and found < EARLIEST_MS:
            return f"stream {stream}: timestamp {found} is before 2001: timestamps are milliseconds; is it seconds?"
    return None
