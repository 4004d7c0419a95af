"""How long a killed engine takes to reach the end of the log again, by the log's length.

It starts from the whole log, or from a checkpoint that is always followed by the same number of batches. Committed
instants are not evaluated again; a count checks that no result is doubled.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import Row, check
from benchmarks.macro.kafka_total_order import BATCH_MS, Sequencer, kafka

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness import Finding

COMMAND = "python -m benchmarks kafka_recovery"
LENGTHS = (500, 2_000, 8_000)
TAIL, QUERIES, PER_BATCH = 100, 20, 25


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield rows, by the number of batches in the log."""
    with kafka() as log, tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        sequencer = Sequencer(log, QUERIES, PER_BATCH)
        for length in (20,) if tiny else LENGTHS:
            tail = length // 5 if tiny else TAIL
            sequencer.extend(length - tail - sequencer.batches)
            sequencer.run("e", Path(folder))  # which leaves a checkpoint
            sequencer.extend(tail)
            sequencer.run("e")  # commits the tail's results
            seconds = length * BATCH_MS // 1000
            for how, directory in (("the whole log", None), (f"a checkpoint and {tail} batches", Path(folder))):
                took = sequencer.run("e", directory, save=False)
                name = (
                    f"Recovery: {length:,} batches ({seconds} s, {length * sequencer.tuples_a_batch:,} tuples), {how}"
                )
                yield Row(name, took.wall_s, "s", COMMAND, clock="wall", other_clock=took.cpu_s)
        evaluations = QUERIES * sequencer.batches
        check(sequencer.results(evaluations), evaluations, "evaluations: none lost, none doubled")
