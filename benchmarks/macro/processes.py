"""Processor time and memory of another process, or of this one with its descendants (a JVM and its workers)."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK_S = 0.2
_CPU_CLOCK = 2  # Linux's number of the clock of a process's running time
DRIVER, JVM, WORKERS = "driver", "JVM", "Python workers"


def processor_s_of(process: int) -> float:
    """Return the processor time of a process (0: this one) in seconds, to the nanosecond, without its children."""
    return time.clock_gettime((~process << 3) | _CPU_CLOCK)


def processor_s() -> float:
    """Return the processor time of this process and its descendants in seconds, with ended ones."""
    stats = _stats()
    return sum(sum(map(int, stats[process][1][11:15])) for process in _family(stats)) / _TICKS


def _stats() -> dict[int, tuple[int, list[str]]]:
    """Return by process its parent, and the fields of /proc/PID/stat after the name."""
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has just ended
            continue
        stats[int(path.parent.name)] = (int(fields[1]), fields)
    return stats


def _family(stats: dict[int, tuple[int, list[str]]]) -> set[int]:
    found: set[int] = set()
    selected = {os.getpid()}
    while selected:
        found |= selected & stats.keys()
        selected = {process for process, (parent, _) in stats.items() if parent in selected}
    return found


@dataclass
class PeakMemory:
    """Peak memory of each kind of process, in bytes. Shared memory is counted once (PSS)."""

    peaks: dict[str, int] = field(default_factory=dict)

    def look(self) -> None:
        """Update the peaks with the memory of this moment."""
        now: dict[str, int] = {}
        for process in _family(_stats()):
            kind, bytes_ = _kind(process), _pss(process)
            now[kind] = now.get(kind, 0) + bytes_
        for kind, bytes_ in now.items():
            self.peaks[kind] = max(self.peaks.get(kind, 0), bytes_)


@contextmanager
def peak_memory() -> Iterator[PeakMemory]:
    """Yield the peaks, which are updated while the context lasts."""
    peak, stop = PeakMemory(), threading.Event()

    def watch() -> None:
        while not stop.wait(_LOOK_S):
            peak.look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        stop.set()
        thread.join()
        peak.look()


def _kind(process: int) -> str:
    if process == os.getpid():
        return DRIVER
    try:
        return JVM if Path(f"/proc/{process}/comm").read_text().strip() == "java" else WORKERS
    except OSError:
        return WORKERS


def _pss(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has just ended
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)
