"""The durability of an engine. This module has the engine's write-ahead log, if there is one. It also determines the
order in which the engine writes a checkpoint and the next log file.
"""

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
"""With "none" and "checkpoint", a crash loses the changes since the last checkpoint, and a clean shutdown writes a
checkpoint. With "commit", each change is durable when the call that makes the change returns.
"""

_RETRY_GROWTH = 1.1  # factor by which the log grows before a failed checkpoint is tried again
_log = logging.getLogger("penstock.engine")


def checked_durability(found: str, *, writable: bool) -> Durability:
    """Return `found` as a durability setting. DataError if the setting is invalid, or if it is "commit" without a
    writable data directory.
    """
    for known in get_args(Durability):
        if found == known:
            if known == "commit" and not writable:
                raise DataError('durability="commit" needs a data_dir that the engine may write to')
            durability: Durability = known
            return durability
    raise DataError(f"durability is one of {', '.join(get_args(Durability))}, not {found!r}")


class ChangeLog:
    """The write-ahead log of an engine. An engine without a log also has a `ChangeLog`. Call all methods except `wait`
    under the engine's lock.
    """

    def __init__(self) -> None:
        self._wal: WriteAheadLog | None = None
        self._limit = self._due = 0

    def open(self, directory: DataDirectory, recovered: Recovered, limit: int) -> None:
        """Begin to log to a new file. `recovered` is the position that recovery has reached. `limit` is a size in
        bytes. A checkpoint is due when the log is larger than `limit`. StorageError if the file cannot be created.
        """
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
        """Return four numbers: the number of the log's file, the size of the file in bytes, the number of the last
        entry, and the number of flushes. Return None if there is no log.
        """
        wal = self._wal
        return (
            None if wal is None else {"file": wal.number, "bytes": wal.bytes, "entry": wal.last, "flushes": wal.flushes}
        )

    # ---- a change
    def begin(self, entry: Callable[[], LogEntry | None] | None) -> int | None:
        """Log a change before it is applied. Returns the number of the log entry, or None if the change is not logged.
        After a StorageError, the caller must not apply the change.
        """
        if self._wal is None or entry is None or (made := entry()) is None:
            return None
        return self._wal.append(made.encode())

    def refuse(self, number: int | None) -> None:
        """Remove the entry `number`, because the entry's change was refused. This entry must be the last entry."""
        if self._wal is not None and number is not None:
            self._wal.take_back()

    def is_long(self) -> bool:
        """Return whether the log is so long that a checkpoint is due. After a failed checkpoint, the next checkpoint is
        due when the log is a tenth longer than at the failure.
        """
        return self._wal is not None and self._wal.bytes > self._due

    def wait(self, number: int | None) -> None:
        """Wait until the entry `number` is durable. StorageError if the entry does not become durable. In this case,
        the change was applied, but a crash can lose the change.
        """
        if self._wal is not None and number is not None:
            self._wal.wait(number)

    # ---- checkpoints
    def save(self, runtime: Runtime, directory: DataDirectory) -> None:
        """Write a checkpoint. Then remove the log of the changes that the checkpoint contains.

        After a StorageError, the earlier checkpoint and the log after this checkpoint remain. It is possible that the
        new checkpoint is active but not durable. In that case, further changes are refused until a checkpoint succeeds.
        """
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
            # the new checkpoint is active, but possibly not durable, so later entries would follow neither checkpoint
            else:
                wal.break_off(str(error))
            self._due = max(self._limit, int(wal.bytes * _RETRY_GROWTH))
            if isinstance(error, StorageError):
                raise
            raise StorageError(f"{directory.path}: the checkpoint cannot be written: {error}") from error
        wal.turn()
        self._due = self._limit

    def unlogged(self) -> None:
        """Refuse further changes until the next checkpoint, because the caller has made a change that is not logged."""
        if self._wal is not None:
            self._wal.break_off("no checkpoint contains the last load or update yet")

    def close(self) -> None:
        """Close the log's file."""
        if self._wal is not None:
            self._wal.close()
