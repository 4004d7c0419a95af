"""One seed: a random case of tests/property run on the simulated cluster and on the embedded engine, results compared."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

import penstock
from penstock.cluster.query_engine import QueryEngine
from penstock.engine.lines import json_line
from penstock.log import START, Partition
from property import cases
from property.script import Advance, Declare, Load, Push, PushMany, Register, Stop, TooFarAhead, Update
from simulation.cluster import Cluster
from simulation.source import Source

_BLANK_JSON, _BLANK_NT = re.compile(r'"bnode", "value": "[^"]*"'), re.compile(r"_:\w+")


@dataclass
class Outcome:
    """What became of a seed."""

    evaluations: int = 0
    lost: tuple[Any, ...] = ()
    doubled: tuple[Any, ...] = ()
    different: tuple[Any, ...] = ()
    disordered: tuple[Any, ...] = ()
    crashes: int = 0
    restarts: int = 0

    @property
    def good(self) -> bool:
        return not (self.lost or self.doubled or self.different or self.disordered)

    def __str__(self) -> str:
        return (
            f"{self.evaluations} evaluations, {self.restarts} starts, {self.crashes} crashes: {len(self.lost)} lost "
            f"{self.lost[:3]}, {len(self.doubled)} doubled {self.doubled[:3]}, {len(self.different)} different "
            f"{self.different[:1]}, {len(self.disordered)} out of order {self.disordered[:3]}"
        )


def run(seed: int, engine: type = QueryEngine) -> Outcome:
    case = cases.make(seed)
    cluster = Cluster(seed, engine=engine)
    try:
        driver = Driver(cluster, case)
        driver.play()
        cluster.rest()
        return driver.outcome()
    finally:
        cluster.close()


class Driver:
    """Plays a case on both. Names of queries in the script stay what they are."""

    def __init__(self, cluster: Cluster, case: Any) -> None:
        self.cluster, self.case = cluster, case
        self.source = Source(cluster.log, cluster.topics, cluster.terms, cluster.clock.now_ms)
        self.reference = penstock.Engine(clock=cluster.clock.now_ms, seed=0)
        self.handles: dict[str, Any] = {}
        self.refused: set[str] = set()
        self.expected: dict[tuple[str, int], dict[str, Any]] = {}
        self.ordered: dict[str, bool] = {}

    def play(self) -> None:
        cluster = self.cluster
        for _ in range(30):
            cluster.tick()
        cluster.faults.calm = False
        for operation in self.case.operations:
            self.do(operation)
            self.collect()
            for _ in range(cluster.rng.choice([0, 1, 3, 12])):
                cluster.tick()

    def do(self, operation: Any) -> None:
        cluster, reference, source = self.cluster, self.reference, self.source
        match operation:
            case Declare(iri, settings):
                cluster.command(lambda c: c.declare(iri, **dict(settings)))
                source.declare(iri, **dict(settings))
                reference.declare_stream(iri, **dict(settings))
            case Load(data, graph):
                self.once(lambda c: c.load(data.encode(), "nt", graph))
                reference.load(data.encode(), graph=graph, format="nt")
            case Update(text):
                self.once(lambda c: c.update(text))
                reference.update(text)
            case Register(name, text, _):
                self.register(name, text)
            case Stop(name) if name in self.handles:
                cluster.command(lambda c: c.stop(name))
                self.handles.pop(name).stop()
            case Push(iri, time, data):
                self.push(iri, [(time, data)])
            case PushMany(iri, events):
                self.push(iri, events)
            case TooFarAhead():
                pass
            case Advance(iri, time):
                cluster.patiently(lambda: source.advance(iri, time))
                reference.advance(iri, time)

    def once(self, verb: Any) -> None:
        """An insertion is no idempotent command: a second one would be stored twice, which is the same graph."""
        self.cluster.command(verb)

    def register(self, name: str, text: str) -> None:
        try:
            self.cluster.command(lambda c: c.register(name, text))
        except penstock.PenstockError:
            self.refused.add(name)  # derived streams, and what reads them
            return
        self.handles[name] = self.reference.register(text, name=name)
        self.ordered[name] = "ORDER BY" in text

    def push(self, iri: str, events: Any) -> None:
        for time, data in events:
            self.cluster.patiently(partial(self.source.push, iri, time, data))
        self.reference.push_events(iri, list(events))

    def collect(self) -> None:
        for name, handle in self.handles.items():
            for evaluation in handle.poll():
                self.expected[name, evaluation.time] = self.content(json.loads(json_line(evaluation, name)))

    def content(self, line: dict[str, Any]) -> dict[str, Any]:
        """What must be equal: snapshots and attempts may differ, the order of rows and the labels of blank nodes too."""
        found = {k: v for k, v in line.items() if k not in ("snapshot", "attempt")}
        if "results" in found:
            rows = [json.dumps(row, sort_keys=True) for row in found["results"]["bindings"]]
            found["results"] = sorted(_BLANK_JSON.sub('"bnode", "value": "b"', row) for row in rows)
        if "graph" in found:
            found["graph"] = sorted(_BLANK_NT.sub("_:b", line) for line in found["graph"].splitlines())
        return found

    def outcome(self) -> Outcome:
        topics = self.cluster.topics
        reader = self.cluster.log.reader(
            {Partition(topics.names.results, i): START for i in range(topics.result_partitions)}
        )
        messages = []
        while batch := reader.poll(10_000):
            messages += batch
        got: dict[tuple[str, int], dict[str, Any]] = {}
        counts: Counter[tuple[str, int]] = Counter()
        last: dict[str, int] = {}
        disordered = []
        for message in messages:
            line = json.loads(message.value)
            key = line["query"], line["time"]
            counts[key] += 1
            if last.get(key[0], key[1]) > key[1]:
                disordered.append(key)
            last[key[0]] = key[1]
            got[key] = self.content(line)
        cluster = self.cluster
        self.reference.close()
        return Outcome(
            evaluations=len(self.expected),
            lost=tuple(sorted(self.expected.keys() - got.keys())),
            doubled=tuple(
                sorted([key for key, n in counts.items() if n > 1] + list(got.keys() - self.expected.keys()))
            ),
            different=tuple(
                (key, self.expected[key], got[key])
                for key in sorted(got.keys() & self.expected.keys())
                if got[key] != self.expected[key]
            ),
            disordered=tuple(disordered),
            crashes=cluster.faults.crashes,
            restarts=cluster.restarts,
        )
