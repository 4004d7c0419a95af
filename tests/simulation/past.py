"""Queries that begin in the past of a simulated cluster (ADR 107). Their texts have FROM BEGINNING or STARTING AT, and are
registered at any time.

The reference has a twin of each such query: the same text without FROM BEGINNING, registered before the first progress
of all streams. From its first complete instant on, a query must have the answers of its twin. This module computes the
first complete instant a second time, instant by instant, from the batches and declarations in the log.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from penstock.engine.answers.json_lines import json_line
from penstock.event_time.watermark import NEVER
from property.bodies import LINKS, VALUE
from property.script import Advance, Push, PushMany, Register
from simulation.derived import unpublished

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Iterator

    from penstock.engine.standing.standing_query import Query
    from penstock.wire import QueryRegistration, ShardBatch, StreamDeclaration
    from simulation.running import Driver

_REGISTERS, _STOPS, _MOST = 0.3, 0.08, 5  # of operations; queries at a time
_RETENTIONS_MS = (150, 400, 1_000, 3_000, *[1 << 41] * 4)
_P, _Q, _V = (f"<{iri.value}>" for iri in (*LINKS, VALUE))
_BODIES = (
    f"SELECT ?s ?o DATA WHERE {{ ?s {_P} ?o }}",
    f"SELECT ?s ?x ?o DATA WHERE {{ ?s {_P} ?x OPTIONAL {{ ?x {_V} ?o }} }}",
    "SELECT ?p (COUNT(?o) AS ?n) DATA WHERE { ?s ?p ?o } GROUP BY ?p",
    f"SELECT ?s DATA WHERE {{ ?s {_V} ?o FILTER NOT EXISTS {{ ?s {_Q} ?x }} }}",
    f"CONSTRUCT {{ ?o <urn:of> ?s }} DATA WHERE {{ ?s {_Q} ?o }}",
)
_STORED = (
    f"SELECT ?s ?x ?o DATA FROM <urn:x-penstock:stored> WHERE {{ ?s {_P} ?x . ?x ?p ?o }}",
    "SELECT ?p (COUNT(?o) AS ?n) DATA FROM <urn:x-penstock:stored> WHERE { ?s ?p ?o } GROUP BY ?p",
    f"SELECT ?s ?o DATA FROM <urn:x-penstock:stored> WHERE {{ ?s {_Q} ?o FILTER NOT EXISTS {{ ?o {_V} ?x }} }}",
    "SELECT ?g (COUNT(*) AS ?n) DATA WHERE { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g",
    f"CONSTRUCT {{ ?o <urn:of> ?s }} DATA FROM <urn:x-penstock:stored> WHERE {{ ?s {_P} ?o }}",
)
"""Bodies that read the stored graph."""
_EVERYTHING = ("[TRIPLES 5 STEP 2]", "[TRIPLES 3]", "[ELEMENTS 4 STEP 3]", "[ALL STEP 100ms]", "[ALL STEP 50ms]")
"""Windows that need all tuples since the first progress of their streams."""
_WINDOW = re.compile(r"STREAM <([^>]+)> \[RANGE (\d+)ms STEP (\d+)ms\]")
_ALL = re.compile(r"STREAM <([^>]+)> \[ALL STEP (\d+)ms\]")
_START = re.compile(r" STARTING AT -?\d+")
_HEAD = re.compile(r"REGISTER (\w+) \S+")


def without_start(text: str) -> str:
    """Return the text of a query of the case without STARTING AT. Such a query has its place in the log, and can read
    what a cluster cannot read in the past.
    """
    return _START.sub("", text)


class Past:
    """Registers queries in the past now and then, and stops them. `count`: how many it has registered."""

    def __init__(self, driver: Driver, rng: random.Random) -> None:
        self._driver, self._rng = driver, rng
        times = [
            time
            for operation in driver.case.operations
            for time in (
                [operation.time]
                if isinstance(operation, Push | Advance)
                else [time for time, _ in operation.events]
                if isinstance(operation, PushMany)
                else []
            )
        ]
        self._span = min(times), max(times)
        self._standing: list[str] = []
        self.count = 0

    def settings(self) -> dict[str, Any]:
        """Return settings of a stream: its retention, and whether the stored graph is retained too."""
        return {"retention_ms": self._rng.choice(_RETENTIONS_MS), "graph_history": self._rng.random() < 0.75}

    def step(self) -> None:
        """Now and then, do so."""
        rng = self._rng
        if len(self._standing) < _MOST and rng.random() < _REGISTERS:
            self.count += 1
            name = f"past{self.count}"
            operation = Register(name, self._text(name), None)  # type: ignore[arg-type]
            if operation.text.startswith("REGISTER STREAM"):
                name = operation.text.split("<")[1].split(">")[0]
            self._standing.append(name)
            for _ in range(rng.choice([0, 20, 120])):
                self._driver.cluster.tick()  # what was sent before comes into the log, or a part of it
            self._driver.register(replace(operation, name=name), name)
        elif self._standing and rng.random() < _STOPS:
            name = self._standing.pop(rng.randrange(len(self._standing)))
            self._driver.stop(name)

    def _text(self, name: str) -> str:
        rng = self._rng
        iris = sorted(self._driver.producers.sources)
        step = rng.choice([50, 100, 200])
        read = rng.sample(iris, rng.choice([1, 1, min(2, len(iris))]))
        everything = rng.random() < 0.25
        ordered = self._driver.producers.base_ms is None
        window = rng.choice([each for each in _EVERYTHING if ordered or each.startswith("[ALL")])
        windows = " ".join(
            f"FROM STREAM <{iri}> [RANGE {rng.choice([30, 100, 200, 500])}ms STEP {step * rng.choice([1, 1, 2])}ms]"
            for iri in read
        )
        if everything:
            windows = " ".join(f"FROM STREAM <{iri}> {window}" for iri in read)
        sources = self._driver.producers.sources
        stored = all(sources[iri].settings.get("graph_history") for iri in read)
        body = rng.choice(_STORED if stored and rng.random() < 0.6 else _BODIES)
        head = f"{rng.choice(['QUERY', 'QUERY', 'ISTREAM', 'DSTREAM'])} {name}"
        if body.startswith("CONSTRUCT") and rng.random() < 0.5 and not everything:
            head = f"STREAM <urn:x:{name}>"
        clause = "FROM BEGINNING" if everything or rng.random() < 0.6 else f"STARTING AT {rng.randint(*self._span)}"
        return f"REGISTER {head} {clause} AS {body.replace('DATA', windows)}"


@dataclass(slots=True)
class _Twin:
    """A query of the reference that was registered at the start. `whole`: the same with RSTREAM, if it has another
    operator. `first`: the first instant of the query in the past; None while that is not registered.
    """

    record: QueryRegistration
    query: Query
    whole: Query
    first: int | None = None
    stands: bool = False
    answers: dict[int, dict[str, Any]] = field(default_factory=dict)
    wholes: dict[int, dict[str, Any]] = field(default_factory=dict)


class ReferencePast:
    """The twins of an embedded engine. `content`: what must be equal of a line. `due`: how many evaluations were due
    when their query was registered.
    """

    def __init__(self, engine: Any, content: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._engine, self._content = engine, content
        self._records: list[QueryRegistration] = []
        self._declared: dict[str, StreamDeclaration] = {}
        self._twins: dict[str, _Twin] = {}
        self._begun: dict[str, int] = {}  # in the order of the log
        self._closed: dict[str, int] = {}
        self.due = self.refused = 0
        engine._runtime.history.incarnation_for = lambda _: None

    def plan(self, records: Iterable[Any]) -> None:
        """Find the queries that the cluster registers in the past."""
        self._records = [record for record in records if getattr(record, "past", False)]

    def declare(self, record: StreamDeclaration) -> None:
        """Register the twins once their streams are declared."""
        self._declared[record.iri] = record
        for each in self._records:
            if each.name not in self._twins and self._declared.keys() >= set(each.streams):
                text = unpublished(each.text).replace(" FROM BEGINNING", "")
                query = self._engine.register(text, f"twin {each.name}")
                plain = _HEAD.sub("REGISTER QUERY whole", text)
                self._twins[each.name] = _Twin(each, query, self._engine.register(plain, f"whole {each.name}"))

    def batch(self, batch: ShardBatch) -> None:
        """A stream has closed batches."""
        batch_ms = self._declared[batch.stream].batch_ms
        begin = batch.first * batch_ms if batch.begin_ms is None else batch.begin_ms
        self._begun.setdefault(batch.stream, begin)
        self._closed[batch.stream] = (batch.last + 1) * batch_ms

    def register(self, record: QueryRegistration) -> bool:
        """Return whether a query that the cluster registers begins in the past. If so, its twin answers for it."""
        if not record.past:
            return False
        begun = [point for iri, point in self._begun.items() if iri in record.streams]
        closed = [self._closed[iri] for iri in record.streams if iri in self._closed]
        start = record.starting_at_ms
        if not begun or (start is not None and all(start > end for end in closed)):
            return False
        twin = self._twins[record.name]
        if any(self._retained_from(iri) > begun[0] for iri in self._read_wholly(record)):
            twin.first, twin.stands = None, True  # the cluster must refuse it
            self.refused += 1
            return True
        twin.first, twin.stands = self._first(record, begun[0], start), True
        self.due += sum(time >= twin.first for time in twin.answers)
        return True

    def _read_wholly(self, record: QueryRegistration) -> list[str]:
        """Return the streams of which a query needs all tuples."""
        if not record.steps:
            return list(record.streams)
        return [iri for iri, _ in _ALL.findall(record.text) if not self._times(iri)]

    def _times(self, iri: str) -> bool:
        """Return whether the range of [ALL] over a stream is the stream's retention."""
        return self._declared[iri].timing_all or bool(self._declared[iri].timing)

    def _retained_from(self, iri: str) -> int:
        return self._closed.get(iri, NEVER) - self._declared[iri].retention_ms

    def _first(self, record: QueryRegistration, origin: int, start: int | None) -> int:
        if not record.steps:
            return origin + 1
        windows = [(iri, int(range_ms), int(step)) for iri, range_ms, step in _WINDOW.findall(record.text)]
        for iri, step in _ALL.findall(record.text):
            windows.append((iri, self._declared[iri].retention_ms if self._times(iri) else 0, int(step)))
        t0 = start or 0

        def is_complete(time: int, iri: str, range_ms: int, step: int) -> bool:
            retained = self._retained_from(iri)
            return retained <= origin or time - (time - t0) % step - range_ms >= retained

        released = [
            self._closed[iri] - self._declared[iri].retention_ms for iri in record.streams if iri in self._closed
        ]
        time = max(origin + 1, *released, origin if start is None else start)
        while all((time - t0) % step for *_, step in windows) or not all(is_complete(time, *each) for each in windows):
            time += 1
        return time

    def knows(self, name: str) -> bool:
        """Return whether a twin answers for a query."""
        return name in self._twins and self._twins[name].stands

    def stop(self, name: str) -> None:
        """Let a query go."""
        self._twins[name].stands = False

    def collect(self) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
        """Yield what the queries in the past should have answered, by name and instant."""
        for name, twin in self._twins.items():
            for query, answers in ((twin.query, twin.answers), (twin.whole, twin.wholes)):
                for evaluation in query.poll():
                    answers[evaluation.time] = self._content(json.loads(json_line(evaluation, name)))
            if not twin.stands or twin.first is None:
                continue
            for time in [time for time in twin.answers if time >= twin.first]:
                answer = twin.answers.pop(time)
                yield (name, time), self._of_first(twin, answer) if time == twin.first else answer

    def _of_first(self, twin: _Twin, answer: dict[str, Any]) -> dict[str, Any]:
        """Return the first answer of a query, which is relative to the empty answer."""
        assert twin.first is not None
        operator = twin.record.text.split()[1]
        if operator == "ISTREAM":
            return twin.wholes[twin.first]
        if operator == "DSTREAM":
            return {k: [] if k in ("results", "graph") else v for k, v in answer.items()}
        return answer
