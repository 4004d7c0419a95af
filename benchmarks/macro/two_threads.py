"""Injection on one thread and one-shot queries on another, in one process: how much each slows the other.

First, one copy and two copies of calibrate.c show how much two busy cores slow each other. Then come, in turns:
injection alone, queries alone, both; first with injection in a loop without pause, then at the stream's own rate, one
batch each 100 ms. The queries cannot reach the injected vertices, so their answers do not depend on the progress of the
injection.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.core_time import core_times
from benchmarks.harness import LeftOutError, Row, Spent, calibrate, check, spent
from benchmarks.macro.sample import BATCH_MS, Sample, iri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import penstock
    from benchmarks.harness import Finding
    from benchmarks.macro.sample import Feed

COMMAND = "python -m benchmarks two_threads"
RATE, LAP_BATCHES = 20, 330
_SHIFT = 10_000_000
_TRIES = 3


class Size(NamedTuple):
    """How long each setting runs. `laps`: repetitions of the sample, to inject in all turns together."""

    laps: int
    turns: int
    turn_s: float
    paced_s: float  # of a turn with batches at the stream's rate


WHOLE, TINY = Size(40, 6, 0.1, 1.0), Size(2, 1, 0.01, 0.2)


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield rows for short queries (most of their time is Python's) and for long ones (most is the core's)."""
    if (os.cpu_count() or 1) < 2:
        raise LeftOutError("two threads need two cores")
    alone, both = ({"hash_ns": 1.0}, {"hash_ns": 1.0}) if tiny else (calibrate(1, _TRIES), calibrate(2, _TRIES))
    allowed = max(both[name] / alone[name] for name in alone if name.endswith("_ns"))
    yield Row("Two copies of calibrate.c at once against one: the largest factor", allowed, "times", COMMAND)
    sample = Sample()
    knows = f"<{iri(sample.script.P['knows'])}>"
    owner, person = f"<{iri(sample.script.P['account_of'])}>", f"<{iri(sample.script.constants()['sibp:p864'])}>"
    for name, text in (
        ("short", f"SELECT ?f WHERE {{ ?u {owner} {person} . ?u {knows} ?f }}"),
        ("long", f"SELECT (COUNT(*) AS ?n) WHERE {{ ?a {knows} ?b . ?b {knows} ?c }}"),
    ):
        yield from _pair(sample, name, text, allowed, TINY if tiny else WHOLE)


def _pair(sample: Sample, name: str, text: str, allowed: float, size: Size) -> Iterator[Row]:
    expected = _expected(sample)[name]
    events = sample.events(RATE, LAP_BATCHES * BATCH_MS)
    lap_ms = LAP_BATCHES * BATCH_MS
    with sample.open() as engine, core_times() as seen:
        feeds = [events.encoded(engine, shift=(lap + 1) * _SHIFT, later_ms=lap * lap_ms) for lap in range(size.laps)]
        feeds[0].begin()
        injection = _injection(engine, feeds)

        def ask() -> None:
            rows = engine.query(text)
            value = int(next(iter(rows))["n"]) if name == "long" else len(rows)  # type: ignore[arg-type, index]
            check(value, expected, f"the {name} query beside injection")

        ask()
        times: dict[str, list[Spent]] = defaultdict(list)
        for _ in range(size.turns):
            for setting, chosen in (("alone", (injection,)), ("alone", (ask,)), ("both", (injection, ask))):
                executions = next(iter(seen.values()))
                before = len(executions.wall)
                for call, took in zip(chosen, _at_once(size.turn_s, *chosen), strict=True):
                    times[f"{'injection' if call is injection else 'query'} {setting}"].append(took)
                if ask in chosen:
                    core = (statistics.median(part[before:]) for part in (executions.wall, executions.cpu))
                    times[f"core {setting}"].append(Spent(*core))
            for setting, others in (("alone", ()), ("both", (ask,))):
                paced = _Paced(injection)
                _, *queries = _at_once(size.paced_s, paced, *others)
                times[f"paced {setting}"].append(_medians(paced.took))
                times[f"beside paced {setting}"] += queries or times["query alone"][-1:]
    queries, slowly = f"{name} one-shot queries", f"a batch in {BATCH_MS} ms"
    for what, title in (
        ("injection", f"Injection at x{RATE} beside {queries} against alone"),
        ("query", f"{queries.capitalize()} beside injection against alone, through Python"),
        ("core", f"{queries.capitalize()} beside injection against alone, in the core, p50"),
        ("paced", f"Injection at x{RATE}, {slowly}, beside {queries} against alone"),
        ("beside paced", f"{queries.capitalize()} beside injection of {slowly} against alone, through Python"),
    ):
        one, two = (_medians(times[f"{what} {setting}"]) for setting in ("alone", "both"))
        yield Row(
            f"{title} ({one.wall:,.0f} to {two.wall:,.0f} µs)",
            two.wall / one.wall,
            "times",
            COMMAND,
            target=allowed,
            clock="wall",
            other_clock=two.cpu / one.cpu,
        )


def _medians(times: list[Spent]) -> Spent:
    return Spent(statistics.median(t.wall for t in times), statistics.median(t.cpu for t in times))


def _expected(sample: Sample) -> dict[str, int]:
    number, person = sample.script.P, sample.script.constants()["sibp:p864"]
    stored = set(sample.stored)
    friends = defaultdict(set)
    for s, p, o in stored:
        if p == number["knows"]:
            friends[s].add(o)
    owners = [s for s, p, o in stored if p == number["account_of"] and o == person]
    return {
        "short": sum(len(friends[user]) for user in owners),
        "long": sum(len(friends.get(b, ())) for known in list(friends.values()) for b in known),
    }


def _injection(engine: penstock.Engine, feeds: list[Feed]) -> Callable[[], None]:
    """Return a function that pushes and closes the next batch of all streams. The batches are cut in advance."""
    cuts = [
        feed.cut(BATCH_MS * batch, BATCH_MS * (batch + 1))
        for lap, feed in enumerate(feeds)
        for batch in range(lap * LAP_BATCHES, (lap + 1) * LAP_BATCHES)
    ]
    batches = iter(enumerate(cuts, 1))

    def inject() -> None:
        batch, cut = next(batches, (0, None))
        if cut is None:
            raise _ExhaustedError(f"more than {len(cuts)} batches were injected: the laps are too few")
        feeds[0].push_cut(cut)
        engine.advance(None, BATCH_MS * batch)

    return inject


class _Paced:
    """Calls a function at the rate of batches, and measures each call."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._due = time.perf_counter()
        self.took: list[Spent] = []

    def __call__(self) -> None:
        """Wait until the next batch is due, and push it."""
        self._due += BATCH_MS / 1000
        time.sleep(max(0.0, self._due - time.perf_counter()))
        self.took.append(spent(self._call))


class _ExhaustedError(Exception):
    """No batch is left. A turn without batches would look as if injection had no cost."""


def _at_once(turn_s: float, *calls: Callable[[], None]) -> list[Spent]:
    """Repeat each call for a turn, each on its own thread. Returns the mean times of each call."""
    took, errors = [Spent(0, 0)] * len(calls), []
    start = threading.Barrier(len(calls))

    def loop(i: int) -> None:
        start.wait()
        began, cpu, done = time.perf_counter(), time.thread_time(), 0
        try:
            while time.perf_counter() - began < turn_s:
                calls[i]()
                done += 1
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            errors.append(error)
        wall, cpu = time.perf_counter() - began, time.thread_time() - cpu
        took[i] = Spent(wall / max(done, 1) * 1e6, cpu / max(done, 1) * 1e6)  # 0 calls if the first one failed

    threads = [threading.Thread(target=loop, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return took
