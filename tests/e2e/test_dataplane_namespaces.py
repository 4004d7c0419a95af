"""Node and engine as processes in network namespaces of their own: nothing but TCP between them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from support.namespaces import network, start

if TYPE_CHECKING:
    import subprocess
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
from penstock.remote import PlaneLimits, connect
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


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    text = process.stdout.readline()
    assert text, "the process ended without a word"
    return text


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_an_engine_reads_a_node_of_another_network_namespace(tmp_path: Path) -> None:
    with network(1) as made:
        node = start(made.nodes[0], "-c", NODE, str(tmp_path))
        engine = start(made.engine, "-c", ENGINE, line(node).strip(), "50")
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
