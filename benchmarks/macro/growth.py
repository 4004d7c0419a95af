"""Whether latency grows with the data: L1-L3 with 50 times the stored graph, and with a window of 100 s.

The stored graph grows by copies with other names: answers stay the same, and every table is fifty times as large. The
two settings of a comparison run in turn, in one process; rows are checked against brute force. The cost of a window is
the mean of its executions, each the median of repeated runs. An execution that can keep the last step's answer
(docs/adr/0048) is much faster than others. About half of them can, so the p50 mainly tells which kind is in the
majority.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from typing import TYPE_CHECKING

from benchmarks.core_time import clock_cost_us, core_times
from benchmarks.harness import Row, check
from benchmarks.macro.sample import BATCH_MS, Events, Sample, iri

if TYPE_CHECKING:
    from collections.abc import Iterator

    import penstock
    from benchmarks.harness import Finding

COMMAND = "python -m benchmarks growth"
QUERIES = ("L1", "L2", "L3")
COPIES = 50
RATE, WINDOWS = 20, 60
LONG_RATE, LONG_STEPS, LONG_PLAYS = 4, 60, 3
_SHIFT = 10_000_000  # above every number of the sample


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield rows for stored data and for windows."""
    sample = Sample()
    yield from _stored(sample, 2 if tiny else COPIES, 6 if tiny else WINDOWS)
    yield from _windows(sample, (1, 2) if tiny else (10, 100), 4 if tiny else LONG_STEPS)


# ---- stored data
def _stored(sample: Sample, copies: int, windows: int) -> Iterator[Row]:
    events = sample.events(RATE, windows * BATCH_MS)
    expected = sample.script.counts(RATE, windows)
    times: dict[int, dict[str, float]] = {}
    for factor in (1, copies):
        with sample.open() as engine:
            for copy in range(1, factor):
                engine.load(_copy(sample, copy * _SHIFT), format="nt")
            check(engine.stats()["triples"], factor * len(set(sample.stored)), "stored triples")
            rows, taken = _play(events, engine, {n: sample.text(n) for n in QUERIES}, windows)
        times[factor] = {name: statistics.median(taken[name][-(windows // 2) :]) for name in QUERIES}
        for name in QUERIES:
            check(rows[name], expected[name], f"{name} with {factor} copies of the stored graph")
    for name in QUERIES:
        small, large = times[1][name], times[copies][name]
        what = f"{name} at x{RATE}, in the core, p50: stored data x{copies} against x1 ({small:.2g} to {large:.2g} µs)"
        yield Row(what, large / small, "times", COMMAND, target=1.5, clock="cpu")


def _copy(sample: Sample, shift: int) -> bytes:
    """Return the stored graph with other vertices and the same predicates."""
    return "".join(f"<{iri(s + shift)}> <{iri(p)}> <{iri(o + shift)}> .\n" for s, p, o in sample.stored).encode()


# ---- windows
def _windows(sample: Sample, seconds: tuple[int, int], steps: int) -> Iterator[Row]:
    """Yield the costs of L1-L3 with windows of both lengths at the same instants, when both windows are full."""
    end = seconds[1] * 1000 + steps * BATCH_MS
    events = sample.events(LONG_RATE, end)
    instants = range(seconds[1] * 1000 + BATCH_MS, end + 1, BATCH_MS)
    times: dict[int, dict[str, list[float]]] = {}
    means: dict[int, dict[str, float]] = {}
    sizes = {s: statistics.mean(len(events.held("post", t - s * 1000, t)) for t in instants[:3]) for s in seconds}
    for length in seconds:
        texts = {n: re.sub(r"RANGE 1s", f"RANGE {length}s", sample.text(n)) for n in QUERIES}
        plays = []
        for _ in range(LONG_PLAYS):
            with sample.open() as engine:
                rows, taken = _play(events, engine, texts, end // BATCH_MS)
            plays.append(taken)
        times[length] = {
            name: [statistics.median(same) for same in zip(*(taken[name][-steps:] for taken in plays), strict=True)]
            for name in QUERIES
        }
        for at in (0, -1):
            t = instants[at]
            for name, expected in _counts(sample, events, t - length * 1000, t).items():
                check(rows[name][t // BATCH_MS - 1], expected, f"{name} with a window of {length} s, at {t}")
        means[length] = {name: statistics.mean(rows[name][-steps:]) for name in QUERIES}
    for name in QUERIES:
        short, long = (statistics.mean(times[length][name]) for length in seconds)
        middle = " to ".join(f"{statistics.median(times[length][name]):.2g}" for length in seconds)
        yield Row(
            f"{name}, in the core, mean: window of {seconds[1]} s ({sizes[seconds[1]]:,.0f} posts) against "
            f"{seconds[0]} s ({sizes[seconds[0]]:,.0f}); rows {means[seconds[0]][name]:.0f} to "
            f"{means[seconds[1]][name]:.0f}, {short:.2g} to {long:.2g} µs (p50 {middle})",
            long / short,
            "times",
            COMMAND,
            target=2.0,
            clock="cpu",
        )


def _counts(sample: Sample, events: Events, after: int, until: int) -> dict[str, int]:
    """Return by brute force the number of rows of L1, L2 and L3 for a window (after, until]."""
    number, constant = sample.script.P, sample.script.constants()
    post, gps = (events.held(name, after, until) for name in ("post", "gps"))
    stored = set(sample.stored)
    for stream in set(sample.names) - {"gps"}:
        stored |= events.held(stream, 0, until)
    made = Counter(s for s, p, _ in post if p == number["creator_of"])
    owners = {s for s, p, o in stored if p == number["account_of"] and o == constant["sibp:p864"]}
    friends = [o for s, p, o in stored if p == number["knows"] and s in owners]
    return {
        "L1": sum(s == constant["sibu:u864"] for s, _, _ in post | gps),
        "L2": sum(made[user] for user in owners),
        "L3": sum(made[friend] for friend in friends),
    }


# ---- both
def _play(
    events: Events, engine: penstock.Engine, texts: dict[str, str], windows: int
) -> tuple[dict[str, list[int]], dict[str, list[float]]]:
    """Return by query the rows of every window, and the time of every execution in the core in µs."""
    with core_times() as seen:
        feed = events.encoded(engine)
        queries = {name: engine.register(text) for name, text in texts.items()}
        feed.begin()
        rows: dict[str, list[int]] = {name: [] for name in queries}
        for batch in range(windows):
            feed.play(batch * BATCH_MS, (batch + 1) * BATCH_MS)
            for name, query in queries.items():
                rows[name] += [len(evaluation.answer) for evaluation in query.poll()]  # type: ignore[arg-type]
    cost, taken = clock_cost_us(engine._runtime.core), {}
    for name, query in queries.items():
        plan = query._member.group.plan
        assert plan is not None
        taken[name] = seen[id(plan.native)].busy(cost)
    return rows, taken
