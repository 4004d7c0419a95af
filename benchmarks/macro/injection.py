"""The cost to take in a batch of 100 ms of all LSBench streams: push_columns, absorption and slices, window index.

Two runs over the same batches: one without queries (push, and close: absorption into the stored graph and slices), one
with L1-L6 registered, where only the moves of their windows are timed (the window index, which the original calls its
stream index). The graph after absorption must equal the set union of the stored graph and the streams.
"""

from __future__ import annotations

import statistics
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from benchmarks.harness import Row, Spent, check, quantile, spent
from benchmarks.macro.lsbench import QUERIES
from benchmarks.macro.sample import BATCH_MS, Sample
from penstock.engine.windows.window_contents import SlidingWindow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness import Finding
    from benchmarks.macro.sample import Events

COMMAND = "python -m benchmarks injection"
ORIGINAL_US = {1: 190.0, 20: 1510.0, 100: 7090.0}
BATCHES = {1: 300, 20: 320, 100: 66}  # at x20 and x100 as long as the sample lasts
TARGET_US, TARGET_NS, TARGET_TAIL = 300.0, 400.0, 4.0


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield rows for the rates x1, x20 and x100."""
    sample = Sample()
    for scale, batches in ({1: 12} if tiny else BATCHES).items():
        events = sample.events(scale, batches * BATCH_MS)
        pushes, closes, tuples = _inject(sample, events, batches)
        moves = _index(sample, events, batches)
        yield from _rows(scale, pushes, closes, moves, tuples)


def _rows(scale: int, pushes: list[Spent], closes: list[Spent], moves: list[Spent], tuples: list[int]) -> Iterator[Row]:
    start = len(tuples) // 4  # by then, tables have their final size
    parts = list(zip(pushes, closes, moves, strict=True))[start:]
    wall = [sum(part.wall for part in batch) for batch in parts]
    cpu = [sum(part.cpu for part in batch) for batch in parts]
    size = statistics.mean(tuples[start:])
    batch = f"100 ms batch of {size:.0f} tuples at x{scale}"
    original = ("Wukong+S (noted)", ORIGINAL_US[scale])
    yield Row(
        f"Injection: push_columns, absorption, slices, index; {batch}, p50",
        statistics.median(cpu),
        "µs",
        COMMAND,
        *original,
        TARGET_US if scale == 20 else None,
        clock="cpu",
        other_clock=statistics.median(wall),
    )
    for name, times in (("push_columns", pushes), ("close (absorption, slices)", closes), ("index", moves)):
        middle = Spent(
            statistics.median(t.wall for t in times[start:]), statistics.median(t.cpu for t in times[start:])
        )
        yield Row(f"- of that {name}", middle.cpu, "µs", COMMAND, clock="cpu", other_clock=middle.wall)
    yield Row(
        f"Injection: a tuple at x{scale}, p50",
        statistics.median(cpu) / size * 1000,
        "ns",
        COMMAND,
        target=TARGET_NS if scale > 1 else None,
        clock="cpu",
        other_clock=statistics.median(wall) / size * 1000,
    )
    yield Row(
        f"Injection: p99 of a batch over its p50, at x{scale}",
        quantile(cpu, 0.99) / statistics.median(cpu),
        "times",
        COMMAND,
        target=TARGET_TAIL,
        clock="cpu",
        other_clock=quantile(wall, 0.99) / statistics.median(wall),
    )


def _inject(sample: Sample, events: Events, batches: int) -> tuple[list[Spent], list[Spent], list[int]]:
    """Return for each batch of all streams the times of pushing and of closing it, without queries, and its tuples."""
    pushes, closes, counts = [], [], []
    with sample.open() as engine:
        feed = events.encoded(engine)
        feed.begin()
        for k in range(1, batches + 1):
            parts = feed.cut(BATCH_MS * (k - 1), BATCH_MS * k)  # the columns that a producer has at hand
            pushes.append(spent(lambda: counts.append(feed.push_cut(parts))))  # noqa: B023
            closes.append(spent(lambda: engine.advance(None, BATCH_MS * k)))  # noqa: B023
        timeless = [events.held(name, 0, batches * BATCH_MS) for name in sample.names if name != "gps"]
        check(engine.stats()["triples"], len(set(sample.stored).union(*timeless)), "triples stored after injection")
    return pushes, closes, counts


def _index(sample: Sample, events: Events, batches: int) -> list[Spent]:
    """Return for each batch the time to move all windows of L1-L6."""
    with sample.open() as engine, _moves() as moves:
        feed = events.encoded(engine)
        queries = [engine.register(sample.text(name)) for name in QUERIES]
        feed.begin()
        spent_by_batch = []
        for k in range(1, batches + 1):
            feed.push(BATCH_MS * (k - 1), BATCH_MS * k)
            moves.clear()
            engine.advance(None, BATCH_MS * k)
            spent_by_batch.append(Spent(sum(m.wall for m in moves), sum(m.cpu for m in moves)))
            for query in queries:
                check(len(query.poll()), 1, "evaluations of a query at an instant")
    return spent_by_batch


@contextmanager
def _moves() -> Iterator[list[Spent]]:
    """Yield the times of windows' moves while the context lasts, except moves that change nothing."""
    moves: list[Spent] = []
    move = SlidingWindow.move

    def timed(window: SlidingWindow, time: int) -> Any:
        before, bounds = (window.content.start, window.content.end), []
        took = spent(lambda: bounds.append(move(window, time)))
        if (window.content.start, window.content.end) != before:
            moves.append(took)
        return bounds[0]

    try:
        SlidingWindow.move = timed  # type: ignore[method-assign, assignment]
        yield moves
    finally:
        SlidingWindow.move = move  # type: ignore[method-assign]
