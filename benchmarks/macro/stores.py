"""L1-L3 over two stores, one mapped and one reached only by TCP: group executions with half of the keys remote.

The loop and the checks are those of closed_loop. A commit before each execution makes an engine ask whether its lists
have grown; without a commit it need not ask. Rates are by the processor time of the engine's thread, since this
machine's cores serve the stores too. A separate row gives the share of a core that the remote store's process uses.
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, contextmanager
from itertools import product
from typing import TYPE_CHECKING

from benchmarks.harness import ROOT, Row
from benchmarks.macro import crossing
from benchmarks.macro.closed_loop import AT_MS, QUERIES, Loop, expected, mean_rates
from benchmarks.macro.processes import processor_s_of
from benchmarks.macro.sample import Events, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness import Finding
    from penstock.remote import Transport

COMMAND = "python -m benchmarks stores"
SIZES = (64, 1_024, 10_000)
SHARE = 1 / 3  # of the rate with everything in this process
_SECONDS = 0.5
_REPETITIONS = 3


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield rates with everything in this process, with both stores mapped, and with one of them remote."""
    if str(ROOT / "tests") not in sys.path:
        sys.path.append(str(ROOT / "tests"))
    sample = Sample()
    events = sample.events(1, AT_MS)
    sizes, seconds, repetitions = ((64,), 0.01, 1) if tiny else (SIZES, _SECONDS, _REPETITIONS)
    here: dict[tuple[int, bool], float] = {}
    for what, transports in _SETTINGS.items():
        with _loops(sample, events, transports) as (loops, remote):
            for size, commits in product(sizes, (True, False)):
                before, began = processor_s_of(remote), time.perf_counter()
                cpu, wall = mean_rates(loops, size, seconds, repetitions, commits=commits)
                here.setdefault((size, commits), cpu)
                when = "after a commit each" if commits else "nothing committed since"
                yield Row(
                    f"L1-L3 at x1, groups of {size}, {what}, {when}",
                    cpu,
                    "executions/s",
                    COMMAND,
                    target=here[size, commits] * SHARE if "tcp" in transports else None,
                    lower_is_better=False,
                    clock="cpu",
                    other_clock=wall,
                )
                if "tcp" in transports:
                    share = (processor_s_of(remote) - before) / (time.perf_counter() - began)
                    yield Row("- share of a core that the remote store took meanwhile", share, "", COMMAND)
    yield from crossing.run(tiny=tiny)


_SETTINGS: dict[str, list[Transport]] = {
    "everything in the engine": [],
    "both stores mapped": ["shm", "shm"],
    "half the keys over TCP": ["shm", "tcp"],
}


@contextmanager
def _loops(sample: Sample, events: Events, transports: list[Transport]) -> Iterator[tuple[list[Loop], int]]:
    """Yield loops over an engine in that setting, and the process of the last store."""
    from support.engine_over_stores import EngineOverStores  # noqa: PLC0415 - its path is `run`'s
    from support.store_processes import Place, StoreProcesses  # noqa: PLC0415 - likewise

    with ExitStack() as stack:
        over, remote = None, 0
        if transports:
            stores = stack.enter_context(StoreProcesses([Place()] * len(transports), len(transports)))
            over, remote = EngineOverStores(stores, transport=transports), stores.processes[-1].pid
        engine = stack.enter_context(sample.open(over))
        feed = events.encoded(engine)
        queries = [engine.register(sample.text(name)) for name in QUERIES]
        feed.begin()
        feed.play(0, AT_MS)
        parts = expected(sample, events)
        loops = [Loop(engine, query, *part) for query, part in zip(queries, parts, strict=True)]
        yield loops, remote
