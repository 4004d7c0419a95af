"""Where steps over the stored graph are done when nodes own its shards: in place or by fork-join (ADR 18).

In place, the engine reads the lists of a morsel's keys from the nodes, three rounds each: what Wukong (OSDI'16 §5)
does with few rows. By fork-join the rows go to the nodes which own their keys, and come back extended. The costs are
measured by `python -m benchmarks stores` (docs/adr/0018).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Execution = Literal["auto", "in-place", "fork-join"]

_MORSEL = 1024  # rows of a step that are read together (native/src/exec/operator.hpp)
_ROUNDS = 3  # of reads for a morsel: buckets, records, lists
MOST_ROWS = 1 << 17
"""Rows that a fork ships at once (native/src/exec/fork.cpp): where it pays from more on only, it never does."""


@dataclass(frozen=True, slots=True)
class ReadCosts:
    """µs of reading in place by one transport: a round of reads, what each key adds, the first ones and those that
    come after `warm_keys`, when what was remembered and copied has left the processor's caches.
    """

    round_us: float
    key_us: float
    cold_key_us: float
    warm_keys: int


@dataclass(frozen=True, slots=True)
class ForkCosts:
    """µs of a fork: what each part costs whatever it ships, each cell that travels, each row of a step at the node."""

    part_us: float
    cell_us: float
    step_us: float


READS = {
    "shm": ReadCosts(round_us=0.0, key_us=0.05, cold_key_us=0.1, warm_keys=8_192),
    "tcp": ReadCosts(round_us=10.0, key_us=0.29, cold_key_us=0.8, warm_keys=4_096),
    # A projection (ADR 15): three dependent READs of 2 µs, 32 by a doorbell; copying as over TCP.
    "rdma": ReadCosts(round_us=4.0, key_us=0.29, cold_key_us=0.8, warm_keys=4_096),
}
FORK = ForkCosts(part_us=1000.0, cell_us=0.006, step_us=0.045)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a fork, as estimated for one row that enters the fork: rows that enter it, and that leave it."""

    rows_in: float
    rows_out: float


@dataclass(frozen=True, slots=True)
class Placement:
    """How steps are executed. `transports`: of reads of each node; nodes are taken to own as many keys each. `parts`:
    into how many a fork's rows are divided.
    """

    execution: Execution
    transports: tuple[str, ...]
    parts: int

    def in_place_us(self, rows: float, steps: tuple[Step, ...]) -> float:
        """What reading the lists of all steps costs, for that many rows."""
        return sum(self._step_us(rows * step.rows_in) for step in steps)

    def _step_us(self, keys: float) -> float:
        reads = [READS[transport] for transport in self.transports]
        rounds = max(1.0, keys / _MORSEL) * _ROUNDS * max(read.round_us for read in reads)  # nodes are read together
        warm = sum(min(keys, read.warm_keys) * read.key_us for read in reads)
        cold = sum(max(keys - read.warm_keys, 0.0) * read.cold_key_us for read in reads)
        return rounds + (warm + cold) / len(reads)

    def forked_us(self, rows: float, steps: tuple[Step, ...], width_in: int, width_out: int) -> float:
        """What a fork costs that ships so many columns there and back."""
        cells = rows * width_in + rows * steps[-1].rows_out * width_out
        worked = rows * sum(step.rows_in for step in steps)
        return self.parts * FORK.part_us + cells * FORK.cell_us + worked * FORK.step_us

    def least_rows(self, steps: tuple[Step, ...], width_in: int, width_out: int) -> int | None:
        """From how many rows on a fork costs less than reading in place; None where it never does."""
        if self.execution == "fork-join":
            return 1
        if self.execution == "in-place":
            return None
        low, high = 0, MOST_ROWS  # a fork's costs rise more slowly
        if not self._pays(high, steps, width_in, width_out):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._pays(middle, steps, width_in, width_out) else (middle, high)
        return high

    def _pays(self, rows: int, steps: tuple[Step, ...], width_in: int, width_out: int) -> bool:
        return self.forked_us(rows, steps, width_in, width_out) < self.in_place_us(rows, steps)
