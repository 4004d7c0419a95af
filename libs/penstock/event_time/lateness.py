"""Computes the watermark at the arrival of each event of a push, for reports on late events. The native `Stream.decide`
applies the rule of lateness itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.event_time.watermark import NEVER

if TYPE_CHECKING:
    from numpy.typing import NDArray


def watermarks_met(
    times: NDArray[np.int64], accepted: NDArray[np.bool_], before: int, lateness_ms: int
) -> NDArray[np.int64]:
    """Return the watermark in ms at the arrival of each event. It is the watermark `before` the push, advanced by the
    preceding accepted events. `times`: the times of the events in ms. `accepted`: whether each event was accepted.
    """
    moved = np.where(accepted, times - 1 - lateness_ms, NEVER)
    return np.maximum(before, np.maximum.accumulate(np.concatenate([[NEVER], moved[:-1]])))
