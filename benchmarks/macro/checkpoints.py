"""The costs of a checkpoint of a shard, whole or only its changes: bytes, and how long no step is applied.

A region of a million edges over 200,000 vertices. Between two checkpoints is a minute at LSBench's rate (7,460 tuples a
second), or at a twentieth of it. The vertices are drawn at random, which is the worst case for pages. Pauses are thread
time without the disk's own time, except for the whole save, whose pause contains it.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.harness import Row, check
from penstock.core import _native as native

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = "python -m benchmarks checkpoints"
EDGES, VERTICES, BATCHES = 1_000_000, 200_000, 600
RATES = (("a twentieth of LSBench's rate", 37), ("LSBench's rate", 746))
_IRI = np.uint64(1 << 60)


def run(*, tiny: bool = False) -> Iterator[Row]:
    """Yield rows, by the amount of data since the last checkpoint."""
    edges, batches = (20_000, 20) if tiny else (EDGES, BATCHES)
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        store = native.Store("", 1)
        _grow(store, rng, edges, batches=1)
        before = Path(folder, "first")
        store.capture(str(before)).write()
        for title, rate in RATES:
            yield from _checkpoint(store, rng, title, rate, batches, before, Path(folder))
            before = Path(folder, title)


def _checkpoint(
    store: native.Store, rng: np.random.Generator, title: str, rate: int, batches: int, before: Path, folder: Path
) -> Iterator[Row]:
    _grow(store, rng, rate, batches)
    size = store.used_bytes() / 1e6
    began = time.thread_time()
    capture = store.capture(str(folder / title), str(before))
    pause_ms, changed = (time.thread_time() - began) * 1000, capture.changed_bytes / 1e6
    began = time.perf_counter()
    capture.write()
    background_ms = (time.perf_counter() - began) * 1000
    began = time.perf_counter()
    store.save(str(folder / "whole"))
    whole_ms = (time.perf_counter() - began) * 1000
    began = time.perf_counter()
    opened = native.Store.open(str(folder / title), "")
    opening_ms = (time.perf_counter() - began) * 1000
    check(opened.edge_count(), store.edge_count(), "edges of the store that was saved")
    title = f"Checkpoint of {size:.0f} MB, a minute at {title}"
    yield Row(f"{title}: written", changed, "MB", COMMAND, peer="the whole", peer_value=size)
    yield Row(f"{title}: pause", pause_ms, "ms", COMMAND, "the whole", whole_ms, clock="cpu")
    yield Row(f"{title}: written in the background", background_ms, "ms", COMMAND, clock="wall")
    yield Row(f"{title}: opening", opening_ms, "ms", COMMAND, clock="wall")


def _grow(store: native.Store, rng: np.random.Generator, edges: int, batches: int) -> None:
    for _ in range(batches):
        s = rng.integers(1, VERTICES, edges, np.uint64) | _IRI
        o = rng.integers(1, VERTICES, edges, np.uint64) | _IRI
        p = rng.integers(1, 20, edges, np.uint64) | _IRI
        store.commit(s, p, o, np.zeros(edges, np.uint64))
