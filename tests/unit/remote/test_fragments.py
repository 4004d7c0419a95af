"""Steps that run in stores: what travels, and what a store refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import DataError, LimitError, PenstockError, StorageError
from penstock.remote import Server
from penstock.remote.fork_join import rows_from_arrow, rows_to_arrow
from penstock.services.store.shard_store import ShardStore

if TYPE_CHECKING:
    from pathlib import Path

ROWS, KEYS, FOUND = 5, 6, 7  # slots


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_rows_come_back_from_arrow_as_they_were(count: int) -> None:
    columns = [np.arange(count, dtype=np.uint64), np.arange(count, dtype=np.uint64) << np.uint64(40)]
    slots, back = rows_from_arrow(rows_to_arrow([3, 1], columns))
    assert slots == [3, 1]
    assert all(np.array_equal(one, other) for one, other in zip(columns, back, strict=True))


def arrow(batch: pa.RecordBatch) -> np.ndarray:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return np.frombuffer(sink.getvalue(), np.uint8)


@pytest.mark.parametrize(
    "data",
    [
        np.frombuffer(b"", np.uint8),
        np.frombuffer(b"garbage, and a little more of it", np.uint8),
        rows_to_arrow([1], [ids(1, 2, 3)])[:-40],
        arrow(pa.RecordBatch.from_pydict({"x": pa.array([1], pa.uint64())})),
        arrow(pa.RecordBatch.from_pydict({"1": pa.array([1], pa.int32())})),
        arrow(pa.RecordBatch.from_pydict({"1": pa.array([1, None], pa.uint64())})),
        arrow(pa.RecordBatch.from_pydict({"1": pa.array(["text"])})),
    ],
)
def test_what_is_no_rows_is_refused(data: np.ndarray) -> None:
    with pytest.raises(DataError):
        rows_from_arrow(data)


@pytest.fixture
def shard(tmp_path: Path) -> ShardStore:
    made = ShardStore(0, 1, tmp_path / "shard", Server("127.0.0.1", 0, b"sixteen bytes or more"))
    labels = made.store.number_labels(np.zeros(3, np.uint64), ids(50, 50, 50))
    made.apply(1, ids(100, 100, 101), labels, ids(200, 201, 202), 0, 0)
    return made


def fragment(**changes: Any) -> dict[str, Any]:
    dataset = [{"src": 0, "graphs": [0]}]
    scan = {"op": "scan", "id": 0, "in": {"op": "seed", "id": 0}, "s": {"var": KEYS}, "p": {"id": 50}}
    scan |= {"o": {"var": FOUND}, "dataset": dataset}
    root = {"op": "project", "id": 0, "in": scan, "slots": [ROWS, FOUND]}
    return {"slots": 8, "seed": [ROWS, KEYS], "root": root, "subplans": []} | changes


def ask(plan: Any, **changes: Any) -> dict[str, Any]:
    return {"plan": json.dumps(plan), "snapshot": 1, "timeout_s": 1.0, "memory": 0} | changes


SEED = [ids(0, 1, 2), ids(101, 999, 100)]
NONE = np.empty(0, np.uint32)


def test_a_store_extends_rows_by_what_it_finds(shard: ShardStore) -> None:
    slots, columns = rows_from_arrow(shard.fragments.run(ask(fragment()), NONE, rows_to_arrow([ROWS, KEYS], SEED)))
    assert slots == [ROWS, FOUND]
    assert sorted(zip(*(column.tolist() for column in columns), strict=True)) == [(0, 202), (2, 200), (2, 201)]


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (ask(fragment(), snapshot=2), StorageError),
        (ask(fragment(seed=[ROWS])), PenstockError),
        (ask(fragment(root={"op": "seed"})), PenstockError),
        (ask(fragment(root={"op": "filter", "in": {"op": "seed"}})), DataError),
        (ask(fragment(subplans=[{}])), DataError),
        (ask({"root": {"op": "seed"}}), KeyError),
        (ask(fragment(), memory=1), LimitError),
        (ask(fragment(pad="x" * (1 << 18))), DataError),
    ],
)
def test_a_store_refuses_what_is_no_fragment(shard: ShardStore, asked: dict[str, Any], error: type[Exception]) -> None:
    many = [np.arange(100_000, dtype=np.uint64), np.full(100_000, 100, np.uint64)]
    with pytest.raises(error):
        shard.fragments.run(asked, NONE, rows_to_arrow([ROWS, KEYS], many))


def test_commits_that_the_engine_leaves_out_are_left_out(shard: ShardStore) -> None:
    lease = shard.lease(1)
    shard.apply(2, ids(101), np.ones(1, np.uint32), ids(7), 0, 0)
    rows = rows_to_arrow([ROWS, KEYS], SEED)

    def found(*excluded: int) -> list[int]:
        answer = shard.fragments.run(ask(fragment(), snapshot=2), np.array(excluded, np.uint32), rows)
        return sorted(rows_from_arrow(answer)[1][1].tolist())

    assert found() == [7, 200, 201, 202]
    assert found(2) == [200, 201, 202]
    with pytest.raises(DataError, match="ascending"):
        found(2, 1)
    assert lease.snapshot == 1
