"""The write-ahead log of a data directory. An entry is written before the entry's change is applied. Entries are
flushed in groups.

A thread appends an entry and applies the change under the engine's lock. The thread then waits, without the lock, until
the entry is durable. One of the waiting threads flushes the entries of all waiting threads (group commit). A checkpoint
contains the number of the log file that follows the checkpoint. After the checkpoint, the earlier log files are
removed.
"""

from __future__ import annotations

import os
from threading import Condition
from typing import TYPE_CHECKING

from penstock.engine.checkpoint.log_file import MAGIC, framed, log_numbers, log_path
from penstock.errors import StorageError
from penstock.private_files import flush

if TYPE_CHECKING:
    from pathlib import Path


class WriteAheadLog:
    """Appends to one file at a time. Callers of all methods except `wait` must hold the engine's lock.

    `number` is the number of the file. `first` is the number of the file's first entry. `broken` is None, or the reason
    why nothing can be appended until a checkpoint starts a new file.
    """

    def __init__(self, folder: Path, number: int, first: int) -> None:
        self._folder = folder
        self._group = Condition()
        self._flushing = False
        self._next = first
        self._appended = self._durable = self._retained = self._retained_before = first - 1
        self.broken: str | None = None
        self.flushes = 0
        self._open(number)

    def _open(self, number: int) -> None:
        self.number = number
        self.path = log_path(self._folder, number)
        self._descriptor = _create(self.path)
        self.bytes = len(MAGIC)

    @property
    def last(self) -> int:
        """The number of the last entry that was not removed."""
        return self._retained

    # ---- writing
    def append(self, payload: bytes) -> int:
        """Write an entry and return its number. The entry is not durable yet. After a StorageError, nothing was
        written.
        """
        if self.broken is not None:
            raise StorageError(f"{self.path}: nothing can be changed until a checkpoint succeeds: {self.broken}")
        entry = framed(self._next, min(self._durable, self._retained), payload)
        try:
            _write(self._descriptor, entry)
        except OSError as error:
            self._cut()
            raise StorageError(f"{self.path}: cannot be written, nothing was changed: {error}") from error
        number = self._next
        self._next += 1
        self._appended, self._before = number, self.bytes
        self._retained_before, self._retained = self._retained, number
        self.bytes += len(entry)
        return number

    def take_back(self) -> None:
        """Remove the last entry, because the entry's change was not applied."""
        self.bytes, self._retained = self._before, self._retained_before
        self._cut()

    def _cut(self) -> None:
        try:
            os.ftruncate(self._descriptor, self.bytes)
            os.lseek(self._descriptor, self.bytes, os.SEEK_SET)
        except OSError as error:
            self.broken = f"an entry cannot be removed: {error}"

    def break_off(self, reason: str) -> None:
        """Refuse further entries until the next checkpoint. The errors contain `reason`."""
        self.broken = reason

    # ---- durability
    def wait(self, number: int) -> None:
        """Wait until the entry `number` is durable. The caller must not hold the engine's lock. StorageError if a crash
        can lose the entry.
        """
        while True:
            with self._group:
                while self._flushing and self._durable < number:
                    self._group.wait()
                if self._durable >= number:
                    return
                if self.broken is not None:
                    raise StorageError(f"{self.path}: the change may not be durable: {self.broken}")
                self._flushing, target, descriptor = True, self._appended, self._descriptor
            self._flush(target, descriptor)

    def _flush(self, target: int, descriptor: int) -> None:
        failure: OSError | None = None
        try:
            os.fdatasync(descriptor)
        except OSError as error:
            failure = error
        with self._group:
            self._flushing = False
            self.flushes += 1
            if failure is None:
                self._durable = max(self._durable, target)
            else:
                self.broken = f"it cannot be flushed: {failure}"
            self._group.notify_all()

    # ---- checkpoints
    def prepare_next(self) -> int:
        """Create the log file that will follow a checkpoint. Call this method before the checkpoint is written. Returns
        the number of the file.
        """
        number = self.number + 1
        os.close(_create(log_path(self._folder, number)))
        return number

    def abandon_next(self) -> None:
        """Remove the file that `prepare_next` has created, because the checkpoint has failed."""
        log_path(self._folder, self.number + 1).unlink(missing_ok=True)

    def turn(self) -> None:
        """Switch to the file that `prepare_next` has created, and remove the earlier files. The checkpoint contains the
        entries of the earlier files.
        """
        with self._group:
            while self._flushing:
                self._group.wait()
            os.close(self._descriptor)
            self._open(self.number + 1)
            self.broken, self._durable = None, self._next - 1
            self._group.notify_all()
        remove_before(self._folder, self.number)

    def close(self) -> None:
        """Close the file. Afterwards, the log refuses entries."""
        with self._group:
            while self._flushing:
                self._group.wait()
            self.broken = "the engine is closed"
            os.close(self._descriptor)


def remove_before(folder: Path, number: int) -> None:
    """Remove the log files with numbers below `number`."""
    for older in log_numbers(folder):
        if older < number:
            log_path(folder, older).unlink(missing_ok=True)


def _create(path: Path) -> int:
    """Create a durable log file that only the file's owner can read. Returns the descriptor of the file."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        _write(descriptor, MAGIC)
        os.fsync(descriptor)
        flush(path.parent)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
