"""How durable an engine's changes are: what is logged before it is applied, and when checkpoints are made."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from penstock.engine.checkpoint.engine_checkpoint import Position, save
from penstock.engine.checkpoint.log_file import log_numbers
from penstock.engine.checkpoint.write_ahead_log import WriteAheadLog, remove_before
from penstock.errors import DataError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.engine.checkpoint.data_directory import DataDirectory
    from penstock.engine.checkpoint.log_entries import LogEntry
    from penstock.engine.checkpoint.recovery import Recovered
    from penstock.engine.runtime import Runtime

Durability: TypeAlias = Literal["none", "checkpoint", "commit"]
"""none: a clean end keeps everything. checkpoint: so does each checkpoint. commit: each change is durable on return."""

_RETRY_GROWTH = 1.1  # of the log, between attempts to make a checkpoint that failed
_log = logging.getLogger("penstock.engine")


def checked_durability(found: str, *, writable: bool) -> Durability:
    """Return the setting; DataError where it is none, or there is no directory to write to."""
    for known in get_args(Durability):
        if found == known:
            if known == "commit" and not writable:
                raise DataError('durability="commit" needs a data_dir that the engine may write to')
            durability: Durability = known
            return durability
    raise DataError(f"durability is one of {', '.join(get_args(Durability))}, not {found!r}")


class ChangeLog:
    """The write-ahead log of an engine, where it has one. All methods but `wait` are called under the engine's lock."""

    def __init__(self) -> None:
        self._wal: WriteAheadLog | None = None
        self._limit = self._due = 0

    def open(self, directory: DataDirectory, recovered: Recovered, limit: int) -> None:
        """Begin to log, in a file of its own, after what was recovered. StorageError where none can be written."""
        number = max([recovered.file, *log_numbers(directory.path)]) + 1
        try:
            self._wal = WriteAheadLog(directory.path, number, recovered.last + 1)
        except OSError as error:
            raise StorageError(f"{directory.path}: the write-ahead log cannot be created: {error}") from error
        self._limit = self._due = limit

    @property
    def logs(self) -> bool:
        """Whether changes are logged."""
        return self._wal is not None

    def stats(self) -> dict[str, int] | None:
        """Return the log's numbers; None where there is none."""
        wal = self._wal
        return (
            None if wal is None else {"file": wal.number, "bytes": wal.bytes, "entry": wal.last, "flushes": wal.flushes}
        )

    # ---- a change
    def begin(self, entry: Callable[[], LogEntry] | None) -> int | None:
        """Write a change that is about to be applied. StorageError: it must not be."""
        if self._wal is None or entry is None:
            return None
        return self._wal.append(entry().encode())

    def refuse(self, number: int | None) -> None:
        """Take back what was written: it was refused, and nothing has changed."""
        if self._wal is not None and number is not None:
            self._wal.take_back()

    def is_long(self) -> bool:
        """Whether it is time for a checkpoint (`log_bytes`)."""
        return self._wal is not None and self._wal.bytes > self._due

    def wait(self, number: int | None) -> None:
        """Return once a change is durable. StorageError: it was applied, and a crash may lose it."""
        if self._wal is not None and number is not None:
            self._wal.wait(number)

    # ---- checkpoints
    def save(self, runtime: Runtime, directory: DataDirectory) -> None:
        """Make a checkpoint; the log before it goes. StorageError: all stays as it was."""
        wal = self._wal
        if wal is None:
            number = max(log_numbers(directory.path), default=0) + 1
            save(runtime, directory, Position(number, 0))
            remove_before(directory.path, number)
            return
        before = directory.pointer()
        try:
            number = wal.prepare_next()
            save(runtime, directory, Position(number, wal.last))
        except (OSError, StorageError) as error:
            if directory.pointer() == before:
                wal.abandon_next()
            else:  # it is in force, and perhaps not durable: what is logged now would follow neither checkpoint
                wal.break_off(str(error))
            self._due = max(self._limit, int(wal.bytes * _RETRY_GROWTH))
            if isinstance(error, StorageError):
                raise
            raise StorageError(f"{directory.path}: the checkpoint cannot be written: {error}") from error
        wal.turn()
        self._due = self._limit

    def unlogged(self) -> None:
        """Accept no change until a checkpoint holds one that the log does not."""
        if self._wal is not None:
            self._wal.break_off("the last load is in no checkpoint yet")

    def close(self) -> None:
        """Close the log's file."""
        if self._wal is not None:
            self._wal.close()
