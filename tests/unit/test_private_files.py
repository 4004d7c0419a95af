"""What Penstock writes is its owner's alone, whatever the umask."""

from __future__ import annotations

import os
import stat

import pytest

from penstock import Engine
from penstock.engine.checkpoint.data_directory import DataDirectory
from penstock.log import MemoryLog
from penstock.log.topics import TopicNames
from penstock.private_files import make_directory, opened
from penstock.replication.cluster_topics import ClusterTopics
from penstock.services.dictionary.dictionary import DictionaryService
from support.small_cluster import SmallCluster


@pytest.fixture(autouse=True)
def _wide_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def wide(folder) -> list[str]:
    """Paths below a folder that others may read, write or enter."""
    return [str(path) for path in (folder, *folder.rglob("*")) if stat.S_IMODE(path.stat().st_mode) & 0o077]


def test_an_engines_checkpoints_are_its_owners_alone(tmp_path):
    folder = tmp_path / "made" / "data"
    with Engine(data_dir=folder) as engine:
        engine.declare_stream("urn:s", timing="all")
        engine.update("INSERT DATA { <urn:a> <urn:b> 'a literal that is not inline' }")
        engine.push("urn:s", "<urn:a> <urn:b> <urn:c> .", 1_000)
        engine.checkpoint()
        assert wide(tmp_path / "made") == []
    assert wide(tmp_path / "made") == []


def test_a_dictionarys_snapshots_are_its_owners_alone(tmp_path):
    log, topics = MemoryLog(), ClusterTopics(TopicNames())
    log.create(topics.all())
    service = DictionaryService(log, topics)
    service.encode([(1, "http://x/a", "", "")])
    directory = DataDirectory(tmp_path / "dictionary", read_only=False)
    folder = directory.begin()
    service.snapshot(folder)
    assert wide(tmp_path / "dictionary") == [str(folder / "dictionary.json")], "in a directory of the owner"
    directory.publish(folder)
    assert wide(tmp_path / "dictionary") == []


def test_a_stores_regions_and_checkpoints_are_its_owners_alone(tmp_path):
    cluster = SmallCluster(engines=0)
    folder = make_directory(tmp_path / "store")
    store = cluster.start_store("s0", folder)
    cluster.run()
    cluster.coordinator.update("INSERT DATA { <urn:a> <urn:b> 'a literal that is not inline' }")
    cluster.run()
    assert store.checkpoint()
    assert len(list(folder.rglob("*"))) > 6
    assert wide(folder) == []
    cluster.close()


def test_logs_are_their_owners_alone_and_are_appended_to(tmp_path):
    for line in (b"one\n", b"two\n"):
        with opened(tmp_path / "service.log", "ab") as log:
            log.write(line)
    assert (tmp_path / "service.log").read_bytes() == b"one\ntwo\n"
    assert stat.S_IMODE((tmp_path / "service.log").stat().st_mode) == 0o600


def test_a_directory_that_exists_stays_as_it_is(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir(0o755)
    make_directory(shared / "a" / "b")
    assert stat.S_IMODE(shared.stat().st_mode) == 0o755
    assert wide(shared / "a") == []
