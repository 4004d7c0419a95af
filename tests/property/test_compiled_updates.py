"""Compiled updates change the stored graph like updates that Python executes (docs/adr/0088-prepared-texts.md)."""

from __future__ import annotations

import random

import pytest

import penstock
from penstock.errors import PenstockError

TEXTS = [
    "DELETE {{ <urn:s{a}> <urn:p> ?o }} INSERT {{ <urn:s{a}> <urn:p> {n} }} WHERE {{ <urn:s{a}> <urn:p> ?o }}",
    "DELETE {{ <urn:s{a}> <urn:p> ?o }} INSERT {{ <urn:s{b}> <urn:p> ?o }} WHERE {{ <urn:s{a}> <urn:p> ?o }}",
    "DELETE {{ <urn:s{a}> <urn:q> ?o }} WHERE {{ <urn:s{a}> <urn:q> ?o . ?o <urn:q> ?x }}",
    "INSERT {{ <urn:s{a}> <urn:q> <urn:s{b}> }} WHERE {{ <urn:s{b}> <urn:p> ?x FILTER(?x > {n}) }}",
    "INSERT {{ ?x <urn:r> '{n}' }} WHERE {{ ?x <urn:q> <urn:s{a}> }}",
    "DELETE {{ ?x <urn:r> ?y }} WHERE {{ ?x <urn:q> <urn:s{a}> ; <urn:r> ?y }}",
    "DELETE {{ ?x ?p <urn:s{a}> }} INSERT {{ ?x ?p <urn:s{b}> }} WHERE {{ ?x ?p <urn:s{a}> }}",
    "INSERT {{ <urn:s{a}> <urn:t> ?v }} WHERE {{ <urn:s{a}> <urn:p> ?x BIND(?x*2+{n} AS ?v) }}",
    "INSERT {{ <urn:s{a}> <urn:u> ?v }} WHERE {{ <urn:s{a}> <urn:p> ?x BIND(CONCAT('text-', STR(?x), '-{n}') AS ?v) }}",
    "DELETE {{ <urn:s{a}> <urn:u> ?v }} WHERE {{ <urn:s{a}> <urn:u> ?v FILTER(STRLEN(?v) > {n}) }}",
    "DELETE WHERE {{ <urn:s{a}> <urn:t> ?v }}",
    (
        "DELETE {{ <urn:s{a}> <urn:p> {n} }} INSERT {{ <urn:s{a}> <urn:p> {n} ; <urn:p> {m} }}"
        " WHERE {{ OPTIONAL {{ <urn:s{a}> <urn:p> ?o }} }}"
    ),
    (
        "INSERT {{ <urn:s{a}> <urn:count> ?c }}"
        " WHERE {{ {{ SELECT (COUNT(*) AS ?c) WHERE {{ <urn:s{a}> <urn:q> ?o }} }} }}"
    ),
    (
        "DELETE {{ <urn:s{a}> <urn:q> ?o }} INSERT {{ <urn:s{a}> <urn:p> ?z }}"
        " WHERE {{ <urn:s{a}> <urn:q> ?o . ?o <urn:p> ?z FILTER NOT EXISTS {{ ?o <urn:r> '{n}' }} }}"
    ),
    "INSERT {{ <urn:s{a}> <urn:name> 'x{n}'@en ; <urn:size> {n}.5e0 }} WHERE {{ <urn:s{a}> <urn:p> {m} }}",
    (
        "WITH <urn:g{m}> DELETE {{ <urn:s{a}> <urn:p> ?o }} INSERT {{ <urn:s{a}> <urn:p> {n} }}"
        " WHERE {{ <urn:s{a}> <urn:p> ?o }}"
    ),
    "INSERT {{ GRAPH <urn:g{m}> {{ <urn:s{a}> <urn:p> ?o }} }} WHERE {{ <urn:s{a}> <urn:p> ?o }}",
    (
        "DELETE {{ <urn:s{a}> <urn:path> ?o }} INSERT {{ <urn:s{a}> <urn:path> ?far }}"
        " WHERE {{ <urn:s{a}> <urn:q>+ ?far OPTIONAL {{ <urn:s{a}> <urn:path> ?o }} }}"
    ),
    "INSERT {{ ?x <urn:v> {n} }} WHERE {{ VALUES ?x {{ <urn:s{a}> <urn:s{b}> }} }}",
    "INSERT {{ ?o <urn:of> <urn:s{a}> }} WHERE {{ <urn:s{a}> <urn:p>|<urn:q> ?o }}",  # ?o can be a literal
    "INSERT DATA {{ <urn:s{a}> <urn:q> <urn:s{b}> }}",
    "DELETE DATA {{ <urn:s{a}> <urn:q> <urn:s{b}> }}",
]
FROM = "FROM STREAM <urn:stream> [RANGE 1s STEP 100ms] FROM <urn:x-penstock:stored>"
ROWS = f"SELECT ?s ?o {FROM} WHERE {{ ?s <urn:tick> ?k . ?s <urn:p> ?o }}"
COUNT = f"SELECT (COUNT(*) AS ?n) {FROM} WHERE {{ ?s <urn:q> ?o . ?s <urn:tick> ?k }}"


class System:
    """An engine with two standing queries. `compiles`: whether it compiles updates."""

    def __init__(self, shards: int, entities: int, compiles: bool) -> None:
        self.engine = penstock.Engine(shards=shards)
        self.executed = 0  # updates that the core has executed in one call
        self.engine.declare_stream("urn:stream", timing=["urn:tick"], batch_ms=100)
        self.rows, self.count = self.engine.register(ROWS), self.engine.register(COUNT, changes=True)
        self._execute = self.engine._compiled.execute
        if compiles:
            self.engine._compiled.execute = self._counted
        else:
            self.engine._compiled.execute = lambda _: None
        for i in range(entities):
            self.engine.update(f"INSERT DATA {{ <urn:s{i}> <urn:p> {i} ; <urn:q> <urn:s{(7 * i + 1) % entities}> }}")

    def _counted(self, text: str):
        report = self._execute(text)
        self.executed += report is not None
        return report

    def update(self, text: str) -> tuple[object, ...]:
        try:
            report = self.engine.update(text)
        except PenstockError as error:
            return type(error), str(error)
        return report.added, report.removed

    def step(self, tuples: str, time: int) -> list[tuple[object, ...]]:
        """The answers of both queries after a batch."""
        self.engine.push("urn:stream", tuples.encode(), time - 50, format="turtle")
        self.engine.advance("urn:stream", time)
        answers = [(each.time, rows(each.answer)) for each in self.rows.poll()]
        return answers + [(each.time, rows(each.added), rows(each.removed)) for each in self.count.poll()]

    def contents(self) -> tuple[list[tuple[str, ...]], ...]:
        graphs = "SELECT ?g ?s ?p ?o { GRAPH ?g { ?s ?p ?o } }"
        return rows(self.engine.query("SELECT ?s ?p ?o { ?s ?p ?o }")), rows(self.engine.query(graphs))


def rows(answer) -> list[tuple[str, ...]]:
    return sorted(tuple(f"{name} {term!r}" for name, term in sorted(row.items())) for row in answer)


def check(seed: int) -> int:
    """Apply random updates to two engines. Returns the number of updates that the core has executed in one call."""
    chosen = random.Random(seed)
    entities, shards = chosen.choice([5, 20, 60]), chosen.choice([1, 3])
    texts = chosen.sample(TEXTS, chosen.randint(3, len(TEXTS)))
    systems = [System(shards, entities, compiles) for compiles in (True, False)]
    for step in range(1, 41):
        for _ in range(chosen.randint(5, 25)):
            text = chosen.choice(texts).format(
                a=chosen.randrange(entities),
                b=chosen.randrange(entities),
                n=chosen.choice([chosen.randrange(5), chosen.randrange(100_000)]),
                m=chosen.randrange(5),
            )
            compiled, plain = (system.update(text) for system in systems)
            assert compiled == plain, (seed, step, text)
        tuples = "".join(f"<urn:s{chosen.randrange(entities)}> <urn:tick> {step} .\n" for _ in range(3))
        compiled, plain = (system.step(tuples, 1_000 + 100 * step) for system in systems)
        assert compiled == plain, (seed, step)
        if step % 10 == 0:
            compiled, plain = (system.contents() for system in systems)
            assert compiled == plain, (seed, step)
    for system in systems:
        system.engine.close()
    return systems[0].executed


def test_compiled_updates_have_the_same_effects():
    assert sum(map(check, range(6))) > 1_000


@pytest.mark.long
def test_compiled_updates_have_the_same_effects_in_many_cases():
    assert sum(map(check, range(6, 400))) > 60_000
