"""Checkpoints of shards that write only what has changed: what they cost, what they survive, and what they refuse."""

from __future__ import annotations

import resource
import shutil
import threading
from typing import TYPE_CHECKING

import pytest

from penstock.errors import StorageError
from penstock.services.store.background_checkpoint import BackgroundCheckpoint
from penstock.services.store.shard_checkpoints import ShardCheckpoints
from support.small_cluster import SmallCluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from penstock.services.store.store import Store

EX = "http://ex.org/"
SHARDS = 2


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    made = SmallCluster(engines=1, shards=SHARDS)
    made.coordinator.declare(EX + "s", "s", batch_ms=100)
    yield made
    made.close()


@pytest.fixture
def store(cluster: SmallCluster, tmp_path: Path) -> Store:
    made = cluster.start_store("s0", tmp_path)
    cluster.run()
    return made


def feed(cluster: SmallCluster, batch: int, triples: int) -> None:
    rows = (f"<{EX}{batch}> <{EX}p> <{EX}{batch}-{i}> ." for i in range(triples))
    cluster.push("s", batch * 100 + 1, "\n".join(rows))
    cluster.advance("s", batch * 100 + 100)
    cluster.run(5)


def edges(store: Store) -> int:
    return sum(shard.store.edge_count() for shard in store.shards.values())


def written(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("checkpoints/*/*/*/store/*"))


def restarted(cluster: SmallCluster, folder: Path) -> Store:
    cluster.kill_store("s0")
    store = cluster.start_store("s0", folder)
    cluster.run()
    return store


def test_a_second_checkpoint_writes_what_has_changed_and_links_the_rest(
    cluster: SmallCluster, store: Store, tmp_path: Path
):
    feed(cluster, 0, 20_000)
    assert store.checkpoint()
    first = written(tmp_path)
    feed(cluster, 1, 5)
    assert store.checkpoint()
    assert written(tmp_path) - first < first / 5
    remaining = [file for file in tmp_path.glob("checkpoints/*/*/*/store/*.region") if file.stat().st_nlink == 1]
    assert len(remaining) == 2 * SHARDS, "the first's folder is gone, its files are not"
    again = restarted(cluster, tmp_path)
    assert edges(again) == 20_005
    feed(cluster, 2, 5)
    assert again.checkpoint(), "and one that came back goes on with the chain"
    assert written(tmp_path) - first < first / 5
    assert edges(restarted(cluster, tmp_path)) == 20_010


def test_a_damaged_increment_is_an_error_that_names_it(cluster: SmallCluster, store: Store, tmp_path: Path):
    feed(cluster, 0, 500)
    assert store.checkpoint()
    feed(cluster, 1, 5)
    assert store.checkpoint()
    for number in range(SHARDS):
        chain = sorted(tmp_path.glob(f"checkpoints/shard-{number}/*/*/store/*.region"), key=lambda f: f.stat().st_mtime)
        increment = chain[-1]
        whole = increment.read_bytes()
        for damaged in (whole[: len(whole) // 2], b"", whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]):
            increment.write_bytes(damaged)
            with pytest.raises(StorageError, match=increment.name):
                ShardCheckpoints(tmp_path / "checkpoints", "s0", SHARDS).last(number)
        increment.write_bytes(whole)
        assert ShardCheckpoints(tmp_path / "checkpoints", "s0", SHARDS).last(number) is not None


def test_a_full_disk_leaves_the_checkpoint_before_in_force(cluster: SmallCluster, store: Store, tmp_path: Path):
    feed(cluster, 0, 100)
    assert store.checkpoint()
    feed(cluster, 1, 20_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    follower = store.followers()[0]
    assert store._checkpoints is not None
    captured = store._checkpoints.capture(follower.replica, store.shards[0])
    resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, hard))  # files end there, as a disk would
    try:
        with pytest.raises(StorageError, match=r"too large|No space"):
            captured.write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    last = ShardCheckpoints(tmp_path / "checkpoints", "s9", SHARDS).last(0)
    assert last is not None
    assert last[1].runtime.snapshot == 1
    assert store.checkpoint(), "once there is room"
    assert edges(restarted(cluster, tmp_path)) == 20_100


def test_steps_are_applied_while_a_checkpoint_is_written(
    cluster: SmallCluster, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """And shards may be saved at different steps: each takes the log from its own."""
    feed(cluster, 0, 100)
    assert store._checkpoints is not None
    saving, writing = BackgroundCheckpoint(store, store._checkpoints), threading.Event()
    finish = ShardCheckpoints.finish

    def slow(self: ShardCheckpoints, capture: object) -> None:
        assert writing.wait(20)
        finish(self, capture)  # type: ignore[arg-type]

    monkeypatch.setattr(ShardCheckpoints, "finish", slow)
    saving.begin()
    assert not saving.step()
    for batch in (1, 2, 3):
        feed(cluster, batch, 10)
        assert not saving.step(), "the first shard is being written"
    assert edges(store) == 130
    writing.set()
    while not saving.step():
        feed(cluster, 4, 1)
    assert saving.idle
    saving.close()
    steps = [ShardCheckpoints(tmp_path / "checkpoints", "s9", SHARDS).last(n) for n in range(SHARDS)]
    assert len({last[1].history.step for last in steps if last is not None}) == SHARDS
    expected = edges(store)
    assert edges(restarted(cluster, tmp_path)) == expected


def test_a_shard_that_moves_while_it_is_saved_leaves_no_checkpoint_behind(
    cluster: SmallCluster, store: Store, tmp_path: Path
):
    feed(cluster, 0, 100)
    follower = store.followers()[0]
    assert store._checkpoints is not None
    captured = store._checkpoints.capture(follower.replica, store.shards[1])
    store._checkpoints.release(1)
    captured.write()
    assert ShardCheckpoints(tmp_path / "checkpoints", "s9", SHARDS).last(1) is None


def test_where_the_folder_before_has_gone_everything_is_written(cluster: SmallCluster, store: Store, tmp_path: Path):
    feed(cluster, 0, 100)
    assert store.checkpoint()
    for folder in tmp_path.glob("checkpoints/*/*/checkpoint-*"):
        shutil.rmtree(folder)
    assert store.checkpoint()
    assert edges(restarted(cluster, tmp_path)) == 100
