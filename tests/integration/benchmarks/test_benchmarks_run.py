"""Every benchmark runs, at a size that says nothing about speed, and its answers are right."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import xml.etree.ElementTree as ET
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING

import pytest
from benchmarks import plots, report
from benchmarks.__main__ import ALL
from benchmarks.harness import LeftOutError, Point, Row, WrongAnswerError, check, quantile

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.harness import Finding


_LONG = {"macro.kafka_graph", "macro.kafka_handover", "macro.kafka_streams"}  # they start several clusters


def _findings(name: str) -> list[Finding]:
    return list(importlib.import_module(f"benchmarks.{name}").run(tiny=True))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name in _LONG else ())
        for name in ALL
        if name not in {"micro.kernels", "macro.spark_load"}
    ],
)
def test_every_benchmark_runs_and_yields_figures(name: str) -> None:
    try:
        if "spark" in name:  # a JVM knows the jars that its process asked for first
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as another:
                findings = another.submit(_findings, name).result()
        else:
            findings = _findings(name)
    except LeftOutError as reason:
        pytest.skip(str(reason))
    rows = [finding for finding in findings if isinstance(finding, Row)]
    assert rows
    assert all(row.value > 0 and row.command == f"python -m benchmarks {name.split('.')[1]}" for row in rows)
    assert {finding.figure for finding in findings if isinstance(finding, Point)} <= plots.FIGURES.keys()


@pytest.mark.long
def test_the_native_kernels_build_and_run() -> None:
    try:
        assert list(importlib.import_module("benchmarks.micro.kernels").run(tiny=True))
    except LeftOutError as reason:
        pytest.skip(str(reason))


def test_a_row_says_how_much_better_than_the_peer_it_is_and_whether_the_target_is_met() -> None:
    latency = Row("l", 2.0, "µs", "c", "peer", 10.0, target=3.0)
    assert (latency.ratio, latency.met) == (5.0, True)
    rate = Row("r", 50.0, "/s", "c", "peer", 100.0, target=60.0, lower_is_better=False)
    assert (rate.ratio, rate.met) == (0.5, False)
    assert Row("n", 1.0, "µs", "c").met is None
    names = {"name", "value", "unit", "peer", "peer_value", "ratio", "target", "met", "command"}
    assert names <= latency.record().keys()


def test_a_wrong_answer_fails_its_benchmark() -> None:
    with pytest.raises(WrongAnswerError, match="rows of q1: found 1, expected 2"):
        check(1, 2, "rows of q1")


def test_a_quantile_is_one_of_the_values() -> None:
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([3.0, 1.0, 2.0], 0.99) == 3.0


def test_a_run_is_written_as_json_and_as_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    run = report.Run(
        rows=[Row("a name", 1234.5, "µs", "python -m benchmarks x", target=2000.0, clock="wall", other_clock=1200.0)],
        points=[Point("latency", "L1", 1, 2)],
        left_out={"kernels": "no valgrind"},
        calibrations={"before": {"hash_ns": 1.5}},
        loads=[0.5, 1.5],
    )
    run.write()
    (record,) = json.loads((tmp_path / "benchmarks.json").read_text())
    assert (record["name"], record["met"], record["ratio"]) == ("a name", True, None)
    table = (tmp_path / "benchmarks.md").read_text()
    assert "| a name | 1,234 | µs | wall | 1,200 |  |  | 2,000 | yes |" in table
    assert "- kernels: no valgrind" in table
    assert "1 of 1 targets met" in table


def test_figures_are_well_formed_and_the_same_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    points = [Point("latency", "L1", 1, 2), Point("latency", "L1", 20, 3), Point("memory", "all", 1e6, 5e7)]
    first = plots.draw(points, tmp_path / "a")
    second = plots.draw(points, tmp_path / "b")
    assert [path.name for path in first] == ["latency.svg", "memory.svg"]
    for one, two in zip(first, second, strict=True):
        ET.parse(one)
        assert one.read_bytes() == two.read_bytes()
