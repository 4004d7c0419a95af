"""The whole cluster under seeded faults: no result is lost, doubled, different or out of order, whatever dies when.

A failing seed is run again by `PYTHONPATH=libs:tests python -m simulation.seed NUMBER`.
"""

from __future__ import annotations

import pytest

from simulation.planted import ForgetfulEngine
from simulation.running import run


@pytest.mark.parametrize("first", range(0, 300, 25))
def test_every_result_is_committed_exactly_once(first):
    for seed in range(first, first + 25):
        outcome = run(seed)
        assert outcome.good, f"seed {seed}: {outcome}"


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("first", range(300, 10_300, 500))
def test_every_result_is_committed_exactly_once_for_ten_thousand_seeds(first):
    for seed in range(first, first + 500):
        outcome = run(seed)
        assert outcome.good, f"seed {seed}: {outcome}"


def test_the_same_seed_gives_the_same_run():
    first, second = run(47), run(47)
    assert (first.evaluations, first.crashes, first.restarts) == (second.evaluations, second.crashes, second.restarts)
    assert first.crashes > 0


def test_a_planted_bug_is_found():
    """An engine that commits its progress before its results loses some when it dies in between."""
    assert any(run(seed, engine=ForgetfulEngine).lost for seed in range(100))
