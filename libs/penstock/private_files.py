"""Files and directories of the owner alone: checkpoints, logs and regions hold what users stored."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DIRECTORY_MODE: Final = 0o700
FILE_MODE: Final = 0o600


def make_directory(path: Path, *, exist_ok: bool = True) -> Path:
    """Make a directory, and those above it that are missing, for the owner alone. One that exists stays as it is."""
    for missing in reversed(list(_missing(path.parent))):
        missing.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    path.mkdir(mode=DIRECTORY_MODE, exist_ok=exist_ok)
    return path


def make_private(folder: Path) -> None:
    """Give what lies in a directory to the owner alone: others' code may have written it."""
    for path in folder.rglob("*"):
        path.chmod(DIRECTORY_MODE if path.is_dir() else FILE_MODE)


def _missing(path: Path) -> Iterator[Path]:
    while not path.exists():
        yield path
        path = path.parent


def opened(path: Path, mode: str) -> IO[bytes]:
    """Open a binary file; where that creates it, for the owner alone."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags, FILE_MODE))
