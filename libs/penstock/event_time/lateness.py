"""Computes the watermark at the arrival of each event of a push, for reports on late events. The native method
`Stream.decide` decides which events are late.
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
    """Return the watermark in ms at the arrival of each event. The preceding accepted events of the push advance the
    watermark. `before`: the watermark before the push. `times`: the times of the events in ms. `accepted`: whether each
    event was accepted.
    """
    moved = np.where(accepted, times - 1 - lateness_ms, NEVER)
    return np.maximum(before, np.maximum.accumulate(np.concatenate([[NEVER], moved[:-1]])))
