"""Accepted events after the watermark, counted when a checkpoint asks."""

from __future__ import annotations

import numpy as np

from penstock.engine.beyond import Beyond


def test_only_what_lies_after_the_watermark_counts():
    beyond = Beyond()
    beyond.add(np.array([5, 7, 7]), 4)
    beyond.add(np.array([6, 9]), 5)
    assert beyond.counts(6) == {7: 2, 9: 1}
    assert beyond.total(7) == 1


def test_what_was_saved_comes_back():
    beyond, again = Beyond(), Beyond()
    beyond.add(np.array([5, 7, 7]), 0)
    again.restore(beyond.counts(0))
    again.add(np.array([8]), 0)
    assert again.counts(5) == {7: 2, 8: 1}


def test_ever_more_pushes_do_not_pile_up():
    beyond = Beyond()
    for time in range(10_000):
        beyond.add(np.array([time]), time)
    assert len(beyond._parts) <= 65
    assert beyond.counts(9_998) == {9_999: 1}
