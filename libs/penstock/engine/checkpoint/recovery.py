"""Recovery: replays the entries of the write-ahead log after the last checkpoint.

The replay repeats the evaluations after the checkpoint, with the next attempt number. The log does not record which
evaluations were polled. The replay therefore retains only the latest evaluations of each query, as many as
`max_unpolled` and `unpolled_mb` allow. The engine enforced the same limits before the crash. All older evaluations were
therefore polled before the crash.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.checkpoint.log_entries import CHANGE, LogEntry, apply
from penstock.engine.checkpoint.log_file import frames, log_numbers, log_path
from penstock.engine.intake.graph_change import GraphChange
from penstock.engine.windows.schedule import fullest
from penstock.errors import PenstockError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from penstock.engine.checkpoint.engine_checkpoint import Position
    from penstock.engine.checkpoint.log_entries import Operations
    from penstock.engine.engine_core import EngineCore
    from penstock.engine.runtime import Runtime

_CATCH_UP_S = 1.0  # time for which a query catches up between two calls of `trim`
_TRIM_EVERY = 10_000  # number of evaluations between two calls of `trim`
_log = logging.getLogger("penstock.engine")


@dataclass(slots=True)
class Recovered:
    """The progress of a replay. `file` is the number of the log file. `last` is the number of the last entry. `entries`
    is the number of entries that were applied.
    """

    file: int
    last: int
    entries: int = 0


def entries_from(folder: Path, found: Recovered) -> Iterator[LogEntry]:
    """Yield the entries after the position `found`. Before each entry, the call updates `found`."""
    for number in [number for number in log_numbers(folder) if number >= found.file]:
        found.file = number
        for frame in frames(log_path(folder, number), found.last):
            found.last = frame.number
            yield LogEntry.decode(frame.payload)


def replay(engine: Operations, runtime: Runtime, folder: Path, position: Position) -> Recovered:
    """Apply the entries after `position` to an engine that does not log yet. StorageError if the log is corrupt."""
    found, core = Recovered(position.file, position.entry), runtime.core
    clock, trimmed = core.clock, runtime.firing.evaluations
    runtime.schedule.replaying = True
    try:
        for entry in entries_from(folder, found):
            core.clock = lambda wall_ms=entry.wall_ms: wall_ms  # type: ignore[misc]
            found.entries += 1
            if entry.verb == "register" and entry.arguments.get("replace"):
                _finish_past(runtime, entry.arguments["name"])
            _apply(engine, core, entry, found.last)
            held = runtime.schedule.unpolled.bytes
            if runtime.firing.evaluations - trimmed >= _TRIM_EVERY or held > core.limits.unpolled_mb << 20 > 0:
                trimmed = runtime.firing.evaluations
                trim(runtime)
    finally:
        core.clock = clock
        runtime.schedule.replaying = False
    trim(runtime)
    return found


def _apply(engine: Operations, core: EngineCore, entry: LogEntry, number: int) -> None:
    """Apply an entry. After a crash, the log can contain the entry of a change that was refused. The engine then
    refuses this change again.
    """
    try:
        if entry.verb == CHANGE:
            split = entry.arguments["removed"]
            GraphChange.of_nquads(core, entry.data[:split], entry.data[split:]).commit(core)
        else:
            apply(entry, engine)
    except StorageError:
        raise
    except PenstockError as error:
        _log.warning("entry %d of the write-ahead log (%s) is refused: %s", number, entry.verb, error)


def _finish_past(runtime: Runtime, name: str | None) -> None:
    """Let a query catch up with its past. Call this function before an entry that replaces the query's text is applied,
    because such a replacement is refused until the query has caught up.
    """
    member = runtime.registry.members.get(name or "")
    while member is not None and runtime.history is not None and runtime.history.is_behind(member.group):
        runtime.catch_up(_CATCH_UP_S, member.group)
        trim(runtime)


def trim(runtime: Runtime) -> None:
    """Remove the oldest pending evaluations until `max_unpolled` and `unpolled_mb` are no longer exceeded."""
    most, limit = runtime.core.limits.max_unpolled, runtime.core.limits.unpolled_mb << 20
    members = runtime.registry.members.values()
    for member in members:
        if member.cohort is not None and len(member.cohort.log) > most:
            member.result_queue.take(max(0, len(member.result_queue) - most))
    while runtime.schedule.unpolled.bytes > limit > 0 and (largest := fullest(members)) is not None:
        largest.result_queue.take((len(largest.result_queue) + 1) // 2)
