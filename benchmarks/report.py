"""Writes docs/measurements: benchmarks.json (rows), benchmarks.md (rows as a page), curves.json and the figures."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from dataclasses import asdict, dataclass, field

from benchmarks.harness import RESULTS, ROOT, Point, Row

_MET = {None: "", True: "yes", False: "**no**"}


@dataclass(slots=True)
class Run:
    """One run of benchmarks: its findings, the benchmarks left out, and the state of the machine."""

    rows: list[Row] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    calibrations: dict[str, dict[str, float]] = field(default_factory=dict)
    loads: list[float] = field(default_factory=list)
    began: float = field(default_factory=time.time)

    def write(self) -> None:
        """Write the files of the results."""
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / "benchmarks.json").write_text(json.dumps([row.record() for row in self.rows], indent=1) + "\n")
        points = [asdict(point) for point in self.points]
        (RESULTS / "curves.json").write_text(json.dumps(points, indent=1) + "\n")
        (RESULTS / "benchmarks.md").write_text("\n".join(self._lines()) + "\n")

    def _lines(self) -> list[str]:
        judged = [row for row in self.rows if row.met is not None]
        figures = next(iter(self.calibrations.values()), {})
        when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(self.began))
        machine = f"{os.cpu_count()} cores, {platform.platform()}, Python {platform.python_version()}"
        lines = [
            "# Latest run of `make bench`",
            "",
            f"Commit {_commit()}, {when} UTC, {(time.time() - self.began) / 60:.0f} minutes. {machine}.",
            "",
            f"Load average while it ran: {min(self.loads):.1f} to {max(self.loads):.1f}. A load of 1 is this run",
            "alone; above, other work shared the machine and wall times are too long.",
            "",
            f"{sum(row.met is True for row in judged)} of {len(judged)} targets met. Every row's answers were checked",
            "in the same run, against brute force or another engine.",
            "",
            f"| calibrate.c | {' | '.join(figures)} |",
            "| --- |" + " ---: |" * len(figures),
        ]
        for moment, figures in self.calibrations.items():
            lines.append(f"| {moment} | " + " | ".join(f"{value:g}" for value in figures.values()) + " |")
        lines += ["", "By the other clock: the thread's processor time beside a wall time, and the reverse.", ""]
        lines += ["| what | value | unit | clock | by the other clock | peer | ratio | target | met |"]
        lines += ["| --- | ---: | --- | --- | ---: | --- | ---: | ---: | --- |"]
        lines += [_line(row) for row in self.rows]
        if self.left_out:
            lines += ["", "Left out:", "", *(f"- {name}: {reason}" for name, reason in self.left_out.items())]
        commands = dict.fromkeys(row.command for row in self.rows)
        lines += ["", "Commands for single parts: " + ", ".join(f"`{command}`" for command in commands) + "."]
        return lines


def _line(row: Row) -> str:
    peer = f"{row.peer} {number(row.peer_value)}" if row.peer_value is not None else ""
    ratio = f"{row.ratio:.2g}" if row.ratio is not None and row.ratio < 10 else ""
    if row.ratio is not None and not ratio:
        ratio = f"{row.ratio:,.0f}"
    cells = [row.name, number(row.value), row.unit, row.clock or "", number(row.other_clock), peer, ratio]
    return "| " + " | ".join([*cells, number(row.target), _MET[row.met]]) + " |"


def number(value: float | None) -> str:
    """Return a figure as text, rounded to three or more digits."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _commit() -> str:
    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = [line for line in git("status", "--porcelain").splitlines() if "docs/measurements" not in line]
    return (git("rev-parse", "--short", "HEAD") or "unknown") + (" with changes" if changed else "")
