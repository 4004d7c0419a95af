"""The supervisor of `penstock up`: restarts with a growing pause, reports of services that keep ending."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.broker.processes import dies_with_parent
from penstock.cli.cluster.supervisor import (
    REPORTED_FAILURES,
    RESTART_MAX_S,
    RESTART_RESET_S,
    Supervised,
    Supervisor,
)

BOUND_S = 60.0
FAILS = "import sys; sys.stderr.write({line!r}); sys.exit(1)"
RUNS = "import time; time.sleep(600)"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Rig:
    """A supervisor of one service, `code`, with a clock of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
        (folder / "supervised_service.py").write_text(code)
        monkeypatch.setenv("PYTHONPATH", str(folder))
        self.reports: list[str] = []
        self.clock = Clock()
        self.supervisor = Supervisor(folder, self.reports.append, self.clock)
        self.service = Supervised("service-0", "supervised_service", {})
        self.supervisor.services["service-0"] = self.service
        self.supervisor.watch()

    def fail(self) -> float:
        """Wait until the process has ended; returns the pause until its next start."""
        assert self.service.process is not None
        self.service.process.wait(BOUND_S)
        starts, began = self.service.starts, self.clock.now
        self.supervisor.watch()
        while self.service.starts == starts:
            self.clock.now += 0.125
            self.supervisor.watch()
        return self.clock.now - began


def test_a_service_that_keeps_ending_is_restarted_with_growing_pauses_and_reported(tmp_path, monkeypatch):
    line = '{"event": "failed", "reason": "the record at t:0:7 is no tuple; skip it: penstock quarantine t:0:7"}\n'
    rig = Rig(tmp_path, monkeypatch, FAILS.format(line=line + "later\n"))
    pauses = [rig.fail() for _ in range(9)]
    assert pauses[:5] == [0.0, 0.5, 1.0, 2.0, 4.0]
    assert pauses[-1] == RESTART_MAX_S
    first = rig.reports[0]
    assert f"service-0 ended {REPORTED_FAILURES} times in a row (exit code 1)" in first
    assert "the record at t:0:7 is no tuple; skip it: penstock quarantine t:0:7" in first
    assert str(tmp_path / "service-0.log") in first
    assert len(rig.reports) == 3, "after 3, 4 and 8 failures"
    rig.supervisor.stop()


def test_an_unstructured_end_is_reported_by_its_last_line(tmp_path, monkeypatch):
    rig = Rig(tmp_path, monkeypatch, "import a_module_that_is_not_there")
    for _ in range(REPORTED_FAILURES):
        rig.fail()
    assert "ModuleNotFoundError: No module named 'a_module_that_is_not_there'" in rig.reports[0]
    rig.supervisor.stop()


def test_a_service_that_ran_for_long_and_one_that_was_killed_on_purpose_are_restarted_at_once(tmp_path, monkeypatch):
    rig = Rig(tmp_path, monkeypatch, RUNS)
    for _ in range(REPORTED_FAILURES + 1):
        rig.supervisor.kill("service-0")
        assert rig.fail() == 0.0
    assert rig.service.process is not None
    for _ in range(REPORTED_FAILURES + 1):
        rig.clock.now += RESTART_RESET_S
        rig.service.process.kill()
        assert rig.fail() == 0.0
    assert rig.reports == []
    rig.supervisor.stop()
    assert rig.service.process.poll() == -signal.SIGTERM


@pytest.mark.skipif(not dies_with_parent(), reason="no setpriv here")
def test_services_end_when_the_supervisor_is_killed(tmp_path):
    (tmp_path / "supervised_service.py").write_text(RUNS)
    program = f"""
import pathlib, time
from penstock.cli.cluster.supervisor import Supervised, Supervisor
supervisor = Supervisor(pathlib.Path({str(tmp_path)!r}))
supervisor.services["s"] = Supervised("s", "supervised_service", {{}})
supervisor.watch()
print(supervisor.services["s"].process.pid, flush=True)
time.sleep(600)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert running(pid)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + BOUND_S
    while running(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.skipif(not dies_with_parent(), reason="no setpriv here")
def test_a_command_whose_parent_has_ended_does_not_start():
    *prefix, parent = dies_with_parent()
    assert parent == str(os.getpid())
    assert subprocess.check_output([*prefix, parent, "echo", "started"], text=True) == "started\n"
    orphan = subprocess.run([*prefix, "0", "echo", "started"], capture_output=True, text=True, check=False)
    assert (orphan.returncode, orphan.stdout) == (1, "")


def running(pid: int) -> bool:
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
