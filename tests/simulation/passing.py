"""Terms that come and go (ADR 50): some terms of events are replaced by terms from a pool, and events follow the script."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from property.bodies import X
from property.script import Advance, Declare, Load, Push, PushMany, Register, Stop

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

_POOL = 30
_EVENTS_PER_TERM = 4
_UNBOUNDED = "[TRIPLES", "[ELEMENTS", "[ALL"  # windows whose tuples can remain for ever


class PassingTerms:
    """Replaces some subjects and objects of events by terms from a pool that moves on with the events."""

    def __init__(self, rng: Random, operations: Any) -> None:
        self._rng = rng
        # a window of everything is of timeless tuples
        self._fixed = any(isinstance(op, Register) and "[ALL" in op.text for op in operations)
        self._events = 0

    def timing(self) -> dict[str, Any]:
        """Return a setting of a stream: mostly, all its tuples are timing tuples."""
        return {"timing": "all"} if not self._fixed and self._rng.random() < 0.85 else {}

    def data(self, text: str) -> str:
        """Return the text of an event with other terms."""
        self._events += 1
        return "\n".join(map(self._line, text.split("\n")))

    def _line(self, line: str) -> str:
        rng, parts = self._rng, line.split(" ", 2)
        if len(parts) < 3 or not parts[0].startswith("<"):
            return line
        term = f"<http://x/passing{(self._events // _EVENTS_PER_TERM + rng.randrange(3)) % _POOL}>"
        if rng.random() < 0.4:
            parts[0] = term
        elif parts[2].startswith("<") and rng.random() < 0.5:
            parts[2] = f"{term} ."
        return " ".join(parts)


def with_passing_terms(case: Any, rng: Random) -> Any:
    """Return a case whose events go on after the script, while queries without unbounded windows stand. Four cases of
    five are instead of small windows over terms from the pool.
    """
    if rng.random() < 0.8:
        return replace(case, operations=list(_SmallWindows(rng).operations()))
    return replace(case, operations=[*case.operations, *_more(case.operations, rng)])


class _SmallWindows:
    """A script of queries with small windows, whose terms are constants, stored, computed and compared in between."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._streams = [f"{X}stream/{i}" for i in range(rng.choice([1, 2]))]
        self._names: list[str] = []
        self._count, self._now = 0, 1_000
        self._pool = rng.choice([6, 20, 60])
        self._computes = rng.random() < 0.3  # whether queries look up terms, which makes these permanent

    def operations(self) -> Iterator[Any]:
        rng = self._rng
        for iri in self._streams:
            settings = ("batch_ms", rng.choice([50, 100])), ("lateness_ms", rng.choice([0, 0, 60])), ("timing", "all")
            yield Declare(iri, settings)
        yield Load(f"<{X}a> <{X}stored> <{X}b> .", f"{X}graph/a")
        for _ in range(rng.choice([1, 2])):
            yield self._register()
        for number in range(rng.choice([60, 120])):
            self._now += rng.choice([50, 150, 300])
            term = f"{X}term/{(number // 2) % self._pool}"
            lines = (self._line(term) for _ in range(rng.choice([1, 1, 3])))
            yield Push(rng.choice(self._streams), self._now, "\n".join(lines))
            if rng.random() < 0.4:
                yield from (Advance(iri, self._now) for iri in self._streams)
            if rng.random() < 0.04:
                yield Load(f"<{term}> <{X}stored> <{self._near(term)}> .", f"{X}graph/a")
            if rng.random() < 0.05:
                yield self._register()
                if len(self._names) > 2:
                    yield Stop(self._names.pop(0))

    def _near(self, term: str) -> str:
        head, _, number = term.rpartition("/")
        return f"{head}/{(int(number) + self._rng.choice([0, 1, 2])) % self._pool}"

    def _line(self, term: str) -> str:
        ends = [term, self._near(term)]
        self._rng.shuffle(ends)
        return f"<{ends[0]}> <{X}{self._rng.choice('pq')}> <{ends[1]}> ."

    def _register(self) -> Register:
        rng = self._rng
        self._count += 1
        name = f"small{self._count}"
        self._names.append(name)
        head = f"REGISTER {rng.choice(['QUERY', 'ISTREAM', 'DSTREAM'])} {name} AS SELECT"
        reads = " ".join(f"FROM STREAM <{iri}> [RANGE {rng.choice([200, 400])}ms STEP 200ms]" for iri in self._streams)
        p, q, constant = f"<{X}p>", f"<{X}q>", f"<{X}term/{rng.randrange(self._pool)}>"
        stored = f"GRAPH <{X}graph/a> {{ ?b <{X}stored> ?c }}"
        plain = [
            f"{head} ?a ?b {reads} WHERE {{ ?a {p} ?b }}",
            f"{head} ?a ?c {reads} WHERE {{ ?a {p} ?b . ?b {q} ?c }}",
            f"{head} ?b (COUNT(?a) AS ?n) {reads} WHERE {{ ?a {p} ?b }} GROUP BY ?b",
            f"{head} ?a ?b {reads} WHERE {{ {constant} {p} ?b . ?a {q} ?b }}",
            f"{head} ?a ?b ?c {reads} FROM NAMED <{X}graph/a> WHERE {{ ?a {p} ?b OPTIONAL {{ {stored} }} }}",
        ]
        text = rng.choice(
            [
                *plain,
                f'{head} ?c ?d {reads} WHERE {{ ?a {p} ?b BIND(IRI(CONCAT(STR(?b), "")) AS ?c) ?c {q} ?d }}',
                f'{head} ?c {reads} WHERE {{ ?a {p} ?b BIND(IRI(CONCAT("{X}term/", STR({self._count}))) AS ?c) }}',
            ]
            if self._computes
            else plain
        )
        return Register(name, text, None)  # type: ignore[arg-type]  # only the model of property tests needs the body


def _more(operations: Any, rng: Random) -> Iterator[Any]:
    pushes = [(op.iri, op.data) for op in operations if isinstance(op, Push) and op.format == "nt"]
    pushes += [(op.iri, data) for op in operations if isinstance(op, PushMany) for _, data in op.events]
    streams = [op.iri for op in operations if isinstance(op, Declare)]
    times = [op.time for op in operations if isinstance(op, Push | Advance)]
    times += [time for op in operations if isinstance(op, PushMany) for time, _ in op.events]
    if not pushes or not times:
        return
    standing: dict[str, str] = {}
    for operation in operations:
        if isinstance(operation, Register):
            standing[operation.name] = operation.text
        elif isinstance(operation, Stop):
            standing.pop(operation.name, None)
    for name, text in standing.items():
        if any(window in text for window in _UNBOUNDED) and rng.random() < 0.9:
            yield Stop(name)
    now = max(times)
    for _ in range(rng.choice([60, 120])):
        now += rng.choice([10, 60, 250])
        iri, data = rng.choice(pushes)
        yield Push(iri, now, data)
        if rng.random() < 0.3:
            yield from (Advance(each, now) for each in streams)
