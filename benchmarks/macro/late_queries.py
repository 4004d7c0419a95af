"""Queries that begin in the past (ADR 87): how much faster than real time they catch up, and what a retention costs.

A stream has ten events a second. The queries have a window of 10 s and a step of 1 s. One reads the window alone; one
counts per subject; one joins the window with what its own stream has absorbed. The last one counts all that the stream
has absorbed, which is one list.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import penstock
from benchmarks.harness import Row, check

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = "python -m benchmarks late_queries"
SECONDS, RATE, CHUNK = 10_000, 10, 100  # of history; events a second; seconds a push
TARGET = 100  # times real time
STREAM = "urn:s"
_STORED = "FROM <urn:x-penstock:stored>"
QUERIES = {
    "window": ("all", 100, "SELECT ?s ?o FROM STREAM <urn:s> [RANGE 10s STEP 1s] WHERE { ?s <urn:p> ?o }"),
    "GROUP BY": (
        "all",
        100,
        "SELECT ?s (COUNT(*) AS ?n) FROM STREAM <urn:s> [RANGE 10s STEP 1s] WHERE { ?s <urn:p> ?o } GROUP BY ?s",
    ),
    "join with absorbed triples": (
        (),
        100,
        (
            f"SELECT ?s ?o FROM NAMED STREAM <urn:s> [RANGE 10s STEP 1s] {_STORED}"
            " WHERE { GRAPH <urn:s> { ?s <urn:p> ?o } ?s <urn:p> ?o }"
        ),
    ),
    "count of absorbed triples": (
        (),
        1,
        f"SELECT (COUNT(?o) AS ?n) FROM STREAM <urn:s> [RANGE 10s STEP 1s] {_STORED} WHERE {{ <urn:s0> <urn:p> ?o }}",
    ),
}


def run(*, tiny: bool = False) -> Iterator[Row]:
    """Yield a row for each query, and the size of the append logs."""
    seconds = 200 if tiny else SECONDS
    for name, (timing, subjects, text) in QUERIES.items():
        yield from _catch_up(name, timing, subjects, text, seconds)


def _catch_up(name: str, timing: str | tuple[str, ...], subjects: int, text: str, seconds: int) -> Iterator[Row]:
    with penstock.Engine(clock=lambda: 0) as engine:
        engine.declare_stream(STREAM, timing=timing, retention_ms=2 * SECONDS * 1000)
        for first in range(0, seconds, CHUNK):
            numbers = range(first * RATE, (first + CHUNK) * RATE)
            pushed = [(n * 1000 // RATE + 50, f"<urn:s{n % subjects}> <urn:p> <urn:o{n}> .") for n in numbers]
            engine.push_events(STREAM, pushed)
        engine.advance(None, seconds * 1000)
        logs = engine.stats()["log_bytes"]
        penstock.parse(text)  # the first text of a process also builds the parser
        count, started = 0, time.perf_counter()
        query = engine.register(f"REGISTER QUERY late FROM BEGINNING AS {text}")
        while query.status().state == "catching up" or query.unpolled():
            count += len(query.poll(1_000))
        spent = time.perf_counter() - started
        check(count, seconds, f"evaluations of {name}")
    yield Row(
        f"{name}: history of {SECONDS} s, times real time",
        seconds / spent,
        "x",
        COMMAND,
        target=TARGET,
        lower_is_better=False,
        clock="wall",
    )
    if logs and name.startswith("join"):
        yield Row("append logs of a retention", logs / (seconds * RATE), "bytes a triple", COMMAND)
