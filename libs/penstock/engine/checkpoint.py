"""Checkpoints: everything that an engine must know again after a restart, as files of one folder (semantics.md §6).

`engine.json` holds what is small, `arrays.bin` columns of ids, `stream-<n>.bin` open batches and slices,
`dictionary.bin` the terms, `store/` the regions. Plans and windows are made again; a time window's content comes back
from the slices. `saving` writes the folder, `restoring` reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.restoring import read_into
from penstock.engine.runtime import Runtime
from penstock.engine.saving import write
from penstock.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from penstock.engine.core import Core
    from penstock.engine.directory import DataDirectory

_READ_ATTEMPTS = 5  # of a reader beside an engine that replaces the checkpoint meanwhile


def save(runtime: Runtime, directory: DataDirectory) -> None:
    """Put a checkpoint of everything in force. The caller holds the engine's lock. StorageError where it cannot."""
    try:
        folder = directory.begin()
        write(runtime, folder, directory.in_force())
        directory.publish(folder)
    except OSError as error:
        raise StorageError(f"{directory.path}: the checkpoint cannot be written: {error}") from error


def restored(directory: DataDirectory | None, make_core: Callable[[Path | None], Core]) -> Runtime:
    """Return a runtime in the state of the checkpoint in force, or an empty one. `make_core` opens its native parts."""
    if directory is None:
        return Runtime(make_core(None))
    for _ in range(_READ_ATTEMPTS - 1):
        pointer = directory.pointer()
        try:
            return _restored(directory, make_core)
        except StorageError:
            if not directory.read_only or directory.pointer() == pointer:
                raise
    return _restored(directory, make_core)


def _restored(directory: DataDirectory, make_core: Callable[[Path | None], Core]) -> Runtime:
    folder = directory.current()
    runtime = Runtime(make_core(folder))
    if folder is not None:
        read_into(runtime, folder)
    runtime.core.attempt += directory.crashed
    return runtime
