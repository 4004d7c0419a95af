"""Checkpoints: the complete state of an engine, as files in a folder (semantics.md §6).

`engine.json` has small data, `arrays.bin` columns of ids, `stream-<n>.bin` open batches and slices, `dictionary.bin`
the terms, `store/` the regions. Plans and windows are recreated; the content of a time window comes from the slices.
`checkpoint_writer` writes the folder, `checkpoint_reader` reads it.
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
    """The position of the write-ahead log after a checkpoint: the number of its first file, and of the last entry that
    the checkpoint includes.
    """

    file: int = 0
    entry: int = 0


def save(runtime: Runtime, directory: DataDirectory, position: Position) -> None:
    """Write and activate a checkpoint. The caller holds the engine's lock. StorageError on failure."""
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
    """Return a runtime, restored from the current checkpoint if there is one and otherwise empty, and the position in
    the write-ahead log.

    `make_core` creates the engine core from the checkpoint's folder; None = an empty one.
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
