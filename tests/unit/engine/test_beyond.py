"""Accepted events after the watermark, counted when a checkpoint asks."""

from __future__ import annotations

import numpy as np

from penstock.core._native import Beyond


def test_only_what_lies_after_the_watermark_counts():
    beyond = Beyond()
    beyond.add(np.array([5, 7, 7]), 4)
    beyond.add(np.array([5, 6, 9]), 5)
    assert sorted(beyond.after(6)) == [7, 7, 9]
    assert list(beyond.after(7)) == [9]


def test_ever_more_pushes_do_not_pile_up():
    beyond = Beyond()
    for time in range(10_000):
        beyond.add(np.array([time + 5]), time)
    assert beyond.held() <= 1_024
    assert sorted(beyond.after(10_002)) == [10_003, 10_004]
