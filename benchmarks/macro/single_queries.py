"""A hundred thousand separately registered queries of one group, embedded, on one core.

Each step of 100 ms pushes the tuples of the paper's rate (133,480 a second), and all queries fire. Their evaluations
are consumed through `Engine.poll` or, for comparison, through `Query.poll` of each query. The rows of each step must
equal those of brute force.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

import penstock
from benchmarks.harness import Row, check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.harness import Finding

COMMAND = "python -m benchmarks single_queries"
POLLED_TARGET = 1.0
QUERIES, STEP_TUPLES, STEPS = 100_000, 13_348, 10
_STREAM = "http://example.org/posts"
_TEXT = (
    "REGISTER QUERY q{0} AS SELECT ?post FROM STREAM <http://example.org/posts> [RANGE 100ms STEP 100ms]"
    " WHERE {{ <http://example.org/user/{0}> <http://example.org/posted> ?post }}"
)


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield rows for the processor time of an evaluation that is polled."""
    queries, steps = (500, 3) if tiny else (QUERIES, STEPS)
    with penstock.Engine() as engine:
        engine.declare_stream(_STREAM, timing="all")
        handles = [engine.register(_TEXT.format(number)) for number in range(queries)]
        loop = _Loop(engine, queries)
        together = loop.play(steps, engine.poll)
        apart = loop.play(3, lambda: [found for handle in handles for found in handle.poll()])
    yield Row(
        f"{queries:,} queries of one group, an evaluation through Engine.poll",
        together,
        "us",
        COMMAND,
        target=POLLED_TARGET,
        clock="cpu",
    )
    yield Row(f"{queries:,} queries of one group, an evaluation through Query.poll", apart, "us", COMMAND, clock="cpu")


class _Loop:
    """The events of an engine's queries."""

    def __init__(self, engine: penstock.Engine, queries: int) -> None:
        self._engine, self._queries, self._time = engine, queries, 0
        self._rng = np.random.default_rng(1)
        dictionary = engine._runtime.core.dictionary
        iris = ["posted", *(f"user/{i}" for i in range(queries)), *(f"post/{i}" for i in range(queries))]
        ids = dictionary.intern_many([(1, f"http://example.org/{iri}", "", "") for iri in iris])
        dictionary.keep(ids)
        self._posted, self._users, self._posts = ids[0], ids[1 : queries + 1], ids[queries + 1 :]
        engine.advance(_STREAM, 0)

    def play(self, steps: int, poll: Callable[[], Sequence[penstock.Evaluation]]) -> float:
        """Push batches and consume the evaluations of each. Returns the median time of an evaluation in µs, in which a
        loop has visited it.
        """
        times = []
        for _ in range(steps):
            expected = self._push()
            began, count = time.thread_time(), 0
            for _evaluation in (taken := poll()):
                count += 1
            times.append(time.thread_time() - began)
            check(count, self._queries, "evaluations")
            rows = {found.query: size for found in taken if (size := len(_rows(found)))}
            check(rows, expected, "rows of each query")
        return float(np.median(times)) / self._queries * 1e6

    def _push(self) -> dict[str, int]:
        """Push a batch and close it. Returns the numbers of rows by query, without zeros."""
        at = np.sort(self._rng.integers(self._time + 1, self._time + 100, STEP_TUPLES))
        users, posts = self._rng.integers(0, self._queries, (2, STEP_TUPLES))
        posted = np.full(STEP_TUPLES, self._posted)
        self._engine.push_columns(_STREAM, at, self._users[users], posted, self._posts[posts])
        self._time += 100
        self._engine.advance(_STREAM, self._time)
        triples = set(zip(users.tolist(), posts.tolist(), strict=True))
        return Counter(f"q{user}" for user, _ in triples)


def _rows(evaluation: penstock.Evaluation) -> Any:
    return evaluation.answer
