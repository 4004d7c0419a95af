"""Time and instructions of each kernel of the core (kernels_bench.cpp, with Google Benchmark).

Instruction counts are those of the measured section. They do not depend on other load or on the caches. Each kernel
compares its results with plain containers, and fails on a difference.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness import ROOT, LeftOutError, Row, WrongAnswerError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness import Finding

COMMAND = "python -m benchmarks kernels"
KERNELS = {
    "probe_stored/many": "Probe: neighbours in the stored graph, 1,024 keys a call; a key",
    "probe_stored/one": "Probe: neighbours in the stored graph, one key a call; a key",
    "edge_test": "Edge test in the stored graph, 1,024 a call; an edge",
    "probe_window": "Probe: neighbours in a window, 1,024 keys a call; a key",
    "gather": "Gather: a column by row numbers; a value",
    "append": "Append to an open batch of 740; a tuple",
    "close/timing": "Slice build: close of a batch of 740 timing tuples; a tuple",
    "absorb": "Absorption: commit of 740 edges into 200 K; an edge",
    "close/absorbing": "Close of a batch of 740 timeless tuples: slices and commit; a tuple",
    "window/add": "Window: adding a batch of 740, all labels indexed both ways; a tuple",
    "window/expire": "Window: expiring a batch of 740; a tuple",
}
_REPETITIONS = 5


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield for each kernel a row of time, and one of instructions if valgrind is installed."""
    program = _build()
    valgrind = shutil.which("valgrind")
    for kernel, title in list(KERNELS.items())[: 1 if tiny else None]:
        times = [_run([str(program)], kernel) for _ in range(1 if tiny else _REPETITIONS)]
        yield Row(title, statistics.median(time for time, _ in times), "ns", COMMAND, clock="cpu")
        if valgrind and not tiny:
            yield Row(f"- {title}", _instructions(valgrind, program, kernel), "instructions", COMMAND)
    if not valgrind and not tiny:
        raise LeftOutError("instruction counts: valgrind is not installed")


def _build() -> Path:
    if not (shutil.which("cmake") or (Path(sys.executable).parent / "cmake").exists()):
        raise LeftOutError("the native micro-benchmarks need cmake to be built")
    environment = os.environ | {"PYTHON": sys.executable}
    command = [str(ROOT / "native" / "build.sh"), "bench", "kernels_bench"]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"building kernels_bench failed: {done.stderr[-2000:]}{done.stdout[-2000:]}")
    return ROOT / "build" / "native-bench" / "kernels_bench"


def _run(command: list[str], kernel: str) -> tuple[float, float]:
    """Return the nanoseconds of an operation, and the number of operations."""
    options = [f"--benchmark_filter=^{kernel}/", "--benchmark_format=json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    if done.returncode:
        raise WrongAnswerError(f"{kernel}: {done.stderr.strip()[-500:]}")
    [found] = json.loads(done.stdout)["benchmarks"]
    return 1e9 / found["items_per_second"], found["items_per_second"] * found["iterations"] * found["real_time"] / 1e9


def _instructions(valgrind: str, program: Path, kernel: str) -> float:
    """Return the instructions of an operation, within the measured section."""
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "callgrind.out"
        options = ["--tool=callgrind", f"--callgrind-out-file={counts}", "--toggle-collect=measured_section"]
        _, operations = _run([valgrind, "--quiet", *options, str(program)], kernel)
        total = re.search(r"^(?:summary|totals): (\d+)", counts.read_text(), re.MULTILINE)
        assert total is not None, "callgrind's output has no total"
        return int(total[1]) / operations
