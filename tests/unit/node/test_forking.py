"""Steps that run on nodes: what travels, what a node refuses, and what becomes of an evaluation when one dies."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import penstock
from penstock.errors import DataError, DataPlaneError, LimitError, PenstockError, StorageError
from penstock.node import StoreNode
from penstock.remote import Server
from penstock.remote.fork_join import rows_from_arrow, rows_to_arrow
from support.nodes import NodeCluster

if TYPE_CHECKING:
    from collections.abc import Iterator
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
def node(tmp_path: Path) -> StoreNode:
    made = StoreNode(tmp_path, 1, [0], Server("127.0.0.1", 0, b"sixteen bytes or more"))
    edges = {"s": ids(100, 100, 101), "absorbed": np.ones(3, np.uint32), "o": ids(200, 201, 202)}
    labels = {"graphs": ids(0), "predicates": ids(50)}
    made.apply(0, {"kind": "commit", "snapshot": 1, "first_label": 1}, {**edges, **labels})
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


def test_a_node_extends_rows_by_what_it_finds(node: StoreNode) -> None:
    slots, columns = rows_from_arrow(node.fragments.run(ask(fragment()), NONE, rows_to_arrow([ROWS, KEYS], SEED)))
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
def test_a_node_refuses_what_is_no_fragment(node: StoreNode, asked: dict[str, Any], error: type[Exception]) -> None:
    many = [np.arange(100_000, dtype=np.uint64), np.full(100_000, 100, np.uint64)]
    with pytest.raises(error):
        node.fragments.run(asked, NONE, rows_to_arrow([ROWS, KEYS], many))


def test_commits_that_the_engine_leaves_out_are_left_out(node: StoreNode) -> None:
    lease = node._store.lease(1)
    node.apply(1, {"kind": "commit", "snapshot": 2}, {"s": ids(101), "absorbed": np.ones(1, np.uint32), "o": ids(7)})
    rows = rows_to_arrow([ROWS, KEYS], SEED)

    def found(*excluded: int) -> list[int]:
        answer = node.fragments.run(ask(fragment(), snapshot=2), np.array(excluded, np.uint32), rows)
        return sorted(rows_from_arrow(answer)[1][1].tolist())

    assert found() == [7, 200, 201, 202]
    assert found(2) == [200, 201, 202]
    with pytest.raises(DataError, match="ascending"):
        found(2, 1)
    assert lease.snapshot == 1


STREAM = "urn:s"
TEXT = f"""REGISTER RSTREAM q AS SELECT ?x ?z FROM NAMED STREAM <{STREAM}> [RANGE 100ms STEP 100ms]
WHERE {{ GRAPH <{STREAM}> {{ ?x <urn:at> ?y }} ?y <urn:next> ?z . ?z <urn:next> ?w }}"""


@pytest.fixture
def cluster() -> Iterator[NodeCluster]:
    with NodeCluster() as made:
        yield made


def test_a_node_that_dies_in_a_fork_fails_that_evaluation_alone(cluster: NodeCluster) -> None:
    nodes = cluster.open(execution="fork-join", transport="tcp", patience_s=2.0)
    with penstock.Engine(nodes=nodes) as engine:
        engine.load("".join(f"<urn:{i}> <urn:next> <urn:{(i + 1) % 50}> .\n" for i in range(50)).encode(), format="nt")
        engine.declare_stream(STREAM, batch_ms=100, timing="all")
        query = engine.register(TEXT)

        def push(time: int) -> list[Any]:
            for i in range(50):
                engine.push(STREAM, f"<urn:x{i}> <urn:at> <urn:{i}> .", timestamp=time)
            engine.advance(STREAM, time + 50)
            return list(query.poll())

        (before,) = push(50)
        assert len(list(before.answer)) == 50
        assert nodes.forking.forks > 0

        sent = nodes.forking._receive
        victim, back = cluster.processes[0], []

        def dying(node: int, deadline: float) -> Any:
            if victim is not None and not back:
                victim.kill()  # the rows are there, nothing has come back
                back.append(threading.Timer(0.5, victim.start))
                back[0].start()
            return sent(node, deadline)

        nodes.forking._receive = dying  # type: ignore[method-assign]
        (interrupted,) = push(150)  # which waits until the node is back
        assert len(list(interrupted.answer)) == 50
        back[0].join()

        nodes.forking._receive = _refuse  # type: ignore[method-assign]
        (failed,) = push(250)
        with pytest.raises(DataPlaneError, match="gone"):
            list(failed.answer)
        nodes.forking._receive = sent  # type: ignore[method-assign]
        (after,) = push(350)
        assert len(list(after.answer)) == 50


def _refuse(node: int, deadline: float) -> Any:
    raise DataPlaneError(f"node {node} is gone at {deadline}", "disconnected")


def test_a_node_that_does_not_answer_costs_the_time_of_one_evaluation(cluster: NodeCluster) -> None:
    nodes = cluster.open(execution="fork-join", transport="shm", patience_s=1.0)
    with penstock.Engine(nodes=nodes) as engine:
        engine.load("".join(f"<urn:{i}> <urn:next> <urn:{(i + 1) % 50}> .\n" for i in range(50)).encode(), format="nt")
        text = "SELECT ?x ?z { ?x <urn:next> ?y . ?y <urn:next> ?z }"
        assert len(list(engine.query(text))) == 50
        assert "50 rows from nodes" in engine.explain(text)
        late = nodes.forking._connection

        def silent(node: int, deadline: float) -> Any:
            connection = late(node, deadline)
            connection.send = lambda *_: None  # type: ignore[method-assign]
            return connection

        nodes.forking._connection = silent  # type: ignore[method-assign]
        with pytest.raises(DataPlaneError, match="in time"):
            engine.query(text, timeout_s=0.1)
        nodes.forking._connection = late  # type: ignore[method-assign]
        assert len(list(engine.query(text))) == 50
