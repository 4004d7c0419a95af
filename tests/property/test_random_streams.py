"""Random streams and random queries give the answers of the brute-force model (support/oracle.py).

A failing test names its case: `PYTHONPATH=libs:tests python -m property.case NUMBER --shrink` prints it whole.
"""

from __future__ import annotations

import pytest

from penstock.core import _native as native
from property import cases, running
from property.changing import compared, make_changing
from property.patching import make_patching
from support.meaning import Tally

PORTION = 10
FOUND = (191, 1462, 1841, 2141, 2222, 5146, 6480, 7433, 10_067, 10_450, 10_686, 26_020)
"""Cases that once differed (as long as the generator makes them as it did)."""


def _hold(
    first: int, *, split: bool = False, scoping: bool = False, changing: bool = False, patching: bool = False
) -> None:
    """`split`: queries compute terms and join with them, over a partial dictionary. `scoping`: property/scoping.py.
    `changing`: property/changing.py. `patching`: property/patching.py.
    """
    tally, found = Tally(), []
    for seed in range(first, first + PORTION):
        made = cases.make_computing if split else cases.make_scoping if scoping else cases.make
        case = make_patching(seed) if patching else make_changing(seed) if changing else made(seed)
        difference = running.run(case, tally, split=split)
        if difference is not None:
            found.append(f"case {seed}, {difference}")
    assert not found, "\n\n".join(found)
    # The references err now and then (mostly over paths); where all three differ, the small evaluator's word is weak.
    # Each of them has its own reading of EXISTS.
    texts = {dispute.splitlines()[0] for dispute in tally.disputed}
    assert scoping or len(texts) <= PORTION // 3, "\n".join(texts)


@pytest.mark.parametrize("first", range(0, 150, PORTION))
def test_random_cases_agree_with_the_model(first: int) -> None:
    _hold(first)


@pytest.mark.parametrize("number", FOUND)
def test_what_once_differed_agrees(number: int) -> None:
    assert running.run(cases.make(number), Tally()) is None


@pytest.mark.long
@pytest.mark.parametrize("first", range(10_000, 12_000, PORTION))
def test_two_thousand_more_cases_agree_with_the_model(first: int) -> None:
    _hold(first)


def test_the_references_seldom_dispute_the_models_evaluator() -> None:
    tally = Tally()
    evaluations = sum(running.check_model(cases.make(seed), tally) for seed in range(500, 560))
    assert evaluations > 1000
    assert len(tally.disputed) < 0.01 * tally.evaluations, "\n\n".join(tally.disputed[:3])


def test_a_number_always_makes_the_same_case() -> None:
    assert str(cases.make(77)) == str(cases.make(77))


@pytest.mark.parametrize("first", range(20_000, 20_100, PORTION))
def test_a_split_dictionary_changes_no_answer(first: int) -> None:
    _hold(first, split=True)


@pytest.fixture
def from_changes():
    """Evaluate even small inputs from changes (ADR 78)."""
    usual = native.maintain_from(0)
    yield
    native.maintain_from(usual)


@pytest.mark.parametrize("first", range(20_100, 20_200, PORTION))
def test_a_split_dictionary_changes_no_answer_that_is_evaluated_from_changes(first: int, from_changes: None) -> None:
    _hold(first, split=True)


@pytest.mark.long
@pytest.mark.parametrize("first", range(22_000, 24_000, PORTION))
def test_a_split_dictionary_changes_no_answer_of_two_thousand_more(first: int) -> None:
    _hold(first, split=True)


FOUND_SCOPING = (26, 180, 1084, 1089, 35_617, 37_423)
"""Of them once differed: 180 (WINDOW around a sub-select alone), 35,617 (an EXISTS that reads an OPTIONAL) and 37,423
(a sub-select in GRAPH ?h in GRAPH ?g, beside MINUS). The others were faults of the model or its data.
"""


@pytest.mark.parametrize("number", FOUND_SCOPING)
def test_what_once_differed_in_scopes_agrees(number: int) -> None:
    assert running.run(cases.make_scoping(number), Tally()) is None


@pytest.mark.parametrize("first", range(30_000, 30_100, PORTION))
def test_scopes_and_ties_agree_with_the_model(first: int) -> None:
    """OPTIONAL first inside GRAPH ?g, EXISTS over variables that rows leave unbound, equal sort keys, tags in
    mixed case.
    """
    _hold(first, scoping=True)


@pytest.mark.long
@pytest.mark.parametrize("first", range(32_000, 42_000, PORTION))
def test_scopes_and_ties_agree_with_the_model_in_ten_thousand_more(first: int) -> None:
    _hold(first, scoping=True)


@pytest.mark.parametrize("first", range(50_000, 50_120, PORTION))
def test_updates_that_remove_agree_with_the_model(first: int) -> None:
    """The operation log, applied in the order of commits: 1 and 3 shards, restarts and crashes, streams that lag."""
    _hold(first, changing=True)


@pytest.mark.long
@pytest.mark.parametrize("first", range(52_000, 54_000, PORTION))
def test_updates_that_remove_agree_with_the_model_in_two_thousand_more(first: int) -> None:
    _hold(first, changing=True)


@pytest.mark.parametrize("first", range(56_000, 56_120, PORTION))
def test_streams_that_remove_agree_with_the_model(first: int) -> None:
    """RDF Patches as events: 1 and 3 shards, late events, restarts and crashes, updates in between."""
    _hold(first, patching=True)


@pytest.mark.long
@pytest.mark.parametrize("first", range(58_000, 60_000, PORTION))
def test_streams_that_remove_agree_with_the_model_in_two_thousand_more(first: int) -> None:
    _hold(first, patching=True)


def test_the_model_of_updates_agrees_with_pyoxigraph() -> None:
    assert sum(compared(seed) for seed in range(54_000, 54_120)) > 300
