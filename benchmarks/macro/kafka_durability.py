"""The cost of durability: an engine over the log in memory without checkpoints, and one over Kafka with them.

Both read the same batches and commit the same results; on Kafka each commit is a transaction of results and progress,
and every 100 batches (10 s of the stream) there is a checkpoint. The paper (Wukong+S, §6.8) gives, for batch logging
and checkpoints, 0.3 ms a batch, and 803 K instead of 1.07 M queries a second.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.harness import Row, check
from benchmarks.macro.kafka_total_order import Sequencer, kafka
from penstock.log import MemoryLog, Record, Topic
from penstock.wire import ShardBatch, encode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness import Finding
    from penstock.log import Log

COMMAND = "python -m benchmarks kafka_durability"
QUERIES, BATCHES, PER_BATCH = 500, 200, 300
CHECKPOINT_BATCHES = 100
PAPER_RATIO, PAPER_BATCH_MS = 803 / 1070, 0.3
TUPLES = 13_350  # in a batch at the paper's rate


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield rows for both logs, for the share of the rate that durability leaves, and for the logging of one batch."""
    queries, batches = (5, 10) if tiny else (QUERIES, BATCHES)
    plain = yield from _rate(MemoryLog(), "in memory, no checkpoints", queries, batches, 0)
    with kafka() as log:
        durable = yield from _rate(log, "Kafka's transactions and checkpoints", queries, batches, CHECKPOINT_BATCHES)
        yield from _logging(log, 3 if tiny else 100)
    title = "Durability: share of the rate that is left"
    yield Row(
        title,
        durable / plain,
        "x",
        COMMAND,
        peer="Wukong+S, with logging and checkpoints",
        peer_value=PAPER_RATIO,
        lower_is_better=False,
        clock="cpu",
    )


def _rate(log: Log, how: str, queries: int, batches: int, checkpoint_every: int) -> Iterator[Row]:
    sequencer = Sequencer(log, queries, PER_BATCH)
    sequencer.extend(batches)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        took = sequencer.run("e", Path(folder) if checkpoint_every else None, checkpoint_every)
    check(sequencer.results(queries * batches), queries * batches, f"evaluations, {how}")
    rate = queries * batches / took.cpu_s
    wall = queries * batches / took.wall_s
    yield Row(
        f"Durability: evaluations a second of an engine, {queries} queries a batch, {how}",
        rate,
        "/s",
        COMMAND,
        lower_is_better=False,
        clock="cpu",
        other_clock=wall,
    )
    return rate


def _logging(log: Log, times: int) -> Iterator[Row]:
    """Write one batch at the paper's rate to four shards, in one transaction."""
    topic, shards = "logged", 4
    log.create([Topic(topic, shards)])
    writer = log.transactional("logging")
    rows = TUPLES // shards
    ids = np.arange(rows, dtype=np.uint64) * np.uint64(977)
    values = [
        encode(
            ShardBatch("http://x/s", 1, 1, np.arange(rows, dtype=np.uint32), np.arange(rows), ids, ids, ids, None, 1)
        )
        for _ in range(shards)
    ]
    spent = []
    for _ in range(times + 3):
        cpu, began = time.process_time(), time.perf_counter()
        writer.commit([Record(topic, value, None, shard) for shard, value in enumerate(values)])
        spent.append((time.perf_counter() - began, time.process_time() - cpu))
    writer.close()
    wall, cpu = (statistics.median(each) * 1000 for each in zip(*spent[3:], strict=True))
    yield Row(
        f"Durability: logging a batch of {TUPLES:,} tuples to {shards} shards, one transaction",
        wall,
        "ms",
        COMMAND,
        peer="Wukong+S, logging a batch",
        peer_value=PAPER_BATCH_MS,
        clock="wall",
        other_clock=cpu,
    )
