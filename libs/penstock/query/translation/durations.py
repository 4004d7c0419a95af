"""Parses durations and instants in window clauses and registrations to integer milliseconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import ceil

MAX_DURATION_MS = 1 << 53
"""Maximum duration in ms, about 285,000 years. This maximum is far below the limits of a 64-bit instant, and exact in
JSON.
"""

_UNITS = {
    "ns": Fraction(1, 1_000_000),
    "ms": Fraction(1),
    "s": Fraction(1_000),
    "m": Fraction(60_000),
    "h": Fraction(3_600_000),
    "d": Fraction(86_400_000),
}
_PIECE = re.compile(r"([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]{1,3})?)\s*([A-Za-z]+)")
_ISO = re.compile(
    r"(?P<sign>[+-]?)P(?:(?P<weeks>[0-9]+)W|(?P<years>[0-9]+Y)?(?P<months>[0-9]+M)?(?:(?P<days>[0-9]+)D)?"
    r"(?P<time>T(?:(?P<hours>[0-9]+)H)?(?:(?P<minutes>[0-9]+)M)?(?:(?P<seconds>[0-9]+(?:\.[0-9]+)?)S)?)?)"
)
_ISO_PARTS = {"weeks": 604_800_000, "days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}
_DATE_TIME = re.compile(r"(\d{4,})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,3})\d*)?(Z|[+-]\d\d:\d\d)?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_DIGITS = 30


def duration_ms(text: str) -> int:
    """Parse a duration such as `10s`, `0.5 h`, `1h30m` or `PT1M30S` to milliseconds. ValueError for invalid text.

    Nanoseconds, which CQELS-QL permits, are rounded up to milliseconds.
    """
    if len(text) > _MAX_DIGITS:
        raise ValueError("a duration cannot be written as long as that")
    exact = _iso(text) if text.lstrip("+-")[:1].upper() == "P" else _simple(text)
    if exact <= 0:
        raise ValueError("a duration must be greater than zero")
    if exact > MAX_DURATION_MS:
        raise ValueError("the duration is too long")
    if text.lower().endswith("ns"):
        return ceil(exact)
    if exact.denominator != 1:
        raise ValueError("a duration must be a whole number of milliseconds")
    return exact.numerator


def _simple(text: str) -> Fraction:
    unsigned = text.lstrip("+-")
    pieces = _PIECE.findall(unsigned)
    if len(text) - len(unsigned) > 1 or not pieces or _PIECE.sub("", unsigned):
        raise ValueError(f"'{text}' is not a duration such as 10s, 500ms or PT10S")
    total = Fraction(0)
    for number, unit in pieces:
        scale = _UNITS.get(unit.lower())
        if scale is None:
            raise ValueError(f"unknown unit '{unit}': use ms, s, m, h or d")
        total += Fraction(number) * scale
    return -total if text.startswith("-") else total


def _iso(text: str) -> Fraction:
    match = _ISO.fullmatch(text.upper())
    if match is None or text.upper().rstrip("T") in ("P", "+P", "-P") or match["time"] == "T":
        raise ValueError(f"'{text}' is not an ISO 8601 duration such as PT10S or P1DT12H")
    if match["years"] or match["months"]:
        raise ValueError("years and months have no fixed length: use days, hours, minutes, seconds")
    total = sum((Fraction(match[part]) * scale for part, scale in _ISO_PARTS.items() if match[part]), Fraction(0))
    return -total if match["sign"] == "-" else total


def instant_ms(text: str) -> int:
    """Parse an xsd:dateTime to milliseconds since the epoch. An instant without a time zone is in UTC. ValueError for
    invalid text.
    """
    match = _DATE_TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is not an xsd:dateTime such as 2014-08-01T00:00:00Z")
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    millisecond = int((match[7] or "0").ljust(3, "0"))
    try:
        instant = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError as error:
        raise ValueError(f"'{text}' is not an xsd:dateTime: {error}") from None
    zone = match[8] or "Z"
    shift = 0 if zone == "Z" else (int(zone[1:3]) * 60 + int(zone[4:6])) * (-1 if zone[0] == "-" else 1)
    return (instant - _EPOCH) // timedelta(milliseconds=1) + millisecond - shift * 60_000
