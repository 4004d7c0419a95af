"""Node and engine as processes in network namespaces of their own: nothing but TCP between them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Serves one region of known words until it is told to stop.
NODE = """
import sys
from pathlib import Path
from support.plane_regions import Node
node = Node(Path(sys.argv[1]), host="10.78.0.1")
node.add(200_000)
node.add(200_000)
print(node.server.port, flush=True)
sys.stdin.readline()
print(node.server.counters()["reads"], flush=True)
"""

# Reads in batches, checks every word, and tells what it met.
ENGINE = """
import json, random, sys
import numpy as np
from penstock.dataplane import PlaneLimits, connect
from penstock.errors import DataPlaneError
from support.plane_regions import SECRET, expected, read
port, batches = int(sys.argv[1]), int(sys.argv[2])
choose, wrong, reads = random.Random(1), 0, 0
plane = connect(1, "10.78.0.1", port, SECRET, "tcp")
for batch in range(batches):
    asked = []
    for _ in range(1_000):
        length = choose.randint(1, 40)
        asked.append((choose.randrange(2), choose.randint(0, 200_000 - length), length))
    wrong += not np.array_equal(read(plane, 1, asked), expected(asked))
    reads += len(asked)
try:
    connect(1, "10.78.0.1", port, b"a secret that nobody has", "tcp")
    stranger = "let in"
except DataPlaneError as error:
    stranger = error.fault
print(json.dumps({"reads": reads, "wrong": wrong, "transport": plane.transport(1), "stranger": stranger}), flush=True)
sys.stdin.readline()
try:
    read(plane, 1, [(0, 0, 8)])
    after = "answered"
except DataPlaneError as error:
    after = error.fault
print(json.dumps(after))
"""


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture
def namespaces() -> Iterator[tuple[str, str]]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    node, engine = f"penstock-node-{os.getpid()}", f"penstock-engine-{os.getpid()}"
    try:
        ip("netns", "add", node)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
    try:
        ip("netns", "add", engine)
        ip("link", "add", "plane0", "netns", node, "type", "veth", "peer", "name", "plane1", "netns", engine)
        for name, device, address in ((node, "plane0", "10.78.0.1/24"), (engine, "plane1", "10.78.0.2/24")):
            ip("-n", name, "address", "add", address, "dev", device)
            ip("-n", name, "link", "set", device, "up")
        yield node, engine
    finally:
        subprocess.run(["ip", "netns", "delete", node], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "delete", engine], check=False, capture_output=True)


def start(namespace: str, program: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = ["ip", "netns", "exec", namespace, sys.executable, "-c", program, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    text = process.stdout.readline()
    assert text, "the process ended without a word"
    return text


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_an_engine_reads_a_node_of_another_network_namespace(namespaces: tuple[str, str], tmp_path: Path) -> None:
    node = start(namespaces[0], NODE, str(tmp_path))
    engine = start(namespaces[1], ENGINE, line(node).strip(), "50")
    try:
        assert json.loads(line(engine)) == {"reads": 50_000, "wrong": 0, "transport": "tcp", "stranger": "refused"}
        node.kill()
        node.wait()
        tell(engine)
        assert json.loads(line(engine)) == "disconnected"
    finally:
        node.kill()
        engine.kill()
        node.wait()
        engine.wait()
