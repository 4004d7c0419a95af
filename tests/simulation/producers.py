"""Producers of RDF events: they write to the events topics like any Kafka client, and note what they sent.

Some streams have several partitions, some of whose events are garbage; some declare a short idle timeout. A stream that
is dropped and declared again keeps its topic: which of the events are whose, the log decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.event_time.grid import batch_start
from penstock.log import Record, Topic, TransientError
from simulation.faults import Crash

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from penstock.log import Log
    from penstock.log.topics import TopicNames
    from simulation.leaps import Clocks
    from simulation.passing import PassingTerms

EVENT, HEARTBEAT, GARBAGE, FAR = "event", "heartbeat", "garbage", "far"
_NEVER_IDLE_MS = 1 << 40
_GARBAGE = (b"\xff\xfe no RDF", b"<http://x/a> <http://x/b>", b"")


def syntax_of(data: bytes) -> str:
    """Return the format of an event."""
    return "rdf-patch" if data[:2] in (b"A ", b"D ") else "nt"


@dataclass(frozen=True, slots=True)
class Sent:
    """One message; its offset is its place. An `EVENT` may turn out to be late."""

    kind: str
    time_ms: int
    data: bytes = b""


@dataclass(slots=True)
class Source:
    """One declaration of a stream as its producers know it. `partitions`: all that was ever sent to the stream's topic.

    `begins`, `ends`: the offsets between which events are this declaration's, once the log has told; None: all others.
    `surely`: from where on they were sent after it was declared. `taken`: before where the one before may have taken
    them in as well, and `passed` are nobody's; `passed_after`: the same of the next one.
    """

    iri: str
    settings: dict[str, Any]
    partitions: list[list[Sent]]
    idles: bool
    begins: list[int] | None = None
    ends: list[int] | None = None
    surely: list[int] | None = None
    taken: list[int] | None = None
    passed: frozenset[tuple[int, int]] = frozenset()
    passed_after: frozenset[tuple[int, int]] = frozenset()

    @property
    def batch_ms(self) -> int:
        return int(self.settings["batch_ms"])

    @property
    def lateness_ms(self) -> int:
        return int(self.settings["lateness_ms"])

    def own_ms(self, number: int, before: int | None = None, since: int = 0) -> int:
        """How far a partition's own watermark may have come before an offset (None: in the end), by what was sent from
        another one on.
        """
        begin, end = self.span(number)
        reached = [-(1 << 63)]
        for offset, message in enumerate(self.partitions[number][since:before], since):
            if message.kind == EVENT and begin <= offset < end:
                reached.append(message.time_ms - 1 - self.lateness_ms)
            elif message.kind == HEARTBEAT and offset < self.heard_until(number):
                reached.append(message.time_ms)
        return max(reached)

    def span(self, number: int) -> tuple[int, int]:
        """From which offset of a partition to which the events are this declaration's."""
        return (
            0 if self.begins is None else self.begins[number],
            len(self.partitions[number]) if self.ends is None else self.ends[number],
        )

    def heard_until(self, number: int) -> int:
        """Before which offset heartbeats may be this declaration's. None is surely another one's that came before:
        whoever writes tuples again after a crash writes them again. Events that were nobody's by then are behind what
        it heard, or not.
        """
        end = self.span(number)[1]
        after = enumerate(self.partitions[number][end:], end)
        events = (i for i, sent in after if sent.kind in (EVENT, FAR) and (number, i) not in self.passed_after)
        return next(events, len(self.partitions[number]))

    def beginnings(self) -> set[int]:
        """Where the stream may begin: at a heartbeat, or with the batch of an event."""
        heard = (sent[: self.heard_until(number)] for number, sent in enumerate(self.partitions))
        beats = {message.time_ms for sent in heard for message in sent if message.kind == HEARTBEAT}
        return beats | {batch_start(message.time_ms, self.batch_ms) for _, _, message in self.all_of(EVENT)}

    def all_of(self, kind: str) -> Iterator[tuple[int, int, Sent]]:
        """(partition, offset, message) of one kind."""
        for number, sent in enumerate(self.partitions):
            begin, end = self.span(number)
            for offset, message in enumerate(sent[begin:end], begin):
                if message.kind == kind and (number, offset) not in self.passed:
                    yield number, offset, message


@dataclass(slots=True)
class Producers:
    """All producers. `base_ms`: before any event's time, where streams may have several partitions; else None.

    `sources`: the streams as they are declared now; `declared`: all their declarations, the first one first. `clocks`:
    what the producers' clocks show; None: the script's times. `patching` makes patches of events; None: none.
    `passing` replaces terms of events by terms that come and go; None: none. `known`: the
    lines of patches so far.
    """

    log: Log
    names: TopicNames
    rng: Random
    base_ms: int | None
    may_idle: bool
    sources: dict[str, Source] = field(default_factory=dict)
    declared: dict[str, list[Source]] = field(default_factory=dict)
    clocks: Clocks | None = None
    patching: Random | None = None
    passing: PassingTerms | None = None
    known: list[str] = field(default_factory=list)

    def plan(self, iri: str, settings: dict[str, Any]) -> Source:
        """Choose a stream's shape, and make its topic where that is not left to the coordinator."""
        rng = self.rng
        partitions = rng.choice([1, 2, 3]) if self.base_ms is not None else 1
        idles = self.may_idle and partitions == 1 and rng.random() < 0.3
        settings = settings | {"idle_timeout_ms": rng.choice([300, 2000]) if idles else _NEVER_IDLE_MS}
        source = self.sources[iri] = Source(iri, settings, [[] for _ in range(partitions)], idles)
        self.declared[iri] = [source]
        if self.clocks is not None:
            self.clocks.add(source)
        if partitions > 1 or rng.random() < 0.5:
            self.log.create([Topic(self.names.events(iri), partitions)])
        return source

    def plan_again(self, iri: str, settings: dict[str, Any]) -> Source:
        """Begin another declaration of a stream that was dropped: it gets what is sent from now on, if not before."""
        before = self.sources[iri]
        settings = before.settings | settings | {"idle_timeout_ms": _NEVER_IDLE_MS}
        source = self.sources[iri] = Source(iri, settings, before.partitions, idles=False)
        self.declared[iri].append(source)
        return source

    def begin(self, source: Source) -> None:
        """Where there are several partitions: say in each that nothing older will come. Then P does not
        depend on luck.
        """
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
        if self.clocks is not None and kind == EVENT:
            time_ms = self.clocks.event(iri, number, time_ms)
        if rng.random() < 0.04:
            self._send(source, number, Sent(GARBAGE, time_ms, rng.choice(_GARBAGE)))
        if self.passing is not None and kind == EVENT:
            data = self.passing.data(data.decode()).encode()
        if self.patching is not None and kind == EVENT and self.patching.random() < 0.7:
            data = self._patch(source, data.decode().split("\n"), self.patching)
        self._send(source, number, Sent(kind, time_ms, data))

    def _patch(self, source: Source, lines: list[str], rng: Random) -> bytes:
        """Return a patch that adds the lines of an event and removes some lines of earlier ones."""
        timing = source.settings["timing"]
        stored = [] if timing == "all" else [line for line in self.known if line.split()[1].strip("<>") not in timing]
        rows = [f"A {line}" for line in lines]
        rows += [f"D {rng.choice(stored)}" for _ in range(rng.choice([0, 1, 1, 3]) if stored else 0)]
        rng.shuffle(rows)
        self.known = [*self.known, *(line for line in lines if "_:" not in line)][-60:]
        return "\n".join(rows).encode()

    def advance(self, iri: str, time_ms: int) -> None:
        """Send a heartbeat to every partition."""
        source = self.sources[iri]
        for number in range(len(source.partitions)):
            shown_ms = time_ms if self.clocks is None else self.clocks.heartbeat(iri, number, time_ms)
            self._send(source, number, Sent(HEARTBEAT, shown_ms))

    def _send(self, source: Source, number: int, message: Sent) -> None:
        headers: list[tuple[str, bytes]] = [("timestamp", b"%d" % message.time_ms)]
        if message.kind == HEARTBEAT:
            headers = [("heartbeat", b"%d" % message.time_ms)]
        elif message.kind == GARBAGE and not message.data:
            headers = [("timestamp", b"soon")]
        elif syntax_of(message.data) != "nt":
            headers.append(("content-type", b"application/rdf-patch"))
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
