from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True)
def _worlds_are_gone_when_their_test_is():
    """Each simulated process leaves stores behind, in cycles: a terabyte of addresses each, of which there are 128."""
    yield
    gc.collect()
