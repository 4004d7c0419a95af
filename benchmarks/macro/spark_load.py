"""Bulk load of the same N-Triples by Spark on one core and on two, by the embedded loader, and by pyoxigraph.

The main figure is wall time; processor time is that of all processes of the load (this one, the JVM, Spark's Python
workers). `spark_large` loads ten million triples.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyoxigraph

import penstock
from benchmarks.harness import LeftOutError, Row, check
from benchmarks.macro.lubm_data import universities
from benchmarks.macro.processes import processor_s

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

COMMAND = "python -m benchmarks spark_load"
UNIVERSITIES = 10
CORES = (1, 2)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The number of triples stored, and the times of the load."""

    triples: int
    wall_s: float
    cpu_s: float

    def row(self, name: str, peer: Loaded | None = None, command: str = COMMAND) -> Row:
        """Return a row of triples a second, by wall time and by processor time."""
        rate = self.triples / self.wall_s
        other = self.triples / self.cpu_s
        if peer is None:
            return Row(name, rate, "triples/s", command, lower_is_better=False, clock="wall", other_clock=other)
        return Row(
            name, rate, "triples/s", command, "pyoxigraph", peer.triples / peer.wall_s,
            lower_is_better=False, clock="wall", other_clock=other,
        )  # fmt: skip


def run(*, tiny: bool = False) -> Iterator[Row]:
    """Yield rows of triples/s for Spark by number of cores (without its start), the embedded loader and pyoxigraph."""
    files = universities(1 if tiny else UNIVERSITIES)
    plain = timed(lambda: embedded(files))
    peer = timed(lambda: _pyoxigraph(files))
    yield plain.row("Load of N-Triples, embedded loader", peer)
    yield peer.row("Load of N-Triples, pyoxigraph in memory")
    for cores in CORES[:1] if tiny else CORES:
        started, loaded = by_spark(files, cores)
        check(loaded.triples, plain.triples, f"triples loaded by Spark on {cores} cores")
        yield loaded.row(f"Load of N-Triples, Spark local[{cores}]", peer)
        yield Row(f"Start of Spark local[{cores}]", started, "s", COMMAND, clock="wall")


def embedded(files: list[Path]) -> int:
    """Load files by the embedded loader. Returns the number of triples."""
    with penstock.Engine() as engine:
        return sum(engine.load(file).triples for file in files)


def _pyoxigraph(files: list[Path]) -> int:
    store = pyoxigraph.Store()
    for file in files:
        store.bulk_load(path=str(file), format=pyoxigraph.RdfFormat.N_TRIPLES)
    return len(store)


def by_spark(files: list[Path], cores: int, *, warm: bool = True) -> tuple[float, Loaded]:
    """Load files by Spark. Returns the seconds of its start, and the load."""
    try:
        import pyspark  # noqa: F401, PLC0415 - an extra
    except ImportError:
        raise LeftOutError("the extra `spark` is not installed") from None
    from penstock.spark.session import open_session  # noqa: PLC0415

    began = time.perf_counter()
    spark = open_session("penstock benchmark", master=f"local[{cores}]", short=warm)
    started = time.perf_counter() - began
    try:
        if warm:
            _prepare(spark, files[:1])  # warms JIT and workers, as a long load does
        return started, timed(lambda: _prepare(spark, files))
    finally:
        spark.stop()


def _prepare(spark: SparkSession, files: list[Path]) -> int:
    from penstock.spark.bulk_load import BulkLoad, LoadSettings  # noqa: PLC0415 - an extra

    with tempfile.TemporaryDirectory(prefix="penstock-load-") as name, penstock.Engine() as engine:
        folder, intake = Path(name), engine.bulk()
        bulk = BulkLoad(spark, LoadSettings(tuple(map(str, files))), f"{folder}/staging")
        bulk.open()
        known = intake.known_terms(folder / "known.parquet")
        bulk.run(known)
        with bulk.prepared(folder) as prepared:
            return intake.take(known, prepared).triples


def timed(load: Callable[[], int]) -> Loaded:
    """Measure a load that returns its number of triples."""
    cpu, wall = processor_s(), time.perf_counter()
    triples = load()
    return Loaded(triples, time.perf_counter() - wall, processor_s() - cpu)
