"""A dispatcher's surroundings: a log in memory, in which a test writes the events and, in place of the adaptor, tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.log import START, MemoryLog, Partition, Record, Topic
from penstock.log.clock import VirtualClock
from penstock.log.faults import NoFaults, Point
from penstock.log.topics import TopicNames
from penstock.services.dispatcher.dispatcher import Dispatcher
from penstock.wire import ShardBatch, StreamDeclaration, Tuples, encode
from penstock.wire.parts import joined
from support.records import record_of

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMES = TopicNames()
IRI = "http://x/s"
SHARDS = 3
GROUP = NAMES.adaptor_group


class CrashError(Exception):
    pass


class CrashesAt(NoFaults):
    """Makes the dispatcher die at its n-th transaction, before or after the transaction takes effect."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.point = Point.COMMIT

    def at(self, point: Point, owner: str) -> None:
        if point is self.point and owner.endswith("dispatcher") and self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise CrashError


def declaration(iri: str = IRI, name: str = "s", number: int = 1, **settings: int) -> StreamDeclaration:
    values = {"batch_ms": 100, "lateness_ms": 0, "idle_timeout_ms": 10_000, "max_ahead_ms": 100_000, **settings}
    return StreamDeclaration(
        number,
        iri,
        name,
        values["batch_ms"],
        values["lateness_ms"],
        True,
        (),
        0,
        values["idle_timeout_ms"],
        values["max_ahead_ms"],
    )


class StateMachine:
    """A log with events and tuples of one-triple events; the adaptor is played by the test."""

    def __init__(self, partitions: int = 1) -> None:
        self.clock = VirtualClock(1_000_000)
        self.faults = CrashesAt()
        self.log = MemoryLog(self.clock, self.faults)
        self.log.create([Topic(NAMES.shards, SHARDS)])
        self.log.create([Topic(t, 1, "compact") for t in (NAMES.control, NAMES.dispatcher)])
        self.log.create([Topic(t) for t in (NAMES.late, NAMES.dead_letter)])
        self.partitions = partitions
        self.writer = self.log.writer()
        self.reader = self.log.join(GROUP, [])

    def declare(self, *declarations: StreamDeclaration) -> None:
        for each in declarations:
            topics = [NAMES.events(each.name), NAMES.tuples(each.name)]
            self.log.create([Topic(name, self.partitions) for name in topics])
            self.writer.append([Record(NAMES.control, encode(each), f"stream:{each.iri}".encode())])

    def produce(self, times: Iterable[int], partition: int = 0, name: str = "s", iri: str = IRI) -> None:
        """Write events, and a record of tuples for each."""
        source = Partition(NAMES.events(name), partition)
        for time in times:
            offset = self.log.spans([source])[source].end
            self.writer.append([Record(source.topic, b"event at %d" % time, None, partition)])
            self.adapt(partition, [offset], [time], name, iri)
        self.log.group(GROUP).progress[source] = self.log.spans([source])[source].end

    def produce_message(self, times: list[int], partition: int = 0) -> None:
        """Write a message with several events, and the record of its tuples."""
        source = Partition(NAMES.events("s"), partition)
        offset = self.log.spans([source])[source].end
        self.writer.append([Record(source.topic, f"events at {times}".encode(), None, partition)])
        self.adapt(partition, [offset] * len(times), times)
        self.log.group(GROUP).progress[source] = offset + 1

    def adapt(
        self,
        partition: int,
        offsets: list[int],
        times: list[int],
        name: str = "s",
        iri: str = IRI,
        advance: int | None = None,
    ) -> None:
        ids = np.array(offsets, np.uint64) + np.uint64(1 + 1000 * partition)
        record = Tuples(
            iri,
            partition,
            np.array(offsets, np.int64),
            np.array(times, np.int64),
            np.ones(len(times), np.int64),
            ids,
            ids,
            ids,
            advance,
        )
        self.writer.append([Record(NAMES.tuples(name), encode(record), None, partition)])

    def dispatcher(self) -> Dispatcher:
        return Dispatcher(self.log, NAMES, SHARDS, self.clock, GROUP)

    def read(self, topic: str, partition: int = 0) -> list:
        messages = self.log.reader({Partition(topic, partition): START}).poll(100_000)
        return [record_of(m) for m in messages]

    def batches(self, iri: str = IRI) -> list[ShardBatch]:
        return [b for b in self.read(NAMES.shards) if b.stream == iri]

    def content(self, iri: str = IRI, declared: int | None = None) -> dict[int, list[int]]:
        """Return the times of each batch's tuples over all shards, in order of arrival. Checks what must hold in every
        log.
        """
        found: dict[int, list[tuple[int, int]]] = {}
        numbers = []
        for shard in range(SHARDS):
            last = None
            own = []
            for batch in whole(self.read(NAMES.shards, shard)):
                if batch.stream != iri or declared not in (None, batch.declared):
                    continue
                assert last is None or batch.first == last + 1, "a batch is missing or doubled"
                last = batch.last
                own.append((batch.first, batch.last, batch.begin_ms))
                held = found.setdefault(batch.last, [])
                held += zip(batch.positions.tolist(), batch.times.tolist(), strict=True)
                assert all(batch.last * 100 < t <= (batch.last + 1) * 100 for t in batch.times.tolist())
            numbers.append(own)
        assert all(own == numbers[0] for own in numbers), "every closed batch goes to every shard"
        return {k: [t for _, t in sorted(held)] for k, held in found.items() if held}


def whole(batches: list) -> list:
    """Return whole batches: records of one batch are joined. Their parts must come in order, each once."""
    found, parts = [], {}
    for batch in batches:
        assert batch.part == len(parts) < batch.parts, (batch.part, batch.parts)
        parts[batch.part] = batch
        if len(parts) == batch.parts:
            found.append(joined(parts))
            parts = {}
    assert not parts, "the records of a batch are written together"
    return found
