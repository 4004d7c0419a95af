"""Fixtures that several kinds of tests share."""

import gc
import resource
from pathlib import Path

import pytest
from hypothesis import settings

from support.brokers import broker, broker_jars, topic_prefix

__all__ = ["broker", "broker_jars", "topic_prefix"]

settings.register_profile("penstock", deadline=None)  # a busy machine is no fault of the code under test
settings.load_profile("penstock")

_MANY_ADDRESSES = 16 << 40  # bytes, of the 128 TiB that a process has


@pytest.fixture(autouse=True)
def _addresses_are_given_back():
    """An engine's stores reserve a terabyte each, and lie in cycles until it is closed: left to the collector, tests can
    run out of it.
    """
    yield
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    if pages * resource.getpagesize() > _MANY_ADDRESSES:
        gc.collect()
