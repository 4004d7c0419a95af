"""Which shard of the log a vertex belongs to. Every service must agree on it for ever: it is part of the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def shard_of(vertices: NDArray[np.uint64], shards: int) -> NDArray[np.uint64]:
    """Return each vertex's shard, of `shards` in all: splitmix64's finalizer of its id, modulo the number of shards."""
    assert shards > 0, shards
    mixed = np.array(vertices, np.uint64)
    with np.errstate(over="ignore"):
        mixed ^= mixed >> np.uint64(30)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(27)
        mixed *= np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed % np.uint64(shards)
