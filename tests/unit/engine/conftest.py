"""A fresh engine for each test (see support/bench.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from support.bench import Bench

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.engine.close()


@pytest.fixture
def make_bench() -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(**settings: Any) -> Bench:
        made.append(Bench(**settings))
        return made[-1]

    yield make
    for one in made:
        one.engine.close()
