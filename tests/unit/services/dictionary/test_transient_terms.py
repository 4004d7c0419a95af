"""Transient terms: the dictionary removes them, and never gives their ids to other terms (ADR 50)."""

from __future__ import annotations

import itertools
import sqlite3
import time

import numpy as np
import pytest

from penstock.errors import DataError, StorageError
from penstock.log import FencedError, MemoryLog
from penstock.log.topics import TopicNames
from penstock.replication.cluster_topics import ClusterTopics
from penstock.services.dictionary import dictionary
from penstock.services.dictionary.dictionary import DictionaryService
from penstock.services.dictionary.known_terms import KnownTerms
from penstock.services.dictionary.term_archive import FILE, TermArchive

TOPICS = ClusterTopics(TopicNames())
TOPIC = TOPICS.names.dictionary


def iris(*numbers: int) -> list[tuple[int, str, str, str]]:
    return [(1, f"urn:x:{i}", "", "") for i in numbers]


class Instances:
    """Instances of a dictionary over one log, each with its own archive."""

    def __init__(self, folder) -> None:
        self.log = MemoryLog()
        self.log.create(TOPICS.all())
        self._folder = folder
        self._archives: dict[str, TermArchive] = {}
        self.most = 16

    def known(self, name: str = "a") -> KnownTerms:
        if name in self._archives:
            self._archives[name].close()
        archive = self._archives[name] = TermArchive(self._folder / name, TOPIC)
        return KnownTerms(self.log, TOPICS.names, archive=archive, most=self.most)

    def start(self, name: str = "a") -> DictionaryService:
        return DictionaryService(self.log, TOPICS, known=self.known(name))

    def close(self) -> None:
        for archive in self._archives.values():
            archive.close()


@pytest.fixture
def instances(tmp_path):
    made = Instances(tmp_path)
    yield made
    made.close()


def forget(service: DictionaryService, generation: int) -> int:
    total = 0
    while removed := service.forget(generation):
        total += removed
    return total


def test_terms_that_were_not_requested_again_are_removed(instances):
    service = instances.start()
    old = service.encode_transient(iris(1, 2, 3), 1)
    again = service.encode_transient(iris(2), 2)
    assert again[0] == old[1]
    assert forget(service, 1) == 0
    assert forget(service, 2) == 2
    assert len(service) == 1
    assert service.find(iris(1, 2, 3)).tolist() == [0, int(old[1]), 0]
    with pytest.raises(DataError, match="names nothing"):
        service.decode(old[:1])


def test_a_term_that_returns_gets_another_id(instances):
    service = instances.start()
    old = service.encode_transient(iris(1), 1)
    forget(service, 2)
    new = service.encode_transient(iris(1), 2)
    assert new[0] != old[0]
    assert service.decode(new) == iris(1)


def test_the_highest_ids_are_not_assigned_again_after_a_restart(instances):
    service = instances.start()
    old = service.encode_transient(iris(1, 2), 1)
    forget(service, 2)
    instances.log.compact(TOPIC)
    assert instances.start("b").encode(iris(3))[0] > max(old)


@pytest.mark.parametrize("verb", ["encode", "find"])
def test_a_term_that_others_request_becomes_permanent(instances, verb):
    service = instances.start()
    given = service.encode_transient(iris(1, 2), 1)
    assert service.decode_marked(given)[1].tolist() == [1, 1]
    assert getattr(service, verb)(iris(1))[0] == given[0]
    assert service.decode_marked(given)[1].tolist() == [0, 1]
    for name in ("a", "b"):
        service = instances.start(name)
        assert service.decode_marked(given)[1].tolist() == [0, 1]
    service.encode_transient(iris(3), 2)
    service.encode_transient(iris(3), 3)
    assert forget(service, 3) == 1
    assert service.find(iris(1, 2)).tolist() == [int(given[0]), 0]


def test_permanent_terms_stay_permanent(instances):
    service = instances.start()
    given = service.encode(iris(1))
    assert service.encode_transient(iris(1), 1)[0] == given[0]
    assert service.decode_marked(given)[1].tolist() == [0]
    assert forget(service, 9) == 0


def test_an_instance_that_takes_over_counts_all_terms_as_requested_in_the_latest_generation(instances):
    instances.start().encode_transient(iris(1), 3)
    service = instances.start()
    assert forget(service, 3) == 0
    service.encode_transient(iris(2), 4)
    assert forget(service, 4) == 1


def test_a_fenced_instance_answers_no_request_of_a_later_generation(instances):
    fenced = instances.start("a")
    given = fenced.encode_transient(iris(1), 1)
    active = instances.start("b")
    active.encode_transient(iris(2), 2)
    assert forget(active, 2) == 1
    assert fenced.encode_transient(iris(1), 1)[0] == given[0]  # for records that nobody accepts any more
    for verb in (lambda s: s.encode_transient(iris(1), 2), lambda s: s.encode(iris(1)), lambda s: s.find(iris(1))):
        with pytest.raises((FencedError, StorageError)):
            verb(fenced)


def test_a_standby_follows_removals(instances):
    service, standby = instances.start("a"), instances.known("b")
    stays = service.encode(iris(1))
    service.encode_transient(iris(2, 3), 1)
    while standby.read():
        pass
    forget(service, 2)
    while standby.read():
        pass
    assert standby.held.size == 1
    assert standby.held.find(iris(1, 2, 3)).tolist() == [int(stays[0]), 0, 0]
    assert standby.held.next_slot == service.known.held.next_slot


def test_an_instance_that_has_missed_a_tombstone_reads_the_topic_again(instances, monkeypatch):
    service = instances.start("a")
    service.encode(iris(1))
    service.encode_transient(iris(2, 3), 1)
    behind = instances.known("b")
    while behind.read():
        pass
    behind.archive_new()
    behind.close()
    forget(service, 2)
    without_tombstones(instances.log, monkeypatch)
    service = instances.start("b")
    assert len(service) == 1
    assert service.find(iris(1, 2, 3)).tolist()[1:] == [0, 0]


def without_tombstones(log: MemoryLog, monkeypatch) -> None:
    """Let readers see the topic as after the time for which Kafka retains tombstones."""
    polled = MemoryLog.reader

    def reader(self, *args, **more):
        made = polled(self, *args, **more)
        poll = made.poll

        def after_compaction(*given, **named):
            return [message for message in poll(*given, **named) if message.value is not None]

        made.poll = after_compaction
        return made

    log.compact(TOPIC)
    monkeypatch.setattr(MemoryLog, "reader", reader)


def test_a_transaction_removes_a_bounded_number_of_terms(instances, monkeypatch):
    monkeypatch.setattr(dictionary, "_REMOVED_AT_ONCE", 2)
    service = instances.start()
    service.encode_transient(iris(*range(5)), 1)
    assert [service.forget(2) for _ in range(4)] == [2, 2, 1, 0]


def test_a_language_tag_in_upper_case_leaves_the_topic_too(instances):
    service = instances.start()
    service.encode_transient([(3, "a long text that is not inline", "", "de-AT")], 1)
    forget(service, 2)
    instances.log.compact(TOPIC)
    assert len(instances.start("b")) == 0


def test_without_an_archive_all_terms_are_permanent():
    log = MemoryLog()
    log.create(TOPICS.all())
    service = DictionaryService(log, TOPICS)
    given = service.encode_transient(iris(1), 1)
    assert service.decode_marked(given)[1].tolist() == [0]
    with pytest.raises(DataError, match="PENSTOCK_TERMS_IN_MEMORY"):
        service.forget(2)


def test_an_instance_without_an_archive_does_not_read_transient_terms(instances):
    instances.start().encode_transient(iris(1), 1)
    with pytest.raises(StorageError, match="PENSTOCK_TERMS_IN_MEMORY"):
        DictionaryService(instances.log, TOPICS)


def test_an_archive_of_the_first_format_has_permanent_terms(instances, tmp_path):
    given = instances.start("a").encode(iris(1, 2))
    known = instances.known("a")
    while known.read():
        pass
    known.archive_new()
    instances.close()
    with sqlite3.connect(tmp_path / "a" / FILE) as file:
        file.execute("DROP INDEX transient_terms")
        file.execute("ALTER TABLE terms DROP COLUMN transient")
        ((content,),) = file.execute("SELECT content FROM state").fetchall()
        first = content.replace('"version": 2', '"version": 1').replace(
            ', "terms": 2, "generation": 0, "expected": null', ""
        )
        assert first.count(":") == content.count(":") - 3
        file.execute("UPDATE state SET content = ?", (first,))
    file.close()
    service = instances.start("a")
    assert len(service) == 2
    assert service.decode_marked(given)[1].tolist() == [0, 0]


def test_blank_nodes_are_not_transient(instances):
    with pytest.raises(DataError, match="blank"):
        instances.start().encode_transient([(2, "b", "", "")], 1)


def test_uses_are_counted_per_generation(instances):
    service = instances.start()
    ids = service.encode_transient(iris(1, 2), 1)
    for generation in range(2, 6):
        assert np.array_equal(service.encode_transient(iris(1, 2), generation), ids)
        assert forget(service, generation) == 0
    assert forget(service, 6) == 2


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("terms", [1_000_000, 10_000_000])
@pytest.mark.parametrize("forgets", [True, False])
def test_millions_of_terms_that_leave_keep_memory_and_file_where_they_were(instances, tmp_path, terms, forgets):
    """Each generation requests other terms. Without removal, only the memory stays where it was."""
    part, began = 50_000, time.monotonic()
    instances.most = 100_000
    service = instances.start()
    offsets = itertools.count()
    service._writer.commit = lambda records: [next(offsets) for _ in records]  # the log would hold them in memory
    early = 0
    for generation, first in enumerate(range(0, terms, part), 1):
        service.encode_transient(iris(*range(first, first + part)), generation)
        if forgets and generation > 1:
            forget(service, generation)
        if generation == 6:
            early = service.known.terms.bytes()
    service.archive_new()
    grown, size = service.known.terms.bytes() - early, (tmp_path / "a" / FILE).stat().st_size
    print(
        f"{terms} terms, {len(service)} left; terms in memory grown by {grown / 1e6:.1f} MB; "
        f"file {size >> 20} MB; {time.monotonic() - began:.0f} s"
    )
    assert len(service) == (part if forgets else terms)
    assert grown < 6_000_000
    assert size < 20_000_000 or not forgets
