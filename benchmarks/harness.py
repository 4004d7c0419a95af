"""What every benchmark shares: result rows, medians, the machine's calibration, reports."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `ratio` is how many times better than the peer (above 1 = better); `target` is in `unit`.

    `lower_is_better` says which way `met` looks.
    """

    name: str
    value: float
    unit: str
    command: str
    peer: str | None = None
    peer_value: float | None = None
    target: float | None = None
    lower_is_better: bool = True

    @property
    def ratio(self) -> float | None:
        """Peer over us, or us over the peer where higher is better."""
        if self.peer_value is None or not self.value:
            return None
        return self.peer_value / self.value if self.lower_is_better else self.value / self.peer_value

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None without one."""
        if self.target is None:
            return None
        return self.value <= self.target if self.lower_is_better else self.value >= self.target

    def record(self) -> dict[str, object]:
        """The row as results/latest.json has it."""
        fields = asdict(self)
        del fields["lower_is_better"]
        return {**fields, "ratio": self.ratio, "met": self.met}


def shared(name: str) -> Path | None:
    """A data set of ../shared (or $PENSTOCK_SHARED), or None where it is absent."""
    path = Path(os.environ.get("PENSTOCK_SHARED", ROOT.parent / "shared")) / name
    return path if path.exists() else None


def median_us(call: Callable[[], object], repeats: int) -> float:
    """Median wall time of a call in µs, after one warm-up."""
    call()
    times = []
    for _ in range(repeats):
        began = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - began)
    return statistics.median(times) / 1000


def calibrate() -> dict[str, float]:
    """Speed of this machine in a few figures (benchmarks/calibrate.c)."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "calibrate"
        source = ROOT / "benchmarks" / "calibrate.c"
        subprocess.run(["cc", "-O2", "-march=native", "-o", str(program), str(source)], check=True)
        out = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    figures: dict[str, float] = json.loads(out)
    return figures


def report(rows: Sequence[Row], calibration: dict[str, float]) -> None:
    """Write results/latest.json and latest.md."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "latest.json").write_text(json.dumps([row.record() for row in rows], indent=1) + "\n")
    lines = [
        "# Latest run of `make bench`",
        "",
        "Machine: " + ", ".join(f"{k} {v}" for k, v in calibration.items()),
        "",
    ]
    lines += ["| what | value | unit | peer | ratio | target | met |", "| --- | ---: | --- | --- | ---: | ---: | --- |"]
    for row in rows:
        peer = f"{row.peer} {row.peer_value:,.4g}" if row.peer_value is not None else ""
        ratio = f"{row.ratio:.1f}" if row.ratio is not None else ""
        target = f"{row.target:,.4g}" if row.target is not None else ""
        met = {None: "", True: "yes", False: "**no**"}[row.met]
        lines.append(f"| {row.name} | {row.value:,.4g} | {row.unit} | {peer} | {ratio} | {target} | {met} |")
    (RESULTS / "latest.md").write_text("\n".join(lines) + "\n")
