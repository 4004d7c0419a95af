"""Reads the folder of a checkpoint that `checkpoint_writer` has written."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.core import _native as native
from penstock.engine.answers.answer_versions import AnswerChanges, AnswerVersion
from penstock.engine.answers.block_log import BlockLog
from penstock.engine.answers.membership import Membership
from penstock.engine.answers.result_blocks import Block, Reading
from penstock.engine.answers.rows import Changes, Rows
from penstock.engine.checkpoint.arrays import ArrayReader
from penstock.engine.checkpoint.checkpoint_writer import VERSION, stream_file
from penstock.engine.checkpoint.data_directory import read_json
from penstock.engine.intake.declaration import Declaration
from penstock.engine.intake.rejected_events import DeadLetter, LateEvent
from penstock.engine.sets.set_member import SetMember
from penstock.engine.sets.set_members import MemberColumns, SetMembership
from penstock.engine.windows.trigger import CountTrigger
from penstock.errors import DataError, LimitError, PenstockError, QueryError, StorageError
from penstock.event_time.gaps import Gap
from penstock.event_time.watermark import NEVER
from penstock.query.ir import ContinuousQuery, Form
from penstock.query.parser import parse

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.core._native import Ids
    from penstock.engine.runtime import Runtime
    from penstock.engine.standing.groups import Member

_ERRORS: dict[str, type[PenstockError]] = {"LimitError": LimitError, "DataError": DataError}


def read_into(runtime: Runtime, folder: Path) -> None:
    """Restore the state in a checkpoint's folder into an empty runtime. The stored graph and the dictionary of the
    runtime must be restored already. StorageError if a file is unreadable or corrupt, or has another version of the
    format.
    """
    path = folder / "engine.json"
    state = read_json(path)
    if state.get("version") != VERSION:
        raise StorageError(f"{path}: version {state.get('version')} of the format, this is {VERSION}")
    try:
        _Reader(runtime, folder, state).restore()
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise StorageError(f"{path}: corrupt: {error!r}") from error
    except OSError as error:
        raise StorageError(f"{folder}: is not readable: {error}") from error


class _Reader:
    def __init__(self, runtime: Runtime, folder: Path, state: dict[str, Any]) -> None:
        self._runtime = runtime
        self._folder = folder
        self._state = state
        self._arrays = ArrayReader(folder / "arrays.bin")
        self._decoder = native.LocalTerms(runtime.core.dictionary)
        self._lease = runtime.core.dictionary.lease()
        self._memberships: list[Membership] = []
        self._read: dict[tuple[int, int], Ids] = {}  # by address: a column can be used in several places

    def restore(self) -> None:
        runtime, state = self._runtime, self._state
        core = runtime.core
        core.attempt = state["attempt"]
        core.last_load = state["last_load"]
        core.dictionary.set_tick(max(core.dictionary.tick(), state["tick"]))
        core.dictionary.reserve_blanks(state["blanks"])
        for saved in state["streams"]:
            self._stream(saved)
        runtime.streams.next_number = state["next_stream"]
        for saved in state["queries"]:
            self._member(saved)
        members = runtime.registry.members
        self._memberships = [self._membership(saved) for saved in state["memberships"]]
        logs = [self._log(saved) for saved in state["logs"]]
        for saved in state["cohorts"]:
            self._cohort(saved, logs)
        for saved in state["queries"]:
            segments = [(logs[log], first, end) for log, first, end in saved["segments"]]
            members[saved["name"]].result_queue.restore(segments)
        for log in logs:
            log.drop_read()
        if runtime.history is not None:
            runtime.history.timeline.restore(state.get("timeline"))
            for saved in state["queries"]:
                if saved.get("past") is not None:
                    runtime.history.restore(members[saved["name"]].group, saved["past"])
        for timestamp, stream, reason, data in state["dead_letters"]:
            runtime.dead_letters.put(DeadLetter(stream, timestamp, reason, _bytes(data)))

    def _stream(self, saved: dict[str, Any]) -> None:
        stream = self._runtime.streams.add(Declaration.from_json(saved["declaration"]), saved["number"])
        path = self._folder / stream_file(stream.number)
        stream.core.restore(path.read_bytes())
        stream.resume(saved["watermark"], saved["closed_ms"])
        begun = saved.get("begun") or (None if stream.closed_ms is None else (0, NEVER))  # (0, …): an older checkpoint
        if begun is not None:
            self._runtime.streams.restore_begun(stream, tuple(begun))
        stream.publisher, stream.ended = saved["publisher"], saved["ended"]
        stream.events, stream.tuples = saved["events"], saved["tuples"]
        stream.stored_before = saved["stored_tuples"]
        stream.restore_beyond(dict(saved["beyond"]))
        for timestamp, watermark, data in saved["late"]:
            stream.late.put(LateEvent(stream.iri, timestamp, watermark, _bytes(data)))
        stream.late.total = saved["late_total"]

    def _member(self, saved: dict[str, Any]) -> None:
        try:
            ir = parse(saved["text"], saved["base"], limits=self._runtime.core.limits, accepted=True)
            assert isinstance(ir, ContinuousQuery)
            member = self._restored(ir, saved)
        except QueryError as error:
            raise StorageError(f"{self._folder / 'engine.json'}: query {saved['name']}: {error}") from error
        member.point = saved["point"]
        member.skip(Gap(*gap) for gap in saved["gaps"])

    def _restored(self, ir: ContinuousQuery, saved: dict[str, Any]) -> Member:
        registry, given = self._runtime.registry, saved.get("set")
        if given is None:
            past, option = saved.get("past") or {}, replace(ir, changes=saved["changes"])
            return registry.restore(option, saved["name"], saved["base"], incarnation=past.get("incarnation"))
        member = registry.restore_set(ir, saved["name"], saved["base"], given["key"], report=given["report"])
        member.key_types[:] = given["key_types"]
        member.next_number = given["next_number"]
        return member

    def _membership(self, saved: list[str | None] | dict[str, Any]) -> Membership:
        if isinstance(saved, dict):
            return SetMembership(self._columns(saved))
        return Membership([self._runtime.registry.members.get(name or "") for name in saved])

    def _columns(self, saved: dict[str, Any]) -> MemberColumns:
        parameters, keys = (tuple(map(self._ids, saved[places])) for places in ("parameters", "keys"))
        return MemberColumns(self._arrays.ids(saved["numbers"]), parameters, keys)

    def _cohort(self, saved: dict[str, Any], logs: list[BlockLog]) -> None:
        registry, point, last = self._runtime.registry, saved["point"], saved["last"]
        members = [registry.members[name] for name in saved["members"]]
        if isinstance(owner := members[0], SetMember):
            columns = self._columns(saved["columns"])
            cohort = registry.restore_set_cohort(owner, columns, point, last, main=saved["main"])
        else:
            cohort = registry.restore_cohort(members, point, last, main=saved["main"])
        cohort.log = logs[saved["log"]]
        cohort.executions = saved["executions"]
        if saved["counted"] is not None:
            assert isinstance(cohort.trigger, CountTrigger)
            cohort.trigger.restore(saved["counted"])
        if saved["predecessor"] is not None:
            leases = (self._lease,) if cohort.group.query.changes else ()
            cohort.predecessor = self._version(saved["predecessor"], leases)

    def _version(self, saved: dict[str, Any], leases: tuple[object, ...]) -> AnswerVersion:
        changes = tuple(Changes(self._rows(added), self._rows(removed)) for added, removed in saved["changes"])
        members = self._memberships[saved["members"]]
        return AnswerVersion(members, self._rows(saved["rows"]), 0, changes, leases)

    def _rows(self, saved: dict[str, Any]) -> Rows:
        columns = tuple(self._ids(place) for place in saved["columns"])
        return Rows(self._arrays.ids(saved["member"]), columns, self._decoder)

    def _changes(self, saved: dict[str, Any] | None) -> AnswerChanges | None:
        if saved is None:
            return None
        changes = Changes(self._rows(saved["added"]), self._rows(saved["removed"]))
        before = saved.get("before")
        known = None if before is None else self._memberships[before]
        return AnswerChanges(self._version(saved["now"], (self._lease,)), changes, saved["bytes"], known)

    def _log(self, saved: dict[str, Any]) -> BlockLog:
        log = BlockLog(self._runtime.schedule.unpolled)
        log.restore(saved["next"], {number: self._block(block) for number, block in saved["blocks"]})
        return log

    def _block(self, saved: dict[str, Any]) -> Block:
        windows = {iri: (start, end) for iri, (start, end) in saved["windows"]}
        reading = Reading(saved["time"], windows, saved["snapshot"], saved["vts"], saved["attempt"])
        return Block(
            reading=reading,
            form=Form(saved["form"]),
            variables=tuple(saved["variables"]),
            columns=tuple(self._ids(place) for place in saved["columns"]),
            members=self._memberships[saved["members"]],
            present=self._arrays.ids(saved["present"]),
            starts=self._arrays.numbers(saved["starts"]),
            decoder=self._decoder,
            lease=self._lease,
            errors={member: _ERRORS.get(kind, PenstockError)(text) for member, kind, text in saved["errors"]},
            changes=self._changes(saved["changes"]),
            sparse=saved["sparse"],
        )

    def _ids(self, place: list[int]) -> Ids:
        """Return a column of ids, and mark the ids as used in the dictionary."""
        first, length = place
        ids = self._read.get((first, length))
        if ids is None:
            ids = self._read[first, length] = self._arrays.ids(place)
            self._runtime.core.dictionary.touch(ids)
        return ids


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)
