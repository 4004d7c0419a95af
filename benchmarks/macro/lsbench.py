"""L1-L6 of LSBench on its id-coded sample, as Wukong+S measured them (SOSP'17 §6.2).

Windows are 1 s / 100 ms, with one query in an engine. Times are those of the second half of the windows; the rows of
every window are checked against brute force. Between two executions (100 ms of stream), pushed and closed batches
displace data from the caches; separate rows give the time of an execution that is repeated at once. The peer is the
original engine on this kind of machine (shared notes), at the same rates.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.core_time import clock_cost_us, core_times
from benchmarks.harness import Point, Row, check, spent
from benchmarks.macro.sample import BATCH_MS, Events, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness import Finding

COMMAND = "python -m benchmarks lsbench"
QUERIES = ("L1", "L2", "L3", "L4", "L5", "L6")
ORIGINAL_US = {
    1: dict(zip(QUERIES, (28, 3.0, 112, 48, 994, 256), strict=True)),
    20: dict(zip(QUERIES, (37, 3.3, 123, 928, 17436, 4227), strict=True)),
    100: dict(zip(QUERIES, (44, 4.4, 139, 6030, 93564, 22406), strict=True)),
}
TARGET_US = dict(zip(QUERIES, (3, 2, 8, 80, 250, 50), strict=True))
WINDOWS = {1: 100, 5: 60, 20: 60, 50: 40, 100: 20}
REPETITIONS = 3
_AGAIN = 15


@dataclass(frozen=True, slots=True)
class Played:
    """The rows of every window, and medians in µs: in the core by both clocks, with warm caches (0 if not measured),
    and from the close to the polled rows.
    """

    rows: list[int]
    wall: float
    cpu: float
    warm: float
    delivered: float


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield rows for the rates with targets, and points for some rates between."""
    sample = Sample()
    for scale, windows in ({1: 4} if tiny else WINDOWS).items():
        expected = sample.script.counts(scale, windows)
        events = sample.events(scale, windows * BATCH_MS)
        repetitions = REPETITIONS if scale in ORIGINAL_US and not tiny else 1
        for name in QUERIES:
            plays = [_play(sample, events, name, windows) for _ in range(repetitions)]
            for played in plays:
                check(played.rows, expected[name], f"{name} at x{scale}, rows by window")
            wall, cpu, delivered = (
                statistics.median(getattr(played, what) for played in plays) for what in ("wall", "cpu", "delivered")
            )
            yield Point("latency", name, scale, cpu)
            if scale in ORIGINAL_US:
                yield _row(name, scale, cpu, wall)
            if scale == 20:
                warm = _play(sample, events, name, windows, again=_AGAIN).warm
                yield Row(f"- {name} at x20, the same execution again at once", warm, "µs", COMMAND, clock="wall")
                what = f"- {name} at x20, from the close of 5 streams' batches to rows polled, Python API"
                yield Row(what, delivered, "µs", COMMAND, clock="wall")


def _row(name: str, scale: int, cpu: float, wall: float) -> Row:
    original = ORIGINAL_US[scale][name]
    return Row(
        f"LSBench {name} at x{scale}, in the core, p50",
        cpu,
        "µs",
        COMMAND,
        "Wukong+S (noted)",
        original,
        TARGET_US[name] if scale == 20 else original / 3,
        clock="cpu",
        other_clock=wall,
    )


def _play(sample: Sample, events: Events, name: str, windows: int, again: int = 0) -> Played:
    with sample.open() as engine, core_times(again) as seen:
        feed = events.encoded(engine)
        query = engine.register(sample.text(name))
        feed.begin()
        rows: list[int] = []

        def close_and_poll() -> None:
            engine.advance(None, BATCH_MS * k)
            rows.extend(len(evaluation.answer) for evaluation in query.poll())  # type: ignore[arg-type]

        closes = []
        for k in range(1, windows + 1):
            feed.push(BATCH_MS * (k - 1), BATCH_MS * k)
            closes.append(spent(close_and_poll).wall)
        cost = clock_cost_us(engine._runtime.core)
    wall = [time for executions in seen.values() for time in executions.wall]
    cpu = [time for executions in seen.values() for time in executions.busy(cost)]
    warm = [time for executions in seen.values() for time in executions.warm]
    late = windows // 2
    return Played(
        rows,
        statistics.median(wall[late:]),
        statistics.median(cpu[late:]),
        statistics.median(warm[late:]) if again else 0.0,
        statistics.median(closes[late:]),
    )
