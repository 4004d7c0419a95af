"""The memory of stored triples: LUBM of growing size and the LSBench sample, compared with pyoxigraph in memory.

"All but strings": both directions, tables, records, lists, statistics, and the writer's own data. Resident memory: that
of a new process that only loads, less its memory before the load; it contains the terms' strings.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import ROOT, LeftOutError, Point, Row, check
from benchmarks.macro import lubm_data
from benchmarks.macro.sample import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness import Finding

COMMAND = "python -m benchmarks memory"
UNIVERSITIES = (1, 2, 5, 10, 20, 40)
TARGET_BYTES = 64.0

_CHILD = """
import json, sys
def resident():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))
engine, path = sys.argv[1:]
if engine == "penstock":
    import penstock
    before, made = resident(), penstock.Engine()
    made.load(path, format="nt")
    core, stats = made._runtime.core, made.stats()
    found = {"triples": stats["triples"], "store": stats["store_bytes"], "dictionary": stats["dictionary_bytes"],
             "writer": core.store.labels.index_bytes()}
else:
    import pyoxigraph
    before, made = resident(), pyoxigraph.Store()
    made.bulk_load(path=path, format=pyoxigraph.RdfFormat.N_TRIPLES)
    found = {"triples": len(made)}
print(json.dumps(found | {"resident": resident() - before}))
"""


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield rows for LUBM-40 and lsbench-ids, and points for sizes between."""
    if not Path("/proc/self/status").exists():
        raise LeftOutError("reads /proc")
    sizes = UNIVERSITIES[:1] if tiny else UNIVERSITIES
    for size in sizes:
        path = lubm_data.whole(size)
        ours, theirs = (_loaded(engine, path) for engine in ("penstock", "pyoxigraph"))
        check(ours["triples"], theirs["triples"], f"triples of LUBM-{size}")
        for line, bytes_ in (
            ("Penstock, all but strings", ours["store"]),
            ("Penstock, resident", ours["resident"]),
            ("pyoxigraph, resident", theirs["resident"]),
        ):
            yield Point("memory", line, ours["triples"], bytes_)
        if size == sizes[-1]:
            yield from _rows(f"LUBM-{size}", ours, theirs)
    sample = Sample()
    path = Path(lubm_data.whole(1)).with_name("lsbench-ids.nt")
    path.write_bytes(sample.stored_text)
    ours, theirs = (_loaded(engine, path) for engine in ("penstock", "pyoxigraph"))
    check(ours["triples"], len(set(sample.stored)), "triples of lsbench-ids")
    yield from _rows("lsbench-ids", ours, theirs)


def _rows(data: str, ours: dict[str, int], theirs: dict[str, int]) -> Iterator[Row]:
    triples = ours["triples"]
    yield Row(
        f"Memory a stored triple, both directions, all but strings, {data}",
        (ours["store"] + ours["writer"]) / triples,
        "bytes",
        COMMAND,
        target=TARGET_BYTES,
    )
    yield Row(f"- dictionary with the terms' strings, a triple, {data}", ours["dictionary"] / triples, "bytes", COMMAND)
    yield Row(
        f"- resident memory of the process, a triple, {data}",
        ours["resident"] / triples,
        "bytes",
        COMMAND,
        "pyoxigraph",
        theirs["resident"] / triples,
    )


def _loaded(engine: str, path: Path) -> dict[str, int]:
    command = [sys.executable, "-c", _CHILD, engine, str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:]
        raise RuntimeError(f"{engine} could not load {path.name}: {' '.join(last)}")
    found: dict[str, int] = json.loads(done.stdout)
    return found
