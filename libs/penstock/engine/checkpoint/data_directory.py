"""The data directory with the checkpoints of one process.

The directory contains the files `LOCK` and `CURRENT`, and a folder `checkpoint-<n>` for each checkpoint. `CURRENT`
contains the name of the current checkpoint, and the checksum of this checkpoint's manifest. While a process uses the
directory, and after a crash of this process, the directory also contains `RUNNING`. If the process has a write-ahead
log, the directory contains the files `log-<n>` of this log.

The process writes a new checkpoint next to the old checkpoint, makes the new checkpoint durable, and activates the new
checkpoint by one rename. Only then does the process delete the old checkpoint.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.errors import StorageError
from penstock.private_files import FILE_MODE, flush, make_directory, make_private, opened

_MANIFEST = "manifest.json"
_CHECKPOINT = re.compile(r"checkpoint-([0-9]+)(?:\.new)?")


def _lock(path: Path) -> int | None:
    """Open and lock a file. Returns the file's descriptor, or None if another process holds the lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


class DataDirectory:
    """A data directory. Only one process at a time can write to it. Other processes can read it. StorageError if the
    directory cannot be used.

    `crashed` is true if the last process did not close the directory cleanly. `crashed_attempt` is the attempt number
    of this last process, or 0 if the number is unknown.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool) -> None:
        self.path = Path(path)
        self.read_only = read_only
        self._descriptor: int | None = None
        self.crashed = False
        self.crashed_attempt = 0
        if read_only:
            if not self.path.is_dir():
                raise StorageError(f"{self.path}: no such data directory")
            return
        try:
            make_directory(self.path)
            self._descriptor = _lock(self.path / "LOCK")
            if self._descriptor is None:
                raise StorageError(f"{self.path / 'LOCK'}: another engine has this data directory open")
            running = self.path / "RUNNING"
            self.crashed = running.exists()
            self.crashed_attempt = _number(running) if self.crashed else 0
            running.touch(FILE_MODE)
        except OSError as error:
            self.close(clean=False)
            raise StorageError(f"{self.path}: cannot be used as a data directory: {error}") from error

    def running(self, attempt: int) -> None:
        """Write the number of the current attempt to the file `RUNNING`. Because of this file, the next attempt after a
        crash has a higher number, even if there is no checkpoint.
        """
        with suppress(OSError):  # if the disk is full, the next attempt can get the same number
            write_durably(self.path / "RUNNING", str(attempt).encode())

    def close(self, *, clean: bool) -> None:
        """Close the directory. `clean` says whether the current checkpoint contains every change."""
        if self._descriptor is not None:
            if clean:
                (self.path / "RUNNING").unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None

    # ---- current checkpoint
    def pointer(self) -> bytes:
        """Return the content of the file `CURRENT`. The content is empty if there is no checkpoint."""
        path = self.path / "CURRENT"
        return _read(path) if path.exists() else b""

    def current(self) -> Path | None:
        """Verify every file of the current checkpoint, and return the checkpoint's folder. The result is None if there
        is no checkpoint. StorageError if the checkpoint is corrupt.
        """
        pointer = self.path / "CURRENT"
        if not pointer.exists():
            return None
        name, _, checksum = _read(pointer).decode("utf-8", "replace").strip().partition(" ")
        folder = self.path / name
        if not name.startswith("checkpoint-") or "/" in name or not folder.is_dir():
            raise StorageError(f"{pointer}: names no checkpoint")
        manifest = _read(folder / _MANIFEST)
        if f"{zlib.crc32(manifest):08x}" != checksum:
            raise StorageError(f"{folder / _MANIFEST}: corrupt: its checksum is not that of {pointer}")
        for file, (size, crc) in json.loads(manifest)["files"].items():
            _verify(folder / file, size, crc)
        return folder

    def in_force(self) -> Path | None:
        """Return the folder of the current checkpoint, or None if there is no checkpoint. The files are not
        verified.
        """
        name = self.pointer().decode("utf-8", "replace").partition(" ")[0]
        return self.path / name if name else None

    def begin(self) -> Path:
        """Create and return the folder of a new checkpoint. The call removes the folders of unfinished checkpoints."""
        for unfinished in self.path.glob("checkpoint-*.new"):
            shutil.rmtree(unfinished, ignore_errors=True)
        names = (_CHECKPOINT.fullmatch(folder.name) for folder in self.path.iterdir())
        number = max((int(name[1]) for name in names if name is not None), default=0) + 1
        folder = self.path / f"checkpoint-{number:06d}.new"
        return make_directory(folder, exist_ok=False)

    def publish(self, folder: Path) -> None:
        """Make the checkpoint in `folder` durable and activate it. The call removes the other checkpoints.

        Some files are links to files of the previous checkpoint. Such files are already durable, and the previous
        checkpoint contains their checksums.
        """
        known = self._known()
        files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
        linked = {file for file in files if _identity(file) in known}
        make_private(folder)
        listed = {
            str(file.relative_to(folder)): known.get(_identity(file)) or [file.stat().st_size, _checksum(file)]
            for file in files
        }
        manifest = json.dumps({"version": 1, "files": listed}).encode()
        write_durably(folder / _MANIFEST, manifest)
        for file in files:
            if file not in linked:
                flush(file)
        for inner in (*(path for path in folder.rglob("*") if path.is_dir()), folder):
            flush(inner)
        final = folder.with_name(folder.name.removesuffix(".new"))
        folder.rename(final)
        flush(self.path)
        write_durably(self.path / "CURRENT.new", f"{final.name} {zlib.crc32(manifest):08x}\n".encode())
        (self.path / "CURRENT.new").rename(self.path / "CURRENT")
        flush(self.path)
        for other in self.path.glob("checkpoint-*"):
            if other != final:
                shutil.rmtree(other, ignore_errors=True)

    def _known(self) -> dict[tuple[int, int], list[int]]:
        """Return the size and checksum of each file of the current checkpoint, by device and inode."""
        folder = self.in_force()
        if folder is None or not (folder / _MANIFEST).exists():
            return {}
        files = read_json(folder / _MANIFEST)["files"]
        return {_identity(folder / file): entry for file, entry in files.items() if (folder / file).exists()}


def _number(path: Path) -> int:
    """Return the number that a file contains, or 0 if the file contains no number."""
    text = path.read_text(encoding="utf-8", errors="replace").strip()
    return int(text) if text.isdecimal() else 0


def _identity(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_dev, found.st_ino


def write_durably(path: Path, data: bytes) -> None:
    """Write a file and flush it to disk."""
    with opened(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def read_json(path: Path) -> Any:
    """Return the content of a JSON file. StorageError if the file cannot be read or parsed. The error contains the name
    of the file.
    """
    try:
        return json.loads(_read(path))
    except ValueError as error:
        raise StorageError(f"{path}: corrupt: {error}") from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error}") from error


def _checksum(path: Path) -> int:
    crc = 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            crc = zlib.crc32(chunk, crc)
    return crc


def _verify(path: Path, size: int, crc: int) -> None:
    try:
        found = path.stat().st_size
        if found != size:
            raise StorageError(f"{path}: corrupt: {found} bytes in place of {size}")
        if _checksum(path) != crc:
            raise StorageError(f"{path}: corrupt: its checksum is wrong")
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error}") from error
