"""Detection of timestamps in the wrong unit: seconds or microseconds instead of milliseconds."""

from __future__ import annotations

from time import time_ns
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_FIRST_S, _LAST_S = 10**8, 10**11  # as seconds since the epoch: 1973 to 5138; as milliseconds: 1970 to 1973
EARLIEST_MS = 978_307_200_000
"""The instant 2001-01-01. A present-day timestamp in seconds that is read as milliseconds is before this instant."""


def unit_hint(before: int, time: int) -> str:
    """Return a hint if `before` seems to be in seconds, or if `time` seems to be in microseconds. Otherwise return "".
    Both are times of one stream and must be in ms. `before` was received first.
    """
    if _FIRST_S <= before < _LAST_S <= time:
        return f"; {before} looks like seconds: times are milliseconds"
    if before >= _LAST_S and time >= before * 500:
        return f"; {time} looks like microseconds: times are milliseconds"
    return ""


def unit_warning(stream: str, times: Iterable[object], wall_ms: int | None = None) -> str | None:
    """Return a warning if one of the times seems to be in seconds instead of ms. Otherwise return None. Also return
    None if the current time (`wall_ms`) is before 2001, as in tests.
    """
    now_ms = time_ns() // 1_000_000 if wall_ms is None else wall_ms
    if now_ms < EARLIEST_MS:
        return None
    for found in times:
        if isinstance(found, int) and found < EARLIEST_MS:
            return f"stream {stream}: timestamp {found} is before 2001: timestamps are milliseconds; is it seconds?"
    return None
