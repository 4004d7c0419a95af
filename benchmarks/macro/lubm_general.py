"""Twenty general one-shot queries over LUBM-10 as SPARQL Results JSON, beside pyoxigraph and sparq-rdf in the same run.

Each engine uses its fastest way from a text to a JSON document; the text is the same string each time. The answers are
compared as bags of solutions, and as lists where ORDER BY gives one order. sparq-rdf uses several threads for some
queries. The figure of a peer is therefore the smaller of its wall time and the processor time of all its threads.
"""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING

import penstock
from benchmarks.harness import Row, Spent, check
from benchmarks.macro import lubm_data
from benchmarks.macro.general_queries import LISTS, ORDERED, TEXTS
from benchmarks.macro.lubm_json import answering

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.harness import Finding
    from benchmarks.macro.lubm_json import Answering

COMMAND = "python -m benchmarks lubm_general"
_DECIMAL = "http://www.w3.org/2001/XMLSchema#decimal"
_SECONDS = 0.2  # calls of one engine for one query are repeated for so long
_REPEATS = (5, 301)  # but at least and at most so often

_Term = tuple[str, str, str, str]  # variable, type, value, datatype or language
_Solution = tuple[_Term, ...]


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield a row for each query."""
    size = 1 if tiny else 10
    data = lubm_data.whole(size)
    peers = answering(data)
    with penstock.Engine() as engine:
        engine.load(data)
        for name, text in TEXTS.items():
            yield _row(engine, peers, name, text, f"LUBM-{size}, {name}", tiny=tiny)


def _row(engine: penstock.Engine, peers: dict[str, Answering], name: str, text: str, what: str, *, tiny: bool) -> Row:
    def answer() -> str:
        return engine.query(text).to_json()  # type: ignore[union-attr]

    solutions = _solutions(answer())
    for peer_name, peer in peers.items():
        found = _solutions(peer(text))
        if found != solutions:
            missing, extra = Counter(solutions) - Counter(found), Counter(found) - Counter(solutions)
            check(extra, missing, f"{what}: solutions that only {peer_name} has, and that it does not have")
            if name in ORDERED:
                check(found, solutions, f"{what}: the order of {peer_name}")
    ours = _median(answer, tiny=tiny)
    theirs = {name: _median(lambda: peer(text), tiny=tiny) for name, peer in peers.items()}  # noqa: B023
    figures = {name: min(spent.cpu, spent.wall) for name, spent in theirs.items()}
    best = min(figures, key=lambda name: figures[name])
    return Row(
        f"{what} ({len(solutions)} rows) as JSON, Python API, same text again",
        ours.cpu,
        "µs",
        COMMAND,
        f"{best}, the faster of {' and '.join(peers)}",
        figures[best],
        figures[best],
        clock="cpu",
        other_clock=ours.wall,
    )


def _median(call: Callable[[], object], *, tiny: bool) -> Spent:
    """Return the medians of wall time and of the processor time of all threads, in µs, after one call."""
    began = time.perf_counter()
    call()
    fewest, most = _REPEATS
    repeats = 2 if tiny else max(fewest, min(most, int(_SECONDS / (time.perf_counter() - began))))
    wall, cpu = [], []
    for _ in range(repeats):
        wall_ns, cpu_ns = time.perf_counter_ns(), time.process_time_ns()
        call()
        cpu.append((time.process_time_ns() - cpu_ns) / 1000)
        wall.append((time.perf_counter_ns() - wall_ns) / 1000)
    return Spent(statistics.median(wall), statistics.median(cpu))


def _solutions(document: str | bytes) -> list[_Solution]:
    return [
        tuple(sorted(_term(name, term) for name, term in row.items()))
        for row in json.loads(document)["results"]["bindings"]
    ]


def _term(name: str, term: dict[str, str]) -> _Term:
    value, datatype = term["value"], term.get("datatype", "")
    if name in LISTS:
        value = " ".join(sorted(value.split(" ")))
    if datatype == _DECIMAL:  # the engines round quotients at different digits
        value = str(round(Decimal(value), 12))
    return name, term["type"], value, datatype or term.get("xml:lang", "")
