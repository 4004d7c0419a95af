"""The limit on processor time for planning, whose clock may jump."""

from __future__ import annotations

import pytest

from penstock.query import budget as budgets
from penstock.query.text_faults import LimitFault


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(budgets, "thread_time", lambda: now[0])
    return now


def test_one_pause_does_not_count(clock):
    budget = budgets.Budget(budgets.PlanningLimits(planning_timeout_s=2.0), "text")
    clock[0] += 7.0  # a garbage collection, or a suspended machine
    budget.look()
    clock[0] += 0.9
    budget.look()
    clock[0] += 0.9
    budget.look()
    clock[0] += 0.9
    with pytest.raises(LimitFault, match="planning_timeout_s"):
        budget.look()


def test_a_second_pause_counts(clock):
    budget = budgets.Budget(budgets.PlanningLimits(planning_timeout_s=2.0), "text")
    clock[0] += 1.5
    budget.look()
    clock[0] += 2.5
    with pytest.raises(LimitFault, match="planning_timeout_s"):
        budget.look()


def test_time_outside_of_the_text_does_not_count(clock):
    budget = budgets.Budget(budgets.PlanningLimits(planning_timeout_s=2.0), "text")
    clock[0] += 5.0
    budget.defer(5.0)
    for _ in range(2):
        clock[0] += 0.9
        budget.look()
    clock[0] += 0.9
    with pytest.raises(LimitFault):
        budget.look()
