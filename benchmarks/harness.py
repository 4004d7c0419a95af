"""Common parts of benchmarks: result rows, points of curves, clocks, data, the machine's state."""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "measurements"


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `ratio`: how many times better than the peer (above 1 = better). `target` is in `unit`, and is an
    upper limit if `lower_is_better`. `clock`: the clock of `value`, "wall" or the thread's processor time;
    `other_clock`: the same figure by the other clock.
    """

    name: str
    value: float
    unit: str
    command: str
    peer: str | None = None
    peer_value: float | None = None
    target: float | None = None
    lower_is_better: bool = True
    clock: str | None = None
    other_clock: float | None = None

    @property
    def ratio(self) -> float | None:
        """Return peer / value, or value / peer if higher is better."""
        if not self.peer_value or not self.value:
            return None
        return self.peer_value / self.value if self.lower_is_better else self.value / self.peer_value

    @property
    def met(self) -> bool | None:
        """Return whether the target is reached; None without a target."""
        if self.target is None:
            return None
        return self.value <= self.target if self.lower_is_better else self.value >= self.target

    def record(self) -> dict[str, object]:
        """Return the row in the form of benchmarks.json."""
        fields = asdict(self)
        del fields["lower_is_better"]
        return {**fields, "ratio": self.ratio, "met": self.met}


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a line in a figure of docs/measurements."""

    figure: str
    line: str
    x: float
    y: float


Finding: TypeAlias = Row | Point


class WrongAnswerError(AssertionError):
    """A benchmark's answers differ from brute force, so its figures are worthless."""


class LeftOutError(Exception):
    """A benchmark cannot run here, because something that it needs is absent."""


def check(found: object, expected: object, what: str) -> None:
    """Raise WrongAnswerError if an answer is wrong."""
    if found != expected:
        raise WrongAnswerError(f"{what}: found {str(found)[:200]}, expected {str(expected)[:200]}")


# ---- data
def need(name: str) -> Path:
    """Return the path of a data set in ../shared (or $PENSTOCK_SHARED)."""
    path = Path(os.environ.get("PENSTOCK_SHARED") or ROOT.parent / "shared").resolve() / name
    if not path.exists():
        raise LeftOutError(f"shared/{name} is not beside this checkout (see PENSTOCK_SHARED)")
    return path


def script(path: Path) -> ModuleType:
    """Import the script of a data set."""
    spec = importlib.util.spec_from_file_location("shared_" + path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    wrote, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # the shared folder may be read-only
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = wrote
    return module


# ---- clocks
@dataclass(frozen=True, slots=True)
class Spent:
    """Microseconds of wall time, and of this thread's processor time."""

    wall: float
    cpu: float


def spent(call: Callable[[], object]) -> Spent:
    """Measure one call."""
    cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
    call()
    wall, cpu = time.perf_counter_ns() - wall, time.thread_time_ns() - cpu
    return Spent(wall / 1000, cpu / 1000)


def median_spent(call: Callable[[], object], repeats: int) -> Spent:
    """Return the medians of several calls, after one that is not measured."""
    call()
    times = [spent(call) for _ in range(repeats)]
    return Spent(statistics.median(t.wall for t in times), statistics.median(t.cpu for t in times))


def quantile(values: list[float], share: float) -> float:
    """Return the value below which a share (0 to 1) of the values lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


# ---- the machine
def calibrate(at_once: int = 1, tries: int = 1) -> dict[str, float]:
    """Measure this machine's speed by `at_once` simultaneous copies of benchmarks/calibrate.c. Returns, for each
    figure, the slowest copy of the best try: other load only makes a try worse.
    """
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "calibrate"
        source = ROOT / "benchmarks" / "calibrate.c"
        subprocess.run(["cc", "-O2", "-march=native", "-o", str(program), str(source)], check=True)

        def one(_: int) -> dict[str, float]:
            out = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
            figures: dict[str, float] = json.loads(out)
            return figures

        with ThreadPoolExecutor(at_once) as pool:
            rounds = [list(pool.map(one, range(at_once))) for _ in range(tries)]
    slowest: dict[str, Any] = {name: min if name == "copy_gbps" else max for name in rounds[0][0] if name != "x"}
    best: dict[Any, Any] = {min: max, max: min}
    return {name: best[worst](worst(run[name] for run in runs) for runs in rounds) for name, worst in slowest.items()}


def load_average() -> float:
    """Return the average number of processes ready to run during the last minute, with this one."""
    return os.getloadavg()[0]
