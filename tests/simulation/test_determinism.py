"""A seed's run is a function of its number: not of clocks, of hashes, of the garbage collector, of addresses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def digests(seeds: str, mode: str, number: int) -> str:
    """Return what the seeds give in a process of its own; number 0: undisturbed."""
    disturbance = ["--disturb", str(number)] if number else []
    path = os.pathsep.join(str(ROOT / name) for name in ("libs", "tests", "."))
    done = subprocess.run(
        [sys.executable, "-m", "simulation.trace", *disturbance, f"--{mode}", seeds],
        env={**os.environ, "PYTHONHASHSEED": str(number), "PYTHONPATH": path},
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4_000:]
    return done.stdout


@pytest.mark.parametrize(
    ("mode", "seeds"), [("none", "0-2"), ("stores", "5-7"), ("forks", "629"), ("forks", "677"), ("drops", "3-4")]
)
def test_a_seed_gives_the_same_effects_in_the_same_order_in_every_process(mode, seeds):
    first = digests(seeds, mode, 0)
    assert first.count("\n") >= 1
    assert digests(seeds, mode, 1) == first


@pytest.mark.long
@pytest.mark.parametrize("mode", ["none", "discards", "stores", "forks", "drops", "leaps"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_thirty_seeds_give_the_same_effects_in_the_same_order_in_every_process(mode, number):
    assert digests("600-629", mode, number) == digests("600-629", mode, 0)
