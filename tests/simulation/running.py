"""One seed: a random case of tests/property played on the simulated cluster, its results held against the reference."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.ingest.refused import DeadLetter, LateEvent, read_refused
from penstock.log import START, Partition
from property import cases
from property.script import Advance, Declare, Load, Push, PushMany, Register, Stop, TooFarAhead, Update
from simulation.cluster import Cluster
from simulation.producers import FAR, GARBAGE, Producers
from simulation.reference import Reference, content, solutions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log import Message


@dataclass
class Outcome:
    """What became of a seed."""

    evaluations: int = 0
    late: int = 0
    lost: tuple[Any, ...] = ()
    doubled: tuple[Any, ...] = ()
    different: tuple[Any, ...] = ()
    disordered: tuple[Any, ...] = ()
    wrong: tuple[str, ...] = ()
    crashes: int = 0
    restarts: int = 0

    @property
    def good(self) -> bool:
        return not (self.lost or self.doubled or self.different or self.disordered or self.wrong)

    def __str__(self) -> str:
        return (
            f"{self.evaluations} evaluations, {self.late} late, {self.restarts} starts, {self.crashes} crashes: "
            f"{len(self.lost)} lost {self.lost[:3]}, {len(self.doubled)} doubled {self.doubled[:3]}, "
            f"{len(self.different)} different {self.different[:1]}, "
            f"{len(self.disordered)} out of order {self.disordered[:3]}, wrong: {self.wrong[:3]}"
        )


def run(seed: int, *, discards: bool = False, stores: bool = False, **services: type) -> Outcome:
    """Play a seed. `discards`: adaptors discard what no query wants (ADR 45). `stores`: engines read the stored graph in
    stores (ADR 37). `services` replaces classes of services by others (simulation/planted.py).
    """
    case = cases.make(seed)
    cluster = Cluster(seed, discards=discards, stores=stores, **services)
    try:
        driver = Driver(cluster, case)
        driver.play()
        cluster.rest()
        return driver.outcome()
    finally:
        cluster.close()


class Driver:
    """Does what a case's script says, as users and producers of a cluster do it."""

    def __init__(self, cluster: Cluster, case: Any) -> None:
        self.cluster, self.case = cluster, case
        times = list(_times(case.operations))
        counts = any(
            isinstance(op, Register) and ("[TRIPLES" in op.text or "[ELEMENTS" in op.text) for op in case.operations
        )
        self.producers = Producers(
            cluster.log,
            cluster.topics.names,
            cluster.rng,
            # The order of arrival counts there, and between partitions there is none.
            base_ms=None if counts else min(times) - 1,
            # Near the clock, idle streams would go on with it for ever.
            may_idle=max(times) < cluster.clock.now_ms() // 2,
        )
        self.standing: set[str] = set()
        self.derived = False

    def play(self) -> None:
        cluster = self.cluster
        for _ in range(30):
            cluster.tick()
        cluster.faults.calm = False
        for operation in self.case.operations:
            self.do(operation)
            if self.derived and cluster.undecided():
                self.catch_up()
            for _ in range(cluster.rng.choice([0, 1, 4, 16])):
                cluster.tick()

    def do(self, operation: Any) -> None:
        ask, producers = partial(self.cluster.command, operation), self.producers
        match operation:
            case Declare(iri, settings):
                source = producers.plan(iri, dict(settings))
                ask(lambda c: c.declare(iri, **source.settings))
                producers.begin(source)
            case Load(data, graph):
                self.catch_up()
                ask(lambda c: c.load(data.encode(), "nt", graph))
            case Update(text):
                self.catch_up()
                ask(lambda c: c.update(text))
            case Register(name, text, _):
                self.register(operation, name, text)
            case Stop(name) if name in self.standing:
                self.catch_up()
                ask(lambda c: c.stop(name))
            case Push(iri, time, data):
                producers.push(iri, time, data.encode())
            case PushMany(iri, events):
                for time, data in events:
                    producers.push(iri, time, data.encode())
            case TooFarAhead(iri, time, data):
                producers.push(iri, time, data.encode(), FAR)
            case Advance(iri, time):
                for each in producers.sources if iri is None else [iri]:
                    producers.advance(each, time)

    def register(self, operation: Any, name: str, text: str) -> None:
        self.catch_up()
        record = self.cluster.command(operation, lambda c: c.register(name, text))
        self.standing.add(name)
        self.derived |= record.publishes is not None

    def catch_up(self) -> None:
        """Where a stream is derived, its batches come into the spine later than the reference has them: wait for them.

        P of a query depends on which of its streams comes first, and where it had come (ADR 35); and what is stored now is
        seen by instants that the derived stream has yet to make due (SEMANTICS §3).
        """
        if self.derived:
            self.cluster.rest()
            self.cluster.faults.calm = False

    # ---- what came of it
    def outcome(self) -> Outcome:
        cluster, topics, names = self.cluster, self.cluster.topics, self.cluster.topics.names
        late = [record for _, record in self.refused(names.late) if isinstance(record, LateEvent)]
        reference = Reference(self.producers, late, cluster.clock.now_ms())
        try:
            reference.play(cluster.log.tape, names.shards)
            wrong_graphs = list(self.wrong_graphs(reference))
        finally:
            reference.close()
        results = self.messages(names.results, topics.result_partitions)
        got, counts, disordered = _sorted_out(results)
        expected = reference.expected
        return Outcome(
            evaluations=len(expected),
            late=len(late),
            lost=tuple(sorted(expected.keys() - got.keys())),
            doubled=tuple(sorted([key for key, n in counts.items() if n > 1] + list(got.keys() - expected.keys()))),
            different=tuple(
                (key, expected[key], got[key])
                for key in sorted(got.keys() & expected.keys())
                if got[key] != expected[key]
            ),
            disordered=tuple(disordered),
            wrong=(*reference.wrong, *self.wrong_letters(), *wrong_graphs),
            crashes=cluster.faults.crashes,
            restarts=cluster.restarts,
        )

    def wrong_graphs(self, reference: Reference) -> Iterator[str]:
        """One-shot queries on every engine, at rest: each answers as the reference does."""
        everything = "SELECT ?s ?p ?o ?g WHERE { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"
        expected = reference.ask(everything)
        for process in self.cluster.engines:
            answer = process.service.one_shot.query(everything, None, None, None)
            if (found := solutions(answer)) != expected:
                yield f"{process.name}: {len(found)} quads, and not the {len(expected)} of the reference"

    def messages(self, topic: str, partitions: int = 1) -> list[Message]:
        reader = self.cluster.log.reader({Partition(topic, i): START for i in range(partitions)})
        messages = []
        while batch := reader.poll(10_000):
            messages += batch
        return messages

    def refused(self, topic: str) -> list[tuple[bytes | None, Any]]:
        return [(message.key, read_refused(message)) for message in self.messages(topic)]

    def wrong_letters(self) -> Iterator[str]:
        """Dead letters: what could not be parsed at least once, what was too far ahead once, nothing else; all bytes."""
        names = self.cluster.topics.names
        wanted = {
            (names.events(source.iri), number, offset): (sent.kind, sent.data)
            for source in self.producers.sources.values()
            for kind in (GARBAGE, FAR)
            for number, offset, sent in source.all_of(kind)
        }
        seen: Counter[tuple[str, int, int]] = Counter()
        for key, letter in self.refused(names.dead_letter):
            assert isinstance(letter, DeadLetter)
            place = letter.topic, letter.partition, letter.offset
            seen[place] += 1
            if key != "{}/{}/{}".format(*place).encode() or wanted.get(place, ("", None))[1] != letter.data:
                yield f"dead letter {key!r} is not what was sent: {letter.data!r}, {letter.reason}"
        for place, (kind, _) in wanted.items():
            if not 1 <= seen[place] <= (1 if kind == FAR else 1 << 30):
                yield f"{seen[place]} dead letters of {place}, {kind}"


def _times(operations: Any) -> Iterator[int]:
    for operation in operations:
        match operation:
            case Push(_, time, _) | Advance(_, time):
                yield time
            case PushMany(_, events):
                yield from (time for time, _ in events)


def _sorted_out(messages: list[Message]) -> tuple[dict[Any, Any], Counter[Any], list[Any]]:
    """Results by (query, t), how often each came, and which came after a later one."""
    got: dict[tuple[str, int], dict[str, Any]] = {}
    counts: Counter[tuple[str, int]] = Counter()
    last: dict[str, int] = {}
    disordered = []
    for message in messages:
        line = json.loads(message.value or b"")
        key = line["query"], line["time"]
        counts[key] += 1
        if last.get(key[0], key[1]) > key[1]:
            disordered.append(key)
        last[key[0]] = key[1]
        got[key] = content(line)
    return got, counts, disordered
