"""Query sets in a simulated cluster (ADR 92): sets are registered and stopped, and records of their parameters topics add,
change and remove members. The reference has the same sets in an embedded engine.

A record takes effect when the set's engine reads it, and the total order does not say when that is. The driver therefore
produces records when all earlier events are closed, and produces no event before the progress of the set is committed
with these records. Meanwhile processes die, freeze and lose their buckets.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from zlib import crc32

from penstock.engine.answers.json_lines import json_line
from penstock.engine.sets.set_member import RECORD_KEY
from penstock.log import START, Partition, Record, TransientError
from penstock.quarantine import InternalRecords
from penstock.replication.progress_log import ProgressView
from penstock.services.query_engine.sets.member_feed import part_of
from penstock.services.query_engine.sets.taken_records import TakenRecords
from property.bodies import LINKS, VALUE, X
from property.script import Register, Stop
from simulation.faults import Crash
from simulation.tape import Noted
from support.header import STORED

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

    from penstock.engine.sets.query_set import QuerySet
    from penstock.engine.standing.standing_query import Query
    from penstock.wire import QueryRegistration
    from simulation.cluster import Cluster
    from simulation.running import Driver

_REGISTERS, _CHANGES, _STOPS = 0.3, 0.3, 0.04  # of operations
_MOST_SETS = 3
_TICKS = 3_000  # under faults, for one change of members
_KEYS = [*(f"m{k}" for k in range(6)), "ключ 7"]
_PARTS = (1, 2, 5)
_NO_MEMBERS = (b"nonsense", b"[1]", b'{"user": 5}', b"\xff")

_P, _Q, _V = (f"<{iri.value}>" for iri in (*LINKS, VALUE))
_BODIES = {
    f"SELECT ?o DATA WHERE {{ ?user {_V} ?o FILTER(?o <= ?limit) }}": ("QUERY", "ISTREAM", "DSTREAM"),
    f"SELECT ?b ?o DATA WHERE {{ ?user {_P} ?b OPTIONAL {{ ?b {_V} ?o FILTER(?o != ?limit) }} }}": ("QUERY", "ISTREAM"),
    f"SELECT (COUNT(?o) AS ?n) DATA WHERE {{ ?s {_Q} ?user . ?s {_V} ?o FILTER(?o < ?limit) }}": ("QUERY",),
    f"SELECT ?s (COUNT(*) AS ?n) DATA WHERE {{ ?s {_P} ?user }} GROUP BY ?s HAVING (COUNT(*) < ?limit)": ("QUERY",),
    f"SELECT ?s DATA WHERE {{ ?s {_V} ?limit FILTER NOT EXISTS {{ ?s {_P} ?user }} }}": ("QUERY", "DSTREAM"),
    f"ASK DATA WHERE {{ ?user {_V} ?o FILTER(?o > ?limit) }}": ("QUERY",),
    f"CONSTRUCT {{ ?s <urn:near> ?o }} DATA WHERE {{ ?s {_Q} ?user ; {_V} ?o FILTER(?o < ?limit) }}": ("QUERY",),
}

Row = dict[str, Any]


class Standing:
    """A set that stands. `members`: the row of each key that the topic has last; None: it removes the member. `ends`: by
    bucket of a set with parts, the offset after the last record of its members.
    """

    def __init__(self, record: QueryRegistration) -> None:
        self.record = record
        self.members: dict[str, Row | None] = {}
        self.ends: dict[int, int] = {}
        self.spoiled = False  # whether the topic has records that are no members


class MembersChange:
    """What the records of one change make of the members. `rows`: the parameters by key; None removes the member."""

    def __init__(self, name: str, rows: dict[str, Row | None]) -> None:
        self.name, self.rows = name, rows


class Sets:
    """Registers and stops query sets now and then, and changes their members. `changes`: how often members changed.
    `letters`: the records that are no members, by place. `entails`: whether most sets have entailment.
    """

    def __init__(self, driver: Driver, rng: random.Random, *, entails: bool = False) -> None:
        self._driver, self._rng, self._entails = driver, rng, entails
        self._cluster: Cluster = driver.cluster
        self._standing: dict[str, Standing] = {}
        self._stopped: dict[str, Standing] = {}
        self._progress = CommittedProgress(driver.cluster)
        self._made = 0
        self.changes = 0
        self.letters: dict[tuple[str, int, int], bytes] = {}

    def step(self) -> None:
        """Now and then, do so."""
        rng = self._rng
        if len(self._standing) < _MOST_SETS and rng.random() < _REGISTERS:
            self._register()
        if self._standing and rng.random() < _CHANGES:
            self._change(self._standing[rng.choice(list(self._standing))])
        if self._standing and rng.random() < _STOPS:
            self._stop(rng.choice(list(self._standing)))

    def _rest(self) -> None:
        """Let some time pass under faults, then wait until everything is done."""
        for _ in range(self._rng.choice([0, 20, 200])):
            self._cluster.tick()
        self._driver.settle()

    def _register(self) -> None:
        """Register a set: a new one, or one that was stopped, whose topic has members."""
        rng = self._rng
        self._rest()
        again = [each for each in self._stopped.values() if not each.spoiled and each.record.parts == 1]
        if again and rng.random() < 0.5:
            given = rng.choice(again)
            name, text, report = given.record.name, given.record.text, given.record.report
            members = self._stopped.pop(name).members
        else:
            self._made += 1
            name, members = f"set{self._made}", {}
            text, report = self._text(name)
        demand = Register(name, text, None)  # type: ignore[arg-type]
        options = {"report": report, "result_format": "avro" if crc32(text.encode()) % 2 else "json"}
        options["parts"] = _PARTS[crc32(name.encode()) % len(_PARTS)]
        record = self._cluster.command(demand, lambda c: c.register(name, text, **options))
        standing = self._standing[name] = Standing(record)
        standing.members = members
        if members:
            self._take_effect(standing, members)

    def _text(self, name: str) -> tuple[str, str]:
        rng = self._rng
        body, operators = rng.choice(list(_BODIES.items()))
        operator = rng.choice(operators)
        report = (
            rng.choice(["every", "nonempty", "change"]) if operator == "QUERY" else rng.choice(["every", "nonempty"])
        )
        iris = sorted(self._driver.producers.sources)
        step = rng.choice([100, 200, 500])
        windows = [
            f"FROM STREAM <{iri}> [RANGE {step * rng.choice([1, 2, 5])}ms STEP {step}ms]"
            for iri in rng.sample(iris, rng.choice([1, 1, min(2, len(iris))]))
        ]
        data = " ".join([*windows, *([f"FROM <{STORED}>"] if rng.random() < 0.4 else [])])
        if self._entails and rng.random() < 0.7:
            data += " WITH ENTAILMENT RDFS"
        return f"REGISTER {operator} {name} (?user ?limit) AS {body.replace('DATA', data)}", report

    def _change(self, standing: Standing) -> None:
        """Produce records, at most one of each key."""
        rng = self._rng
        self._rest()
        topic = self._cluster.topics.names.parameters(standing.record.name)
        self._commit_step(standing, topic)
        rows: dict[str, Row | None] = {}
        for key in rng.sample(_KEYS, rng.choice([1, 1, 2, 5])):
            value: bytes | None = None
            rows[key] = None
            if (kind := rng.random()) < 0.75:
                row = rows[key] = {"user": f"{X}n{rng.randrange(4)}", "limit": rng.randrange(-1, 8)}
                value = json.dumps(row).encode()
            elif kind < 0.85:
                value, standing.spoiled = rng.choice(_NO_MEMBERS), True
            place = self._progress.end_of(topic)
            self._produce(standing, Record(topic, value, key.encode()))
            if value is not None and rows[key] is None:
                self.letters[topic, 0, place] = value
        same = any(row is not None and standing.members.get(key) == row for key, row in rows.items())
        standing.members |= rows
        self.changes += 1
        self._take_effect(standing, rows, compacts=not same)

    def _commit_step(self, standing: Standing, topic: str) -> None:
        """Let the set's buckets commit the last step of the total order, with records that change nothing. Without them,
        an engine that takes over may read the records of a change at an earlier step.
        """
        self._cluster.faults.calm = True
        parts = standing.record.parts
        keys = {part_of(b"nobody %d" % i, parts): b"nobody %d" % i for i in range(100)}
        assert len(keys) == parts
        for key in keys.values():
            self._produce(standing, Record(topic, None, key))
        for _ in range(_TICKS):
            if self._taken(standing):
                break
            self._cluster.tick()
        else:
            raise AssertionError(f"{standing.record.name}: a record does not take effect")
        self._cluster.faults.calm = False

    def _produce(self, standing: Standing, record: Record) -> None:
        writer = self._cluster.log.writer()
        writer.submit(record)
        while True:
            try:
                writer.flush()
                break
            except (TransientError, Crash):
                continue  # as producers of events do
        bucket = (standing.record.group + part_of(record.key, standing.record.parts)) % self._cluster.topics.buckets
        standing.ends[bucket] = self._progress.end_of(record.topic)

    def _taken(self, standing: Standing) -> bool:
        """Return whether the committed progress of the set has all records of its topic."""
        record, progress = standing.record, self._progress
        if record.parts == 1:
            return progress.taken(record.group) >= progress.end_of(self._cluster.topics.names.parameters(record.name))
        return all(progress.taken(record.group, bucket) >= end for bucket, end in standing.ends.items())

    def _take_effect(self, standing: Standing, rows: dict[str, Row | None], *, compacts: bool = True) -> None:
        """Wait, under faults, until the committed progress of the set has all records of its topic. `compacts`: whether
        the topic may be compacted meanwhile. If a record repeats a member, compaction removes the earlier record, so that
        the next engine may take the member for a new one (ADR 92).
        """
        cluster, rng = self._cluster, self._rng
        topic = cluster.topics.names.parameters(standing.record.name)
        for _ in range(_TICKS):
            if self._taken(standing):
                break
            cluster.tick()
            if rng.random() < 0.02 and compacts:
                cluster.log.compact(topic)
        else:
            self._driver.settle()
            assert self._taken(standing), f"{standing.record.name}: the members do not take effect"
        cluster.log.tape.append(Noted(MembersChange(standing.record.name, dict(rows)), Record("", None)))

    def _stop(self, name: str) -> None:
        """Stop a set. Instants that are due at the stop are not reported (ADR 92), so there are none."""
        self._rest()
        self._stopped[name] = self._standing.pop(name)
        self._cluster.command(Stop(name), lambda c: c.stop(name))


class CommittedProgress:
    """What engines have committed of sets, from the progress topic."""

    def __init__(self, cluster: Cluster) -> None:
        log, topics = cluster.log, cluster.topics
        records = InternalRecords(log, topics.names)
        self._log, self._faults = log, cluster.faults
        self._views = [ProgressView(records, states=True) for _ in range(topics.buckets)]
        self._readers = [log.reader({Partition(topics.progress, i): START}) for i in range(topics.buckets)]
        self._complete = [True] * topics.buckets  # whether the last record that was read ends a transaction

    @contextmanager
    def _calm(self) -> Iterator[None]:
        """No faults: nobody of the cluster does this."""
        calm, self._faults.calm = self._faults.calm, True
        try:
            yield
        finally:
            self._faults.calm = calm

    def end_of(self, topic: str) -> int:
        """Return the offset of a topic's next record."""
        with self._calm():
            return self._log.spans([Partition(topic)])[Partition(topic)].end

    def taken(self, group: int, bucket: int | None = None) -> int:
        """Return the offset before which the records of a set's topic have taken effect. `bucket`: in this bucket; None:
        in the only one.
        """
        found = 0
        for number, (view, reader) in enumerate(zip(self._views, self._readers, strict=True)):
            with self._calm():
                while messages := reader.poll(10_000):
                    for message in messages:
                        self._complete[number] = view.feed(message)
            if bucket not in (None, number):
                continue
            if self._complete[number] and group in view.groups and (state := view.whole()) is not None:
                found = max(found, *(TakenRecords.of(g.members).end for g in state.groups if g.group == group))
        return found


class ReferenceSets:
    """The sets of the embedded engine, and what their members should have reported. `bounded`: a context in which the
    registration points of an engine's queries and members are those of the total order.
    """

    def __init__(self, engine: Any, bounded: Callable[[int | None], Any], content: Callable[[Row], Row]) -> None:
        self._engine, self._bounded, self._content = engine, bounded, content
        self._sets: dict[str, tuple[QuerySet, Query]] = {}

    def register(self, record: QueryRegistration) -> None:
        """Register a set, and a query of the same streams: no member has an earlier registration point than it."""
        windows = " ".join(f"FROM STREAM <{iri}> [RANGE 1s STEP 1s]" for iri in record.streams)
        with self._bounded(record.not_before_ms):
            made = self._engine.register_set(record.text, name=record.name, key=RECORD_KEY, report=record.report)
            beside = self._engine.register(
                f"REGISTER QUERY beside AS ASK {windows} WHERE {{ ?s ?p ?o }}", name=f"beside {record.name}"
            )
        self._sets[record.name] = made, beside

    def knows(self, name: str) -> bool:
        return name in self._sets

    def stop(self, name: str) -> None:
        for each in self._sets.pop(name):
            each.stop()

    def change(self, change: MembersChange) -> None:
        """Change members as the records of the topic do."""
        given, beside = self._sets[change.name]
        if removed := [{RECORD_KEY: key} for key, row in change.rows.items() if row is None]:
            given.remove(removed)
        if added := [{**row, RECORD_KEY: key} for key, row in change.rows.items() if row is not None]:
            with self._bounded(beside.registration_point):
                given.add(added)

    def collect(self) -> Iterator[tuple[tuple[str, int], Row]]:
        """Yield what members have reported, by set, member and instant."""
        for name, (given, beside) in self._sets.items():
            beside.poll()
            for step in given.poll():
                for key, evaluation in step.evaluations():
                    line = json.loads(json_line(evaluation, name, member=key, complete=True))
                    yield (member_name(line), evaluation.time), self._content(line)


def member_name(line: Row) -> str:
    """Return the name by which the results of a query or of a set's member are compared."""
    return f"{line['query']}/{line['member']}" if "member" in line else line["query"]
