"""Wukong's q1-q7 on LUBM-10 (OSDI'16 §6.1), beside pyoxigraph in the same run: in the core, and through Python."""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyoxigraph

import penstock
from benchmarks.core_time import core_times
from benchmarks.harness import Row, median_us, shared

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = "python -m benchmarks lubm"
UNIVERSITIES = 10
TARGET_US = (100, 500, 100, 10, 10, 20, 2000)


def run() -> Iterator[Row]:
    """Rows for loading, memory and q1-q7."""
    generator, queries = shared("data/gen_lubm.py"), shared("data/queries")
    if generator is None or queries is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, str(generator), str(UNIVERSITIES), folder], check=True, stdout=subprocess.DEVNULL
        )
        whole = Path(folder) / "all.nt"
        with whole.open("wb") as file:
            for part in sorted(Path(folder).glob("*.nt")):
                if part != whole:
                    file.write(part.read_bytes())
        texts = [(queries / f"lubm_q{i}.rq").read_text() for i in range(1, 8)]
        yield from _compare(whole, texts)


def _compare(whole: Path, texts: list[str]) -> Iterator[Row]:
    peer = pyoxigraph.Store()
    began = time.process_time()
    peer.bulk_load(path=str(whole), format=pyoxigraph.RdfFormat.N_TRIPLES)
    peer_seconds = time.process_time() - began
    with penstock.Engine() as engine:
        began = time.process_time()
        report = engine.load(whole)
        seconds = time.process_time() - began
        rate, peer_rate = report.triples / seconds, report.triples / peer_seconds
        target = max(500_000.0, 2 * peer_rate)
        yield Row(
            "Bulk load of N-Triples, CPU time", rate, "triples/s", COMMAND, "pyoxigraph", peer_rate, target, False
        )
        stored = engine.stats()["store_bytes"] / report.triples
        yield Row("Memory a stored triple, all but strings, LUBM-10", stored, "bytes", COMMAND, target=64)
        ratios, api_ratios = [], []
        for i, text in enumerate(texts):
            rows = len(engine.query(text))  # type: ignore[arg-type]
            assert rows == sum(1 for _ in peer.query(text)), f"q{i + 1}: wrong number of rows"  # type: ignore[union-attr, misc]
            theirs = median_us(lambda text=text: list(peer.query(text)), 7)  # type: ignore[misc, arg-type]
            with core_times() as times:
                ours = median_us(lambda text=text: list(engine.query(text)), 31)  # type: ignore[misc, arg-type]
            core = statistics.median(next(iter(times.values())))
            ratios.append(theirs / core)
            api_ratios.append(theirs / ours)
            yield Row(
                f"LUBM-10 q{i + 1} in the core ({rows} rows)", core, "µs", COMMAND, "pyoxigraph", theirs, TARGET_US[i]
            )
            if i in (3, 4):
                yield Row(
                    f"LUBM-10 q{i + 1}, Python API, same text again",
                    ours,
                    "µs",
                    COMMAND,
                    "pyoxigraph",
                    theirs,
                    theirs / 3,
                )
        yield Row(
            "LUBM-10, geometric mean against pyoxigraph, core",
            _mean(ratios),
            "times",
            COMMAND,
            target=50,
            lower_is_better=False,
        )
        yield Row(
            "LUBM-10, geometric mean, API with rows",
            _mean(api_ratios),
            "times",
            COMMAND,
            target=10,
            lower_is_better=False,
        )


def _mean(ratios: list[float]) -> float:
    return math.exp(statistics.mean(map(math.log, ratios)))
