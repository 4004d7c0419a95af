"""Removals: what updates cost, what look-ups cost after them, and the space of a graph that is replaced many times.

- DELETE DATA and INSERT DATA of 1,000 triples, compared with the INSERT DATA alone, in LUBM-10.
- 1,000 small DELETE/INSERT WHERE requests, as pyoxigraph executes them on the same data.
- LUBM q1-q7 after a tenth of all triples was removed, compared with a fresh load of the rest: in the embedded engine,
  and over two stores, in shared memory and over TCP.
- A graph of a million triples that DELETE/INSERT WHERE replaces 100 times, 1 % a request: bytes in use, resident memory
  and checkpoint, compared with a fresh load of the final content.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyoxigraph

import penstock
from benchmarks.core_time import clock_cost_us, core_times
from benchmarks.harness import ROOT, Row, check, median_spent, need, spent
from benchmarks.macro import lubm_data

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from penstock.remote import Transport

COMMAND = "python -m benchmarks updates"
TRIPLES, REPEATS, SMALL, IN_TURN, ROUNDS = 1_000, 21, 1_000, 50, 5
GROUPS, OF_GROUP, TIMES = 100, 10_000, 100
LATER, LATER_S = 40, 0.25
_UNIVERSITY = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"


def run(*, tiny: bool = False) -> Iterator[Row]:
    """Yield the rows of all four."""
    data = lubm_data.whole(1 if tiny else 10)
    yield from _data_updates(data, 3 if tiny else REPEATS)
    yield from _small_updates(data, 20 if tiny else SMALL)
    yield from _look_ups(data, 2 if tiny else 31)
    for transport in ("shm", "tcp"):
        yield from _look_ups(lubm_data.whole(1), 2 if tiny else 31, transport, 2 if tiny else LATER)
    yield from _space(*((4, 100, 3) if tiny else (GROUPS, OF_GROUP, TIMES)))


# ---- DELETE DATA, INSERT DATA
def _block(number: int) -> str:
    """Return triples of students that are new, and of courses that recur."""
    lines = []
    for i in range(TRIPLES // 4):
        student = f"<urn:student/{number * TRIPLES + i}>"
        lines.append(f"{student} a <{_UNIVERSITY}UndergraduateStudent> .")
        lines.append(f"{student} <{_UNIVERSITY}takesCourse> <urn:course/{i % 50}> .")
        lines.append(f"{student} <{_UNIVERSITY}takesCourse> <urn:course/{50 + i % 49}> .")
        lines.append(f'{student} <{_UNIVERSITY}name> "student {i}" .')
    return "{ " + " ".join(lines) + " }"


def _data_updates(data: Path, repeats: int) -> Iterator[Row]:
    with penstock.Engine() as engine:
        engine.load(data)
        loaded = engine.stats()["triples"]
        inserts, both = [], []
        # In turns, so that both meet the same state of the machine. The first is not counted.
        for i in range(repeats + 1):
            inserts.append(spent(lambda: engine.update(f"INSERT DATA {_block(2 * i)}")))  # noqa: B023
            request = f"DELETE DATA {_block(2 * i)} ; INSERT DATA {_block(2 * i + 1)}"
            both.append(spent(lambda: engine.update(request)))  # noqa: B023
        check(engine.stats()["triples"], loaded + (repeats + 1) * TRIPLES, "triples after updates")
    insert, change = (statistics.median(t.cpu for t in times[1:]) for times in (inserts, both))
    wall = [statistics.median(t.wall for t in times[1:]) for times in (inserts, both)]
    yield Row("INSERT DATA of 1,000 triples", insert, "µs", COMMAND, clock="cpu", other_clock=wall[0])
    yield Row(
        "DELETE DATA of 1,000 triples and INSERT DATA of 1,000, one request",
        change,
        "µs",
        COMMAND,
        clock="cpu",
        other_clock=wall[1],
        target=3 * insert,
    )


# ---- DELETE/INSERT WHERE
def _small_updates(data: Path, count: int) -> Iterator[Row]:
    peer = pyoxigraph.Store()
    peer.bulk_load(path=str(data), format=pyoxigraph.RdfFormat.N_TRIPLES)
    with penstock.Engine() as engine:
        engine.load(data)
        query = f"SELECT ?s ?c {{ ?s <{_UNIVERSITY}takesCourse> ?c }}"
        students = sorted({str(row["s"]) for row in engine.query(query)})  # type: ignore[union-attr]
        # The first requests, which are parsed and planned, are not counted.
        chosen = random.Random(1).sample(students, min(count + IN_TURN, len(students)))
        texts = [
            f"DELETE {{ <{student}> <{_UNIVERSITY}takesCourse> ?c }} INSERT {{ <{student}> <urn:took> ?c }} "
            f"WHERE {{ <{student}> <{_UNIVERSITY}takesCourse> ?c }}"
            for student in chosen
        ]
        ours, theirs = [], []
        for begin in range(0, len(texts), IN_TURN):  # in turns, but not one by one: a process rarely uses both
            some = texts[begin : begin + IN_TURN]
            ours += [spent(lambda: engine.update(text)) for text in some]  # noqa: B023
            theirs += [spent(lambda: peer.update(text)) for text in some]  # noqa: B023
        check(engine.stats()["triples"], len(peer), "triples after updates")
        _same(engine, peer, query)
    ours, theirs = ours[IN_TURN:], theirs[IN_TURN:]
    yield Row(
        f"{count:,} small DELETE/INSERT WHERE requests, each",
        statistics.mean(t.cpu for t in ours),
        "µs",
        COMMAND,
        "pyoxigraph",
        statistics.mean(t.cpu for t in theirs),
        statistics.mean(t.cpu for t in theirs) / 3,
        clock="cpu",
        other_clock=statistics.mean(t.wall for t in ours),
    )


def _same(engine: penstock.Engine, peer: pyoxigraph.Store, query: str) -> None:
    ours = Counter(tuple(str(term) for term in row.values()) for row in engine.query(query))  # type: ignore[union-attr]
    theirs = Counter(tuple(term.value for term in row) for row in peer.query(query))  # type: ignore[union-attr]
    check(ours, theirs, "rows after updates")


# ---- look-ups after removals
def _look_ups(data: Path, repeats: int, transport: Transport | None = None, later: int = 0) -> Iterator[Row]:
    """Compare two engines. `transport`: of reads from two stores; None: the graph is in the engine. `later`: small
    commits after the removals, during which leases are renewed and lists are rewritten.
    """
    lines = data.read_text().splitlines(keepends=True)
    lines = sorted(set(lines))
    gone = set(random.Random(2).sample(lines, len(lines) // 10))
    texts = [(need("data/queries") / f"lubm_q{i}.rq").read_text() for i in range(1, 8)]
    where = "in the core" if transport is None else f"in the core, over two stores ({transport})"
    with _engine(transport) as fresh, _engine(transport) as engine:
        fresh.load("".join(line for line in lines if line not in gone).encode(), format="nt")
        engine.load(data)
        removed = sorted(gone)
        random.Random(3).shuffle(removed)  # so that each commit changes lists everywhere
        for begin in range(0, len(removed), TRIPLES):
            engine.update("DELETE DATA { " + " ".join(removed[begin : begin + TRIPLES]) + " }")
        for number in range(later):
            for each in (engine, fresh):
                each.update(f"INSERT DATA {{ <urn:later/{number}> <urn:p> {number} }}")
            time.sleep(LATER_S)
        check(engine.stats()["triples"], fresh.stats()["triples"], "triples that are left")
        for i, text in enumerate(texts, 1):
            found = [Counter(tuple(map(str, row.values())) for row in each.query(text)) for each in (engine, fresh)]  # type: ignore[union-attr]
            check(*found, f"rows of q{i}")
            # In turns, and the best: other load makes a median worse.
            times = [[_in_core(each, text, repeats) for each in (engine, fresh)] for _ in range(ROUNDS)]
            after, before = (min(column) for column in zip(*times, strict=True))
            yield Row(
                f"LUBM q{i} {where}, a tenth of all triples removed, times the time on a fresh load",
                after / before,
                "times",
                COMMAND,
                target=1.3,
                clock="cpu",
            )


@contextmanager
def _engine(transport: Transport | None) -> Iterator[penstock.Engine]:
    if transport is None:
        with penstock.Engine() as engine:
            yield engine
        return
    if str(ROOT / "tests") not in sys.path:
        sys.path.append(str(ROOT / "tests"))
    from support.engine_over_stores import EngineOverStores  # noqa: PLC0415 - its path was added now
    from support.store_processes import Place, StoreProcesses  # noqa: PLC0415 - likewise

    with StoreProcesses([Place()] * 2, 2) as stores, EngineOverStores(stores, transport=transport) as engine:
        yield engine


def _in_core(engine: penstock.Engine, text: str, repeats: int) -> float:
    cost = clock_cost_us(engine._runtime.core)
    with core_times() as seen:
        median_spent(lambda: engine.query(text), repeats)
    return max(0.01, statistics.median(next(iter(seen.values())).cpu) - cost)


# ---- space
_CHILD = """
import json, sys, tempfile
from pathlib import Path
import penstock
groups, of_group, times = map(int, sys.argv[1:4])
def resident():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))
def content(base):
    # A subject has a triple of every tenth group.
    return "".join(
        f"<urn:s/{i * 10 + group % 10 * 10 * of_group}> <urn:p/{group}> {base + group * of_group + i} .\\n"
        for group in range(groups) for i in range(of_group)
    ).encode()
step = groups * of_group
before = resident()
with tempfile.TemporaryDirectory() as folder, penstock.Engine(data_dir=folder) as engine:
    engine.load(content(0 if times else int(sys.argv[4]) * step), format="turtle")
    most = 0
    for n in range(times * groups):
        p = f"<urn:p/{n % groups}>"
        engine.update(f"DELETE {{ ?s {p} ?v }} INSERT {{ ?s {p} ?w }} WHERE {{ ?s {p} ?v BIND(?v + {step} AS ?w) }}")
        most = max(most, engine.stats()["store_bytes"])
    found = {"resident": resident() - before, "used": max(most, engine.stats()["store_bytes"])}
    engine.checkpoint()
    found["saved"] = sum(f.stat().st_size for f in Path(folder).rglob("shard-*") if f.is_file())
    found["rows"] = engine.stats()["triples"]
    total = list(engine.query("SELECT (SUM(?v) AS ?sum) { ?s ?p ?v }"))
    found["sum"] = str(total[0]["sum"])
    print(json.dumps(found))
"""


def _space(groups: int, of_group: int, times: int) -> Iterator[Row]:
    replaced, fresh = (_grown(groups, of_group, times, n) for n in (times, 0))
    check((replaced["rows"], replaced["sum"]), (fresh["rows"], fresh["sum"]), "the content of the replaced graph")
    for what, name in (
        ("bytes in use, at most", "used"),
        ("resident memory of the process", "resident"),
        ("checkpoint", "saved"),
    ):
        yield Row(
            f"{groups * of_group:,} triples replaced {times} times by {groups * times:,} requests: {what}, "
            "times a fresh load",
            replaced[name] / fresh[name],
            "times",
            COMMAND,
            target=2.0,
        )


def _grown(groups: int, of_group: int, times: int, replacements: int) -> dict[str, Any]:
    command = [sys.executable, "-c", _CHILD, *map(str, (groups, of_group, replacements, times))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the graph could not be replaced: {done.stderr[-300:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
