"""Dashboards and alert rules name metrics that exist, and a runbook section exists for each alert."""

from __future__ import annotations

import json
import re

import pytest
import yaml

pytest.importorskip("prometheus_client")

from pathlib import Path
from typing import Any

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


# ---- compose
def compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))


def test_prometheus_of_compose_reads_every_service_and_the_rules():
    [job] = yaml.safe_load((ROOT / "monitoring" / "prometheus.yml").read_text(encoding="utf-8"))["scrape_configs"]
    services = compose()["services"]
    found = {}
    for each in job["static_configs"]:
        [target] = each["targets"]
        name, port = target.split(":")
        assert (each["labels"]["pod"], port) == (name, "8080")
        found[name] = each["labels"]["component"]
    assert found == {name: each["command"][0] for name, each in services.items() if "command" in each}
    mounts = dict(mount.split(":")[1::-1] for mount in services["prometheus"]["volumes"])
    rules = mounts["/etc/prometheus/rules.yaml"]
    assert (ROOT / rules).samefile(monitoring.FOLDER / "rules.yaml")
    assert job["authorization"]["credentials_file"] == f"/run/secrets/{services['prometheus']['secrets'][0]}"


def test_grafana_of_compose_finds_prometheus_and_the_dashboards():
    mounts = dict(mount.split(":")[1::-1] for mount in compose()["services"]["grafana"]["volumes"])
    folder = "/etc/grafana/provisioning/"
    [source] = yaml.safe_load((ROOT / mounts[f"{folder}datasources/penstock.yml"]).read_text())["datasources"]
    assert source["url"] == "http://prometheus:9090"
    [provider] = yaml.safe_load((ROOT / mounts[f"{folder}dashboards/penstock.yml"]).read_text())["providers"]
    assert (ROOT / mounts[provider["options"]["path"]]).samefile(monitoring.FOLDER)


# ---- dashboards (no Grafana can be installed here: ADR 77)
@pytest.mark.parametrize("name", ["dashboard-users.json", "dashboard-developers.json"])
def test_a_dashboard_has_the_fields_that_grafana_reads(name: str):
    dashboard = json.loads(monitoring.files()[name])
    assert re.fullmatch(r"[a-z0-9-]{1,40}", dashboard["uid"])
    variables = {each["name"] for each in dashboard["templating"]["list"]}
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    taken = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {(place["x"] + i, place["y"] + k) for i in range(place["w"]) for k in range(place["h"])}
        assert not cells & taken
        taken |= cells
        assert panel["type"] == "timeseries"
        assert panel["fieldConfig"]["defaults"]["unit"] in {"short", "s", "ops", "bytes"}
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references)
        for target in panel["targets"]:
            assert set(re.findall(r"\$(\w+)", target["expr"])) <= variables
            assert target["datasource"]["uid"] == "${datasource}"
            labels = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            by = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", target["expr"]))))
            assert labels <= by, "a label of the legend that the query drops"
