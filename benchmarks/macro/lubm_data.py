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
    """Return $PENSTOCK_BENCH_DATA, or a temporary folder that is deleted when the process ends."""
    given = os.environ.get("PENSTOCK_BENCH_DATA")
    if given:
        return given
    folder = tempfile.TemporaryDirectory(prefix="penstock-lubm-")
    atexit.register(folder.cleanup)
    return folder.name


@cache
def universities(count: int) -> list[Path]:
    """Return a file for each of the first universities. Their content does not depend on `count`."""
    folder = Path(_folder())
    if not (folder / f"uni{count - 1}.nt").exists():
        command = [sys.executable, str(need("data/gen_lubm.py")), str(count), str(folder)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return [folder / f"uni{i}.nt" for i in range(count)]


@cache
def whole(count: int) -> Path:
    """Return one file with the first `count` universities."""
    path = Path(_folder()) / f"all{count}.nt"
    with path.open("wb") as file:
        for part in universities(count):
            file.write(part.read_bytes())
    return path
