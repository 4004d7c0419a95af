"""A hundred thousand separately registered queries of one group, embedded, on one core.

Each step of 100 ms pushes the tuples of the paper's rate (133,480 a second), and all queries fire. Their evaluations
are consumed through `Engine.poll` or, for comparison, through `Query.poll` of each query. The rows of each step must
equal those of brute force.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import penstock
from benchmarks.harness import Row, check

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from benchmarks.harness import Finding

COMMAND = "python -m benchmarks single_queries"
POLLED_TARGET, REGISTERED_TARGET, BYTES_TARGET = 1.0, 60.0, 1024.0
QUERIES, STEP_TUPLES, STEPS = 100_000, 13_348, 10
_STREAM = "http://example.org/posts"
_TEXT = (
    "REGISTER QUERY q{0} AS SELECT ?post FROM STREAM <http://example.org/posts> [RANGE 100ms STEP 100ms]"
    " WHERE {{ <http://example.org/user/{0}> <http://example.org/posted> ?post }}"
)


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield rows for the cost of a registration, and of an evaluation that is polled."""
    queries, steps = (500, 3) if tiny else (QUERIES, STEPS)
    with penstock.Engine() as engine:
        engine.declare_stream(_STREAM, timing="all")
        loop = _Loop(engine, queries)
        handles = yield from _register(engine, queries)
        engine.advance(_STREAM, 0)
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


def _register(engine: penstock.Engine, queries: int) -> Generator[Row, None, list[penstock.Query]]:
    """Register queries, whose terms the engine knows. Yields rows for the processor time and memory of each, and
    returns them.
    """
    texts = [_TEXT.format(number) for number in range(queries)]
    first = [engine.register(text) for text in texts[:2]]  # parsed and planned
    gc.collect()
    held, began = _resident_bytes() - sum(map(sys.getsizeof, texts)), time.thread_time()
    handles = first + [engine.register(text) for text in texts[2:]]
    taken = time.thread_time() - began
    gc.collect()
    label = f"{queries:,} queries of one group, registered one by one"
    yield Row(label, taken / queries * 1e6, "us", COMMAND, target=REGISTERED_TARGET, clock="cpu")
    yield Row(f"{label}, memory", (_resident_bytes() - held) / queries, "bytes", COMMAND, target=BYTES_TARGET)
    return handles


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


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
