"""Registration by topic under seeded faults: each record is taken exactly once, and every standing query has
told its P.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from penstock.log import START, Partition, Record
from penstock.wire import QueryRegistration, QueryStop, decode
from simulation.cluster import Cluster

if TYPE_CHECKING:
    from penstock.services.coordinator.coordinator import Coordinator

IRI = "http://x/s"
TEXTS = tuple(
    f"REGISTER QUERY q AS SELECT {what} FROM STREAM <{IRI}> [RANGE 1s STEP 1s] WHERE {{ ?s ?p ?o }}"
    for what in ("?s", "?p", "(COUNT(*) AS ?n)")
)
BAD = "REGISTER QUERY q AS SELECT *\nWHERE { ?s ?p }"


class Asked:
    """What users wrote, and what must come of it."""

    def __init__(self, cluster: Cluster, rng: random.Random) -> None:
        self.cluster, self.rng = cluster, rng
        self._writer = cluster.log.writer()
        self.standing: dict[str, str] = {}
        self.commands: list[tuple[str, str]] = []

    def write(self, topic: str, key: str, value: str | None) -> None:
        calm, self.cluster.faults.calm = self.cluster.faults.calm, True
        self._writer.append([Record(topic, None if value is None else value.encode(), key.encode())])
        self.cluster.faults.calm = calm

    def ask(self) -> None:
        name, text = f"q{self.rng.randrange(3)}", self.rng.choice([*TEXTS, BAD, None])
        self.write(self.cluster.topics.names.queries, name, text)
        if text in (BAD, self.standing.get(name)):
            return
        if name in self.standing and text is None:
            self.commands.append(("stop", name))
            del self.standing[name]
        if text is not None:  # one command replaces the query
            self.commands.append((text, name))
            self.standing[name] = text

    def read(self, topic: str) -> list:
        return self.cluster.log.reader({Partition(topic): START}).poll(100_000)

    def said(self) -> list[tuple[str, str]]:
        """Commands in their total order."""
        records = [decode(message.value) for message in self.read(self.cluster.topics.names.shards)]
        known = [r for r in records if isinstance(r, QueryRegistration | QueryStop)]
        return [(r.text, r.name) if isinstance(r, QueryRegistration) else ("stop", r.name) for r in known]

    def statuses(self) -> dict[tuple[str, int], int]:
        """Numbers of the queries that the status topic says stand."""
        found: dict[tuple[str, int], int] = {}
        for message in self.read(self.cluster.topics.names.status):
            if message.key.startswith(b"query "):
                name, _, number = message.key.decode()[6:].rpartition(" ")
                found.pop((name, int(number)), None)
                if message.value is not None:
                    found[name, int(number)] = json.loads(message.value)["number"]
        return found


def the_active(cluster: Cluster) -> Coordinator:
    """The one that decides. One that was cut off knows by now that it does not: it confirms once in a while."""
    [active] = [c.service for c in cluster.coordinators if c.service is not None and c.service.active]
    return active


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_each_record_is_applied_once_and_its_status_is_reported(first):
    play(range(first, first + 10))


@pytest.mark.long
@pytest.mark.parametrize("first", range(40, 1040, 50))
def test_the_same_a_thousand_times(first):
    play(range(first, first + 50))


def play(seeds: range) -> None:
    for seed in seeds:
        cluster = Cluster(seed)
        try:
            for _ in range(30):
                cluster.tick()
            cluster.faults.calm = False
            asked = Asked(cluster, random.Random(seed))
            asked.write(cluster.topics.names.streams, "s", json.dumps({"iri": IRI}))
            for _ in range(12):
                asked.ask()
                for _ in range(cluster.rng.choice([0, 1, 10, 60])):
                    cluster.tick()
            cluster.rest()
            assert asked.said() == asked.commands, seed
            active = the_active(cluster)
            assert {name: record.text for name, record in active.queries.items()} == asked.standing, seed
            assert asked.statuses() == {(r.name, r.number): r.number for r in active.queries.values()}, seed
        finally:
            cluster.close()
