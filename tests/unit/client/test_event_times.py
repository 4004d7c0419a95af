"""Timestamps that may be seconds are warned of, once a stream, and taken."""

from __future__ import annotations

import warnings

import pytest

from penstock.client import Client
from penstock.errors import TimestampUnitWarning, UnknownStreamError
from penstock.event_time.time_units import EARLIEST_MS, unit_warning
from penstock.log import MemoryLog, Topic
from penstock.log.clock import VirtualClock

NOW_MS = 1_700_000_000_000


def test_a_time_of_today_in_seconds_is_warned_of():
    assert "is it seconds?" in (unit_warning("s", [NOW_MS, NOW_MS // 1000], NOW_MS) or "")
    assert unit_warning("s", [NOW_MS, EARLIEST_MS], NOW_MS) is None
    assert unit_warning("s", [1_500], 2_000) is None  # the clock is as early


def test_a_stream_that_does_not_exist_is_an_error_without_a_warning():
    client = Client(log=MemoryLog(VirtualClock(NOW_MS)), url="http://localhost:1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UnknownStreamError):
            client.push("none", "<urn:a> <urn:p> <urn:o> .", 1_700_000_000)


def test_a_client_warns_once_a_stream_and_pushes():
    log = MemoryLog(VirtualClock(NOW_MS))
    client = Client(log=log, url="http://localhost:1")
    client._names["http://x/s"] = "s"
    log.create([Topic(client._topics.events("s"), 1)])
    with pytest.warns(TimestampUnitWarning, match="milliseconds"):
        client.push("http://x/s", "<urn:a> <urn:p> <urn:o> .", 1_700_000_000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.push("http://x/s", "<urn:a> <urn:p> <urn:o> .", 1_700_000_001)
