"""Stores as processes on a real broker, killed while the log grows: every edge is stored once, whoever has
its shard.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("confluent_kafka")

from penstock.cli.cluster.local_cluster import LocalCluster
from penstock.client import Client
from penstock.core import _native as native
from penstock.errors import StorageError

if TYPE_CHECKING:
    from penstock.broker import Broker

EX = "http://ex.org/"
SHARDS, LABELS = 4, 8
EVENTS, A_BATCH = 60, 5
PATIENCE_S = 60.0


def live(regions: Path) -> dict[int, native.ShardReader]:
    """The region of each shard that has come furthest: a store that died may have left one behind, one may just come or
    go.
    """
    found: dict[int, native.ShardReader] = {}
    for path in regions.glob("*/*/*/shard-*.region"):
        number = int(path.stem.removeprefix("shard-"))
        try:
            reader = native.ShardReader(str(path))
        except StorageError:
            continue
        if number not in found or reader.latest() > found[number].latest():
            found[number] = reader
    return found


def edges(shards: dict[int, native.ShardReader], direction: int) -> list[tuple[int, int, int]]:
    found = []
    for shard in shards.values():
        for label in range(1, LABELS):
            for vertex in shard.vertices(label, direction).tolist():
                others = shard.neighbours(vertex, label, direction).tolist()
                found += [(label, *((vertex, other) if direction == 0 else (other, vertex))) for other in others]
    return found


@pytest.mark.xdist_group("broker")
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long)])
def test_killed_stores_come_back_with_every_edge_once(broker: Broker, topic_prefix: str, tmp_path: Path, seed: int):
    rng = random.Random(seed)
    kills = {rng.randrange(5, EVENTS - 5): f"store-{i % 2}" for i in range(4)}
    small = {"dictionaries": 1, "coordinators": 1, "engines": 0, "shards": SHARDS, "prefix": topic_prefix}
    with (
        LocalCluster(broker.bootstrap_servers, tmp_path, **small) as cluster,
        Client(broker.bootstrap_servers, cluster.url, prefix=topic_prefix) as client,
    ):
        client.declare_stream(EX + "s", "s", batch_ms=100, max_ahead_ms=1 << 52, absorb_into=EX + "g")
        client.update(f"INSERT DATA {{ <{EX}a0> <{EX}knows> <{EX}b> }}")
        for i in range(EVENTS):
            hub, own = f"<{EX}a{i}> <{EX}knows> <{EX}b> .", f"<{EX}a{i % 7}> <{EX}saw> <{EX}a{i}> ."
            client.push("s", f"{hub}\n{own}".encode(), 1 + i * 100 // A_BATCH)
            if i in kills:
                time.sleep(rng.random())
                cluster.kill(kills[i])
                time.sleep(rng.random() * 5)  # longer than 3 s, and its shards move
                cluster.watch()
        end = EVENTS // A_BATCH
        client.advance("s", end * 100)
        regions, deadline = (
            Path(cluster.services["store-0"].settings["PENSTOCK_REGIONS_DIR"]),
            time.monotonic() + PATIENCE_S,
        )
        while len(shards := live(regions)) < SHARDS or any(shard.vts(1) != end - 1 for shard in shards.values()):
            cluster.watch()
            assert time.monotonic() < deadline, {number: shard.vts(1) for number, shard in shards.items()}
            time.sleep(0.1)
        assert {shard.latest() for shard in shards.values()} == {end + 1}  # every commit once
        out, into = edges(shards, 0), edges(shards, 1)
        assert len(out) == len(set(out)) == 2 * EVENTS + 1
        assert sorted(out) == sorted(into)
