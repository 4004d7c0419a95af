"""Times in the wrong unit: what to say where a limit is exceeded because seconds were given for milliseconds."""

from __future__ import annotations

_FIRST_S, _LAST_S = 10**8, 10**11  # as seconds since the epoch: 1973 to 5138; as milliseconds: 1970 to 1973


def unit_hint(before: int, time: int) -> str:
    """Return a hint where one of two times of a stream looks like seconds (or the later one like microseconds)."""
    if _FIRST_S <= before < _LAST_S <= time:
        return f"; {before} looks like seconds: times are milliseconds"
    if before >= _LAST_S and time >= before * 500:
        return f"; {time} looks like microseconds: times are milliseconds"
    return ""
