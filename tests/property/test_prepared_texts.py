"""Random one-shot queries and updates, prepared by texts that differ in their constants, agree with the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from property import cases, running
from property.changing import make_changing
from support.meaning import Tally
from support.siblings import compile_update, prime
from support.systems import EngineSystem

if TYPE_CHECKING:
    from support.answers import Answer

PORTION = 10


class PreparedSystem(EngineSystem):
    """An engine that has seen siblings of each text."""

    prepared = compiled = 0

    def ask(self, text: str, meaning: Any = None, *, ordered: bool = False) -> Answer:
        PreparedSystem.prepared += prime(self.engine._texts, text)
        return super().ask(text, meaning, ordered=ordered)

    def update(self, text: str, operations: Any = None) -> None:
        if prime(self.engine._texts, text):
            PreparedSystem.prepared += 1
            PreparedSystem.compiled += compile_update(self.engine, text)
        super().update(text, operations)


def _hold(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "EngineSystem", PreparedSystem)
    tally, found, before = Tally(), [], (PreparedSystem.prepared, PreparedSystem.compiled)
    for seed in range(first, first + PORTION):
        for make in (cases.make, cases.make_scoping, make_changing):
            difference = running.run(make(seed), tally)
            if difference is not None:
                found.append(f"case {seed} of {make.__name__}, {difference}")
    assert not found, "\n\n".join(found)
    assert PreparedSystem.prepared > before[0]
    assert PreparedSystem.compiled > before[1]


@pytest.mark.parametrize("first", range(60_000, 60_060, PORTION))
def test_prepared_texts_agree_with_the_model(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _hold(first, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("first", range(61_000, 62_000, PORTION))
def test_prepared_texts_of_three_thousand_cases_agree_with_the_model(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _hold(first, monkeypatch)
