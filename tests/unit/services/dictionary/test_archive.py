"""The archive of terms: a dictionary that holds few terms in memory gives the answers of one that holds all."""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import stat
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from penstock.engine.checkpoint.data_directory import DataDirectory
from penstock.errors import DataError, StorageError
from penstock.log import START, FencedError, MemoryLog, Partition, Span, TransientError
from penstock.log.clock import VirtualClock
from penstock.log.topics import TopicNames
from penstock.quarantine import InternalRecords
from penstock.replication.cluster_topics import ClusterTopics
from penstock.runtime.settings import SettingsError
from penstock.services.dictionary.dictionary import DictionaryService
from penstock.services.dictionary.dictionary_instance import DictionaryNode
from penstock.services.dictionary.known_terms import KnownTerms
from penstock.services.dictionary.service import DictionarySettings, SnapshotDictionary
from penstock.services.dictionary.term_archive import FILE, TermArchive

TOPICS = ClusterTopics(TopicNames())
XSD = "http://www.w3.org/2001/XMLSchema#"
MOST = 16


def iris(first: int, end: int) -> list[tuple[int, str, str, str]]:
    return [(1, f"urn:x:{i}", "", "") for i in range(first, end)]


@pytest.fixture
def log():
    made = MemoryLog()
    made.create(TOPICS.all())
    return made


class Archived:
    """A dictionary with an archive, which restarts."""

    def __init__(self, log, folder, most: int = MOST) -> None:
        self.log, self.folder, self.most = log, folder, most
        self.archive: TermArchive | None = None

    def start(self) -> DictionaryService:
        """Start an instance. The one before ended without a last write."""
        if self.archive is not None:
            self.archive.close()
        self.archive = TermArchive(self.folder, TOPICS.names.dictionary)
        known = KnownTerms(self.log, TOPICS.names, archive=self.archive, most=self.most)
        return DictionaryService(self.log, TOPICS, known=known)


@pytest.fixture
def archived(log, tmp_path):
    made = Archived(log, tmp_path)
    yield made
    if made.archive is not None:
        made.archive.close()


def term(rng: random.Random) -> tuple[int, str, str, str]:
    text = f"some longer text {rng.randrange(60)}"
    return rng.choice(
        [
            (1, f"urn:x:{rng.randrange(60)}", "", ""),
            (3, text, "", ""),
            (3, text, f"{XSD}string", ""),
            (3, text, "", rng.choice(["en", "EN", "de-AT", "de-at"])),
            (3, text, "urn:x:type", ""),
            (3, text + "\x00 and more", "", ""),
            (3, text + " \u20ac\U0001f600", "", ""),
            (3, str(rng.randrange(60)), f"{XSD}integer", ""),
            (3, f"0{rng.randrange(60)}", f"{XSD}integer", ""),
        ]
    )


@pytest.mark.parametrize("seed", range(12))
def test_few_terms_in_memory_give_the_same_ids_and_terms(tmp_path, seed):
    """Two clusters, of which one has an archive and restarts, are asked the same."""
    rng = random.Random(seed)
    logs = [MemoryLog(), MemoryLog()]
    for log in logs:
        log.create(TOPICS.all())
    whole, archived = DictionaryService(logs[0], TOPICS), Archived(logs[1], tmp_path, rng.choice([1, 4, 16, 64]))
    small = archived.start()
    ids = np.zeros(0, np.uint64)
    for _ in range(150):
        terms = [term(rng) for _ in range(rng.randrange(1, 12))]
        match rng.randrange(8):
            case 0:
                small = archived.start()
            case 1:
                small.archive_new()
            case 2 | 3:
                assert np.array_equal(small.find(terms), whole.find(terms))
            case 4:
                asked = rng.choices(ids.tolist(), k=20) if len(ids) else []
                asked_ids = np.array(asked, np.uint64)
                assert small.decode(asked_ids) == whole.decode(asked_ids)
            case _:
                given = whole.encode(terms)
                assert np.array_equal(small.encode(terms), given)
                ids = np.unique(np.concatenate([ids, given]))
        assert len(small) == len(whole)
        assert small.known.terms.size() <= max(archived.most, 0)
    archived.archive.close()
    read = DictionaryService(logs[1], TOPICS)
    assert np.array_equal(read.find(read.decode(ids)), ids), "a dictionary without archive reads the same topic"
    archived.archive = None


def grown_bytes(archived: Archived, terms: int, part: int) -> int:
    """Encode new terms. Returns by how much the memory of the dictionary's terms has grown since the fifth part."""
    service = archived.start()
    offsets = iter(range(10 * terms))
    service._writer.commit = lambda records: [next(offsets) for _ in records]  # the log would hold them in memory
    before = 0
    for first in range(0, terms, part):
        service.encode(iris(first, first + part))
        if first == 4 * part:
            before = service.known.terms.bytes()
    assert len(service) == terms
    sample = [(1, f"urn:x:{i}", "", "") for i in range(0, terms, terms // 997)]
    assert service.decode(service.find(sample)) == sample
    return service.known.terms.bytes() - before


def test_memory_stays_where_it_was(archived):
    assert grown_bytes(archived, 220_000, 20_000) < 100_000


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("terms", [1_000_000, 10_000_000])
def test_millions_of_terms_leave_memory_where_it_was(log, tmp_path, terms):
    archived = Archived(log, tmp_path, 100_000)
    resident = []

    def watch() -> int:
        (line,) = (x for x in Path("/proc/self/status").read_text(encoding="ascii").splitlines() if "VmRSS" in x)
        return int(line.split()[1]) // 1024

    grown_bytes(archived, 500_000, 50_000)
    archived.archive.clear(START)
    resident.append(watch())
    began = time.monotonic()
    grown = grown_bytes(archived, terms, 50_000)
    resident.append(watch())
    mb = (tmp_path / FILE).stat().st_size >> 20
    print(
        f"terms in memory grown by {grown / 1e6:.1f} MB; resident {resident} MB; file {mb} MB; {time.monotonic() - began:.0f} s"
    )
    archived.archive.close()
    assert grown < 6_000_000  # of which 4 MB are the pages of the sample
    assert resident[1] - resident[0] < 400


def test_terms_in_use_stay_in_memory(archived, monkeypatch):
    service = archived.start()
    often = iris(0, 6)
    service.encode(often)
    asked = []
    monkeypatch.setattr(archived.archive, "find", lambda terms: asked.extend(terms) or np.zeros(len(terms), np.uint64))
    for first in range(100, 400, 4):
        service.encode([*often, *iris(first, first + 4)])
    assert not set(asked) & set(often)


def test_a_restart_reads_the_topic_from_where_the_archive_ends(archived, monkeypatch):
    service = archived.start()
    ids = service.encode([*iris(0, 30), (2, "b", "", "")])
    tail = service.encode(iris(30, 35))
    read = []
    decode = InternalRecords.read
    monkeypatch.setattr(InternalRecords, "read", lambda self, m, kinds: read.append(m) or decode(self, m, kinds))
    again = archived.start()
    assert len(read) == 5
    assert np.array_equal(again.find(iris(0, 35)), np.concatenate([ids[:30], tail]))
    assert again.encode([(2, "b", "", "")])[0] != ids[30]


def test_unknown_ids_and_terms(archived):
    service = archived.start()
    service.encode(iris(0, 40))
    for unknown in (77, 1 << 31, (2 << 60) | 3):
        with pytest.raises(DataError, match="names nothing"):
            service.decode(np.array([unknown], np.uint64))
    assert service.find([*iris(3, 5), *iris(50, 52)])[2:].tolist() == [0, 0]


def test_terms_that_may_not_be_durable_never_come_into_the_archive(archived):
    service = archived.start()
    ids = service.encode(iris(0, 40))
    DictionaryService(archived.log, TOPICS).encode(iris(100, 103))
    with pytest.raises(FencedError):
        service.encode(iris(40, 80))
    with pytest.raises(StorageError, match="rejects all requests"):
        service.archive_new()
    again = archived.start()
    assert len(again) == 43
    assert again.find([*iris(0, 40), *iris(40, 80)]).tolist() == [*ids.tolist(), *[0] * 40]
    assert again.decode(again.find(iris(100, 103))) == iris(100, 103)


def test_a_topic_that_lost_terms_is_refused_every_time(archived):
    archived.start().encode(iris(0, 40))
    archived.log = MemoryLog()
    archived.log.create(TOPICS.all())
    for _ in range(2):
        with pytest.raises(StorageError, match="lost terms, or is another one"):
            archived.start()


def test_brokers_that_show_less_than_they_promised_are_waited_for(archived, monkeypatch):
    ids = archived.start().encode(iris(0, 40))
    partition, whole = Partition(TOPICS.names.dictionary), archived.log.spans
    shown = {partition: Span(0, 10)}
    monkeypatch.setattr(archived.log, "spans", lambda names: shown if list(names) == [partition] else whole(names))
    assert np.array_equal(archived.start().find(iris(0, 40)), ids)


def test_an_archive_of_another_cluster_or_format_is_refused(archived, tmp_path):
    archived.start().encode(iris(0, 40))
    with pytest.raises(StorageError, match="another cluster"):
        TermArchive(tmp_path, "other.dictionary")
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / FILE).write_bytes(b"no database" * 1_000)
    with pytest.raises(StorageError, match=FILE):
        TermArchive(tmp_path / "else", TOPICS.names.dictionary)


def test_a_damaged_term_is_not_given_out(archived, tmp_path):
    service = archived.start()
    ids = service.encode(iris(0, 40))
    with sqlite3.connect(tmp_path / FILE) as file:
        file.execute("UPDATE terms SET lexical = 'urn:x:wrong' WHERE id = ?", (int(ids[0]),))
    with pytest.raises(StorageError, match="is damaged"):
        service.decode(ids[:1])


@pytest.fixture
def node(log, tmp_path):
    """An active instance with a clock of its own for when it writes."""
    directory, seconds = DataDirectory(tmp_path / "d", read_only=False), [0.0]
    made = DictionaryNode(
        log, TOPICS, "d", "grpc://127.0.0.1:0", VirtualClock(), directory, 10.0, lambda: seconds[0], in_memory=MOST
    )
    made.seconds = seconds
    made.step()
    yield made
    made.close()
    directory.close(clean=True)


def test_an_instance_writes_its_archive_in_place_of_snapshots(node, tmp_path):
    node._service.encode(iris(0, 5))
    node.seconds[0] = 11.0
    node.step()
    assert node._archive.state.next_slot == 6
    assert not list((tmp_path / "d").glob("checkpoint-*"))
    node._service.encode(iris(5, 50))
    assert (node.terms, node.unsaved) == (50, None)
    assert node.terms_in_memory <= MOST


def test_an_instance_that_steps_back_continues_with_its_archive(node):
    ids = node._service.encode(iris(0, 40))
    node._service._writer.commit = lambda _: (_ for _ in ()).throw(TransientError("unavailable"))
    with pytest.raises(StorageError) as raised:
        node._service.encode(iris(40, 90))
    node._server.broken = raised.value
    node.step()
    node.step()
    assert node.active
    assert node._service.find([*iris(0, 41)]).tolist() == [*ids.tolist(), 0]


def test_a_full_disk_leaves_terms_in_memory_and_stops_nothing(node):
    node._service.encode(iris(0, 5))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, hard))  # files end there, as a disk would
    try:
        ids = node._service.encode(iris(5, 3_000))
        assert node._known.unsaved is not None
        assert node._service.decode(ids[:2]) == iris(5, 7)
        node.seconds[0] = 11.0
        node.step()
        assert "no snapshot could be written" in node.unsaved
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    node.seconds[0] = 22.0
    node.step()
    assert (node.unsaved, node._known.unsaved) == (None, None)
    node._service.encode(iris(3_000, 3_001))
    assert node.terms_in_memory <= MOST
    assert node._service.decode(ids) == iris(5, 3_000)


def test_a_snapshot_from_before_says_how_far_the_topic_reached(log, tmp_path):
    service = DictionaryService(log, TOPICS)
    ids = service.encode(iris(0, 40))
    service.snapshot(tmp_path)
    archive = TermArchive(tmp_path, TOPICS.names.dictionary)
    known = KnownTerms(log, TOPICS.names, tmp_path, archive, MOST)
    assert known.promised == 40
    assert np.array_equal(DictionaryService(log, TOPICS, known=known).find(iris(0, 40)), ids)
    archive.close()


def test_the_archive_is_its_owners_alone(archived, tmp_path):
    before = os.umask(0)
    try:
        archived.start().encode(iris(0, 40))
        assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    finally:
        os.umask(before)


def test_an_archive_without_a_data_directory_is_refused(log):
    settings = DictionarySettings(bootstrap_servers="none:1", terms_in_memory=10)
    with pytest.raises(SettingsError, match="PENSTOCK_TERMS_IN_MEMORY needs PENSTOCK_DATA_DIR"):
        SnapshotDictionary(SimpleNamespace(settings=settings, log=log))
