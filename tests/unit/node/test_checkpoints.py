"""Checkpoints of a node, and how the engine's log gets shorter by them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
import rdflib

import penstock
from penstock.errors import DataError, LimitError, PenstockError, StorageError
from penstock.node import StoreNode
from penstock.node.checkpoints import Checkpoints
from penstock.node.journal import Journal
from penstock.remote import Server
from support.nodes import NodeCluster

if TYPE_CHECKING:
    from pathlib import Path

SECRET = b"sixteen bytes or more"
STREAM = "urn:x:s"
ASK = "SELECT ?s ?o WHERE { ?s <urn:x:p> ?o }"
WINDOW = f"FROM STREAM <{STREAM}> [RANGE 20ms STEP 10ms]"
CONTINUOUS = f"REGISTER RSTREAM q AS SELECT ?s ?o {WINDOW} WHERE {{ GRAPH <{STREAM}> {{ ?s <urn:x:p> ?o }} }}"


def open_node(folder: Path, own: tuple[int, ...] = (0, 1), shards: int = 2) -> StoreNode:
    server = Server("127.0.0.1", 0, SECRET)
    return StoreNode(folder / "regions", shards, own, server, checkpoints=Checkpoints(folder / "saved"))


def commit(node: StoreNode) -> None:
    number = node.status()["snapshot"] + 1
    ids = np.array([number], np.uint64)
    columns = {"s": ids, "absorbed": np.ones(1, np.uint32), "o": ids}
    if number == 1:
        columns |= {"graphs": np.zeros(1, np.uint64), "predicates": ids}
    node.apply(node.position, {"kind": "commit", "snapshot": number, "first_label": 1}, columns)


def test_a_node_comes_back_with_its_last_checkpoint(tmp_path: Path) -> None:
    node = open_node(tmp_path)
    node.follow("log")
    node.apply(0, {"kind": "declare", "stream": 3, "batch_ms": 10}, {})
    commit(node)
    assert node.checkpoint() == 2
    commit(node)
    assert node.checkpoint() == 3
    commit(node)
    del node
    again = open_node(tmp_path)
    assert (again.position, again.log, again.status()["snapshot"]) == (3, "log", 2)
    assert len(list((tmp_path / "saved").glob("store-*"))) == 1
    commit(again)
    again.apply(4, {"kind": "close", "stream": 3, "batch": 7}, {})
    assert again.status()["snapshot"] == 3


def test_what_a_killed_node_left_half_written_does_not_count(tmp_path: Path) -> None:
    node = open_node(tmp_path)
    node.follow("log")
    commit(node)
    node.checkpoint()
    half = tmp_path / "saved" / "store-2"
    half.mkdir()
    (half / "manifest").write_text("half of")
    (tmp_path / "saved" / "current.new").write_text("{")
    again = open_node(tmp_path)
    assert again.position == 1
    commit(again)
    assert again.checkpoint() == 2
    assert open_node(tmp_path).position == 2


def test_a_damaged_checkpoint_is_an_error_and_not_an_empty_node(tmp_path: Path) -> None:
    node = open_node(tmp_path)
    node.follow("log")
    commit(node)
    node.checkpoint()
    current = tmp_path / "saved" / "current.json"
    whole = current.read_text()
    for damaged in (
        "",
        "{}",
        "[1]",
        whole.replace('"store-1"', '"store-9"'),
        whole.replace('"format": 1', '"format": 9'),
    ):
        current.write_text(damaged)
        with pytest.raises(StorageError):
            open_node(tmp_path)


def test_a_checkpoint_of_other_shards_is_refused(tmp_path: Path) -> None:
    node = open_node(tmp_path)
    commit(node)
    node.checkpoint()
    with pytest.raises(DataError, match="has shards"):
        open_node(tmp_path, own=(0,))


def test_a_node_follows_one_log(tmp_path: Path) -> None:
    node = open_node(tmp_path)
    node.follow("one")
    node.follow("one")
    with pytest.raises(DataError, match="another engine's log"):
        node.follow("another")


def test_a_journal_forgets_from_its_beginning_and_keeps_its_bound() -> None:
    journal = Journal(1000)
    for number in range(3):
        assert journal.append({"n": number}, {}) == number
    with pytest.raises(LimitError):
        journal.append({}, {})
    journal.forget_before(2)
    assert (journal.begin, journal.end, journal.bytes) == (2, 3, 256)
    assert journal[2].fields == {"n": 2}
    assert journal.append({}, {}) == 3


def push(engine: penstock.Engine, k: int) -> None:
    engine.push(STREAM, f"<urn:x:{k}> <urn:x:p> <urn:x:{k + 1}> .", timestamp=10 * k + 5)


def test_nodes_that_were_all_killed_take_only_what_follows_their_checkpoint() -> None:
    with NodeCluster(durable=True) as cluster:
        nodes = cluster.open(transport="tcp", checkpoint_mb=0)
        with penstock.Engine(nodes=nodes) as engine:
            engine.declare_stream(STREAM, batch_ms=10, timing=())
            engine.advance(STREAM, 0)
            query = engine.register(CONTINUOUS)
            for k in range(3):
                push(engine, k)
                engine.advance(STREAM, 10 * k + 10)
            assert nodes._journal.begin == nodes._journal.end > 3
            for process in cluster.processes:
                process.kill()
                process.start()
            assert len(list(engine.query(ASK))) == 3
            # More batches at once than there were: those of a node's new life are not taken for the old one's.
            for k in range(3, 25):
                push(engine, k)
            engine.advance(STREAM, 250)
            assert len(list(engine.query(ASK))) == 25
            assert [len(evaluation.answer) for evaluation in query.poll()] == [1, *[2] * 24]


def test_a_node_that_lost_its_checkpoint_is_told_so() -> None:
    with NodeCluster(durable=True) as cluster:
        nodes = cluster.open(transport="tcp", checkpoint_mb=0)
        with penstock.Engine(nodes=nodes) as engine:
            engine.load(b"<urn:x:a> <urn:x:p> <urn:x:b> .", format="nt")
            cluster.processes[0].kill()
            cluster.forget(0)
            cluster.processes[0].start()
            with pytest.raises(StorageError, match="has lost its checkpoint"):
                engine.query(ASK)


def test_a_bound_is_refused_that_nodes_forgot_while_the_lease_had_run_out() -> None:
    with NodeCluster() as cluster:
        nodes = cluster.open(transport="tcp", lease_ms=300)
        with penstock.Engine(nodes=nodes) as engine:
            engine.declare_stream(STREAM, batch_ms=10, timing=())
            engine.advance(STREAM, 0)
            push(engine, 0)
            engine.advance(STREAM, 10)
            number = nodes._streams[1]._number
            nodes.graph.view([(number, 0)])
            nodes._stop.set()  # as if this process were held up
            nodes._keeper.join()
            time.sleep(0.5)
            for k in (1, 2):
                push(engine, k)
                engine.advance(STREAM, 10 * k + 10)
            with pytest.raises(PenstockError, match="was released beyond"):
                nodes.graph.view([(number, 0)])
            nodes.graph.view([(number, 2)])
            assert len(list(engine.query(ASK))) == 3


def test_another_engine_is_refused_by_nodes_that_follow_one() -> None:
    with NodeCluster() as cluster:
        with penstock.Engine(nodes=cluster.open(transport="tcp")) as engine:
            engine.load(b"<urn:x:a> <urn:x:p> <urn:x:b> .", format="nt")
            assert [row["o"] for row in engine.query(ASK)] == [rdflib.URIRef("urn:x:b")]
        with pytest.raises(DataError, match="another engine's log"):
            cluster.open(transport="tcp")
