"""Checkpoints: everything that an engine must know again after a restart, as files of one folder (SEMANTICS §6).

`engine.json` holds what is small, `arrays.bin` columns of ids, `stream-<n>.bin` open batches and slices,
`dictionary.bin` the terms, `store/` the regions. Plans and windows are made again; a time window's content comes back
from the slices.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.answers import publish
from penstock.engine.blocks import Block, BlockLog, Reading
from penstock.engine.declaration import Declaration
from penstock.engine.difference import Predecessor, Rows
from penstock.engine.directory import read_json
from penstock.engine.membership import Membership
from penstock.engine.pace import CountPace, GridPace
from penstock.engine.refused import DeadLetter, LateEvent
from penstock.engine.standing import Gap, Query
from penstock.errors import DataError, LimitError, PenstockError, QueryError, StorageError
from penstock.query.ir import ContinuousQuery, Form
from penstock.query.parser import parse
from penstock.store import _native as native

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from penstock.engine.cohorts import Cohort
    from penstock.engine.runtime import Runtime
    from penstock.engine.standing import Owner
    from penstock.engine.streams import LiveStream

VERSION = 1

_ERRORS: dict[str, type[PenstockError]] = {"LimitError": LimitError, "DataError": DataError}


class ArrayWriter:
    """Appends arrays of 64-bit numbers to one file; each is later found by its (offset, length)."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._length = 0

    def add(self, array: NDArray[Any]) -> tuple[int, int]:
        """Append an array; returns where it is."""
        place = self._length, len(array)
        self._file.write(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
        self._length += len(array)
        return place

    def close(self) -> None:
        """Finish the file."""
        self._file.close()


class ArrayReader:
    """Reads what an ArrayWriter wrote."""

    def __init__(self, path: Path) -> None:
        self._words = np.fromfile(path, np.dtype("<u8")).astype(np.uint64, copy=False)

    def ids(self, place: list[int]) -> NDArray[np.uint64]:
        """Return an array of ids."""
        return self._words[place[0] : place[0] + place[1]]

    def numbers(self, place: list[int]) -> NDArray[np.int64]:
        """Return an array of signed numbers."""
        return self.ids(place).view(np.int64)


# ---- writing
def save(runtime: Runtime, folder: Path) -> None:
    """Write the whole state into a folder. The caller holds the engine's lock and makes the folder durable."""
    writer = _Writer(runtime, folder)
    state = writer.state()
    writer.arrays.close()
    (folder / "engine.json").write_text(json.dumps(state), encoding="utf-8")
    (folder / "store").mkdir()
    runtime.core.store.save(str(folder / "store"))
    runtime.core.dictionary.save(str(folder / "dictionary.bin"))  # last: saving answers may have interned terms


class _Writer:
    def __init__(self, runtime: Runtime, folder: Path) -> None:
        self._runtime = runtime
        self._folder = folder
        self.arrays = ArrayWriter(folder / "arrays.bin")
        self._memberships: dict[Membership, int] = {}
        self._logs: dict[BlockLog, int] = {}

    def state(self) -> dict[str, Any]:
        runtime = self._runtime
        queries = [self._query(query) for query in runtime.registry.queries.values()]
        cohorts = [self._cohort(cohort) for cohort in runtime.registry.cohorts]
        return {
            "version": VERSION,
            "attempt": runtime.core.attempt,
            "tick": runtime.core.dictionary.tick(),
            "blanks": runtime.core.dictionary.blank_count(),
            "next_stream": runtime.streams.next_number,
            "streams": [self._stream(stream) for stream in runtime.streams],
            "queries": queries,
            "cohorts": cohorts,
            "logs": [self._log(log) for log in self._logs],
            "memberships": [self._names(members) for members in self._memberships],
            "dead_letters": [_letter(letter) for letter in runtime.dead_letters.entries()],
        }

    def _names(self, members: Membership) -> list[str | None]:
        """The members' names, None for those that are gone (another query may have the name by now)."""
        standing = self._runtime.registry.queries
        return [q.name if q is not None and standing.get(q.name) is q else None for q in members.queries]

    def _stream(self, stream: LiveStream) -> dict[str, Any]:
        (self._folder / _stream_file(stream.number)).write_bytes(stream.core.save())
        return {
            "number": stream.number,
            "declaration": stream.declaration.as_json(),
            "watermark": stream.watermark,
            "closed_ms": stream.closed_ms,
            "publisher": stream.publisher,
            "ended": stream.ended,
            "events": stream.events,
            "tuples": stream.tuples,
            "beyond": list(stream.beyond.items()),
            "late": [[e.timestamp, e.watermark, _text(e.data)] for e in stream.late.entries()],
            "late_total": stream.late.total,
        }

    def _query(self, query: Query) -> dict[str, Any]:
        segments = [
            [self._logs.setdefault(segment.log, len(self._logs)), segment.next, segment.end]
            for segment in query.segments
        ]
        return {
            "name": query.name,
            "text": query.text,
            "base": query.base,
            "point": query.point,
            "gaps": [[gap.after, gap.until, gap.count] for gap in query.gaps],
            "segments": segments,
        }

    def _cohort(self, cohort: Cohort) -> dict[str, Any]:
        pace = cohort.pace
        before = cohort.predecessor
        return {
            "members": [query.name for query in cohort.queries],
            "main": cohort is cohort.group.main,
            "point": cohort.point,
            "last": pace.last if isinstance(pace, GridPace) else None,
            "counted": pace.save() if isinstance(pace, CountPace) else None,
            "log": self._logs.setdefault(cohort.log, len(self._logs)),
            "executions": cohort.executions,
            "predecessor": None if before is None else self._rows(before.members, before.rows),
        }

    def _rows(self, members: Membership, rows: Rows) -> dict[str, Any]:
        return {
            "members": self._membership(members),
            "member": self.arrays.add(rows.member),
            "columns": [self.arrays.add(column) for column in rows.published().columns],
        }

    def _membership(self, members: Membership) -> int:
        return self._memberships.setdefault(members, len(self._memberships))

    def _log(self, log: BlockLog) -> dict[str, Any]:
        return {"next": log.next, "blocks": [[n, self._block(block)] for n, block in log.blocks(0, log.next)]}

    def _block(self, block: Block) -> dict[str, Any]:
        columns = block.columns if block.decoder is None else publish(block.columns, block.decoder)
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
        }


# ---- reading
def load(runtime: Runtime, folder: Path, owner: Owner) -> None:
    """Bring an empty runtime (whose store and dictionary are already restored) to the state that a folder holds."""
    path = folder / "engine.json"
    state = read_json(path)
    if state.get("version") != VERSION:
        raise StorageError(f"{path}: version {state.get('version')} of the format, this is {VERSION}")
    try:
        _Reader(runtime, folder, state).restore(owner)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise StorageError(f"{path}: corrupt: {error!r}") from error


class _Reader:
    def __init__(self, runtime: Runtime, folder: Path, state: dict[str, Any]) -> None:
        self._runtime = runtime
        self._folder = folder
        self._state = state
        self._arrays = ArrayReader(folder / "arrays.bin")
        self._decoder = native.LocalTerms(runtime.core.dictionary)
        self._lease = runtime.core.dictionary.lease()
        self._memberships: list[Membership] = []

    def restore(self, owner: Owner) -> None:
        runtime, state = self._runtime, self._state
        for saved in state["streams"]:
            self._stream(saved)
        runtime.streams.next_number = state["next_stream"]
        for saved in state["queries"]:
            self._query(saved, owner)
        queries = runtime.registry.queries
        self._memberships = [Membership([queries.get(name or "") for name in names]) for names in state["memberships"]]
        logs = [self._log(saved) for saved in state["logs"]]
        for saved in state["cohorts"]:
            self._cohort(saved, logs)
        for saved in state["queries"]:
            queries[saved["name"]].restore_segments([(logs[log], first, end) for log, first, end in saved["segments"]])
        for log in logs:
            log.drop_read()
        for timestamp, stream, reason, data in state["dead_letters"]:
            runtime.dead_letters.put(DeadLetter(stream, timestamp, reason, _bytes(data)))

    def _stream(self, saved: dict[str, Any]) -> None:
        stream = self._runtime.streams.add(Declaration.from_json(saved["declaration"]), saved["number"])
        path = self._folder / _stream_file(stream.number)
        stream.core.restore(path.read_bytes())
        stream.watermark, stream.closed_ms = saved["watermark"], saved["closed_ms"]
        stream.publisher, stream.ended = saved["publisher"], saved["ended"]
        stream.events, stream.tuples = saved["events"], saved["tuples"]
        stream.restore_beyond(dict(saved["beyond"]))
        for timestamp, watermark, data in saved["late"]:
            stream.late.put(LateEvent(stream.iri, timestamp, watermark, _bytes(data)))
        stream.late.total = saved["late_total"]

    def _query(self, saved: dict[str, Any], owner: Owner) -> None:
        try:
            ir = parse(saved["text"], saved["base"])
            assert isinstance(ir, ContinuousQuery)
            query = self._runtime.registry.restore(ir, saved["name"], saved["base"], owner)
        except QueryError as error:
            raise StorageError(f"{self._folder / 'engine.json'}: query {saved['name']}: {error}") from error
        query.point = saved["point"]
        query.gaps = [Gap(*gap) for gap in saved["gaps"]]

    def _cohort(self, saved: dict[str, Any], logs: list[BlockLog]) -> None:
        registry = self._runtime.registry
        members = [registry.queries[name] for name in saved["members"]]
        cohort = registry.restore_cohort(members, saved["point"], saved["last"], main=saved["main"])
        cohort.log = logs[saved["log"]]
        cohort.executions = saved["executions"]
        if saved["counted"] is not None:
            assert isinstance(cohort.pace, CountPace)
            cohort.pace.restore(saved["counted"])
        if saved["predecessor"] is not None:
            cohort.predecessor = self._predecessor(saved["predecessor"])

    def _predecessor(self, saved: dict[str, Any]) -> Predecessor:
        columns = tuple(self._ids(place) for place in saved["columns"])
        rows = Rows(self._arrays.ids(saved["member"]), columns, self._decoder)
        return Predecessor(self._memberships[saved["members"]], rows)

    def _log(self, saved: dict[str, Any]) -> BlockLog:
        log = BlockLog()
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
            sparse=saved["sparse"],
        )

    def _ids(self, place: list[int]) -> NDArray[np.uint64]:
        """Return a column of ids, in use from now on."""
        ids = self._arrays.ids(place)
        self._runtime.core.dictionary.touch(ids)
        return ids


def _stream_file(number: int) -> str:
    return f"stream-{number}.bin"


def _letter(letter: DeadLetter) -> list[Any]:
    return [letter.timestamp, letter.stream, letter.reason, _text(letter.data)]


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)
