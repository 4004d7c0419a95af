"""Writes the folder of a checkpoint. `checkpoint_reader` reads this folder."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Protocol

from penstock.engine.answers.answer_values import publish
from penstock.engine.checkpoint.arrays import ArrayWriter
from penstock.engine.sets.set_member import SetMember, cohort_columns
from penstock.engine.sets.set_members import SetMembership
from penstock.engine.windows.trigger import CountTrigger, GridTrigger

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.core import _native as native
    from penstock.core._native import Ids
    from penstock.engine.answers.answer_versions import AnswerChanges, AnswerVersion
    from penstock.engine.answers.block_log import BlockLog
    from penstock.engine.answers.membership import Membership
    from penstock.engine.answers.result_blocks import Block
    from penstock.engine.answers.rows import Rows
    from penstock.engine.intake.rejected_events import DeadLetter
    from penstock.engine.intake.streams import LiveStream
    from penstock.engine.runtime import Runtime
    from penstock.engine.sets.set_members import MemberColumns
    from penstock.engine.standing.groups import Cohort, Member


class Capturing(Protocol):
    """The interface of a stored graph, or of a shard, for checkpoints."""

    def capture(self, directory: str, previous: str = "") -> native.StoreCapture:
        """Capture the state for a checkpoint in `directory`. The parts that have not changed since the checkpoint in
        `previous` are not captured. If `previous` is "", there is no previous checkpoint.
        """


VERSION = 2
STORE = "store"  # name of the folder with the regions, in a checkpoint's folder


def write(runtime: Runtime, folder: Path, previous: Path | None) -> None:
    """Write the complete state of an engine into `folder`. `previous` is the folder of the previous checkpoint. A
    region of the stored graph has several parts. The call writes only the parts that have changed since the previous
    checkpoint. For the unchanged parts, the call makes links to the files of the previous checkpoint.

    The caller must hold the engine's lock. After the call, the caller must make the folder durable.
    """
    writer = _Writer(runtime, folder)
    state = writer.state()
    writer.arrays.close()
    (folder / "engine.json").write_text(json.dumps(state), encoding="utf-8")
    capture_store(runtime.core.store, folder, previous).write()
    runtime.core.dictionary.save(str(folder / "dictionary.bin"))  # last, because saving answers can intern terms


def capture_store(store: Capturing, folder: Path, previous: Path | None) -> native.StoreCapture:
    """Capture the regions' changes for a checkpoint in `folder`. These are the changes since the checkpoint in
    `previous`. The result has a method `write`, which writes the changes.
    """
    return store.capture(str(folder / STORE), "" if previous is None else str(previous / STORE))


class _Writer:
    def __init__(self, runtime: Runtime, folder: Path) -> None:
        self._runtime = runtime
        self._folder = folder
        self.arrays = ArrayWriter(folder / "arrays.bin")
        self._memberships: dict[Membership, int] = {}
        self._logs: dict[BlockLog, int] = {}
        # the addresses of written arrays, and the arrays themselves, so that no other array gets the same memory
        self._placed: dict[tuple[int, int, int], tuple[tuple[int, int], Ids]] = {}

    def state(self) -> dict[str, Any]:
        runtime = self._runtime
        queries = [self._member(member) for member in runtime.registry.members.values()]
        cohorts = [self._cohort(cohort) for cohort in runtime.registry.cohorts]
        return {
            "version": VERSION,
            "attempt": runtime.core.attempt,
            "last_load": runtime.core.last_load,
            "tick": runtime.core.dictionary.tick(),
            "blanks": runtime.core.dictionary.blank_count(),
            "next_stream": runtime.streams.next_number,
            "streams": [self._stream(stream) for stream in runtime.streams],
            "queries": queries,
            "cohorts": cohorts,
            "logs": [self._log(log) for log in self._logs],
            "memberships": [self._names(members) for members in self._memberships],
            "timeline": None if runtime.timeline is None else runtime.timeline.save(),
            "dead_letters": [_letter(letter) for letter in runtime.dead_letters.entries()],
        }

    def _columns(self, columns: MemberColumns) -> dict[str, Any]:
        """Write the members of a query set, and return the addresses of the written arrays. A column can be both a
        parameter and a part of the key. Such a column is written only once.
        """
        places: dict[int, tuple[int, int]] = {}

        def place(ids: Ids) -> tuple[int, int]:
            if id(ids) not in places:
                places[id(ids)] = self.arrays.add(ids)
            return places[id(ids)]

        return {
            "numbers": place(columns.numbers),
            "parameters": [place(ids) for ids in columns.parameters],
            "keys": [place(ids) for ids in columns.keys],
        }

    def _names(self, members: Membership) -> list[str | None] | dict[str, Any]:
        """Return the names of the members. A removed member has None in place of the name, because another query can
        have this name now. For a query set, return the columns of the set's members.
        """
        if isinstance(members, SetMembership):
            return self._columns(members.columns)
        standing = set(self._runtime.registry.members.values())
        return [m.name if m is not None and m in standing else None for m in members.all]

    def _stream(self, stream: LiveStream) -> dict[str, Any]:
        (self._folder / stream_file(stream.number)).write_bytes(stream.core.save())
        return {
            "number": stream.number,
            "declaration": stream.declaration.as_json(),
            "watermark": stream.watermark,
            "closed_ms": stream.closed_ms,
            "begun": stream.begun,
            "publisher": stream.publisher,
            "ended": stream.ended,
            "events": stream.events,
            "tuples": stream.tuples,
            "stored_tuples": stream.stored_tuples,
            "beyond": list(stream.beyond.items()),
            "late": [[e.timestamp, e.watermark, _text(e.data)] for e in stream.late.entries()],
            "late_total": stream.late.total,
        }

    def _member(self, member: Member) -> dict[str, Any]:
        segments = member.result_queue.segments()
        return {
            "name": member.name,
            "text": member.text,
            "base": member.base,
            "changes": member.changes,
            "point": member.point,
            "past": None if (history := self._runtime.history) is None else history.save(member.group),
            "gaps": [[gap.after, gap.until, gap.count] for gap in member.gaps],
            "segments": [[self._logs.setdefault(log, len(self._logs)), first, end] for log, first, end in segments],
        } | (_set(member) if isinstance(member, SetMember) else {})

    def _cohort(self, cohort: Cohort) -> dict[str, Any]:
        trigger = cohort.trigger
        before = cohort.predecessor
        return {
            "members": [member.name for member in cohort],
            "columns": None if (columns := cohort_columns(cohort)) is None else self._columns(columns),
            "main": cohort is cohort.group.main,
            "point": cohort.point,
            "last": trigger.last if isinstance(trigger, GridTrigger) else None,
            "counted": trigger.save() if isinstance(trigger, CountTrigger) else None,
            "log": self._logs.setdefault(cohort.log, len(self._logs)),
            "executions": cohort.executions,
            "predecessor": None if before is None else self._version(before),
        }

    def _version(self, version: AnswerVersion) -> dict[str, Any]:
        """Write a version of an answer, and return the description of the version. Rows that several versions share are
        written only once.
        """
        rows, changes = version.parts
        return {
            "members": self._membership(version.members),
            "rows": self._rows(rows),
            "changes": [[self._rows(each.added), self._rows(each.removed)] for each in changes],
        }

    def _rows(self, rows: Rows) -> dict[str, Any]:
        return {"member": self._place(rows.member), "columns": [*map(self._place, rows.published().columns)]}

    def _place(self, array: Ids) -> tuple[int, int]:
        """Write an array, and return the address of the array. If an array in the same memory was written before,
        return the earlier address.
        """
        memory = array.__array_interface__["data"][0], len(array), array.strides[0]
        if memory not in self._placed:
            self._placed[memory] = self.arrays.add(array), array
        return self._placed[memory][0]

    def _membership(self, members: Membership) -> int:
        return self._memberships.setdefault(members, len(self._memberships))

    def _log(self, log: BlockLog) -> dict[str, Any]:
        return {"next": log.next, "blocks": [[n, self._block(block)] for n, block in log.blocks(0, log.next)]}

    def _block(self, block: Block) -> dict[str, Any]:
        columns = block.columns if block.product is None else block.product.rows().columns
        columns = columns if block.decoder is None else publish(columns, block.decoder)
        reading = block.reading
        return {
            "time": reading.time,
            "windows": list(reading.windows.items()),
            "snapshot": reading.snapshot,
            "vts": dict(reading.vts),
            "attempt": reading.attempt,
            "form": block.form.value,
            "variables": block.variables,
            "columns": [self.arrays.add(column) for column in columns],
            "members": self._membership(block.members),
            "present": self.arrays.add(block.present),
            "starts": self.arrays.add(block.starts),
            "errors": [[member, type(e).__name__, str(e)] for member, e in block.errors.items()],
            "sparse": block.sparse,
            "changes": None if block.changes is None else self._changes(block.changes),
        }

    def _changes(self, changes: AnswerChanges) -> dict[str, Any]:
        return {
            "now": self._version(changes.now),
            "added": self._rows(changes.changes.added),
            "removed": self._rows(changes.changes.removed),
            "bytes": changes.bytes,
            "before": None if changes.before is None else self._membership(changes.before),
        }


def _set(member: SetMember) -> dict[str, Any]:
    saved = {"key": member.key, "key_types": member.key_types, "next_number": member.next_number}
    return {"set": {"report": member.report, **saved}}


def stream_file(number: int) -> str:
    """Return the name of the file that contains the open batches and slices of stream `number`."""
    return f"stream-{number}.bin"


def _letter(letter: DeadLetter) -> list[Any]:
    return [letter.timestamp, letter.stream, letter.reason, _text(letter.data)]


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
