"""The choice between execution in place and fork-join, for scans of a stored graph in stores (ADR 18).

With execution in place, the engine reads edge lists from the stores. For each morsel, the engine reads the edge lists
of the morsel's keys in three rounds. Wukong (OSDI'16 §5) does the same for few rows. With fork-join, the engine sends
each row to the store that owns the row's key. The stores return the extended rows. `python -m benchmarks stores`
measures the costs (docs/adr/0018).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Execution = Literal["auto", "in-place", "fork-join"]

_MORSEL = 1024  # rows of a step that are read together (native/src/exec/operator.hpp)
_ROUNDS = 3  # read rounds per morsel: buckets, records, lists
MOST_ROWS = 1 << 17
"""Maximum number of rows that a fork sends at once (native/src/exec/fork.cpp). If fork-join is cheaper only for more
rows than this maximum, fork-join is not used.
"""


@dataclass(frozen=True, slots=True)
class ReadCosts:
    """The costs in µs of reads in place over a transport: per round, per key, and per key beyond `warm_keys` keys. The
    data of the keys beyond this number do not fit into the processor's caches.
    """

    round_us: float
    key_us: float
    cold_key_us: float
    warm_keys: int


@dataclass(frozen=True, slots=True)
class ForkCosts:
    """The costs in µs of a fork: per part, per transferred cell, and per row that enters a scan in a store."""

    part_us: float
    cell_us: float
    step_us: float


READS = {
    "shm": ReadCosts(round_us=0.0, key_us=0.05, cold_key_us=0.1, warm_keys=8_192),
    "tcp": ReadCosts(round_us=10.0, key_us=0.29, cold_key_us=0.8, warm_keys=4_096),
    # Projected, not measured (ADR 15): three dependent READs of 2 µs, 32 READs per doorbell, copies as over TCP.
    "rdma": ReadCosts(round_us=4.0, key_us=0.29, cold_key_us=0.8, warm_keys=4_096),
}
FORK = ForkCosts(part_us=1000.0, cell_us=0.006, step_us=0.045)


@dataclass(frozen=True, slots=True)
class Step:
    """A scan of a fork. The expected numbers of rows that enter and leave the scan are per row that enters the fork."""

    rows_in: float
    rows_out: float


@dataclass(frozen=True, slots=True)
class Placement:
    """The parameters of the choice where scans of the stored graph run.

    - `execution`: "in-place", "fork-join", or "auto" for the cheaper of both.
    - `transports`: for each store, the transport over which the engine reads. The costs assume that all stores own
    equally many keys.
    - `parts`: the number of parts into which a fork divides its rows.
    """

    execution: Execution
    transports: tuple[str, ...]
    parts: int

    def in_place_us(self, rows: float, steps: tuple[Step, ...]) -> float:
        """Return the cost in µs of the scans `steps` in place, if `rows` rows enter the first scan."""
        return sum(self._step_us(rows * step.rows_in) for step in steps)

    def _step_us(self, keys: float) -> float:
        reads = [READS[transport] for transport in self.transports]
        rounds = max(1.0, keys / _MORSEL) * _ROUNDS * max(read.round_us for read in reads)  # in parallel
        warm = sum(min(keys, read.warm_keys) * read.key_us for read in reads)
        cold = sum(max(keys - read.warm_keys, 0.0) * read.cold_key_us for read in reads)
        return rounds + (warm + cold) / len(reads)

    def forked_us(self, rows: float, steps: tuple[Step, ...], width_in: int, width_out: int) -> float:
        """Return the cost in µs of a fork with the scans `steps`, if `rows` rows enter the fork. `width_in`,
        `width_out`: number of columns that are sent and returned.
        """
        cells = rows * width_in + rows * steps[-1].rows_out * width_out
        worked = rows * sum(step.rows_in for step in steps)
        return self.parts * FORK.part_us + cells * FORK.cell_us + worked * FORK.step_us

    def least_rows(self, steps: tuple[Step, ...], width_in: int, width_out: int) -> int | None:
        """Return the smallest number of rows for which a fork is used. With "auto", a fork is cheaper than execution in
        place from this number on. None if a fork is never used.
        """
        if self.execution == "fork-join":
            return 1
        if self.execution == "in-place":
            return None
        low, high = 0, MOST_ROWS  # bisection is possible, because the costs of a fork grow more slowly
        if not self._pays(high, steps, width_in, width_out):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._pays(middle, steps, width_in, width_out) else (middle, high)
        return high

    def _pays(self, rows: int, steps: tuple[Step, ...], width_in: int, width_out: int) -> bool:
        return self.forked_us(rows, steps, width_in, width_out) < self.in_place_us(rows, steps)
