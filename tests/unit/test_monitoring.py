"""Dashboards and alert rules name metrics that exist, and a runbook section exists for each alert."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("prometheus_client")

from pathlib import Path

from tools import monitoring

from penstock.runtime.metrics import Metrics

ROOT = Path(__file__).parents[2]
_NAME = re.compile(r"\bpenstock_[a-z_]+")


def sample_names() -> set[str]:
    names = set()
    for family in Metrics("test").registry.collect():
        endings = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}.get(family.type, ("",))
        names |= {family.name + ending for ending in endings}
    return names


def expressions() -> list[str]:
    panels = [*monitoring.USERS, *monitoring.DEVELOPERS]
    return [query for panel in panels for query in panel.queries.values()] + [a.expression for a in monitoring.ALERTS]


def test_every_expression_names_metrics_that_services_have():
    for expression in expressions():
        named = set(_NAME.findall(expression))
        assert named <= sample_names(), expression
        assert named or "up{" in expression


def test_the_files_of_the_chart_are_those_that_the_tool_writes():
    for name, text in monitoring.files().items():
        assert (monitoring.FOLDER / name).read_text(encoding="utf-8") == text, "run `python -m tools.monitoring`"


def test_every_alert_has_a_section_of_the_runbook():
    runbook = (ROOT / "docs" / "how-to" / "alerts.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\w+)$", runbook, re.MULTILINE) == [alert.name for alert in monitoring.ALERTS]
