"""`penstock up` as a user runs it: the table, the first event that it suggests, SIGTERM, a second start, SIGKILL."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.integration.cli.test_supervisor import running

from penstock.broker import kafka_jars
from penstock.broker.java import find_java
from penstock.broker.ports import free_port
from penstock.broker.processes import dies_with_parent
from penstock.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.xdist_group("broker")
BOUND_S = 180.0
ROW = re.compile(r"^([a-z]+(?:-\d)?) +(\d+) +(\d+) +(\S.*?) +(\S+\.log) *$", re.MULTILINE)


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


class Up:
    """One run of the command."""

    def __init__(self, folder: Path, output: Path) -> None:
        self._output = output
        self.ports = [free_port(), free_port()]
        options = ["--broker-port", str(self.ports[0]), "--coordinator-port", str(self.ports[1])]
        command = [
            sys.executable,
            "-m",
            "penstock",
            "up",
            str(folder),
            "--engines",
            "1",
            "--engine-port",
            "0",
            *options,
        ]
        with output.open("wb") as file:
            environment = os.environ | {"COLUMNS": "300"}
            self.process = subprocess.Popen(command, stdout=file, stderr=file, env=environment)
        wait_for(lambda: "Ctrl-C stops" in self.text or self.process.poll() is not None, "started")
        assert self.process.poll() is None, self.text
        self.rows = {row[0]: row[1:] for row in ROW.findall(self.text)}

    @property
    def text(self) -> str:
        return self._output.read_text()

    @property
    def pids(self) -> list[int]:
        return [int(row[0]) for row in self.rows.values()]

    @property
    def regions(self) -> Path:
        """Where the stores of this run have their regions."""
        settings = Path(f"/proc/{self.rows['store-0'][0]}/environ").read_bytes().split(b"\0")
        [found] = [each for each in settings if each.startswith(b"PENSTOCK_REGIONS_DIR=")]
        return Path(os.fsdecode(found.partition(b"=")[2]))

    def first_event(self) -> str:
        """Run what the command suggests."""
        suggested = self.text[self.text.index(sys.executable) : self.text.index("\nEND\n") + 5]
        done = subprocess.run(["sh", "-c", suggested], capture_output=True, text=True, timeout=BOUND_S, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(BOUND_S)


@contextmanager
def started(folder: Path, output: Path) -> Iterator[Up]:
    run = Up(folder, output)
    try:
        yield run
    finally:
        if run.process.poll() is None:
            run.end(signal.SIGTERM)


def test_up_starts_shows_stops_and_cleans_up(tmp_path):
    try:
        find_java()
        kafka_jars()
    except StorageError as error:
        pytest.skip(str(error))
    with started(tmp_path / "c", tmp_path / "first.txt") as run:
        services = {f"{name}-{i}" for name in ("dictionary", "coordinator", "store") for i in (0, 1)}
        assert run.rows.keys() == services | {"broker", "engine-0", "adaptor-0", "dispatcher-0"}
        assert {row[2] for row in run.rows.values()} == {"ready"}
        assert [run.rows["broker"][1], run.rows["coordinator-0"][1]] == [str(port) for port in run.ports]
        assert all(Path(row[3]).is_file() for row in run.rows.values())
        assert "Literal('hello')" in run.first_event()
        again = subprocess.run(
            [sys.executable, "-m", "penstock", "up", str(tmp_path / "d"), "--broker-port", str(run.ports[0])],
            capture_output=True, text=True, timeout=BOUND_S, check=False,
        )  # fmt: skip
        assert again.returncode == 1
        assert f"port {run.ports[0]} (the broker) is in use: choose another one with --broker-port" in again.stderr
        regions, pids = run.regions, run.pids
        assert regions.is_dir()
        assert run.end(signal.SIGTERM) == 0
        assert not any(map(running, pids)), "services and broker have ended with the command"
        assert not regions.exists()
        logs = {name: Path(row[3]).read_text() for name, row in run.rows.items() if name != "broker"}
        assert [name for name, log in logs.items() if '"stopped"' not in log] == [], "each was stopped in order"

    with started(tmp_path / "c", tmp_path / "second.txt") as run:
        assert "Literal('hello')" in run.first_event(), "the same data, with other ports"
        if not dies_with_parent():
            return
        regions, pids = run.regions, run.pids
        run.end(signal.SIGKILL)
        wait_for(lambda: not any(map(running, pids)), "services and broker end with a command that was killed")
        assert regions.exists()

    with started(tmp_path / "c", tmp_path / "third.txt") as run:
        assert not regions.exists()
        run.end(signal.SIGINT)
