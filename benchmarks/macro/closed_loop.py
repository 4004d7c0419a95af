"""L1-L3 with new random start constants for each execution: executions a second on one core, by group size.

Windows stay at one instant of LSBench. A group of n is one columnar execution over n members (ADR 6). Answers are
delivered as in the engine, as columns sorted by member. The row counts must equal those of brute force: for each member
in the first execution, in sum for all others.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import rdflib

from benchmarks.harness import Point, Row, check
from benchmarks.macro.sample import STREAMS, Events, Sample, iri
from penstock.core import _native as native
from penstock.engine.standing.execution import native_start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    import penstock
    from benchmarks.harness import Finding

COMMAND = "python -m benchmarks closed_loop"
TARGETS = {1: 150_000.0, 64: 500_000.0, 10_000: 1_500_000.0}
SIZES = (1, 4, 16, 64, 256, 1_024, 4_096, 10_000)
QUERIES = ("L1", "L2", "L3")
ORIGINAL = {1: 20_979.0, 20: 18_372.0}  # 1e6 / mean of L1-L3 in µs, shared notes
AT_MS = 2_000
_SECONDS = 0.5
_REPETITIONS = 3
_DEFAULT_GRAPH = np.zeros(1, np.uint64)
_OTHERS = 16
_DRAWS = 257  # a prime: no pattern over the groups


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield a row for each rate and group size with a target (harmonic mean of L1-L3), and points between."""
    sample = Sample()
    for scale in (1,) if tiny else (1, 20):
        events = sample.events(scale, AT_MS)
        with sample.open() as engine:
            feed = events.encoded(engine)
            texts = [engine.register(sample.text(name)) for name in QUERIES]
            feed.begin()
            feed.play(0, AT_MS)
            loops = [Loop(engine, query, *part) for query, part in zip(texts, expected(sample, events), strict=True)]
            for size in (1, 64) if tiny else SIZES:
                cpu, wall = mean_rates(loops, size, 0.01 if tiny else _SECONDS, 1 if tiny else _REPETITIONS)
                yield Point("groups", f"x{scale}", size, cpu)
                if size in TARGETS:
                    yield Row(
                        f"Closed loop, L1-L3 at x{scale}, groups of {size}",
                        cpu,
                        "executions/s",
                        COMMAND,
                        "Wukong+S (noted)",
                        ORIGINAL[scale],
                        TARGETS[size],
                        lower_is_better=False,
                        clock="cpu",
                        other_clock=wall,
                    )


def expected(sample: Sample, events: Events) -> list[tuple[list[int], NDArray[np.int64]]]:
    """Return, for each of L1-L3, the constants to draw from, and by brute force the rows of each at the instant."""
    predicate = sample.script.P
    post, gps = (events.held(name, AT_MS - 1000, AT_MS) for name in ("post", "gps"))
    stored = set(sample.stored)
    for name in set(sample.names) - {"gps"}:
        stored |= events.held(name, 0, AT_MS)
    subjects = Counter(s for s, _, _ in post | gps)
    made = Counter(s for s, p, _ in post if p == predicate["creator_of"])
    owners, friends = defaultdict(set), defaultdict(set)
    for s, p, o in stored:
        if p == predicate["account_of"]:
            owners[o].add(s)
        elif p == predicate["knows"]:
            friends[s].add(o)
    users = sorted({user for accounts in owners.values() for user in accounts})
    persons = sorted(owners)
    second = [sum(made[u] for u in owners[person]) for person in persons]
    third = [sum(made[f] for u in owners[person] for f in friends[u]) for person in persons]
    return [(users, np.array([subjects[u] for u in users])), (persons, np.array(second)), (persons, np.array(third))]


def mean_rates(
    loops: list[Loop], size: int, seconds: float, repetitions: int, *, commits: bool = False
) -> tuple[float, float]:
    """Return executions a second over L1-L3, by processor time and by wall time: medians of repetitions. With
    `commits`, there is a commit to the store before each execution, which is not timed.
    """
    cpu, wall = [], []
    for _ in range(repetitions):
        each = [loop.microseconds(size, seconds, commits=commits) for loop in loops]
        cpu.append(1e6 / statistics.mean(c for c, _ in each))
        wall.append(1e6 / statistics.mean(w for _, w in each))
    return statistics.median(cpu), statistics.median(wall)


class Loop:
    """The plan and sources of a continuous query's last execution, to run again with other constants."""

    def __init__(
        self, engine: penstock.Engine, query: penstock.Query, constants: list[int], counts: NDArray[np.int64]
    ) -> None:
        self._core = engine._runtime.core
        cohort = query._member.cohort
        assert cohort is not None
        stored = self._core.store.view(())
        planned = cohort.group.current_plan(cohort, self._core, engine._runtime.streams, stored)
        assert planned.physical.member is not None
        self._plan, self._member = planned.native, planned.physical.member
        self._sources = [stored, *(window.source for window in cohort.windows)]
        self._windows = [(native_start(AT_MS - 1000), AT_MS) for _ in cohort.windows]
        self._ids = engine.encode(rdflib.URIRef(iri(number)) for number in constants)
        self._counts = counts
        self._predicate = engine.encode([rdflib.URIRef("http://lsbench.example/unused")])
        self._objects = engine.encode(rdflib.Literal(number) for number in range(4_096))
        self._commits = 0
        assert {clause.stream for clause in cohort.group.query.windows} <= {STREAMS + n for n in ("post", "gps")}

    def microseconds(self, size: int, seconds: float, *, commits: bool = False) -> tuple[float, float]:
        """Return the microseconds of processor time and of wall time for one member, in groups of `size`."""
        rng = np.random.default_rng(1)
        picks = [rng.integers(0, len(self._ids), size) for _ in range(max(3, min(_DRAWS, 40_000 // size)))]
        draws = [self._ids[pick] for pick in picks]
        members = np.arange(size, dtype=np.uint64)
        first = self._execute(members, draws[0])
        rows = first.column(list(first.slots).index(self._member))
        check(np.bincount(rows, minlength=size).tolist(), self._counts[picks[0]].tolist(), "rows by member")
        once = self._after_commits if commits else self._at_rest
        found, rounds, cpu, wall = 0, 0, 0.0, 0.0
        while wall < seconds:
            rows, *times = once(members, draws)
            found, rounds, cpu, wall = found + rows, rounds + 1, cpu + times[0], wall + times[1]
        check(found, rounds * int(sum(self._counts[pick].sum() for pick in picks)), "rows of all executions")
        done = rounds * len(draws) * size
        return cpu / done * 1e6, wall / done * 1e6

    def _at_rest(self, members: NDArray[np.uint64], draws: list[Any]) -> tuple[int, float, float]:
        """Execute once for each draw. Returns the rows, and the seconds of processor time and of wall time."""
        cpu, wall = time.thread_time(), time.perf_counter()
        rows = sum(self._execute(members, draw).rows for draw in draws)
        return rows, time.thread_time() - cpu, time.perf_counter() - wall

    def _after_commits(self, members: NDArray[np.uint64], draws: list[Any]) -> tuple[int, float, float]:
        """As `_at_rest`, with a commit before each execution. A commit displaces data from the caches; an execution for
        a few other members, which is not timed, brings them back.
        """
        rows, cpu, wall = 0, 0.0, 0.0
        others = np.arange(_OTHERS, dtype=np.uint64), self._ids[:_OTHERS]
        for draw in draws:
            self._commits += 1
            at = self._commits % len(self._objects)
            self._core.store.commit(self._ids[:1], self._predicate, self._objects[at : at + 1], _DEFAULT_GRAPH)
            self._sources[0] = self._core.store.view(())
            self._execute(*others)
            found, *times = self._at_rest(members, [draw])
            rows, cpu, wall = rows + found, cpu + times[0], wall + times[1]
        return rows, cpu, wall

    def _execute(self, members: NDArray[np.uint64], constants: Any) -> native.Result:
        """Execute, and take the columns of the answers in the order of members."""
        result = native.execute(
            self._plan,
            self._core.store.labels,
            self._core.dictionary,
            self._sources,
            (members, constants),
            seed_rows=len(members),
            now_ms=AT_MS,
            windows=self._windows,
        )
        if len(members) > 1:
            result.sort_by(self._member)
        for i in range(len(result.slots)):
            result.column(i)
        return result
