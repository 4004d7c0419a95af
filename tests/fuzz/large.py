"""Plans large query texts: `PYTHONPATH=libs:tests python -m fuzz.large --count 1000 [--first SEED] [--report FILE]`.

Each text of `large_texts` is read, planned and compiled within the time and memory of docs/adr/0059, or refused with a
position. A worker process plans many texts; for each one it measures the processor time and how far the peak of its
resident memory lies above the memory in use before. A worker that ends or hangs is replaced, and its text is a fault.
`--count 1 --first SEED` plans the text of one seed again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import re
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock
from fuzz.large_texts import STREAM, Writer

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

TIME_S = 2.0
TRIES = 3
MEMORY_MB = 512
REFUSAL_S = 0.5
"""A text that is refused when its time is over takes a little longer: the clock is read every 64 units of work, and
the position of the refusal is found in the text."""
HANG_S = 600.0  # of wall time: the machine may be busy
TEXTS_OF_A_WORKER = 5_000
_LIMIT = re.compile(r"\((max_\w+|planning_\w+|MAX_\w+)\)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one text.

    shape, size, bytes: of the text. seconds: processor time of the worker. mb: growth of the peak of resident memory.
    refusal: name of the limit that refused it, "QueryError" for another refusal, empty where the text was planned.
    fault: what is wrong, empty where nothing is.
    """

    seed: int
    shape: str
    size: int
    bytes: int
    seconds: float = 0.0
    mb: float = 0.0
    refusal: str = ""
    fault: str = ""


@dataclass
class Report:
    """Figures over many texts."""

    tried: int = 0
    sizes: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[Outcome] = field(default_factory=list)
    slowest: list[Outcome] = field(default_factory=list)
    largest: list[Outcome] = field(default_factory=list)
    cpu_s: float = 0.0

    def add(self, outcome: Outcome) -> None:
        self.tried += 1
        self.cpu_s += outcome.seconds
        self.sizes[f"< 10^{len(str(outcome.size))}"] += 1
        self.outcomes[outcome.refusal or "planned"] += 1
        if outcome.fault:
            self.faults.append(outcome)
        self.slowest = sorted([*self.slowest, outcome], key=lambda o: -o.seconds)[:10]
        self.largest = sorted([*self.largest, outcome], key=lambda o: -o.mb)[:10]

    def write(self, path: Path) -> None:
        figures: dict[str, Any] = {"tried": self.tried, "cpu_s": round(self.cpu_s, 1)}
        figures |= {"sizes": dict(self.sizes), "outcomes": dict(self.outcomes)}
        for name in ("faults", "slowest", "largest"):
            figures[name] = [asdict(outcome) for outcome in getattr(self, name)]
        path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")

    def __str__(self) -> str:
        slowest, largest = self.slowest[0], self.largest[0]
        return (
            f"{self.tried} texts, {len(self.faults)} faults, {self.cpu_s:.0f} s of processor time; "
            f"slowest {slowest.seconds:.2f} s ({slowest.shape}, seed {slowest.seed}), "
            f"largest {largest.mb:.0f} MB ({largest.shape}, seed {largest.seed})\n"
            f"sizes: {dict(sorted(self.sizes.items()))}\noutcomes: {dict(self.outcomes.most_common())}"
        )


def engine() -> Any:
    made = penstock.Engine()
    made.load(b"<urn:x:a> <urn:x:p> <urn:x:b> .", format="nt")
    made.declare_stream(STREAM, timing="all")
    return made


class Memory:
    """Resident memory of this process, from /proc. Its peak starts anew with each `mark`."""

    def mark(self) -> None:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        self._before = self._read("VmRSS")

    def growth_mb(self) -> float:
        return (self._read("VmHWM") - self._before) / 1024

    @staticmethod
    def _read(name: str) -> int:
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith(name):
                return int(line.split()[1])
        raise LookupError(name)


def _refusal(text: str, target: Any) -> tuple[str, str]:
    """Read and plan a text; returns the refusal and the fault, as in Outcome."""
    try:
        if "INSERT DATA" in text:
            penstock.parse(text)
        else:
            target.explain(text)
    except penstock.QueryError as error:
        limit = _LIMIT.search(str(error))
        refusal = limit[1] if limit else type(error).__name__
        if error.line < 1 or error.column < 1 or len(str(error)) > 5_000:
            return refusal, f"an error without a position: {error.line}:{error.column}"
        return refusal, ""
    except Exception as error:  # noqa: BLE001  that is what fuzzing looks for
        return "", f"{type(error).__name__}: {str(error)[:500]}"
    return "", ""


def plan(seed: int, target: Any) -> Outcome:
    """Plan the text of a seed, and measure."""
    writer, memory = Writer(seed), Memory()
    size = writer.left
    text = writer.text()
    memory.mark()
    began = time.process_time()
    refusal, fault = _refusal(text, target)
    seconds, mb = time.process_time() - began, memory.growth_mb()
    timed = "INSERT DATA" not in text  # data is not planned: its size is bounded, its time is not (ADR 59)
    if not fault and timed and seconds > TIME_S + bool(refusal) * REFUSAL_S:
        fault = f"takes {seconds:.2f} s"
    if not fault and mb > MEMORY_MB:
        fault = f"takes {mb:.0f} MB"
    return Outcome(seed, writer.shape.__name__, size, len(text.encode()), seconds, mb, refusal, fault)


def _work(end: Connection) -> None:
    penstock.parse("ASK {}")  # the grammar is made once
    with engine() as target:
        while (seed := end.recv()) is not None:
            end.send(plan(seed, target))


class Worker:
    """A process that plans texts. `plan` replaces it after many texts, and where it ends or hangs."""

    def __init__(self) -> None:
        self._process: Any = None
        self._left = 0

    def plan(self, seed: int) -> Outcome:
        if self._left == 0:
            self.close()
            self._start()
        self._left -= 1
        try:
            self._end.send(seed)
            if self._end.poll(HANG_S):
                return self._end.recv()  # type: ignore[no-any-return]
            return self._lost(seed, f"hangs for {HANG_S:.0f} s")
        except (EOFError, ConnectionError):
            self._process.join(10)
            return self._lost(seed, f"the process ended with {self._process.exitcode}")

    def stop(self) -> None:
        """Kill the process, as a text that takes all memory does."""
        self._process.kill()
        self._process.join(10)

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._end, theirs = spawn.Pipe()
        self._process, self._left = spawn.Process(target=_work, args=(theirs,), daemon=True), TEXTS_OF_A_WORKER
        self._process.start()
        theirs.close()

    def _lost(self, seed: int, fault: str) -> Outcome:
        self._process.kill()
        self._left = 0
        writer = Writer(seed)
        return Outcome(seed, writer.shape.__name__, writer.left, 0, fault=fault)

    def close(self) -> None:
        if self._process is not None:
            if self._process.is_alive():
                with contextlib.suppress(ConnectionError):
                    self._end.send(None)
                self._process.join(10)
            self._process.kill()
            self._end.close()
            self._process = None


def run(first: int, count: int, *, seconds: float | None = None, path: Path | None = None) -> Report:
    """Plan the texts of `count` seeds, or as many as `seconds` allow; writes the report to `path` now and then.

    A text is a fault if it takes too much in each of TRIES runs.
    """
    report, worker = Report(), Worker()
    end = None if seconds is None else time.monotonic() + seconds
    try:
        for seed in range(first, first + count):
            if end is not None and time.monotonic() > end:
                break
            outcome = worker.plan(seed)
            for _ in range(TRIES - 1):  # other work on the machine costs processor time too
                if not outcome.fault.startswith("takes"):
                    break
                outcome = worker.plan(seed)
            report.add(outcome)
            if path is not None and report.tried % 1000 == 0:
                report.write(path)
    finally:
        worker.close()
    if path is not None:
        report.write(path)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=None)
    parser.add_argument("--report", type=Path, default=None, help="a JSON file, written every 1,000 texts")
    arguments = parser.parse_args()
    report = run(arguments.first, arguments.count, seconds=arguments.seconds, path=arguments.report)
    for outcome in report.faults[:20]:
        print(outcome)
    print(report)
    return min(len(report.faults), 1)


if __name__ == "__main__":
    sys.exit(main())
