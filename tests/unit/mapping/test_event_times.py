"""Event times: from a path, a header or the message; ISO 8601 and epochs."""

from __future__ import annotations

import pytest

from penstock import DataError
from penstock.mapping.event_times import EventTimes
from penstock.mapping.message_records import RealNumber, SourceMessage


def time(unit, value):
    return EventTimes({"path": "$.at", "unit": unit}, rows=False).of({"at": value}, SourceMessage(b""))


@pytest.mark.parametrize(
    ("unit", "value", "ms"),
    [
        ("ms", 1_700_000_000_123, 1_700_000_000_123),
        ("ms", "1700000000123", 1_700_000_000_123),
        ("s", 1_700_000_000, 1_700_000_000_000),
        ("s", RealNumber("1700000000.1239"), 1_700_000_000_123),
        ("s", RealNumber("1.7e9"), 1_700_000_000_000),
        ("us", 1_700_000_000_123_999, 1_700_000_000_123),
        ("us", -1, -1),
        ("iso8601", "1970-01-01T00:00:01Z", 1000),
        ("iso8601", "1970-01-01T01:00:00.5+01:00", 500),
        ("iso8601", "1970-01-01t00:00:00.123999z", 123),
        ("iso8601", "1970-01-01 00:01", 60_000),
        ("iso8601", "1969-12-31T23:59:59.999", -1),
        ("iso8601", "2024-02-29T12:00:00-05:30", 1_709_227_800_000),
    ],
)
def test_a_time_is_read_exactly(unit, value, ms):
    assert time(unit, value) == ms


@pytest.mark.parametrize(
    ("unit", "value"),
    [
        ("ms", None),
        ("ms", True),
        ("ms", []),
        ("ms", "x"),
        ("s", "NaN"),
        ("s", "1e999"),
        ("iso8601", 5),
        ("iso8601", "2024-02-30T00:00:00Z"),
        ("iso8601", "yesterday"),
        ("iso8601", "2024-01-01"),
    ],
)
def test_what_is_no_time_is_an_error_that_names_the_path(unit, value):
    with pytest.raises(DataError, match=r"time at '\$\.at'"):
        time(unit, value)


def test_a_time_may_be_in_a_header_or_the_messages_own():
    message = SourceMessage(b"", 7, None, {"at": b"5"})
    assert EventTimes({"header": "At", "unit": "s"}, rows=False).of({}, message) == 5000
    assert EventTimes(None, rows=False).of({}, message) == 7
    assert EventTimes({"path": "at", "unit": "ms"}, rows=True).of({"at": "9"}, message) == 9
    with pytest.raises(DataError, match="no timestamp"):
        EventTimes(None, rows=False).of({}, SourceMessage(b""))


@pytest.mark.parametrize(
    "rule", [5, {}, {"path": "$.a", "header": "b"}, {"path": "$.a", "unit": "h"}, {"path": "$[*]"}, {"path": 1}]
)
def test_an_invalid_rule_is_an_error(rule):
    with pytest.raises(DataError):
        EventTimes(rule, rows=False)
