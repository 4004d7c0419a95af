"""Generates mutations.jsonl: `python generate.py > mutations.jsonl`. The same seed gives the same file.

The events have the shape of Wikidata's mutation stream. The cities and persons are invented; the predicates are those
of Wikidata: P31 (instance of), P6 (head of government), P17 (country), P1082 (population).
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

SEED = 20260302
START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
HOURS = 8
WD, WDT, WDS = (
    "http://www.wikidata.org/entity/",
    "http://www.wikidata.org/prop/direct/",
    "http://www.wikidata.org/entity/statement/",
)
P, PS, PSV, WDV = (
    f"http://www.wikidata.org/{part}/" for part in ("prop", "prop/statement", "prop/statement/value", "value")
)
WIKIBASE, LABEL = "http://wikiba.se/ontology#", "http://www.w3.org/2000/01/rdf-schema#label"
DECIMAL = "http://www.w3.org/2001/XMLSchema#decimal"
CITY, HUMAN, COUNTRIES = "Q515", "Q5", ("Q35", "Q183", "Q142", "Q29")
SYLLABLES = ("an", "bel", "cor", "dun", "el", "far", "gro", "hal", "is", "jor", "kal", "lim", "mar", "nor", "os", "pel")


@dataclass
class Entity:
    """An entity: its triples, and those of shared values, as lines of Turtle."""

    id: str
    label: str
    triples: dict[str, list[str]] = field(default_factory=dict)  # by property
    values: dict[str, list[str]] = field(default_factory=dict)
    revision: int = 1

    def lines(self) -> list[str]:
        """Return all triples."""
        return [line for lines in self.triples.values() for line in lines]


class Generator:
    """Makes the events. `heads`: the head of government of each city that has one."""

    def __init__(self) -> None:
        self.rng = random.Random(SEED)  # noqa: S311
        self.cities: list[Entity] = []
        self.persons: list[Entity] = []
        self.heads: dict[str, Entity] = {}
        self.number = 900_000

    # ---- triples
    def name(self, parts: int) -> str:
        """Return an invented name."""
        return "".join(self.rng.choice(SYLLABLES) for _ in range(parts)).capitalize()

    def entity(self, label: str, kind: str) -> Entity:
        """Return a new entity of a class."""
        self.number += self.rng.randint(1, 9)
        made = Entity(f"Q{self.number}", label)
        self.relabel(made, label)
        self.state(made, "P31", f"<{WD}{kind}>")
        return made

    def relabel(self, entity: Entity, label: str) -> None:
        """Replace the label of an entity."""
        entity.label = label
        entity.triples["label"] = [f'<{WD}{entity.id}> <{LABEL}> "{label}"@en .']

    def state(self, entity: Entity, prop: str, value: str, node: list[str] | None = None) -> None:
        """State a value. `node`: the name and the lines of its value node, which is shared data."""
        statement = f"<{WDS}{entity.id}-{uuid.UUID(int=self.rng.getrandbits(128))}>"
        entity.triples[prop] = [
            f"<{WD}{entity.id}> <{WDT}{prop}> {value} .",
            f"<{WD}{entity.id}> <{P}{prop}> {statement} .",
            f"{statement} <{PS}{prop}> {value} .",
            f"{statement} <{WIKIBASE}rank> <{WIKIBASE}NormalRank> .",
        ]
        entity.values.pop(prop, None)
        if node is not None:
            entity.triples[prop].append(f"{statement} <{PSV}{prop}> {node[0]} .")
            entity.values[prop] = node[1:]

    def populate(self, city: Entity, count: int) -> None:
        """Set the population of a city."""
        node = f"<{WDV}{hashlib.md5(str(count).encode()).hexdigest()}>"  # noqa: S324 - a name, as Wikidata makes it
        amount = f'"+{count}"^^<{DECIMAL}>'
        lines = [f"{node} <{WIKIBASE}quantityAmount> {amount} .", f"{node} <{WIKIBASE}quantityUnit> <{WD}Q199> ."]
        self.state(city, "P1082", amount, [node, *lines])

    # ---- events
    def event(self, time: datetime, entity: Entity, operation: str, **parts: list[str]) -> str:
        """Return an event as a line of JSON."""
        entity.revision += 1
        made: dict[str, object] = {
            "$schema": "/rdf_streaming_updater/mutation/2.0.0",
            "meta": {"dt": _iso(time + timedelta(seconds=2)), "stream": "rdf-streaming-updater.mutation"},
            "entity_id": entity.id,
            "revision_id": entity.revision,
            "event_time": _iso(time),
            "sequence": 0,
            "sequence_length": 1,
            "operation": operation,
        }
        for name, lines in parts.items():
            if lines:
                made[f"rdf_{name}_data"] = {"data": "\n".join(lines) + "\n", "mime_type": "text/turtle"}
        return json.dumps(made, separators=(",", ":"))

    def imported(self, time: datetime, entity: Entity) -> str:
        """Return the import of an entity."""
        shared = [line for lines in entity.values.values() for line in lines]
        return self.event(time, entity, "import", added=entity.lines(), linked_shared=shared)

    def diff(self, time: datetime, entity: Entity, before: Entity) -> str:
        """Return the difference between two states of an entity."""
        old, new = set(before.lines()), set(entity.lines())
        old_shared = {line for lines in before.values.values() for line in lines}
        new_shared = {line for lines in entity.values.values() for line in lines}
        return self.event(
            time,
            entity,
            "diff",
            added=sorted(new - old),
            deleted=sorted(old - new),
            linked_shared=sorted(new_shared - old_shared),
            unlinked_shared=sorted(old_shared - new_shared),
        )

    def begin(self) -> list[str]:
        """Return the imports of the first minute."""
        for _ in range(30):
            city = self.entity(self.name(2), CITY)
            self.state(city, "P17", f"<{WD}{self.rng.choice(COUNTRIES)}>")
            self.populate(city, self.rng.randint(2_000, 900_000))
            self.cities.append(city)
        self.persons = [self.entity(f"{self.name(1)} {self.name(2)}", HUMAN) for _ in range(60)]
        for city, person in zip(self.cities[:26], self.persons, strict=False):
            self.elect(city, person)
        times = (START + timedelta(milliseconds=500 * i) for i in range(1, 1000))
        return [self.imported(time, entity) for time, entity in zip(times, [*self.persons, *self.cities], strict=False)]

    def elect(self, city: Entity, person: Entity) -> None:
        """Make a person the head of government of a city."""
        self.heads[city.id] = person
        self.state(city, "P6", f"<{WD}{person.id}>")

    def step(self, time: datetime) -> str:
        """Return one mutation."""
        kind, city = self.rng.random(), self.rng.choice(self.cities)
        before = Entity(city.id, city.label, dict(city.triples), dict(city.values))
        if kind < 0.4:
            self.populate(city, self.rng.randint(2_000, 900_000))
        elif kind < 0.62:
            free = [person for person in self.persons if person not in self.heads.values()]
            self.elect(city, self.rng.choice(free))
        elif kind < 0.78 and city.id in self.heads:
            del self.heads[city.id]
            del city.triples["P6"]
        elif kind < 0.82:
            self.relabel(city, self.name(2))
            return self.event(time, city, "reconcile", added=city.lines())
        elif kind < 0.86 and len(self.cities) > 20:
            self.cities.remove(city)
            self.heads.pop(city.id, None)
            return self.event(time, city, "delete")
        elif kind < 0.9:
            self.cities.append(self.entity(self.name(3), CITY))
            return self.imported(time, self.cities[-1])
        else:
            self.relabel(city, self.name(2))
        return self.diff(time, city, before)


def _iso(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def main() -> None:
    """Write the events of all hours."""
    generator = Generator()
    lines = generator.begin()
    time = START + timedelta(minutes=1)
    while time < START + timedelta(hours=HOURS):
        lines.append(generator.step(time))
        time += timedelta(milliseconds=generator.rng.randint(20_000, 120_000))
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
