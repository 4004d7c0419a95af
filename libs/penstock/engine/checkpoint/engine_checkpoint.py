"""Checkpoints: everything that an engine must know again after a restart, as files of one folder (semantics.md §6).

`engine.json` holds what is small, `arrays.bin` columns of ids, `stream-<n>.bin` open batches and slices,
`dictionary.bin` the terms, `store/` the regions. Plans and windows are made again; a time window's content comes back
from the slices. `saving` writes the folder, `restoring` reads it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from penstock.engine.checkpoint.checkpoint_reader import read_into
from penstock.engine.checkpoint.checkpoint_writer import write
from penstock.engine.checkpoint.data_directory import read_json
from penstock.engine.runtime import Runtime
from penstock.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from penstock.engine.checkpoint.data_directory import DataDirectory
    from penstock.engine.engine_core import EngineCore


_POSITION = "log.json"


@dataclass(frozen=True, slots=True)
class Position:
    """Where the write-ahead log goes on after a checkpoint: the number of the first file, and of the last entry that
    the checkpoint holds.
    """

    file: int = 0
    entry: int = 0


def save(runtime: Runtime, directory: DataDirectory, position: Position) -> None:
    """Put a checkpoint of everything in force. The caller holds the engine's lock. StorageError where it cannot."""
    try:
        folder = directory.begin()
        write(runtime, folder, directory.in_force())
        (folder / _POSITION).write_text(json.dumps(asdict(position)), encoding="utf-8")
        directory.publish(folder)
    except OSError as error:
        raise StorageError(f"{directory.path}: the checkpoint cannot be written: {error}") from error


def restored(
    directory: DataDirectory | None, make_core: Callable[[Path | None], EngineCore]
) -> tuple[Runtime, Position]:
    """Return a runtime in the state of the checkpoint in force, or an empty one, and where the log goes on.

    `make_core` opens its native parts.
    """
    if directory is None:
        return Runtime(make_core(None)), Position()
    return _restored(directory, make_core)


def _restored(directory: DataDirectory, make_core: Callable[[Path | None], EngineCore]) -> tuple[Runtime, Position]:
    folder = directory.current()
    runtime, position = Runtime(make_core(folder)), Position()
    if folder is not None:
        read_into(runtime, folder)
        if (folder / _POSITION).exists():
            position = Position(**read_json(folder / _POSITION))
    if directory.crashed:
        runtime.core.attempt = max(runtime.core.attempt, directory.crashed_attempt) + 1
    return runtime, position
