from __future__ import annotations

import resource

import numpy as np
import pytest

from penstock.core import _native as native
from penstock.engine.checkpoint.data_directory import DataDirectory
from penstock.errors import DataError, LimitError, StorageError, UnavailableError
from penstock.log import FencedError, MemoryLog, Partition, Span, TransientError
from penstock.log.clock import VirtualClock
from penstock.log.topics import TopicNames
from penstock.quarantine import InternalRecords
from penstock.rdf.terms import MAX_TERM_BYTES, is_private
from penstock.replication.cluster_topics import ClusterTopics
from penstock.services.dictionary import dictionary
from penstock.services.dictionary.dictionary import DictionaryService
from penstock.services.dictionary.dictionary_instance import DictionaryNode
from penstock.services.dictionary.record_keys import record_key
from penstock.term_ids.cluster_terms import TermCache
from penstock.term_ids.reencoding import to_cluster
from penstock.term_ids.term_tables import MAX_TERMS

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


@pytest.mark.parametrize("character", ["\x01", "\u20ac", "x"])
def test_a_term_of_the_largest_size_is_taken_and_a_larger_one_is_refused_before_it_is_interned(log, character):
    """A key of JSON would be six times as large as control characters, and no topic would take the record."""
    service = DictionaryService(log, TOPICS)
    largest = (3, character * (MAX_TERM_BYTES // len(character.encode()) - 20), "urn:x:type", "")
    with pytest.raises(DataError, match="max_term_bytes"):
        service.encode([TERMS[0], (3, largest[1] + "x" * 100, "urn:x:type", "")])
    assert len(service) == 0
    with pytest.raises(DataError, match="max_term_bytes"):
        service.encode([(3, "\x01" * (11 << 20), "urn:x:type", "")])
    ids = service.encode([largest, TERMS[1]])
    again = DictionaryService(log, TOPICS)
    assert again.decode(ids) == [largest, TERMS[1]]


def test_keys_are_of_one_size_and_tell_terms_apart(log):
    """Compaction keeps one record for each key: what is joined must not read as something else."""
    terms = [
        (3, "a", "bc", ""),
        (3, "ab", "c", ""),
        (3, "abc", "", ""),
        (1, "abc", "", ""),
        (3, "a", "b", "c"),
        (3, "a1:b", "", ""),
        (3, "a", "1:b", ""),
        (3, "a\x000:", "", ""),
    ]
    keys = {record_key(term) for term in terms}
    assert len(keys) == len(terms)
    assert {len(key) for key in keys} == {32}
    service = DictionaryService(log, TOPICS)
    ids = service.encode(TERMS)
    log.compact(TOPICS.names.dictionary)
    assert DictionaryService(log, TOPICS).decode(ids) == TERMS


def test_a_request_beyond_its_bytes_is_refused_before_anything_is_interned(log):
    service = DictionaryService(log, TOPICS)
    terms = [(3, f"{i}" + "x" * (7 << 20), "urn:x:type", "") for i in range(10)]
    with pytest.raises(LimitError, match="MAX_REQUEST_BYTES"):
        service.encode(terms)
    assert len(service) == 0
    ids = service.encode(terms[:5])
    with pytest.raises(LimitError, match="MAX_REQUEST_BYTES"):
        service.decode(np.tile(ids, 1_000))
    assert service.decode(ids) == terms[:5]


def test_a_dictionary_whose_terms_cannot_be_written_gives_out_no_id_of_them(log, monkeypatch):
    """Whatever fails between interning and writing: an id that is not durable must not be seen."""
    service = DictionaryService(log, TOPICS)
    with monkeypatch.context() as broken:
        broken.setattr(dictionary, "record_key", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            service.encode(TERMS)
    with pytest.raises(StorageError, match="rejects all requests"):
        service.encode(TERMS)


def test_find_makes_nothing(log):
    service = DictionaryService(log, TOPICS)
    ids = service.encode(TERMS[:5])
    assert service.find([*TERMS[:7], (3, "7", "http://www.w3.org/2001/XMLSchema#integer", "")])[:7].tolist() == [
        *ids,
        0,
        0,
    ]
    assert len(service) == 5
    with pytest.raises(LimitError):
        service.find([(1, "urn:x", "", "")] * (MAX_TERMS + 1))


class Counting:
    """A service that counts the ids and terms that it is asked for."""

    def __init__(self, service) -> None:
        self.service = service
        self.decoded = self.found = self.encoded = 0

    def encode(self, terms):
        self.encoded += len(terms)
        return self.service.encode(terms)

    def find(self, terms):
        self.found += len(terms)
        return self.service.find(terms)

    def decode(self, ids):
        self.decoded += len(ids)
        return self.service.decode(ids)


@pytest.fixture
def asked(log):
    return Counting(DictionaryService(log, TOPICS))


def test_a_cache_asks_for_what_is_looked_at_and_once(asked):
    ids = asked.service.encode([*TERMS, (3, "7", "http://www.w3.org/2001/XMLSchema#integer", "")])
    own = native.Dictionary()
    TermCache(own, asked)
    terms = native.LocalTerms(own)
    assert terms.decode(ids[:5]) == TERMS[:5]
    assert terms.decode(ids)[:-1] == TERMS
    assert asked.decoded == len(TERMS)
    own.set_tick(1)
    assert own.sweep(1) == len(TERMS)
    assert terms.decode(ids[:3]) == TERMS[:3]
    assert asked.decoded == len(TERMS) + 3
    with pytest.raises(DataError):
        terms.decode(np.array([12345], np.uint64))


def test_constants_of_what_stands_are_made_and_those_of_one_shot_queries_are_not(asked):
    cache = TermCache(native.Dictionary(), asked)
    cache.learn(TERMS[:3])
    assert asked.encoded == 3
    assert [cache.constant(term) for term in TERMS[:4]] == asked.service.find(TERMS[:4]).tolist()
    assert asked.encoded == 4
    private = cache.query_constant(TERMS[5])
    assert is_private(private)
    assert asked.service.find([TERMS[5]]).tolist() == [0]
    (given,) = asked.service.encode([TERMS[5]]).tolist()
    assert cache.query_constant(TERMS[5]) == given  # it is looked for each time


def test_a_term_that_was_computed_gets_the_clusters_id_once_there_is_one(asked):
    own = native.Dictionary()
    TermCache(own, asked)
    computed = own.intern_many(TERMS[:2])
    assert own.settle(computed).tolist() == computed.tolist()
    (given,) = asked.service.encode(TERMS[1:2]).tolist()
    assert own.settle(computed).tolist() == [computed[0], given]
    assert own.intern(*TERMS[1]) == given


def test_an_evaluation_waits_for_an_unavailable_dictionary(asked):
    own = native.Dictionary()
    TermCache(own, asked)
    ids = asked.service.encode(TERMS[:2])
    decode = asked.decode

    def unavailable(_):
        raise TransientError("unavailable")

    asked.decode = unavailable
    with pytest.raises(UnavailableError):
        native.LocalTerms(own).decode(ids)
    asked.decode = decode
    assert native.LocalTerms(own).decode(ids) == TERMS[:2]


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
    decode = InternalRecords.read
    monkeypatch.setattr(InternalRecords, "read", lambda self, m, kinds: read.append(m) or decode(self, m, kinds))
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
    monkeypatch.setattr(InternalRecords, "read", lambda *_: pytest.fail("nothing is left to read"))
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


def test_a_full_disk_leaves_the_snapshot_before_in_force_and_stops_nothing(snapshots, tmp_path):
    node = snapshots.node()
    node.step()
    node._service.encode(TERMS[:5])
    snapshots.seconds = 11.0
    node.step()
    ids = node._service.encode([(1, f"http://x/{i:0100}", "", "") for i in range(200)])
    snapshots.seconds = 22.0
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, hard))  # files end there, as a disk would
    try:
        node.step()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "no snapshot could be written" in node.unsaved
    assert DataDirectory(tmp_path / "d", read_only=True).current() is not None
    assert node._service.decode(ids[:1]) == [(1, f"http://x/{0:0100}", "", "")]
    snapshots.seconds = 33.0
    node.step()
    assert node.unsaved is None


def test_what_may_not_be_durable_is_never_seen(snapshots):
    node = snapshots.node()
    node.step()
    service = node._service
    service._writer.commit = lambda _: (_ for _ in ()).throw(TransientError("unavailable"))
    with pytest.raises(StorageError):
        service.encode(TERMS)
    with pytest.raises(StorageError, match="rejects all requests"):
        service.encode(TERMS[:1])
    with pytest.raises(StorageError, match="rejects all requests"):
        service.snapshot(snapshots.folder)


@pytest.fixture
def snapshot_taken(snapshots):
    """A snapshot of `TERMS`, whose process is over; returns their ids."""
    node = snapshots.node()
    node.step()
    ids = node._service.encode(TERMS)
    snapshots.seconds = 11.0
    node.step()
    snapshots.close()
    return ids


def test_a_snapshot_of_another_log_is_refused(snapshots, snapshot_taken):
    snapshots.log = MemoryLog()
    snapshots.log.create(TOPICS.all())
    node = snapshots.node()
    with pytest.raises(StorageError, match="lost terms, or is another one"):
        node.step()


def test_brokers_that_show_less_than_they_promised_are_waited_for(snapshots, snapshot_taken, monkeypatch):
    """Where they crashed, committed records may be invisible until the next ones are."""
    partition, whole = Partition(TOPICS.names.dictionary), snapshots.log.spans
    shown = {partition: Span(0, 10)}
    monkeypatch.setattr(snapshots.log, "spans", lambda names: shown if list(names) == [partition] else whole(names))
    node = snapshots.node()
    assert node._known.position < node._known.promised
    node.step()
    assert np.array_equal(node._service.find(TERMS), snapshot_taken)


def test_who_writes_more_terms_than_a_request_may_carry_asks_several_times(log):
    """An insertion may have so many, and what a query publishes: an engine that fails there fails for ever."""
    service, own = DictionaryService(log, TOPICS), native.Dictionary()
    ids = own.intern_many([(1, f"urn:y:{i}", "", "") for i in range(MAX_TERMS + 1)])
    [found] = to_cluster(own, [np.concatenate([ids, ids[:1]])], service)
    assert len(np.unique(found)) == MAX_TERMS + 1
    assert found[0] == found[-1] == service.find([(1, "urn:y:0", "", "")])[0]


def test_the_dictionary_logs_once_why_it_failed_over(snapshots, caplog):
    node = snapshots.node()
    node.step()
    assert node._service is not None
    node._server.broken = StorageError("the dictionary cannot write its log: unavailable")
    node.step()
    node.step()
    assert [record.getMessage() for record in caplog.records] == [
        "the dictionary steps back: StorageError: the dictionary cannot write its log: unavailable"
    ]
