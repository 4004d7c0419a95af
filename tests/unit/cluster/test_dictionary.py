from __future__ import annotations

import numpy as np
import pytest

from penstock.cluster import known_terms
from penstock.cluster.dictionary import MAX_TERMS, DictionaryService
from penstock.cluster.dictionary_node import DictionaryNode
from penstock.cluster.terms import TermTable
from penstock.cluster.topics import ClusterTopics
from penstock.engine.directory import DataDirectory
from penstock.errors import DataError, LimitError, StorageError
from penstock.log import FencedError, MemoryLog, TransientError
from penstock.log.clock import VirtualClock
from penstock.log.topics import TopicNames
from penstock.store import _native as native

TOPICS = ClusterTopics(TopicNames())
TERMS = [(1, f"urn:x:{i}", "", "") for i in range(50)] + [(3, "a rather long literal", "urn:x:type", "")]


@pytest.fixture
def log():
    made = MemoryLog()
    made.create(TOPICS.all())
    return made


def test_ids_are_the_same_after_a_restart(log):
    first = DictionaryService(log, TOPICS)
    ids = np.concatenate([first.encode(TERMS[:20]), first.encode(TERMS[10:])])
    log.compact(TOPICS.names.dictionary)
    second = DictionaryService(log, TOPICS)
    assert np.array_equal(np.concatenate([second.encode(TERMS[:20]), second.encode(TERMS[10:])]), ids)
    assert second.decode(ids[:20]) == TERMS[:20]


def test_an_instance_that_was_replaced_gives_out_no_ids(log):
    old = DictionaryService(log, TOPICS)
    DictionaryService(log, TOPICS)
    with pytest.raises(FencedError):
        old.encode(TERMS)


def test_blank_nodes_are_never_given_out_twice(log):
    blank = [(2, "b", "", "")]
    first = DictionaryService(log, TOPICS)
    seen = {int(first.encode(blank)[0]) for _ in range(3)}
    second = DictionaryService(log, TOPICS)
    assert int(second.encode(blank)[0]) not in seen


def test_what_is_no_term_or_too_much_is_refused(log):
    service = DictionaryService(log, TOPICS)
    with pytest.raises(DataError):
        service.encode([(1, "not absolute", "", "")])
    with pytest.raises(LimitError):
        service.encode([(1, "urn:x", "", "")] * (MAX_TERMS + 1))
    with pytest.raises(DataError):
        service.decode(np.array([12345], np.uint64))


def test_a_table_turns_the_clusters_ids_into_its_own_and_asks_once(log):
    service = DictionaryService(log, TOPICS)
    ids = service.encode([*TERMS, (3, "7", "http://www.w3.org/2001/XMLSchema#integer", "")])
    asked = []

    class Counting:
        encode = service.encode

        def decode(self, wanted):
            asked.append(len(wanted))
            return service.decode(wanted)

    own = native.Dictionary()
    own.intern(1, "urn:x:another")
    table = TermTable(own, Counting())
    local = table.local(np.concatenate([ids, ids[::-1]]))
    assert native.LocalTerms(own).decode(local[: len(TERMS)]) == TERMS
    assert local[len(TERMS)] == ids[len(TERMS)]  # inline
    table.local(ids)
    assert asked == [len(TERMS)]
    saved = table.save().copy()
    again = TermTable(own, Counting())
    again.restore(saved)
    assert np.array_equal(again.local(ids), table.local(ids))
    assert asked == [len(TERMS)]


class Snapshots:
    """Nodes over one log, with a directory each, and a clock of their own for when snapshots are due."""

    def __init__(self, log, folder) -> None:
        self.log, self.folder, self.seconds = log, folder, 0.0
        self.made: list[tuple[DictionaryNode, DataDirectory]] = []

    def node(self, name: str = "d") -> DictionaryNode:
        directory = DataDirectory(self.folder / name, read_only=False)
        node = DictionaryNode(
            self.log, TOPICS, name, "grpc://127.0.0.1:0", VirtualClock(), directory, 10.0, lambda: self.seconds
        )
        self.made.append((node, directory))
        return node

    def close(self) -> None:
        for node, directory in self.made:
            node.close()
            directory.close(clean=False)
        self.made = []


@pytest.fixture
def snapshots(log, tmp_path):
    made = Snapshots(log, tmp_path)
    yield made
    made.close()


def test_a_restart_reads_a_snapshot_and_the_tail(snapshots, monkeypatch):
    node = snapshots.node()
    node.step()
    ids = node._service.encode([*TERMS[:30], (2, "b", "", "")])
    snapshots.seconds = 11.0
    node.step()
    tail = node._service.encode(TERMS[30:])
    snapshots.close()
    read = []
    monkeypatch.setattr(known_terms, "_entry", lambda m, entry=known_terms._entry: read.append(m) or entry(m))
    again = snapshots.node()
    again.step()
    assert again.active
    assert len(read) == len(TERMS) - 30
    assert np.array_equal(again._service.encode(TERMS), np.concatenate([ids[:30], tail]))
    assert again._service.encode([(2, "b", "", "")])[0] != ids[30]


def test_a_standby_has_read_along_when_it_takes_over(snapshots, monkeypatch):
    first, standby = snapshots.node("first"), snapshots.node("standby")
    first.step()
    ids = first._service.encode(TERMS)
    standby.step()
    monkeypatch.setattr(known_terms, "_entry", lambda _: pytest.fail("nothing is left to read"))
    first.close()
    standby.step()
    assert standby.active
    assert standby._service.decode(ids) == TERMS


def test_snapshots_are_made_where_something_was_added_and_by_standbys_too(snapshots, tmp_path):
    first, standby = snapshots.node("first"), snapshots.node("standby")
    first.step()
    first._service.encode(TERMS)
    for snapshots.seconds in (11.0, 22.0, 33.0):
        first.step()
        standby.step()
    assert [f.name for f in tmp_path.glob("*/checkpoint-*")] == ["checkpoint-000001"] * 2


def test_what_may_not_be_durable_is_never_seen(snapshots):
    node = snapshots.node()
    node.step()
    service = node._service
    service._writer.commit = lambda _: (_ for _ in ()).throw(TransientError("away"))
    with pytest.raises(StorageError):
        service.encode(TERMS)
    with pytest.raises(StorageError, match="is over"):
        service.encode(TERMS[:1])
    with pytest.raises(StorageError, match="is over"):
        service.snapshot(snapshots.folder)


def test_a_snapshot_of_another_log_is_refused(snapshots, tmp_path):
    node = snapshots.node()
    node.step()
    node._service.encode(TERMS)
    snapshots.seconds = 11.0
    node.step()
    snapshots.close()
    other = MemoryLog()
    other.create(TOPICS.all())
    snapshots.log = other
    with pytest.raises(StorageError, match="but the topic ends at 0"):
        snapshots.node()
