"""Unit tests take under a minute together on two cores: they wait for no broker (CONTRIBUTING.md)."""

from __future__ import annotations

import pytest

from penstock.log import view


@pytest.fixture(autouse=True)
def _no_waiting_at_the_end_of_a_topic(monkeypatch):
    """A log in memory has no records on their way: a view that reads to the end of a topic need not wait for more."""
    monkeypatch.setattr(view, "_POLL_S", 0.001)
