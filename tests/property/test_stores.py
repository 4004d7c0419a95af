"""Random cases over stores in other processes: the same engine, the same answers as the model (ADR 18, 64).

`PYTHONPATH=libs:tests python -m property.case NUMBER --stores 3 [--transport tcp]` runs one case. Cases over stores in
network namespaces of their own are in tests/e2e/test_stores_namespaces.py.
"""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from property import cases, running
from property.changing import make_changing
from support.engine_over_stores import EngineOverStores
from support.meaning import Tally
from support.store_processes import StoreProcesses

if TYPE_CHECKING:
    from collections.abc import Callable

    from property.script import Case

PORTION = 10


def _hold(first: int, transport: str, execution: str = "auto", make: Callable[[int], Case] = cases.make) -> None:
    tally, found = Tally(), []
    for seed in range(first, first + PORTION):
        with StoreProcesses() as stores:
            engine = EngineOverStores(stores, transport=transport, execution=execution)
            difference = running.run(make(seed), tally, engine)
        if difference is not None:
            found.append(f"case {seed}, {difference}")
    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("first", range(20_000, 20_040, PORTION))
def test_cases_over_three_stores_in_shared_memory_agree_with_the_model(first: int) -> None:
    _hold(first, "shm")


@pytest.mark.parametrize("first", range(20_040, 20_060, PORTION))
def test_cases_over_three_stores_by_tcp_agree_with_the_model(first: int) -> None:
    _hold(first, "tcp")


@pytest.mark.parametrize("first", range(20_060, 20_100, PORTION))
def test_cases_over_three_stores_by_fork_join_agree_with_the_model(first: int) -> None:
    _hold(first, "tcp", "fork-join")


@pytest.mark.parametrize("first", range(50_200, 50_220, PORTION))
@pytest.mark.parametrize(("transport", "execution"), [("shm", "auto"), ("tcp", "auto"), ("tcp", "fork-join")])
def test_updates_that_remove_agree_over_stores(first: int, transport: str, execution: str) -> None:
    _hold(first, transport, execution, make_changing)


@pytest.mark.long
@pytest.mark.parametrize("first", range(55_000, 57_000, PORTION))
@pytest.mark.parametrize(("transport", "execution"), [("shm", "auto"), ("tcp", "auto"), ("tcp", "fork-join")])
def test_updates_that_remove_agree_over_stores_in_two_thousand_more(first: int, transport: str, execution: str) -> None:
    _hold(first, transport, execution, make_changing)


@pytest.mark.long
@pytest.mark.parametrize("first", range(26_000, 28_000, PORTION))
def test_two_thousand_more_cases_by_fork_join_agree_with_the_model(first: int) -> None:
    _hold(first, "tcp", "fork-join")


@pytest.mark.long
@pytest.mark.parametrize("first", range(22_000, 24_000, PORTION))
def test_two_thousand_more_cases_in_shared_memory_agree_with_the_model(first: int) -> None:
    _hold(first, "shm")


def _holds_with(shards: int, first: int, count: int) -> None:
    tally = Tally()
    for seed in range(first, first + count):
        difference = running.run(replace(cases.make(seed), shards=shards), tally)
        assert difference is None, f"case {seed} with {shards} shards, {difference}"


@pytest.mark.parametrize("shards", [1, 4, 16])
def test_cases_in_one_process_agree_with_the_model_whatever_the_shards(shards: int) -> None:
    _holds_with(shards, 20_200, 34)


@pytest.mark.long
@pytest.mark.parametrize("first", range(24_000, 26_000, 50))
@pytest.mark.parametrize("shards", [1, 4, 16])
def test_two_thousand_more_cases_in_one_process_agree_whatever_the_shards(shards: int, first: int) -> None:
    _holds_with(shards, first, 50)


class Killer(threading.Thread):
    """Kills a store and brings it back, at seeded random moments."""

    def __init__(self, stores: StoreProcesses, seed: int, kills: int) -> None:
        super().__init__(daemon=True)
        self.stores, self.rng, self.left = stores, random.Random(seed), kills
        self.done = threading.Event()

    def run(self) -> None:
        while self.left and not self.done.wait(self.rng.uniform(0.01, 0.3)):
            process = self.rng.choice(self.stores.processes)
            process.kill()
            process.start()
            self.left -= 1


def _survives(seed: int, kills: int) -> int:
    """Run cases while stores are killed; returns how often. Every answer is right, those that waited included."""
    killed, case = 0, seed
    while killed < kills:
        with StoreProcesses() as stores:
            execution = ("fork-join", "auto")[case // 2 % 2]
            engine = EngineOverStores(stores, transport="tcp" if case % 2 else "shm", execution=execution)
            killer = Killer(stores, case, kills - killed)
            killer.start()
            try:
                found = running.run(cases.make(case), Tally(), engine)
            finally:
                killer.done.set()
                killer.join()
        assert found is None, f"case {case}, {found}"
        killed, case = kills - killer.left, case + 1
    return killed


def test_answers_are_right_while_stores_are_killed() -> None:
    assert _survives(30_000, 6) == 6


@pytest.mark.long
def test_answers_are_right_while_stores_are_killed_a_hundred_times() -> None:
    assert _survives(31_000, 100) == 100
