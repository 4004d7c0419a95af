"""LUBM's queries 1-14 with entailment, and the same queries on materialized data, in the same run. Then the time in
which an evaluation reads the schema.

The materialized data is what `CONSTRUCT { ?s ?p ?o } WITH ENTAILMENT RDFS` gives. Tests compare such data with other
reasoners.
Each query is answered as JSON, the same text each time. The two engines take turns.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock
from benchmarks.harness import ROOT, Row, check, median_spent
from benchmarks.macro import lubm_data
from benchmarks.macro.lubm_entailment_data import query, schema
from penstock.engine.oneshot.stored_schema import read_schema
from penstock.query.algebra.vocabulary import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.remote import Transport

COMMAND = "python -m benchmarks entailment"
_TURNS = 5
_TARGET = 1.2  # times the time on materialized data


def run(*, tiny: bool = False) -> Iterator[Row]:
    """Yield a row for each query, and the mean of all."""
    size, repeats = (1, 1) if tiny else (5, 7)
    with tempfile.TemporaryDirectory() as folder, penstock.Engine() as engine, penstock.Engine() as whole:
        place = Path(folder) / "schema.nt"
        place.write_text(schema())
        for path in (place, *lubm_data.universities(size)):
            engine.load(path)
        entailed = engine.query("CONSTRUCT { ?s ?p ?o } WITH ENTAILMENT RDFS WHERE { ?s ?p ?o }")
        assert not isinstance(entailed, bool)
        place.write_text(entailed.serialize(format="nt"))
        whole.load(place)
        yield from _queries(engine, whole, repeats)
    yield from _schema_reads(repeats=3 if tiny else 200)


def _queries(engine: penstock.Engine, whole: penstock.Engine, repeats: int) -> Iterator[Row]:
    ratios = []
    for number in range(1, 15):
        texts = {engine: query(number, "WITH ENTAILMENT RDFS"), whole: query(number)}
        answers = [_rows(each, text) for each, text in texts.items()]
        check(answers[0], answers[1], f"rows of query {number}")
        times: dict[penstock.Engine, list[float]] = {engine: [], whole: []}
        for _ in range(_TURNS):
            for each, text in texts.items():
                times[each].append(median_spent(lambda: _json(each, text), repeats).cpu)  # noqa: B023
        ours, theirs = (statistics.median(times[each]) for each in (engine, whole))
        ratios.append(ours / theirs)
        rows = answers[0].total()
        yield Row(
            f"LUBM query {number} with entailment, as JSON ({rows} rows)",
            ours,
            "µs",
            COMMAND,
            "the same query on materialized data",
            theirs,
            clock="cpu",
        )
    worst = max(ratios)
    yield Row(
        "LUBM queries 1-14 with entailment: times, of the slowest of them", worst, "times", COMMAND, target=_TARGET
    )
    mean = math.exp(statistics.mean(map(math.log, ratios)))
    yield Row("LUBM queries 1-14 with entailment: geometric mean of times", mean, "times", COMMAND, target=_TARGET)


def _schema_reads(repeats: int) -> Iterator[Row]:
    """Yield the time in which an evaluation reads the schema, from this process and from two stores."""
    if str(ROOT / "tests") not in sys.path:
        sys.path.append(str(ROOT / "tests"))
    from support.engine_over_stores import EngineOverStores  # noqa: PLC0415 - its path was added above
    from support.store_processes import Place, StoreProcesses  # noqa: PLC0415 - likewise

    transports: tuple[Transport | None, ...] = (None, "shm", "tcp")
    for transport in transports:
        with ExitStack() as stack:
            over = None
            if transport is not None:
                stores = stack.enter_context(StoreProcesses([Place(), Place()], 2))
                over = EngineOverStores(stores, transport=transport)
            engine = stack.enter_context(over or penstock.Engine())
            engine.load(schema().encode(), format="nt")
            where = "this process" if transport is None else f"two stores ({transport})"
            for commits in (True, False):
                times = [_read_once(engine, number if commits else None) for number in range(repeats)]
                read = times[0][1]
                check(read, _schema_triples(), "schema triples")
                when = "after a commit each" if commits else "nothing committed since"
                median = statistics.median(time for time, _ in times) / 1000
                yield Row(f"schema of {read} triples from {where}, {when}", median, "µs", COMMAND, clock="wall")


def _read_once(engine: penstock.Engine, commit: int | None) -> tuple[int, int]:
    """Return the time in ns of one read of the schema, and the number of its triples. `commit`: the number of a triple
    to commit before the read.
    """
    core = engine._runtime.core
    if commit is not None:
        engine.update(f"INSERT DATA {{ <urn:x:{commit}> <urn:x:p> <urn:x:o> }}")
    view = core.store.view()
    began = time.perf_counter_ns()
    found = read_schema(core, view)
    return time.perf_counter_ns() - began, len(found)


def _schema_triples() -> int:
    return sum(any(f"<{predicate}>" in line for predicate in SCHEMA) for line in set(schema().splitlines()))


def _json(engine: penstock.Engine, text: str) -> str:
    answer: Any = engine.query(text)
    found: str = answer.to_json()
    return found


def _rows(engine: penstock.Engine, text: str) -> Counter[str]:
    rows = json.loads(_json(engine, text))["results"]["bindings"]
    return Counter(json.dumps(row, sort_keys=True) for row in rows)
