"""L1-L3 over two store nodes, one mapped and one reached by TCP alone: group executions with half the keys remote.

The loop is closed_loop's, answers checked likewise. A commit before each execution makes an engine ask of every list
whether it has grown; where nothing was committed since, it knows. Rates are by the processor time of the engine's
thread, since this machine's cores serve the nodes too; what the remote node's process takes of a core meanwhile is a
row of its own.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from itertools import product
from typing import TYPE_CHECKING

from benchmarks.harness import Row
from benchmarks.macro import crossing
from benchmarks.macro.closed_loop import AT_MS, QUERIES, Loop, expected, mean_rates
from benchmarks.macro.processes import processor_s_of
from benchmarks.macro.sample import Events, Sample
from benchmarks.macro.store_nodes import SECRET, store_node
from penstock.node import Nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness import Finding
    from penstock.remote import Transport

COMMAND = "python -m benchmarks nodes"
SIZES = (64, 1_024, 10_000)
SHARE = 1 / 3  # of the rate with everything here
_SECONDS = 0.5
_REPETITIONS = 3


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Rates with everything in this process, with both nodes mapped, and with one of them remote."""
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
                    yield Row("- share of a core that the remote node took meanwhile", share, "", COMMAND)
    yield from crossing.run(tiny=tiny)


_SETTINGS: dict[str, list[Transport]] = {
    "everything in the engine": [],
    "both nodes mapped": ["shm", "shm"],
    "half the keys over TCP": ["shm", "tcp"],
}


@contextmanager
def _loops(sample: Sample, events: Events, transports: list[Transport]) -> Iterator[tuple[list[Loop], int]]:
    """Loops over an engine in that setting, and the process that the last node is."""
    with ExitStack() as stack:
        nodes = None
        processes = [stack.enter_context(store_node(number, len(transports))) for number in range(len(transports))]
        if processes:
            addresses, secret = [address for _, address in processes], SECRET
            nodes = Nodes(addresses, secret, transport=transports)
        engine = stack.enter_context(sample.open(nodes))
        feed = events.encoded(engine)
        queries = [engine.register(sample.text(name)) for name in QUERIES]
        feed.begin()
        feed.play(0, AT_MS)
        parts = expected(sample, events)
        loops = [Loop(engine, query, *part) for query, part in zip(queries, parts, strict=True)]
        yield loops, processes[-1][0] if processes else 0
