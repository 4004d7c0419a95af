"""Leases of engines on a store's shards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from penstock.errors import DataError, StorageError
from penstock.remote import Server
from penstock.services.store.leases import Leases
from penstock.services.store.shard_store import ShardStore

if TYPE_CHECKING:
    from pathlib import Path


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shard(tmp_path: Path) -> ShardStore:
    made = ShardStore(0, 1, tmp_path / "shard", Server("127.0.0.1", 0, b"sixteen bytes or more"))
    made.store.number_labels(np.zeros(1, np.uint64), np.array([50], np.uint64))
    return made


@pytest.fixture
def leases(shard: ShardStore, clock: Clock) -> Leases:
    made = Leases(clock)
    made.add(shard)
    return made


def commit(shard: ShardStore, snapshot: int) -> None:
    ids = np.array([snapshot], np.uint64)
    shard.apply(snapshot, ids, np.ones(1, np.uint32), ids, 0, 0)


def test_a_lease_keeps_logs_until_it_ends(shard: ShardStore, leases: Leases, clock: Clock) -> None:
    commit(shard, 1)
    assert leases.grant("engine", 5, 1000) == (1, {0: shard.epoch})  # the newest where that is older
    commit(shard, 2)
    commit(shard, 3)
    assert shard.store.log_bytes() > 0
    clock.now = 1.5
    leases.expire()
    assert len(leases) == 0
    commit(shard, 4)
    assert shard.store.log_bytes() == 0
    with pytest.raises(StorageError, match="cannot be read any more"):
        leases.grant("engine", 1, 1000)


def test_a_renewed_lease_releases_what_came_before(shard: ShardStore, leases: Leases) -> None:
    leases.grant("engine", 0, 1000)
    for snapshot in range(1, 5):
        commit(shard, snapshot)
    held = shard.store.log_bytes()
    assert leases.grant("engine", 4, 1000)[0] == 4
    commit(shard, 5)
    assert shard.store.log_bytes() < held


def test_an_engine_that_leaves_holds_nothing(shard: ShardStore, leases: Leases) -> None:
    commit(shard, 1)
    leases.grant("engine", 1, 1000)
    commit(shard, 2)
    leases.leave("engine")
    leases.leave("another")
    commit(shard, 3)
    assert (len(leases), shard.store.log_bytes()) == (0, 0)


def test_a_lease_without_duration_is_refused(leases: Leases) -> None:
    with pytest.raises(DataError):
        leases.grant("engine", 0, 0)
