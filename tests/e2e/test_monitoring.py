"""A real Prometheus with the configuration and rules of compose, on a running cluster: every query of a dashboard
returns data, and every rule can be evaluated.
"""

from __future__ import annotations

import json
import math
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml
from tests.e2e.test_up import Up
from tools import monitoring

from penstock.broker.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROMETHEUS = shutil.which("prometheus")
pytestmark = [
    pytest.mark.xdist_group("broker"),
    pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not installed (Debian: prometheus)"),
]
ROOT = Path(__file__).resolve().parents[2]
BOUND_S, LOOK_S = 90.0, 0.5
COMPONENTS = {"engine": "query-engine"}


class Prometheus:
    """A running server."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1/"

    def ask(self, path: str, **arguments: str) -> Any:
        """Return `data` of a response."""
        with urlopen(f"{self._url}{path}?{urlencode(arguments)}", timeout=10) as response:
            return json.load(response)["data"]

    def values(self, query: str) -> list[float]:
        """Return the values of the series that a query returns now."""
        return [float(each["value"][1]) for each in self.ask("query", query=query)["result"]]

    def answers(self) -> bool:
        """Return whether the server can be asked."""
        try:
            self.ask("status/buildinfo")
        except OSError:
            return False
        return True


def wait_for(condition: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(LOOK_S)


@contextmanager
def prometheus(folder: Path, ports: dict[str, int]) -> Iterator[Prometheus]:
    """Run Prometheus with compose's configuration, but these ports of services, and an interval of a second."""
    config = yaml.safe_load((ROOT / "monitoring" / "prometheus.yml").read_text(encoding="utf-8"))
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(monitoring.FOLDER / "rules.yaml")]
    [job] = config["scrape_configs"]
    del job["authorization"]  # services on the loopback interface ask for no token
    job["static_configs"] = [
        {
            "targets": [f"127.0.0.1:{port}"],
            "labels": {"namespace": "up", "component": component(name), "pod": name},
        }
        for name, port in ports.items()
    ]
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(config))
    port = free_port()
    command = [str(PROMETHEUS), f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}"]
    command.append(f"--web.listen-address=127.0.0.1:{port}")
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            server = Prometheus(port)
            wait_for(server.answers, "Prometheus answers")
            yield server
        finally:
            process.terminate()


def component(name: str) -> str:
    service = name.rstrip("-0123456789")
    return COMPONENTS.get(service, service)


def test_prometheus_accepts_the_configuration_of_compose():
    file = ROOT / "monitoring" / "prometheus.yml"
    done = subprocess.run(
        ["promtool", "check", "config", "--syntax-only", file], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_query_returns_data_of_a_running_cluster_and_every_rule_is_evaluated(tmp_path: Path):
    cluster = Up(tmp_path / "cluster", tmp_path / "output")
    try:
        ports = {name: int(row[1]) for name, row in cluster.rows.items() if name != "broker"}
        (tmp_path / "prometheus").mkdir()
        with prometheus(tmp_path / "prometheus", ports) as server:
            wait_for(lambda: server.values("up") == [1.0] * len(ports), "all services are read")
            assert "hello" in cluster.first_event()
            for panel in [*monitoring.USERS, *monitoring.DEVELOPERS]:
                for legend, query in panel.queries.items():
                    here = query.replace("$namespace", ".*")
                    what = f"{panel.title}, {legend}: {here}"
                    wait_for(lambda here=here: any(not math.isnan(v) for v in server.values(here)), what)
            names = "|".join(sorted({"penstock_evaluations_total", "penstock_events_total", "penstock_batches_total"}))
            assert min(server.values(f'max by (__name__) ({{__name__=~"{names}"}})'), default=0) > 0

            def evaluated() -> dict[str, str]:
                [group] = server.ask("rules")["groups"]
                return {rule["name"]: rule["health"] for rule in group["rules"]}

            sound = {alert.name: "ok" for alert in monitoring.ALERTS}
            wait_for(lambda: evaluated() == sound, "every rule is evaluated")
            assert [alert for alert in server.ask("alerts")["alerts"] if alert["state"] == "firing"] == []
    finally:
        assert cluster.end(signal.SIGTERM) == 0
