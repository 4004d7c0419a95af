"""Producers of RDF events: they write to the events topics like any Kafka client, and note what they sent.

Some streams have several partitions, some of whose events are garbage; some declare a short idle timeout.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.log import Record, Topic, TransientError
from simulation.faults import Crash

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from penstock.log import Log
    from penstock.log.topics import TopicNames

EVENT, HEARTBEAT, GARBAGE, FAR = "event", "heartbeat", "garbage", "far"
_NEVER_IDLE_MS = 1 << 40
_GARBAGE = (b"\xff\xfe no RDF", b"<http://x/a> <http://x/b>", b"")


@dataclass(frozen=True, slots=True)
class Sent:
    """One message; its offset is its place. An `EVENT` may turn out to be late."""

    kind: str
    time_ms: int
    data: bytes = b""


@dataclass(slots=True)
class Source:
    """One stream as its producers know it."""

    iri: str
    settings: dict[str, Any]
    partitions: list[list[Sent]]
    idles: bool

    @property
    def batch_ms(self) -> int:
        return int(self.settings["batch_ms"])

    @property
    def lateness_ms(self) -> int:
        return int(self.settings["lateness_ms"])

    def own_ms(self, number: int, before: int | None = None) -> int:
        """How far a partition's own watermark has come before an offset (None: in the end)."""
        sent = self.partitions[number][:before]
        reached = [s.time_ms - 1 - self.lateness_ms if s.kind == EVENT else s.time_ms for s in sent if s.kind in _MOVES]
        return max(reached, default=-(1 << 63))

    def all_of(self, kind: str) -> Iterator[tuple[int, int, Sent]]:
        """(partition, offset, message) of one kind."""
        for number, sent in enumerate(self.partitions):
            for offset, message in enumerate(sent):
                if message.kind == kind:
                    yield number, offset, message


_MOVES = (EVENT, HEARTBEAT)


@dataclass(slots=True)
class Producers:
    """All producers. `base_ms`: before any event's time, where streams may have several partitions; else None."""

    log: Log
    names: TopicNames
    rng: Random
    base_ms: int | None
    may_idle: bool
    sources: dict[str, Source] = field(default_factory=dict)

    def plan(self, iri: str, settings: dict[str, Any]) -> Source:
        """Choose a stream's shape, and make its topic where that is not left to the coordinator."""
        rng = self.rng
        partitions = rng.choice([1, 2, 3]) if self.base_ms is not None else 1
        idles = self.may_idle and partitions == 1 and rng.random() < 0.3
        settings = settings | {"idle_timeout_ms": rng.choice([300, 2000]) if idles else _NEVER_IDLE_MS}
        source = self.sources[iri] = Source(iri, settings, [[] for _ in range(partitions)], idles)
        if partitions > 1 or rng.random() < 0.5:
            self.log.create([Topic(self.names.events(iri), partitions)])
        return source

    def begin(self, source: Source) -> None:
        """Where there are several partitions: say in each that nothing older will come. Then P does not depend on luck."""
        if len(source.partitions) > 1:
            assert self.base_ms is not None
            self.advance(source.iri, self.base_ms)

    def push(self, iri: str, time_ms: int, data: bytes, kind: str = EVENT) -> None:
        """Send an event, behind some garbage now and then."""
        source, rng = self.sources[iri], self.rng
        number = rng.randrange(len(source.partitions))
        if len(source.partitions) > 1:
            assert self.base_ms is not None
            time_ms = max(time_ms, self.base_ms + 1)
        if rng.random() < 0.04:
            self._send(source, number, Sent(GARBAGE, time_ms, rng.choice(_GARBAGE)))
        self._send(source, number, Sent(kind, time_ms, data))

    def advance(self, iri: str, time_ms: int) -> None:
        """Send a heartbeat to every partition."""
        source = self.sources[iri]
        for number in range(len(source.partitions)):
            self._send(source, number, Sent(HEARTBEAT, time_ms))

    def _send(self, source: Source, number: int, message: Sent) -> None:
        headers: list[tuple[str, bytes]] = [("timestamp", b"%d" % message.time_ms)]
        if message.kind == HEARTBEAT:
            headers = [("heartbeat", b"%d" % message.time_ms)]
        elif message.kind == GARBAGE and not message.data:
            headers = [("timestamp", b"soon")]
        elif self.rng.random() < 0.1:
            headers.append(("content-type", b"text/turtle"))  # as which N-Triples pass too
        value = None if message.kind == HEARTBEAT else message.data
        source.partitions[number].append(message)
        writer = self.log.writer()
        writer.submit(Record(self.names.events(source.iri), value, None, number, tuple(headers)))
        while True:
            try:
                return writer.flush()
            except (TransientError, Crash):
                continue  # a client that tries again; what it has not flushed is still with it
