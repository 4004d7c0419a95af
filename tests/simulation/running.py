"""One seed: a random case of tests/property played on the simulated cluster, its results held against the reference."""

from __future__ import annotations

import json
import random
from collections import Counter
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest import mock

from penstock.core import _native as native
from penstock.engine.answers.record_lines import format_of, lines_of
from penstock.errors import UnknownStreamError
from penstock.event_time.gaps import Gap
from penstock.ingest.refused_records import DeadLetter, LateEvent, read_refused
from penstock.log import START, Partition
from penstock.replication.status_topic import MAX_REPORTED_GAPS
from penstock.wire import Tuples, decode
from property import cases
from property.bodies import LINKS, VALUE
from property.changing import make_changing
from property.script import Advance, Declare, Load, Push, PushMany, Register, Stop, TooFarAhead, Update
from simulation.avro import AvroRows, as_rows
from simulation.cluster import Cluster
from simulation.leaps import LIMITS, Clocks, Gaps
from simulation.ontologies import with_ontology
from simulation.passing import PassingTerms, with_passing_terms
from simulation.past import Past, without_start
from simulation.producers import FAR, GARBAGE, Producers
from simulation.reference import Reference, content, solutions
from simulation.replacing import Replacing
from simulation.sets import Sets, member_name
from simulation.updating import Updating
from support.held_rows import HeldRows, result_format, with_changes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.log import Message
    from penstock.wire import QueryRegistration
    from simulation.producers import Source

_DROPS = 0.08  # of operations, behind which a stream is dropped and declared again
_MOST_READERS = 8  # of a stream that is dropped: they are stopped, and registered again


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
    drops: int = 0
    forks: int = 0
    left: int = 0
    leaps: int = 0
    gaps: int = 0
    updates: int = 0  # with patterns
    conflicts: int = 0
    replacements: int = 0
    archived: int = 0  # terms that a dictionary read from its archive
    removed: int = 0  # terms that dictionaries removed
    members: int = 0  # changes of the members of query sets
    reports: int = 0  # of members
    past: int = 0  # evaluations that were due when their query was registered
    refused: int = 0  # queries in the past that need tuples that are released

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


def run(
    seed: int,
    *,
    discards: bool = False,
    stores: bool = False,
    drops: bool = False,
    forks: bool = False,
    leaps: bool = False,
    leaves: bool = False,
    updates: bool = False,
    patches: bool = False,
    replaces: bool = False,
    archives: bool = False,
    forgets: bool = False,
    sets: bool = False,
    history: bool = False,
    entails: bool = False,
    **services: type,
) -> Outcome:
    """Play a seed. `discards`: adaptors discard what no query wants (ADR 45). `stores`: engines read the stored graph in
    stores (ADR 37); `forks`: by fork-join, wherever they can. `drops`: streams are dropped and declared again, in other
    ways. `leaps`: the producers' clocks leap, often by more than engines catch up, and derived streams end. `leaves`:
    engines and stores end in order, and come back. `updates`: many updates, most of which remove. `patches`: streams
    remove. `replaces`: texts replace queries. `archives`: dictionaries hold few terms in memory (ADR 104). `forgets`: terms come and go, and
    dictionaries remove them (ADR 50). `sets`:
    query sets, whose members change (ADR 92). `history`: queries begin in the past (ADR 107). `entails`: most queries have
    entailment, and the schema changes (ADR 93). `services` replaces classes of services by others (simulation/planted.py).
    """
    rng = random.Random(f"leaps {seed}") if leaps else None
    case = make_changing(seed) if updates else cases.make(seed)
    if entails:
        case = with_ontology(case, random.Random(f"entails {seed}"))
    if forgets:
        case = with_passing_terms(case, random.Random(f"more {seed}"))
    most = None if rng is None else rng.choice(LIMITS)
    modes = {"discards": discards, "stores": stores or forks, "forking": forks, "leaving": leaves, "archives": archives}
    modes["forgets"] = forgets
    cluster = Cluster(seed, max_catch_up=most, **modes, **services)
    try:
        driver = Driver(cluster, case, random.Random(f"drops {seed}") if drops else None, rng)
        if forgets:
            driver.forgetting = driver.producers.passing = PassingTerms(
                random.Random(f"passing {seed}"), case.operations
            )
        if patches:
            driver.patch(random.Random(f"patches {seed}"))
        if replaces:
            driver.replacing = Replacing(driver, random.Random(f"replaces {seed}"))
        if sets:
            driver.add_sets(random.Random(f"sets {seed}"), entails=entails)
        past = driver.in_the_past(random.Random(f"history {seed}")) if history else nullcontext()
        with past, _thresholds(seed):
            driver.play()
            cluster.rest()
            return driver.outcome()
    finally:
        cluster.close()


@contextmanager
def _thresholds(seed: int) -> Iterator[None]:
    """Let small answers have new bases (ADR 108), and every second seed evaluate small inputs from changes (ADR 78)."""
    usual = native.maintain_from(0 if seed % 2 else 2_048)
    try:
        with mock.patch("penstock.services.query_engine.progress.saved_answers.FEW_ROWS", (256, 0, 3)[seed % 3]):
            yield
    finally:
        native.maintain_from(usual)


class Driver:
    """Does what a case's script says, as users and producers of a cluster do it.

    `drops` decides which streams are dropped and declared again in between; None: none are. `leaps` decides which
    producers' clocks leap, and when; None: none do.
    """

    def __init__(
        self, cluster: Cluster, case: Any, drops: random.Random | None = None, leaps: random.Random | None = None
    ) -> None:
        self.cluster, self.case = cluster, case
        self.dropping = None if drops is None else Dropping(self, drops)
        self.clocks = None if leaps is None else Clocks(leaps)
        times = list(_times(case.operations))
        counts = any(
            isinstance(op, Register) and ("[TRIPLES" in op.text or "[ELEMENTS" in op.text) for op in case.operations
        )
        self.updating = Updating(cluster)
        self.replacing: Replacing | None = None
        self.sets: Sets | None = None
        self.past: Past | None = None
        self.forgetting: PassingTerms | None = None
        self._unbegun: list[Source] = []  # streams without events, until all are declared
        self.producers = Producers(
            cluster.log,
            cluster.topics.names,
            cluster.rng,
            # The order of arrival counts there, and between partitions there is none.
            base_ms=None if counts else min(times) - 1,
            # Near the clock, idle streams would go on with it for ever.
            may_idle=leaps is None and max(times) < cluster.clock.now_ms() // 2,
            clocks=self.clocks,
        )
        self.standing: dict[str, tuple[Register, QueryRegistration]] = {}  # by their names in the script
        self.derived = False

    def patch(self, patching: random.Random) -> None:
        """Let streams remove. They have one partition: between partitions, the order of events is not defined."""
        self.producers.patching, self.producers.base_ms = patching, None

    def add_sets(self, rng: random.Random, *, entails: bool) -> None:
        """Let there be query sets. No stream is idle: its clock would close batches while members change."""
        self.sets, self.producers.may_idle = Sets(self, rng, entails=entails), False

    @contextmanager
    def in_the_past(self, rng: random.Random) -> Iterator[None]:
        """Let queries begin in the past. They catch up in small portions. Half of the cases have count windows: their
        streams have one partition, because the order of arrival counts there.
        """
        if rng.random() < 0.5:
            self.producers.base_ms = None
        self.past = Past(self, rng)
        module = "penstock.services.query_engine.catch_up"
        with (
            mock.patch(f"{module}.AT_ONCE", rng.choice([1, 4, 128])),
            mock.patch(f"{module}.TURN_INSTANTS", 2),
            mock.patch(f"{module}.SLICE_INSTANTS", 3),
        ):
            yield

    def play(self) -> None:
        cluster = self.cluster
        for _ in range(30):
            cluster.tick()
        cluster.faults.calm = False
        for operation in self.case.operations:
            self.do(operation)
            if self.dropping is not None and not isinstance(operation, Declare | Load):
                self.dropping.step()
            if self.replacing is not None:
                self.replacing.step()
            if self.sets is not None and not isinstance(operation, Declare | Load):
                self.sets.step()
            if self.past is not None and not isinstance(operation, Declare | Load):
                self.past.step()
            if self.clocks is not None:
                self.clocks.step()
                if self.clocks.ends():
                    self.end_stream()
            if self.derived and cluster.undecided(record for _, record in self.standing.values()):
                self.catch_up()
            for _ in range(cluster.rng.choice([0, 1, 4, 16] if self.forgetting is None else [4, 16, 64])):
                cluster.tick()

    def do(self, operation: Any) -> None:
        ask, producers = partial(self.cluster.command, operation), self.producers
        if not isinstance(operation, Declare):
            while self._unbegun:
                producers.begin(self._unbegun.pop(0))
        match operation:
            case Declare(iri, settings):
                more = {} if self.past is None else self.past.settings()
                if self.forgetting is not None:
                    more = more | self.forgetting.timing()
                source = producers.plan(iri, dict(settings) | more)
                ask(lambda c: c.declare(iri, **source.settings))
                self._unbegun.append(source)
                if self.past is None:
                    producers.begin(self._unbegun.pop())
            case Load(data, graph):
                self.catch_up()
                ask(lambda c: c.load(data.encode(), "nt", graph))
            case Update():
                self.catch_up()
                self.updating.execute(operation)
            case Register(name, text, _):
                if self.past is not None:
                    operation = replace(operation, text=without_start(text))
                self.register(operation, name)
            case Stop(name) if name in self.standing:
                self.stop(name)
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

    def register(self, operation: Register, name: str) -> None:
        """Register a query; `name`: its own, which may not be the script's."""
        self.catch_up()
        options = {"changes": with_changes(operation.text), "result_format": result_format(operation.text, avro=True)}
        record = self.cluster.command(operation, lambda c: c.register(name, operation.text, **options))
        self.standing[operation.name] = operation, record
        self.derived |= record.publishes is not None and self.clocks is None

    def stop(self, name: str) -> Register:
        """Stop the query that has that name in the script."""
        self.catch_up()
        operation, record = self.standing.pop(name)
        self.cluster.command(Stop(name), lambda c: c.stop(record.name))
        return operation

    def end_stream(self) -> None:
        """Stop the oldest query that publishes a stream with readers: they wait for it no more."""
        read = {iri for _, record in self.standing.values() for iri in record.streams}
        name = next((name for name, (_, record) in self.standing.items() if record.publishes in read), None)
        if name is not None:
            self.stop(name)

    def catch_up(self) -> None:
        """Wait for the batches of derived streams: the cluster's total order has them later than the reference.
        Where clocks leap, the reference has them as the total order does.

        P of a query depends on which of its streams comes first, and where it had come (ADR 35); and what is stored now is
        seen by instants that the derived stream has yet to make due (docs/semantics.md §3).
        """
        if self.derived:
            self.settle()

    def settle(self) -> None:
        """Wait until everything is done that was asked for so far."""
        self.cluster.rest()
        self.cluster.faults.calm = False

    # ---- what came of it
    def outcome(self) -> Outcome:
        cluster, topics, names = self.cluster, self.cluster.topics, self.cluster.topics.names
        late = [record for _, record in self.refused(names.late) if isinstance(record, LateEvent)]
        gaps = None if self.clocks is None else Gaps(cluster.max_catch_up)
        reference = Reference(self.producers, late, cluster.clock.now_ms(), self.tuples(), gaps)
        try:
            reference.play(cluster.log.tape, names.shards)
            wrong_graphs = list(self.wrong_graphs(reference))
        finally:
            reference.close()
        results = self.messages(names.results, topics.result_partitions)
        rows = AvroRows(cluster.registry)
        got, counts, disordered = _sorted_out(results, rows)
        expected = reference.expected
        expected |= {key: as_rows(expected[key], kinds) for key, kinds in rows.kinds.items() if key in expected}
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
            wrong=(*reference.wrong, *self.wrong_letters(), *wrong_graphs, *self.wrong_gaps(gaps)),
            crashes=cluster.faults.crashes,
            restarts=cluster.restarts,
            drops=0 if self.dropping is None else self.dropping.count,
            forks=cluster.forks,
            left=cluster.left,
            leaps=0 if self.clocks is None else self.clocks.leaps,
            gaps=0 if gaps is None else len(gaps.all()),
            updates=self.updating.evaluations,
            conflicts=self.updating.conflicts,
            replacements=0 if self.replacing is None else self.replacing.count,
            archived=cluster.terms.archived,
            removed=cluster.terms.removed,
            members=0 if self.sets is None else self.sets.changes,
            reports=sum("/" in name for name, _ in expected),
            past=reference.past.due,
            refused=reference.past.refused,
        )

    def tuples(self) -> dict[str, list[tuple[int, int, Tuples]]]:
        """What adaptors have written, by stream."""
        found: dict[str, list[tuple[int, int, Tuples]]] = {}
        for iri in self.producers.sources if self.dropping is not None else ():
            topic = self.cluster.topics.names.tuples(iri)
            messages = self.messages(topic, self.cluster.log.topics()[topic])
            records = ((message, decode(message.value or b"")) for message in messages)
            found[iri] = [(m.partition, m.offset, record) for m, record in records if isinstance(record, Tuples)]
        return found

    def wrong_graphs(self, reference: Reference) -> Iterator[str]:
        """One-shot queries on every engine, at rest: each answers as the reference does."""
        select, where = "SELECT ?s ?p ?o ?g", "WHERE { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"
        for everything in (f"{select} {where}", f"{select} WITH ENTAILMENT RDFS {where}"):
            expected = reference.ask(everything)
            for process in self.cluster.engines:
                answer = process.service.one_shot.query(everything, None, None, None)
                if (found := solutions(answer)) != expected:
                    yield f"{process.name}: {len(found)} quads, and not the {len(expected)} of the reference"

    def wrong_gaps(self, gaps: Gaps | None) -> Iterator[str]:
        """What the status topic tells of the gaps of each query that stands."""
        if gaps is None:
            return
        reported: dict[str, list[Gap]] = {}
        for message in self.messages(self.cluster.topics.names.status):
            key = (message.key or b"").decode()
            if key.startswith("query "):
                found = json.loads(message.value) if message.value else {}
                name = key.removeprefix("query ").rpartition(" ")[0]
                reported[name] = [Gap(gap["after"], gap["until"], gap["count"]) for gap in found.get("gaps", ())]
        for name, expected in gaps.standing().items():
            if (here := gaps.as_omitted(name, reported.get(name, ()))) != expected[-MAX_REPORTED_GAPS:]:
                yield f"{name}: the status tells of gaps {here}, and not {expected}"

    def messages(self, topic: str, partitions: int = 1) -> list[Message]:
        reader = self.cluster.log.reader({Partition(topic, i): START for i in range(partitions)})
        messages = []
        while batch := reader.poll(10_000):
            messages += batch
        return messages

    def refused(self, topic: str) -> list[tuple[bytes | None, Any]]:
        return [(message.key, read_refused(message)) for message in self.messages(topic)]

    def wrong_letters(self) -> Iterator[str]:
        """Dead letters: what could not be parsed at least once, what was too far ahead once, nothing else;
        all bytes.
        """
        names = self.cluster.topics.names
        expected = {
            (names.events(source.iri), number, offset): (sent.kind, sent.data)
            for sources in self.producers.declared.values()
            for source in sources
            for kind in (GARBAGE, FAR)
            for number, offset, sent in source.all_of(kind)
        }
        if self.sets is not None:
            expected |= {place: (FAR, data) for place, data in self.sets.letters.items()}  # exactly once, too
        seen: Counter[tuple[str, int, int]] = Counter()
        for key, letter in self.refused(names.dead_letter):
            assert isinstance(letter, DeadLetter)
            place = letter.topic, letter.partition, letter.offset
            seen[place] += 1
            if key != "{}/{}/{}".format(*place).encode() or expected.get(place, ("", None))[1] != letter.data:
                yield f"dead letter {key!r} is not what was sent: {letter.data!r}, {letter.reason}"
        for place, (kind, _) in expected.items():
            if not 1 <= seen[place] <= (1 if kind == FAR else 1 << 30):
                yield f"{seen[place]} dead letters of {place}, {kind}"


class Dropping:
    """Drops streams and declares them again, otherwise; queries that read them are stopped before, and registered again.

    Streams that are published, or may be read beside one that is, stay as they are.
    """

    def __init__(self, driver: Driver, rng: random.Random) -> None:
        self._driver, self._rng = driver, rng
        self.count = 0
        texts = [op.text for op in driver.case.operations if isinstance(op, Register)]
        # A window of everything is of timeless tuples; and readers of derived streams are so made that they look at
        # nothing that streams absorb which they do not name.
        self._fixed = any("[ALL" in text or "/derived" in text for text in texts)

    def step(self) -> None:
        """Now and then, do so."""
        rng, driver = self._rng, self._driver
        if rng.random() >= _DROPS:
            return
        iri = rng.choice(sorted(driver.producers.sources))
        readers = [name for name, (_, record) in driver.standing.items() if iri in record.streams]
        if len(readers) > _MOST_READERS or any(self._entangled(name) for name in readers):
            return
        stopped = [driver.stop(name) for name in readers]
        driver.catch_up()
        self.count += 1
        self._drop(iri)
        self._wait()
        self._declare(iri)
        if driver.clocks is not None:
            driver.settle()  # what both may have, may be late to the first only, and is then said to be late
        self._wait()
        for operation in stopped:
            driver.register(operation, f"{operation.name}-{self.count}")

    def _entangled(self, name: str) -> bool:
        _, record = self._driver.standing[name]
        return record.publishes is not None or not set(record.streams) <= self._driver.producers.sources.keys()

    def _drop(self, iri: str) -> None:
        def drop(coordinator: Any) -> None:
            try:
                coordinator.drop(iri)
            except UnknownStreamError:
                return  # it was dropped when no answer came

        self._driver.cluster.command(None, drop)

    def _declare(self, iri: str) -> None:
        rng, producers = self._rng, self._driver.producers
        settings = {"batch_ms": rng.choice([50, 70, 100, 130, 250]), "lateness_ms": rng.choice([0, 0, 40, 300])}
        if not self._fixed:
            settings["timing"] = rng.choice([(), (LINKS[0].value,), (LINKS[1].value, VALUE.value), "all"])
        source = producers.plan_again(iri, settings)
        self._driver.cluster.command(None, lambda c: c.declare(iri, **source.settings))
        source.surely = [len(sent) for sent in source.partitions]
        producers.begin(source)

    def _wait(self) -> None:
        for _ in range(self._rng.choice([0, 0, 1, 8])):
            self._driver.cluster.tick()


def _times(operations: Any) -> Iterator[int]:
    for operation in operations:
        match operation:
            case Push(_, time, _) | Advance(_, time):
                yield time
            case PushMany(_, events):
                yield from (time for time, _ in events)


def _sorted_out(messages: list[Message], rows: AvroRows) -> tuple[dict[Any, Any], Counter[Any], list[Any]]:
    """Results by (query, t), how often each came, and which came after a later one. `rows` gets the records in Avro."""
    got: dict[tuple[str, int], dict[str, Any]] = {}
    counts: Counter[tuple[str, int]] = Counter()
    last: dict[str, int] = {}
    disordered = []
    tables: dict[str, HeldRows] = {}

    def come(key: tuple[str, int]) -> None:
        counts[key] += 1
        if last.get(key[0], key[1]) > key[1]:
            disordered.append(key)
        last[key[0]] = key[1]

    for message in messages:
        if format_of(message.headers) == "avro":
            if (evaluation := rows.read(message)) is not None:
                come(evaluation)
            continue
        for written in lines_of(message.value or b"", message.headers):
            line = tables.setdefault(written["query"], HeldRows()).apply(dict(written))
            key = member_name(line), line["time"]
            come(key)
            got[key] = content(line)
    return got | rows.contents(), counts, disordered
