"""Insertions are snapshots of all shards, stored once per request."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from penstock.core import _native as native
from penstock.services.coordinator import insertion_writer
from penstock.services.coordinator.insertion import Insertion
from penstock.services.coordinator.insertion_writer import CompletedRequests
from penstock.services.dictionary.dictionary import DictionaryService
from penstock.wire import InsertionDone, ShardInsertion, ShardLoad, ShardRemoval
from support.active_coordinator import SHARDS, ActiveCoordinator
from support.loads import prepared


def insertion(rows: int, graphs: tuple[str, ...] = ()) -> Insertion:
    columns = [np.arange(1, rows + 1, dtype=np.uint64) for _ in range(3)]
    return Insertion([*columns, np.zeros(rows, np.uint64)], graphs, rows)


@pytest.fixture
def made() -> ActiveCoordinator:
    return ActiveCoordinator()


def test_each_shard_gets_its_rows_of_every_part(made, monkeypatch):
    monkeypatch.setattr(insertion_writer, "_PART_ROWS", 10)
    assert made.active.insertions.insert(insertion(25)) == 25
    for shard in range(SHARDS):
        records = made.commands(shard)
        assert [(record.number, record.part, record.parts) for record in records] == [(1, i, 3) for i in range(3)]
        subjects = np.concatenate([record.subjects for record in records])
        assert (native.shard_numbers(subjects, SHARDS) == shard).all()
    assert sum(len(record.subjects) for shard in range(SHARDS) for record in made.commands(shard)) == 25
    assert made.active.writer.written == 1


def test_removals_come_before_additions_in_the_parts_of_one_number(made, monkeypatch):
    monkeypatch.setattr(insertion_writer, "_PART_ROWS", 10)
    change = replace(insertion(25), removed=insertion(12).columns)
    assert made.active.insertions.insert(change) == 37
    for shard in range(SHARDS):
        records = made.commands(shard)
        assert [(record.number, record.part, record.parts) for record in records] == [(1, i, 5) for i in range(5)]
        assert [type(record) for record in records] == [*[ShardRemoval] * 2, *[ShardInsertion] * 3]
    assert sum(len(record.subjects) for shard in range(SHARDS) for record in made.commands(shard)) == 37


def test_an_empty_insertion_writes_nothing(made):
    assert made.active.insertions.insert(insertion(0), "one") == 0
    assert (made.active.writer.written, made.active.insertions.completed.names()) == (0, [])


def test_a_repeated_request_is_stored_once_also_after_a_takeover(made):
    assert made.active.insertions.insert(insertion(3, ("http://x/g",)), "one") == 3
    assert made.active.insertions.insert(insertion(5), "one") == 3
    active = made.take_over()
    assert active.insertions.insert(insertion(5), "one") == 3
    assert active.registrar.graphs == {"http://x/g"}
    assert active.insertions.insert(insertion(5), "two") == 5
    assert [record.number for record in made.commands() if isinstance(record, ShardInsertion)] == [1, 2]


def test_only_the_latest_requests_are_retained(made, monkeypatch):
    monkeypatch.setattr(insertion_writer, "RETAINED_DONE", 2)
    for request in ("one", None, "two", "three", "four"):
        made.active.insertions.insert(insertion(1), request)
    assert made.active.insertions.completed.names() == ["three", "four"]
    assert made.take_over().insertions.completed.names() == ["three", "four"]


def test_completed_requests_are_restored_by_number():
    records = [InsertionDone(9, "b", 2), InsertionDone(4, "a", 1)]
    completed = CompletedRequests(records)
    assert completed.names() == ["a", "b"]
    assert [completed.triples(request) for request in ("a", "b", "c", None)] == [1, 2, None, None]


def test_a_load_is_one_snapshot_of_all_shards(made, tmp_path):
    terms = DictionaryService(made.log, made.topics)
    quads = [("http://x/g", f"http://x/{i}", "http://x/p", "http://x/o") for i in range(6)]
    manifest = prepared(tmp_path, quads, terms, SHARDS)
    made.active.insertions.insert(insertion(1))
    assert made.active.insertions.load(manifest, terms) == 6
    for shard in range(SHARDS):
        [record] = [record for record in made.commands(shard) if isinstance(record, ShardLoad)]
        assert (record.number, record.triples) == (2, 6)
    assert made.active.registrar.graphs == {"http://x/g"}
    assert made.active.writer.written == 2
