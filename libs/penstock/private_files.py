"""Files and directories that only their owner can access. Checkpoints, logs and regions contain users' data.

`flush` makes a file, or the entries of a directory, durable.
"""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DIRECTORY_MODE: Final = 0o700
FILE_MODE: Final = 0o600


def make_directory(path: Path, *, exist_ok: bool = True) -> Path:
    """Create a directory and its missing parents. Only the owner can access new directories. Existing directories stay
    unchanged.
    """
    for missing in reversed(list(_missing(path.parent))):
        missing.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    path.mkdir(mode=DIRECTORY_MODE, exist_ok=exist_ok)
    return path


def make_private(folder: Path) -> None:
    """Restrict access to a directory's contents to the owner, including files that third-party code has written."""
    for path in folder.rglob("*"):
        path.chmod(DIRECTORY_MODE if path.is_dir() else FILE_MODE)


def _missing(path: Path) -> Iterator[Path]:
    while not path.exists():
        yield path
        path = path.parent


def opened(path: Path, mode: str) -> IO[bytes]:
    """Open a binary file. If the call creates the file, only its owner can access it."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, FILE_MODE))


def flush(path: Path) -> None:
    """Flush a file, or the entries of a directory, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
