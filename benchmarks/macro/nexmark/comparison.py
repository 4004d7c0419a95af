"""Runs the queries by all engines, checks that the answers are equal, and reports the rates."""

from __future__ import annotations

import csv
import os
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import Row, check
from benchmarks.macro.nexmark import by_penstock, by_spark
from benchmarks.macro.nexmark.events import QUERIES, WINDOW_MS, Events, top_of_windows
from penstock.errors import StorageError
from penstock.spark.session import open_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from benchmarks.macro.nexmark.events import Answer

COMMAND = "python -m benchmarks nexmark"
SECONDS, RATE, REPEATS = 30, 10_000, 3
TARGET = 5  # times the better peer


def run(*, tiny: bool = False) -> Iterator[Row]:
    """Yield a row for each query and form of input, and one for each peer."""
    events = Events.made(10, 1_000) if tiny else Events.made(SECONDS, RATE)
    spark = None if tiny else _session()
    try:
        with tempfile.TemporaryDirectory() as folder:
            events.write(Path(folder))
            for query in QUERIES:
                yield from _rows(query, events, Path(folder), spark, 1 if tiny else REPEATS)
    finally:
        if spark is not None:
            spark.stop()


def _session() -> SparkSession | None:
    try:
        return open_session("penstock nexmark", "local[1]")
    except StorageError:
        return None


def _rows(query: str, events: Events, folder: Path, spark: SparkSession | None, repeats: int) -> Iterator[Row]:
    count, expected = events.count(query), events.answer(query)
    peers: dict[str, float] = {}
    if spark is not None:
        spent, answer = by_spark.answer(spark, query, folder, events.seconds)
        check(answer, expected, f"{query} by Spark")
        peers["Spark"] = count / spent
    if interpreter := os.environ.get("PATHWAY_PYTHON"):
        runs = [_by_pathway(interpreter, query, folder, events.seconds) for _ in range(repeats)]
        check(runs[0][1], expected, f"{query} by Pathway")
        peers["Pathway"] = count / min(spent for spent, _ in runs)
    best = max(peers, key=lambda name: peers[name], default=None)
    for source in ("JSON", "columns of ids"):
        own = [by_penstock.answer(query, events, columns=source != "JSON") for _ in range(repeats)]
        check(own[0][1], expected, f"{query} from {source}")
        peer = peers.get(best) if best is not None else None
        target = TARGET * peer if peer is not None else None
        rate = count / min(spent for spent, _ in own)
        name = f"Nexmark-like {query}, from {source}"
        yield Row(name, rate, "events/s", COMMAND, best, peer, target, lower_is_better=False, clock="cpu")
    for name, rate in peers.items():
        yield Row(f"- {query} by {name}, from JSON", rate, "events/s", COMMAND, clock="cpu")


def _by_pathway(interpreter: str, query: str, folder: Path, seconds: int) -> tuple[float, Answer]:
    """Return the processor time in seconds, and the answer in the form of `Events.answer`."""
    out = folder / "pathway.csv"
    script = Path(__file__).with_name("by_pathway.py")
    done = subprocess.run([interpreter, script, query, folder, out], check=True, capture_output=True, text=True)
    with out.open() as file:
        rows = [{k: v if k == "name" else int(v) for k, v in row.items()} for row in csv.DictReader(file)]
    assert all(row["diff"] == 1 for row in rows)
    return float(done.stdout.split()[-1]), _pathway_answer(query, rows, seconds)


def _pathway_answer(query: str, rows: list[dict[str, int]], seconds: int) -> Answer:
    match query:
        case "q1":
            return [(len(rows), sum(row["price"] for row in rows))]
        case "q2":
            return sorted((row["auction"], row["price"]) for row in rows)
        case "q3":
            return sorted((row["auction"], row["name"]) for row in rows)
        case "q5":
            counts = Counter({(row["start"] + WINDOW_MS, row["auction"]): row["number"] for row in rows})
            return top_of_windows(counts, seconds)
        case "q7":
            ends = [(row["start"] + WINDOW_MS, row["price"]) for row in rows]
            return sorted(row for row in ends if row[0] <= seconds * 1000)
    return sorted((row["start"] + WINDOW_MS, row["person"]) for row in rows if row["person"] >= 0)
