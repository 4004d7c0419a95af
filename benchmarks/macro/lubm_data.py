"""LUBM in N-Triples by ../shared/data/gen_lubm.py, made once for all benchmarks of a run."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from benchmarks.harness import need


@cache
def _folder() -> str:
    """PENSTOCK_BENCH_DATA, where it stays; else it goes with the process."""
    given = os.environ.get("PENSTOCK_BENCH_DATA")
    if given:
        return given
    folder = tempfile.TemporaryDirectory(prefix="penstock-lubm-")
    atexit.register(folder.cleanup)
    return folder.name


@cache
def universities(count: int) -> list[Path]:
    """A file for each of the first universities (they do not depend on how many there are)."""
    folder = Path(_folder())
    if not (folder / f"uni{count - 1}.nt").exists():
        command = [sys.executable, str(need("data/gen_lubm.py")), str(count), str(folder)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return [folder / f"uni{i}.nt" for i in range(count)]


@cache
def whole(count: int) -> Path:
    """So many universities in one file."""
    path = Path(_folder()) / f"all{count}.nt"
    with path.open("wb") as file:
        for part in universities(count):
            file.write(part.read_bytes())
    return path
