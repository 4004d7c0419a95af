"""A query set of a million members in an open loop, on one core.

Each step of 100 ms pushes the tuples of the paper's rate (133,480 a second). The latency is that from the close of the
batch to the Arrow table with the rows of all members. The window is that of L1, one second; with ISTREAM, the table has
only the new rows. The rows of the last step must equal those of brute force.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import penstock
from benchmarks.harness import Row, check
from penstock.core import _native as native

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness import Finding

COMMAND = "python -m benchmarks query_sets"
ADDED_TARGET, BYTES_TARGET, P50_TARGET, P99_TARGET = 500_000.0, 100.0, 20.0, 50.0
MEMBERS, POSTS, STEP_TUPLES, STEPS, WARM_STEPS, COMPARED_STEPS = 1_000_000, 200_000, 13_348, 200, 12, 40
_NEVER = 2**64 - 1
_STREAM, _POSTED = "http://example.org/posts", "http://example.org/posted"
_TEXT = (
    "REGISTER {} posts (?user) AS SELECT ?post FROM STREAM <http://example.org/posts> [RANGE 1s STEP 100ms]"
    " WHERE {{ ?user <http://example.org/posted> ?post }}"
)


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield rows for the additions and the memory of members, and for the latency of their results."""
    members, steps = (10_000, 12) if tiny else (MEMBERS, STEPS)
    for operator, what in (("QUERY", "all rows"), ("ISTREAM", "new rows")):
        with penstock.Engine() as engine:
            loop = _Loop(engine, operator, members)
            if operator == "QUERY":
                yield loop.additions()
            times = loop.play(WARM_STEPS, steps)
            if operator == "QUERY":
                yield loop.memory()
            yield Row(
                f"Query set, {members:,} members, {what}, evaluation with index to without",
                loop.indexed_to_plain(WARM_STEPS + steps, COMPARED_STEPS),
                "x",
                COMMAND,
                clock="cpu",
            )
            label = f"{members:,} members, {what}, batch closed to Arrow table"
            for name, target, share in (("p50", P50_TARGET, 50), ("p99", P99_TARGET, 99)):
                yield Row(
                    f"Query set, {label}, {name}",
                    float(np.percentile(times, share)) * 1e3,
                    "ms",
                    COMMAND,
                    target=target,
                    clock="wall",
                )


class _Loop:
    """A query set in an engine, and its events."""

    def __init__(self, engine: penstock.Engine, operator: str, members: int) -> None:
        self._engine, self._operator = engine, operator
        self._rng = np.random.default_rng(1)
        engine.declare_stream(_STREAM, timing="all")
        users = pa.array([f"http://example.org/user/{i}" for i in range(members)])
        self._dictionary = engine._runtime.core.dictionary
        self._posted = self._permanent([_POSTED])[0]
        self._posts = self._permanent([f"http://example.org/post/{i}" for i in range(POSTS)])
        self._users = self._permanent(users.to_pylist())  # known before, as the vertices of a stored graph are
        self._set = engine.register_set(_TEXT.format(operator), report="nonempty")
        gc.collect()
        began = time.perf_counter()
        check(self._set.add(pa.table({"user": users})).added, members, "added members")
        self.seconds = time.perf_counter() - began
        self._recent: list[tuple[Any, Any]] = []

    def additions(self) -> Row:
        """Return the rate of additions."""
        count = len(self._set)
        return Row(
            f"Query set, {count:,} members added from Arrow",
            count / self.seconds,
            "members/s",
            COMMAND,
            target=ADDED_TARGET,
            lower_is_better=False,
            clock="wall",
        )

    def memory(self) -> Row:
        """Return the memory of members, after the executions that build indexes."""
        count = len(self._set)
        return Row(
            f"Query set, memory of {count:,} members without their terms",
            self._bytes() / count,
            "bytes/member",
            COMMAND,
            target=BYTES_TARGET,
        )

    def play(self, warm: int, steps: int) -> list[float]:
        """Push `warm` and then `steps` batches. Returns the seconds from the close of each of the latter to its Arrow
        table.
        """
        times = []
        for step in range(warm + steps):
            self._push(step)
            began = time.perf_counter()
            self._engine.advance(_STREAM, (step + 1) * 100)
            tables = [found.to_arrow() for found in self._set.poll()]
            if step >= warm:
                times.append(time.perf_counter() - began)
        self._check(tables[-1])
        return times

    def indexed_to_plain(self, first: int, steps: int) -> float:
        """Return the ratio of the processor times of an instant with the index of the parameters, and without it."""
        times: tuple[list[float], list[float]] = [], []
        usual = native.index_seeds_from(_NEVER)
        for step in range(first, first + steps):
            indexed = step % 2
            native.index_seeds_from(usual if indexed else _NEVER)
            self._push(step)
            began = time.thread_time()
            self._engine.advance(_STREAM, (step + 1) * 100)
            times[indexed].append(time.thread_time() - began)
            self._set.poll()
        native.index_seeds_from(usual)
        return float(np.median(times[1]) / np.median(times[0]))

    def _push(self, step: int) -> None:
        at = np.sort(self._rng.integers(step * 100 + 1, step * 100 + 100, STEP_TUPLES))
        users = self._users[self._rng.integers(0, len(self._users), STEP_TUPLES)]
        posts = self._posts[self._rng.integers(0, POSTS, STEP_TUPLES)]
        self._recent = [*self._recent[-10:], (users, posts)]
        self._engine.push_columns(_STREAM, at, users, np.full(STEP_TUPLES, self._posted), posts)

    def _check(self, table: pa.Table) -> None:
        """Compare the rows of the last step with those of the pushed tuples. A window is a set of triples."""
        window = [set(zip(users.tolist(), posts.tolist(), strict=True)) for users, posts in self._recent]
        expected = set().union(*window[-10:])
        if self._operator == "ISTREAM":
            expected -= set().union(*window[:-1])
        rows = table.column("post").combine_chunks().field("value").to_pylist()
        keys = [self._dictionary.find(1, user) for user in table.column("user").to_pylist()]
        found = Counter(zip(keys, (self._dictionary.find(1, post) for post in rows), strict=True))
        check(found == Counter(expected), True, f"{len(expected)} rows of the last step, {found.total()} found")

    def _permanent(self, iris: list[str]) -> Any:
        ids = self._dictionary.intern_many([(1, iri, "", "") for iri in iris])
        self._dictionary.keep(ids)
        return ids

    def _bytes(self) -> int:
        """Return the size of all columns of members, of the index of keys, and of the indexed parameters. A column that
        is both a parameter and a key is one array.
        """
        member = self._set._member
        columns = [cohort.columns for cohort in member.set_group.set_cohorts()]
        arrays = {id(ids): ids for each in columns for ids in (each.numbers, *each.parameters, *each.keys)}
        seeds = sum(cohort.members.parameters.bytes for cohort in member.set_group.set_cohorts())
        return member.index.bytes() + seeds + sum(ids.nbytes for ids in arrays.values())
