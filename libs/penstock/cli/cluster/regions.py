"""Shared-memory folders for the regions of stores. A cluster removes its folder when it ends. If a cluster is killed,
the next cluster removes the folder.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX, _LOCK = "penstock-regions-", ".lock"
MEMORY = Path("/dev/shm")  # noqa: S108


@contextmanager
def regions_folder(fallback: Path, memory: Path = MEMORY) -> Iterator[Path]:
    """Create a folder in shared memory (or in `fallback`) and remove it at the end.

    A killed process does not remove its folder. The next call recognises such a folder by its unlocked lock file, and
    removes the folder.
    """
    parent = memory if memory.is_dir() and os.access(memory, os.W_OK) else fallback
    _remove_stale(parent)
    lock, folder = _new(parent)
    try:
        yield folder
    finally:
        _remove(lock, folder)


def _new(parent: Path) -> tuple[int, Path]:
    while True:
        lock, name = tempfile.mkstemp(_LOCK, _PREFIX, parent)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if Path(name).exists():  # otherwise another process removed it as stale before it was locked
            break
        os.close(lock)
    folder = Path(name.removesuffix(_LOCK))
    folder.mkdir(mode=0o700)
    return lock, folder


def _remove_stale(parent: Path) -> None:
    for path in parent.glob(f"{_PREFIX}*{_LOCK}"):
        with suppress(OSError):  # another user's folder, or already removed
            lock = os.open(path, os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(lock)
                continue
            _remove(lock, path.with_name(path.name.removesuffix(_LOCK)))


def _remove(lock: int, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        folder.with_name(folder.name + _LOCK).unlink()
    os.close(lock)
