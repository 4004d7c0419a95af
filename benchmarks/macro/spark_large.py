"""The load of ten million triples by Spark from a cold start, with the peak memory of its processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.harness import Row, check
from benchmarks.macro.lubm_data import universities
from benchmarks.macro.processes import peak_memory
from benchmarks.macro.spark_load import CORES, by_spark, embedded, timed

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = "python -m benchmarks spark_large"
UNIVERSITIES = 78


def run(*, tiny: bool = False) -> Iterator[Row]:
    """Yield rows for triples/s, then for memory by kind of process."""
    files = universities(2 if tiny else UNIVERSITIES)
    plain = timed(lambda: embedded(files))
    with peak_memory() as peak:
        started, loaded = by_spark(files, max(CORES), warm=False)
    check(loaded.triples, plain.triples, "triples of the large load by Spark")
    name = f"Load of {loaded.triples / 1e6:.1f} M triples"
    yield plain.row(f"{name}, embedded loader", command=COMMAND)
    yield loaded.row(f"{name}, Spark local[{max(CORES)}], cold", command=COMMAND)
    yield Row(f"{name}, Spark's start", started, "s", COMMAND, clock="wall")
    for kind, bytes_ in sorted(peak.peaks.items()):
        yield Row(f"{name} by Spark, most memory of the {kind}", bytes_ / (1 << 20), "MiB", COMMAND)
