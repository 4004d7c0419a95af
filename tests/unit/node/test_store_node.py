"""A node's state: its log, its leases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from penstock.errors import DataError, StorageError
from penstock.node import StoreNode
from penstock.remote import Server

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
def node(tmp_path: Path, clock: Clock) -> StoreNode:
    return StoreNode(tmp_path, 2, [0, 1], Server("127.0.0.1", 0, b"sixteen bytes or more"), clock=clock)


def commit(node: StoreNode, snapshot: int, position: int | None = None) -> int:
    ids = np.array([snapshot], np.uint64)
    columns = {"s": ids, "absorbed": np.ones(1, np.uint32), "o": ids}
    if node.position == 0:
        columns |= {"graphs": np.zeros(1, np.uint64), "predicates": ids}
    entry = {"kind": "commit", "snapshot": snapshot, "first_label": 1}
    return node.apply(node.position if position is None else position, entry, columns)


def test_an_entry_is_applied_once_and_none_is_left_out(node: StoreNode) -> None:
    assert commit(node, 1) == 1
    assert commit(node, 1, position=0) == 1
    with pytest.raises(DataError, match="does not follow"):
        commit(node, 3, position=2)
    assert node.status()["snapshot"] == 1


def test_an_unknown_kind_of_entry_is_refused(node: StoreNode) -> None:
    with pytest.raises(DataError, match="unknown kind"):
        node.apply(0, {"kind": "dance"}, {})
    assert node.position == 0


def test_a_lease_keeps_logs_until_it_runs_out(node: StoreNode, clock: Clock) -> None:
    commit(node, 1)
    assert node.lease("engine", 5, 1000, {}) == 1  # what is newest where that is older
    commit(node, 2)
    commit(node, 3)
    assert node.status()["log_bytes"] > 0
    clock.now = 1.5
    node.expire()
    assert node.status()["engines"] == 0
    commit(node, 4)
    assert node.status()["log_bytes"] == 0
    with pytest.raises(StorageError, match="cannot be read any more"):
        node.lease("engine", 1, 1000, {})


def test_a_renewed_lease_lets_go_of_what_came_before(node: StoreNode) -> None:
    node.lease("engine", 0, 1000, {})
    for snapshot in range(1, 5):
        commit(node, snapshot)
    held = node.status()["log_bytes"]
    assert node.lease("engine", 4, 1000, {}) == 4
    assert node.status()["log_bytes"] < held


def test_streams_are_released_only_as_far_as_every_engine_says(node: StoreNode) -> None:
    node.apply(0, {"kind": "declare", "stream": 1, "batch_ms": 10}, {})
    node.lease("a", 0, 1000, {1: (-1, -1)})
    node.lease("b", 0, 1000, {1: (-1, -1)})
    ids, labels = np.array([7], np.uint64), np.ones(1, np.uint32)
    columns = {"ts": np.array([5]), "s": ids, "o": ids, "labels": labels, "absorbed": labels}
    columns |= {"graphs": np.zeros(1, np.uint64), "predicates": ids}
    node.apply(1, {"kind": "batch", "stream": 1, "batch": 0, "snapshot": 1, "first_label": 1}, columns)
    node.lease("a", 1, 1000, {1: (0, 0)})
    assert node.status()["log_bytes"] > 0  # b may still bound the stream before this batch
    node.lease("b", 1, 1000, {1: (0, 0)})
    assert node.status()["log_bytes"] == 0


def batch(node: StoreNode, number: int, snapshot: int) -> None:
    ids, labels = np.array([7 + number], np.uint64), np.ones(1, np.uint32)
    columns = {"ts": np.array([10 * number + 5]), "s": ids, "o": ids, "labels": labels, "absorbed": labels}
    if snapshot == 1:
        columns |= {"graphs": np.zeros(1, np.uint64), "predicates": np.array([1], np.uint64)}
    entry = {"kind": "batch", "stream": 1, "batch": number, "snapshot": snapshot, "first_label": 1}
    node.apply(node.position, entry, columns)


def test_who_comes_back_after_its_lease_hears_which_bounds_were_lost(node: StoreNode, clock: Clock) -> None:
    node.apply(0, {"kind": "declare", "stream": 1, "batch_ms": 10}, {})
    node.lease("engine", 0, 1000, {})
    batch(node, 0, 1)
    batch(node, 1, 2)
    assert node.released() == {}
    clock.now = 1.5
    batch(node, 2, 3)  # nobody reads
    node.lease("engine", 3, 1000, {})
    assert node.released() == {1: 2}


def test_slices_that_nobody_needs_are_not_published_again(node: StoreNode) -> None:
    node.lease("engine", 0, 1000, {1: (0, 1)})  # which has copied batches 0 and 1 from this node's former life
    node.apply(0, {"kind": "declare", "stream": 1, "batch_ms": 10}, {})
    for number in range(4):
        batch(node, number, number + 1)
    assert node._parts[1].live() == 2


def test_a_lease_of_no_time_is_refused(node: StoreNode) -> None:
    with pytest.raises(DataError):
        node.lease("engine", 0, 0, {})
