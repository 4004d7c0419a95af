"""The rate at which an engine evaluates, writes and commits the results of many single queries.

The queries are registered, and the first batches evaluated, before the measurement. All other services have run and
ended, so processor time is only the engine's and that of the threads of the Kafka client. In the same run, the
bare Kafka client produces the same records in one transaction.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.harness import Row, check
from benchmarks.macro.kafka_total_order import Engine, Sequencer, kafka
from penstock.log import Record, Topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness import Finding
    from penstock.log import Log, Message

COMMAND = "python -m benchmarks kafka_results"
QUERIES, BATCHES, PER_BATCH, WARM = 500, 200, 300, 20
TARGETS = {"json": 200_000, "json-batch": 200_000, "arrow": 200_000, "avro": 50_000}


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield the rate of each format, and that of the bare client with the same records."""
    queries, batches, warm = (5, 10, 2) if tiny else (QUERIES, BATCHES, WARM)
    for kind, target in TARGETS.items():
        with kafka() as log:
            yield from _rate(log, kind, target, queries, batches, warm)


def _rate(log: Log, kind: str, target: int, queries: int, batches: int, warm: int) -> Iterator[Row]:
    sequencer = Sequencer(log, queries, PER_BATCH, kind)
    sequencer.extend(warm)
    engine = Engine(sequencer, "e")
    engine.to_end()
    sequencer.extend(batches)
    took = engine.to_end()
    engine.close()
    count = queries * (batches + warm)
    messages, found = sequencer.evaluations(count)
    check(len(found), count, f"evaluations as {kind}")
    check(len(set(found)), count, f"different evaluations as {kind}")
    rate = queries * batches / took.cpu_s
    yield Row(
        f"Results: evaluations a second of an engine, {queries} queries a batch, {kind}",
        rate,
        "/s",
        COMMAND,
        peer=f"the bare client, {len(messages):,} records of {_mean(messages):,.0f} bytes",
        peer_value=count / _bare(log, messages),
        target=target,
        lower_is_better=False,
        clock="cpu",
        other_clock=queries * batches / took.wall_s,
    )


def _mean(messages: list[Message]) -> float:
    return sum(len(message.value or b"") for message in messages) / len(messages)


def _bare(log: Log, messages: list[Message]) -> float:
    """Return the processor time in s that writing the same records in one transaction takes."""
    log.create([Topic("bare", 4)])
    writer = log.transactional("bare", offsets=False)
    records = [Record("bare", m.value, m.key, m.partition, m.headers) for m in messages]
    writer.commit(records[:1])
    began = time.process_time()
    writer.commit(records)
    spent = time.process_time() - began
    writer.close()
    return spent
