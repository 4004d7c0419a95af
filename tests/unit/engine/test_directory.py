"""A data directory has one engine, and one checkpoint in force at any moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import StorageError
from penstock.engine.checkpoint.data_directory import DataDirectory


def write(directory: DataDirectory, **files: str) -> None:
    folder = directory.begin()
    for name, text in files.items():
        (folder / name).write_text(text)
    (folder / "inner").mkdir()
    (folder / "inner" / "deep").write_text("deep")
    directory.publish(folder)


def test_a_new_directory_has_no_checkpoint(tmp_path):
    directory = DataDirectory(tmp_path / "data", read_only=False)
    assert directory.current() is None
    assert not directory.crashed


def test_the_latest_checkpoint_is_in_force_and_the_others_are_gone(tmp_path):
    directory = DataDirectory(tmp_path, read_only=False)
    write(directory, a="one")
    write(directory, a="two")
    folder = directory.current()
    assert folder is not None
    assert (folder / "a").read_text() == "two"
    assert len(list(tmp_path.glob("checkpoint-*"))) == 1


def test_a_second_engine_is_refused_until_the_first_releases_the_directory(tmp_path):
    first = DataDirectory(tmp_path, read_only=False)
    with pytest.raises(StorageError, match="LOCK"):
        DataDirectory(tmp_path, read_only=False)
    DataDirectory(tmp_path, read_only=True)
    first.close(clean=True)
    DataDirectory(tmp_path, read_only=False).close(clean=True)


def test_a_crash_is_noticed_and_a_clean_end_is_not_one(tmp_path):
    DataDirectory(tmp_path, read_only=False).close(clean=False)
    second = DataDirectory(tmp_path, read_only=False)
    assert second.crashed
    second.close(clean=True)
    assert not DataDirectory(tmp_path, read_only=False).crashed


@pytest.mark.parametrize("name", ["a", "inner/deep", "manifest.json"])
def test_a_corrupt_file_is_named(tmp_path, name):
    directory = DataDirectory(tmp_path, read_only=False)
    write(directory, a="one")
    folder = directory.current()
    assert folder is not None
    content = bytearray((folder / name).read_bytes())
    content[-1] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(StorageError, match=name):
        directory.current()


def test_a_missing_or_short_file_is_named(tmp_path):
    directory = DataDirectory(tmp_path, read_only=False)
    write(directory, a="one")
    folder = directory.current()
    assert folder is not None
    (folder / "a").write_text("o")
    with pytest.raises(StorageError, match="/a"):
        directory.current()
    (folder / "a").unlink()
    with pytest.raises(StorageError, match="/a"):
        directory.current()


def test_an_unfinished_checkpoint_changes_nothing_and_is_removed(tmp_path):
    directory = DataDirectory(tmp_path, read_only=False)
    write(directory, a="one")
    (directory.begin() / "a").write_text("half")
    folder = directory.current()
    assert folder is not None
    assert (folder / "a").read_text() == "one"
    write(directory, a="two")
    assert len(list(tmp_path.glob("checkpoint-*"))) == 1


def test_a_pointer_to_nowhere_is_an_error(tmp_path):
    (tmp_path / "CURRENT").write_text("../../etc 0")
    with pytest.raises(StorageError, match="CURRENT"):
        DataDirectory(tmp_path, read_only=False).current()


def test_a_read_only_directory_must_exist(tmp_path):
    with pytest.raises(StorageError, match="no such"):
        DataDirectory(tmp_path / "none", read_only=True)


def test_a_full_disk_keeps_no_lock(tmp_path, monkeypatch):
    def full(path, *_, **__):
        raise OSError(28, "No space left on device", path)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "touch", full)
        with pytest.raises(StorageError, match="No space left"):
            DataDirectory(tmp_path / "data", read_only=False)
    DataDirectory(tmp_path / "data", read_only=False).close(clean=True)
