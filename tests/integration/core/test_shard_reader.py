"""A second process maps a shard read-only and verifies every list while the first injects at full speed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from penstock.core import _native
from penstock.errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path

GROWS, LEAF = 1000, 1001  # predicates; their labels are 1 and 2
HUBS = 4
FIRST_LEAF = 1 << 20
EDGES_OF_AN_EPOCH = 3_000_000  # then the store is made anew: the test's memory is bounded, its time is not

# Value k of hub v is (v << 32) + k + 1 and the leaves are numbered without gaps, so every list tells by itself whether it
# is torn. The label numbers are those that the writer's first commit makes.
READER = """
import json, sys, time
import numpy as np
from penstock.errors import StorageError
from penstock.core._native import ShardReader

path, seconds = sys.argv[1], float(sys.argv[2])
hubs, first_leaf = int(sys.argv[3]), int(sys.argv[4])
end = time.monotonic() + seconds
seen = {"lists": 0, "values": 0, "epochs": 0, "torn": []}

def check(what, values, base, longest):
    expected = np.arange(base, base + len(values), dtype=np.uint64)
    seen["lists"] += 1
    seen["values"] += len(values)
    if not np.array_equal(values, expected) or len(values) < longest:
        seen["torn"].append(what)
    return max(longest, len(values))

while time.monotonic() < end:
    try:
        reader = ShardReader(path)
    except StorageError:
        continue  # between two epochs
    seen["epochs"] += 1
    longest, leaves, turn = [0] * hubs, 0, 0
    while time.monotonic() < end and not reader.retired():
        hub = turn % hubs
        turn += 1
        longest[hub] = check(f"hub {hub}", reader.neighbours(hub + 1, 1, 0), ((hub + 1) << 32) + 1, longest[hub])
        if turn % 8 == 0:
            leaves = check("leaves", reader.vertices(2, 0), first_leaf, leaves)
        if leaves:  # what was listed must be found, however the table has grown since
            leaf = first_leaf + turn * 7919 % leaves
            check(f"leaf {leaf}", reader.neighbours(leaf, 2, 0), leaf + 1, 1)
print(json.dumps(seen))
"""


class Injector:
    """Appends to a few long lists and to ever new vertices: lists, table and file grow all the time."""

    def __init__(self, directory: Path) -> None:
        self.directory = str(directory)
        self.commits = 0
        self.start()

    def start(self) -> None:
        self.store = _native.Store(self.directory, 1, reserve_bytes=1 << 32)
        self.length, self.leaves = 0, 0

    def step(self) -> None:
        hubs = np.repeat(np.arange(1, HUBS + 1, dtype=np.uint64), 10)
        members = (hubs << np.uint64(32)) + np.uint64(self.length + 1) + np.tile(np.arange(10, dtype=np.uint64), HUBS)
        leaves = np.arange(FIRST_LEAF + self.leaves, FIRST_LEAF + self.leaves + 50, dtype=np.uint64)
        s = np.concatenate([hubs, leaves])
        p = np.concatenate([np.full_like(hubs, GROWS), np.full_like(leaves, LEAF)])
        o = np.concatenate([members, leaves + np.uint64(1)])
        self.store.commit(s, p, o, np.zeros_like(s))
        self.length += 10
        self.leaves += len(leaves)
        self.commits += 1
        if self.store.edge_count() > EDGES_OF_AN_EPOCH:
            del self.store
            self.start()


def inject_while_another_process_reads(directory: Path, seconds: float) -> tuple[dict[str, Any], int]:
    injector = Injector(directory)
    injector.step()
    region = directory / "shard-0.region"
    arguments = [sys.executable, "-c", READER, str(region), str(seconds), str(HUBS), str(FIRST_LEAF)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    reader = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=environment)
    deadline = time.monotonic() + seconds + 60
    while reader.poll() is None and time.monotonic() < deadline:
        injector.step()
    reader.kill()
    output, _ = reader.communicate()
    assert reader.returncode == 0
    return json.loads(output), injector.commits


def verify(directory: Path, seconds: float) -> None:
    seen, commits = inject_while_another_process_reads(directory, seconds)
    assert seen["torn"] == []
    assert seen["lists"] > 100 * seconds
    assert commits > 100 * seconds


def test_another_process_sees_no_torn_list_for_5_seconds(shared_memory: Path) -> None:
    verify(shared_memory, 5)


@pytest.mark.long
def test_another_process_sees_no_torn_list_for_a_minute(shared_memory: Path) -> None:
    verify(shared_memory, 60)


def test_a_reader_notices_that_the_writer_released_the_store(tmp_path: Path) -> None:
    store = _native.Store(str(tmp_path), 1)
    column = np.array([1], dtype=np.uint64)
    store.commit(column, column, column, column)
    reader = _native.ShardReader(str(tmp_path / "shard-0.region"))
    assert not reader.retired()
    assert (reader.latest(), reader.vts(1)) == (1, None)
    del store
    assert reader.retired()
    assert reader.neighbours(1, 1, 0).tolist() == [1]
    with pytest.raises(StorageError):
        _native.ShardReader(str(tmp_path / "shard-0.region"))
