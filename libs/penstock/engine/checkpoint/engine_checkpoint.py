"""Checkpoints: the complete state of an engine, as files in a folder (semantics.md §6).

The folder contains these files. `arrays.bin` has columns of ids. `stream-<n>.bin` has the open batches and slices of a
stream. `dictionary.bin` has the terms. `store/` has the regions of the stored graph. `log.json` has the position in the
write-ahead log. `engine.json` has everything else.

A restart creates the plans and windows again, and fills the time windows from the slices. `checkpoint_writer` writes
the folder, and `checkpoint_reader` reads it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from penstock.engine.checkpoint.checkpoint_reader import read_into
from penstock.engine.checkpoint.checkpoint_writer import write
from penstock.engine.checkpoint.data_directory import read_json
from penstock.engine.runtime import Runtime
from penstock.engine.stored_graph import LocalGraph
from penstock.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from penstock.engine.checkpoint.data_directory import DataDirectory
    from penstock.engine.engine_core import EngineCore


_POSITION = "log.json"


@dataclass(frozen=True, slots=True)
class Position:
    """The position at which the write-ahead log continues after a checkpoint. `file` is the number of the first log
    file after the checkpoint. `entry` is the number of the last entry that the checkpoint includes.
    """

    file: int = 0
    entry: int = 0


def save(runtime: Runtime, directory: DataDirectory, position: Position) -> None:
    """Write and activate a checkpoint. The caller must hold the engine's lock. StorageError if the checkpoint cannot be
    written.
    """
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
    """Return a runtime that is restored from the current checkpoint, and the position at which the write-ahead log
    continues. If there is no checkpoint, the runtime is empty.

    `make_core` creates the engine's core. The argument of `make_core` is the folder of a checkpoint, or None for an
    empty core.
    """
    if directory is None:
        return _runtime(make_core(None)), Position()
    return _restored(directory, make_core)


def _restored(directory: DataDirectory, make_core: Callable[[Path | None], EngineCore]) -> tuple[Runtime, Position]:
    folder = directory.current()
    runtime, position = _runtime(make_core(folder)), Position()
    if folder is not None:
        read_into(runtime, folder)
        if (folder / _POSITION).exists():
            position = Position(**read_json(folder / _POSITION))
    if directory.crashed:
        runtime.core.attempt = max(runtime.core.attempt, directory.crashed_attempt) + 1
    return runtime, position


def _runtime(core: EngineCore) -> Runtime:
    """Return an empty runtime of an embedded engine."""
    assert isinstance(core.store, LocalGraph), core.store
    return Runtime(core, past=core.store.labels)
