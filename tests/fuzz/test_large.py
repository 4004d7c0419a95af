"""Large texts are planned within their budget, or refused with a place: a few on every run,
many by `long`.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import penstock
from fuzz import large
from fuzz.large_texts import STREAM
from penstock import QueryLimitError


def test_large_texts_are_planned_within_their_budget_or_refused() -> None:
    report = large.run(0, 300, seconds=60)
    assert not report.faults, report.faults[:3]
    assert report.tried > 50


@pytest.mark.long
@pytest.mark.timeout(6 * 3600)
def test_a_hundred_thousand_large_texts() -> None:
    """PENSTOCK_LARGE_TEXTS: how many. The report is written to PENSTOCK_LARGE_REPORT, where that is set."""
    count, path = int(os.environ.get("PENSTOCK_LARGE_TEXTS", "100000")), os.environ.get("PENSTOCK_LARGE_REPORT")
    report = large.run(1 << 20, count, path=Path(path) if path else None)
    print(report)
    assert not report.faults, report.faults[:3]
    assert report.tried == count


def test_a_worker_that_ends_is_replaced_and_its_text_is_a_fault() -> None:
    worker = large.Worker()
    try:
        assert worker.plan(1).fault == ""
        worker.stop()
        lost, after = worker.plan(2), worker.plan(3)
    finally:
        worker.close()
    assert "the process ended" in lost.fault
    assert lost.seed == 2
    assert after.fault == ""


def test_a_text_that_takes_too_long_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "TIME_S", 0.0)
    monkeypatch.setattr(large, "REFUSAL_S", 0.0)
    with large.engine() as target:
        assert large.plan(1, target).fault.startswith("takes")


def growth_mb_of_64() -> float:
    memory = large.Memory()
    memory.mark()
    held = bytearray(b"x") * (64 << 20)
    del held
    return memory.growth_mb()


def test_memory_of_a_text_is_its_peak_over_what_was_in_use() -> None:
    """In a new process: one that has freed memory before may have it resident."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert 60 < pool.submit(growth_mb_of_64).result() < 100


@pytest.mark.parametrize(
    "seed", [1103299, 1070609, 1119114, 1083024], ids=["list", "values", "long values", "shared variables"]
)
def test_a_text_that_was_once_a_fault_is_planned_in_time_or_refused(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "TIME_S", 20.0)  # other work on the machine costs processor time too
    with large.engine() as target:
        assert large.plan(seed, target).fault == ""


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("SELECT * { " + " UNION ".join(["{ ?s ?p ?o }"] * 30_000) + " }", "max_query_tokens"),
        ("SELECT * { ?s " + "/".join(["<urn:p>"] * 20_000) + " ?o }", "max_plan_depth"),
        ("SELECT * { " + " UNION ".join(f"{{ ?a{i} <urn:p> ?b{i} }}" for i in range(9_000)) + " }", "planning_memory_mb"),
        ("SELECT * { ?s ?p (" + " 1" * 20_000 + ") }", "max_plan_depth"),
        ("SELECT * " + "{" * 5_000 + "}" * 5_000, "max_nesting"),
        ("SELECT * { ?s ?p ?o FILTER(" + "!(" * 5_000 + "?o" + ")" * 5_001 + " }", "max_nesting"),
    ],
    ids=["unions", "path", "wide union", "list", "groups", "brackets"],
)  # fmt: skip
def test_what_stopped_a_service_is_refused_with_a_place(text: str, limit: str) -> None:
    with large.engine() as engine:
        unlimited = penstock.Limits(planning_timeout_s=0)
        assert unlimited.max_plan_depth == 1_000
        for verb in (engine.explain, engine.query, engine.register):
            if verb == engine.register:
                text = text.replace("SELECT *", f"SELECT * FROM NAMED STREAM <{STREAM}> [RANGE 1s]", 1)
            with pytest.raises(QueryLimitError) as caught:
                verb(text)
            assert limit in caught.value.message or "planning_timeout_s" in caught.value.message
            assert caught.value.line == 1
            assert caught.value.column > 1
            assert len(str(caught.value)) < 2_000
