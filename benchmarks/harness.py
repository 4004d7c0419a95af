"""What every benchmark shares: result rows, points of curves, clocks, where data is, the machine's state."""

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
    """One figure. `ratio` is how many times better than the peer (above 1 = better); `target` is in `unit`.

    `lower_is_better` says which way `met` looks. `clock` says by which clock `value` is; `other_clock` is the same
    figure by the other one: the thread's processor time beside a wall time, and the wall time beside processor time.
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
        """Peer over us, or us over the peer where higher is better."""
        if not self.peer_value or not self.value:
            return None
        return self.peer_value / self.value if self.lower_is_better else self.value / self.peer_value

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.target is None:
            return None
        return self.value <= self.target if self.lower_is_better else self.value >= self.target

    def record(self) -> dict[str, object]:
        """The row as benchmarks.json has it."""
        fields = asdict(self)
        del fields["lower_is_better"]
        return {**fields, "ratio": self.ratio, "met": self.met}


@dataclass(frozen=True, slots=True)
class Point:
    """One point of one line of a figure in docs/measurements."""

    figure: str
    line: str
    x: float
    y: float


Finding: TypeAlias = Row | Point


class WrongAnswerError(AssertionError):
    """A benchmark's answers differ from brute force: its figures count for nothing."""


class LeftOutError(Exception):
    """A benchmark cannot run here: what it needs is absent."""


def check(found: object, expected: object, what: str) -> None:
    """Fail the benchmark where an answer is wrong."""
    if found != expected:
        raise WrongAnswerError(f"{what}: found {str(found)[:200]}, expected {str(expected)[:200]}")


# ---- data
def need(name: str) -> Path:
    """A data set of ../shared (or $PENSTOCK_SHARED)."""
    path = Path(os.environ.get("PENSTOCK_SHARED") or ROOT.parent / "shared").resolve() / name
    if not path.exists():
        raise LeftOutError(f"shared/{name} is not beside this checkout (see PENSTOCK_SHARED)")
    return path


def script(path: Path) -> ModuleType:
    """Import a data set's script from where it lies."""
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
    """Microseconds by the wall's clock and by this thread's."""

    wall: float
    cpu: float


def spent(call: Callable[[], object]) -> Spent:
    """What one call takes."""
    cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
    call()
    wall, cpu = time.perf_counter_ns() - wall, time.thread_time_ns() - cpu
    return Spent(wall / 1000, cpu / 1000)


def median_spent(call: Callable[[], object], repeats: int) -> Spent:
    """Medians of several calls, after one warm-up."""
    call()
    times = [spent(call) for _ in range(repeats)]
    return Spent(statistics.median(t.wall for t in times), statistics.median(t.cpu for t in times))


def quantile(values: list[float], share: float) -> float:
    """The value below which that share of the values lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


# ---- the machine
def calibrate(at_once: int = 1, tries: int = 1) -> dict[str, float]:
    """Speed of this machine in a few figures (benchmarks/calibrate.c): the slowest of so many copies at once.

    Of several tries each figure's best: what others on the machine do only makes them worse.
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
    """Processes that were ready to run during the last minute, this one included."""
    return os.getloadavg()[0]
