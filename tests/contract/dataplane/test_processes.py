"""A node that is another process: killed, or not allowed to lock memory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from penstock.errors import DataPlaneError
from penstock.remote import PlaneLimits, connect
from support.plane_regions import SECRET, expected, rdma_device, read

from .conftest import NODE

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.core import _native as native

WORDS = 100_000
PROGRAM = """
import sys
from pathlib import Path
from support.plane_regions import Node
node = Node(Path(sys.argv[1]))
node.add(int(sys.argv[2]))
print(node.server.port, flush=True)
sys.stdin.readline()
"""


class NodeProcess:
    """Serves region 0 until it is killed; `before` is what it is started by."""

    def __init__(self, directory: Path, *before: str) -> None:
        command = [*before, sys.executable, "-c", PROGRAM, str(directory), str(WORDS)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def plane(self, transport: str) -> native.Plane:
        limits = PlaneLimits(read_timeout_ms=20_000)
        return connect(
            NODE, "127.0.0.1", self.port, SECRET, transport, limits=limits, rdma_device=rdma_device("engine")
        )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def test_reads_of_a_killed_node_fail_soon_and_those_of_its_successor_work(tmp_path: Path, transport: str) -> None:
    if transport == "shm":
        pytest.skip("what is mapped outlives its writer: leases tell that it is gone")
    if transport == "tls":
        pytest.skip("the process of this test has no certificates: test_tls.py")
    node = NodeProcess(tmp_path)
    try:
        plane = node.plane(transport)
        assert np.array_equal(read(plane, NODE, [(0, 0, 100)]), expected([(0, 0, 100)]))
        node.kill()
        began = time.monotonic()
        with pytest.raises(DataPlaneError) as caught:
            read(plane, NODE, [(0, 0, 100)])
        assert caught.value.fault in ("disconnected", "timed out")
        assert time.monotonic() - began < 20
    finally:
        node.kill()
    for path in tmp_path.iterdir():
        path.unlink()
    successor = NodeProcess(tmp_path)
    try:
        plane = successor.plane(transport)
        assert np.array_equal(read(plane, NODE, [(0, 0, 100)]), expected([(0, 0, 100)]))
    finally:
        successor.kill()


def test_a_node_that_may_not_lock_memory_is_read_over_tcp(
    tmp_path: Path, transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    if transport != "rdma":
        pytest.skip("only RDMA locks memory")
    if shutil.which("setpriv") is None or os.geteuid() != 0:
        pytest.skip("to lower the limit for root needs setpriv")
    limited = ("setpriv", "--bounding-set=-ipc_lock", "sh", "-c", 'ulimit -l 64; exec "$@"', "sh")
    node = NodeProcess(tmp_path, *limited)
    try:
        plane = node.plane(transport)
        assert "the limit of locked memory may be too low" in caplog.text
        assert np.array_equal(read(plane, NODE, [(0, 0, 100)]), expected([(0, 0, 100)]))
    finally:
        node.kill()
