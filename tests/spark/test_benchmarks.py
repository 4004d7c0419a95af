"""Spark's benchmarks run and yield figures, each in a process, and so a session, of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "figure"), [("spark_load", "Spark local[1]"), ("spark_adaptor", "Spark's, trigger 0 ms")]
)
def test_a_benchmark_yields_figures(name, figure):
    command = [sys.executable, "-m", "benchmarks", name, "--tiny"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1_200, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert figure in done.stdout
