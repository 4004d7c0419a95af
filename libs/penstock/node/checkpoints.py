"""A node's checkpoints: its shards and how far it has come in the log, on disk, of which the last one counts.

A folder holds `store-<position>` (the core's saved store) and `current.json`, which names it and replaces its
predecessor in one step: whoever dies meanwhile comes back with the one before.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

from penstock.errors import StorageError
from penstock.private_files import make_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from penstock.core import _native as native

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Progress:
    """What a node knows besides its store: whose log it follows and how far, and of each stream by its number the batch
    interval, the last batch that committed something, and the batch before which none can bound it any more.
    """

    log: str
    position: int
    shards: int
    own: list[int]
    streams: dict[int, int]
    batches: dict[int, int]
    released: dict[int, int]


class Checkpoints:
    """One folder, one node at a time. StorageError where the disk fails, or holds something else."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._current = folder / "current.json"

    def capture(self, store: native.Store, progress: Progress) -> Callable[[], None]:
        """Copy what has changed since the checkpoint before. What is returned replaces that one, or leaves it as it is;
        to be called once, from any thread, before the next capture. StorageError.
        """
        saved = self._folder / f"store-{progress.position}"
        try:
            before = self.last()
        except StorageError:  # damaged: this one is whole
            before = None
        try:
            shutil.rmtree(saved, ignore_errors=True)  # of a node that died while it wrote that one
            make_directory(saved, exist_ok=False)
            captured = store.capture(str(saved), "" if before is None else str(before[0]))
        except OSError as error:
            raise self._unwritten(error) from error
        return partial(self._write, captured, saved, progress)

    def _write(self, captured: native.StoreCapture, saved: Path, progress: Progress) -> None:
        try:
            captured.write()
            record = {"format": _FORMAT, "store": saved.name, **asdict(progress)}
            following = self._current.with_suffix(".new")
            with following.open("w") as file:
                json.dump(record, file)
                file.flush()
                os.fsync(file.fileno())
            following.replace(self._current)
            self._sync()
            for other in self._folder.glob("store-*"):
                if other != saved:
                    shutil.rmtree(other, ignore_errors=True)
        except OSError as error:
            raise self._unwritten(error) from error

    def _unwritten(self, error: OSError) -> StorageError:
        return StorageError(f"{self._folder}: no checkpoint could be written: {error}")

    def last(self) -> tuple[Path, Progress] | None:
        """Where the last checkpoint's store lies, and what belongs to it; None where there is none."""
        try:
            record = json.loads(self._current.read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise StorageError(f"{self._current} cannot be read: {error}") from error
        try:
            if record.pop("format") != _FORMAT:
                raise StorageError(f"{self._current} is of another version")
            saved = self._folder / record.pop("store")
            for streams in ("streams", "batches", "released"):
                record[streams] = {int(number): int(value) for number, value in record[streams].items()}
            return saved, Progress(**record)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StorageError(f"{self._current} is no checkpoint: {error!r}") from error

    def _sync(self) -> None:
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
