"""`Engine`: the embedded engine's face. Each verb is a few lines over the module that owns its noun."""

from __future__ import annotations

import logging
import random
import threading
import time
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakMethod

import numpy as np
from rdflib import BNode

from penstock.core import _native as native
from penstock.engine.checkpoint.data_directory import DataDirectory
from penstock.engine.checkpoint.durability import ChangeLog, checked_durability
from penstock.engine.checkpoint.engine_checkpoint import restored
from penstock.engine.checkpoint.log_entries import LogEntry, pushed
from penstock.engine.checkpoint.recovery import Recovered, replay
from penstock.engine.engine_core import EngineCore
from penstock.engine.intake.arrival import PushReport, as_column
from penstock.engine.intake.bulk_intake import BulkIntake
from penstock.engine.intake.declaration import Declaration, warning_of
from penstock.engine.intake.events import EventParser, Events, checked_time, original_bytes
from penstock.engine.intake.graph_loading import Document, LoadReport, insert
from penstock.engine.intake.idle_sources import IdleSources
from penstock.engine.intake.rejected_events import DeadLetter
from penstock.engine.limits import MAX_TIME_MS, Limits
from penstock.engine.oneshot.explaining import explain
from penstock.engine.oneshot.one_shot import OneShot, Texts
from penstock.engine.standing.standing_query import Query
from penstock.engine.statistics import engine_stats
from penstock.engine.stored_graph import LocalGraph
from penstock.errors import (
    DataError,
    PenstockError,
    StorageError,
    UnboundedStorageWarning,
    UnknownStreamError,
)
from penstock.query.budget import planning
from penstock.query.functions import text_functions
from penstock.rdf import terms as terms_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from os import PathLike
    from pathlib import Path
    from random import Random

    import rdflib
    from numpy.typing import ArrayLike

    from penstock.engine.answers.answer_values import Ids, Solutions
    from penstock.engine.intake.events import EventData
    from penstock.engine.intake.rejected_events import LateEvent
    from penstock.engine.intake.streams import LiveStream
    from penstock.engine.runtime import Runtime, Skip
    from penstock.engine.standing.member import Member
    from penstock.rdf.terms import RdflibTerm

_log = logging.getLogger("penstock.engine")
_READ_ATTEMPTS = 5  # of a reader beside an engine that replaces the checkpoint meanwhile
_CHUNK = 8_192  # events of push_events that are taken (or refused by a limit) together


class Engine:
    """Continuous SPARQL over streams and a stored graph, in this process.

    data_dir: where `close` and `checkpoint` keep everything; None = nothing is kept. shards: of a new stored graph.
    read_only: work on what a data_dir holds, beside the engine that has it open perhaps; nothing is written back.
    limits: see `Limits`. clock: wall-clock milliseconds. seed: of RAND, UUID and the like.
    durability: "checkpoint": a crash loses what came after the last checkpoint. "commit": each change is durable in the
    data_dir when its call returns, by a write-ahead log. "none": as "checkpoint", for callers that make none.

    Pushes, declarations and registrations are serialised; one-shot queries run beside them on snapshots. Errors are
    `penstock.PenstockError`s.
    """

    def __init__(
        self,
        data_dir: str | PathLike[str] | None = None,
        shards: int = 1,
        *,
        read_only: bool = False,
        limits: Limits | None = None,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        seed: int | None = None,
        durability: str = "checkpoint",
    ) -> None:
        commit = checked_durability(durability, writable=data_dir is not None and not read_only) == "commit"
        self._lock = threading.RLock()
        self._closed = False
        self._read_only = read_only
        self._directory: DataDirectory | None = None
        self._changes = ChangeLog()
        try:
            if data_dir is not None:
                self._directory = DataDirectory(data_dir, read_only=read_only)
            make = partial(_core, shards, limits or Limits(), clock, random.Random(seed))  # noqa: S311
            recovered = self._restore(make)
            if commit and self._directory is not None:
                self._changes.open(self._directory, recovered, self.limits.log_bytes)
                if self._directory.in_force() is None:
                    self.checkpoint()  # the stored graph's shards are settled from now on
        except BaseException:
            self._release(clean=False)
            raise
        self._idle = IdleSources()

    def _restore(self, make: Callable[[Path | None], EngineCore]) -> Recovered:
        """Make the parts in the state of the last checkpoint, then apply what was logged after it."""
        for attempt in range(_READ_ATTEMPTS):
            pointer = b"" if self._directory is None else self._directory.pointer()
            try:
                return self._restored(make)
            except StorageError:  # beside an engine that has replaced the checkpoint meanwhile, perhaps
                replaced = self._read_only and self._directory is not None and self._directory.pointer() != pointer
                if not replaced or attempt == _READ_ATTEMPTS - 1:
                    raise
        raise AssertionError

    def _restored(self, make: Callable[[Path | None], EngineCore]) -> Recovered:
        self._runtime, position = restored(self._directory, make)
        core = self._runtime.core
        self._texts = Texts(core.limits)
        self._one_shot = OneShot(core, self._runtime.streams, self._texts)
        self._parser = EventParser(core.dictionary, core.limits.max_event_bytes)
        if self._directory is None:
            return Recovered(0, 0)
        if not self._read_only:
            self._directory.running(core.attempt)
        return replay(self, self._runtime, self._directory.path, position)

    # ---- stored data
    def load(
        self,
        source: str | PathLike[str] | bytes,
        graph: str | None = None,
        format: str | None = None,  # noqa: A002 - a public name
        base: str | None = None,
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> LoadReport:
        """Load a file (RDF by its name or `format`; .gz by name) or bytes into the stored graph, as one snapshot.

        `graph` names the graph that takes what names none itself. `progress` is called now and then with the bytes read
        and the bytes in all. DataError at the first bad line: nothing is loaded then.
        """
        with self._lock:
            core = self._opened().core
        document = Document.read(core, source, graph, format, base, progress)  # others may push meanwhile
        logged = isinstance(source, bytes) and len(source) <= self.limits.log_bytes // 4
        if logged:
            given = {"graph": graph, "format": format, "base": base}
            with self._change(lambda: self._entry("load", given, source if isinstance(source, bytes) else b"")):
                return document.commit(core)
        with self._change() as runtime:
            report = document.commit(runtime.core)
            if self._changes.logs:
                self._changes.unlogged()
                self.checkpoint()
        return report

    def bulk(self) -> BulkIntake:
        """Return what takes in loads that are prepared elsewhere (`penstock load --spark`).

        StorageError where there is a write-ahead log.
        """
        if self._changes.logs:
            raise StorageError('prepared loads need durability="checkpoint"')
        return BulkIntake(self._opened().core, self._lock)

    def update(self, text: str, base: str | None = None) -> None:
        """Run `INSERT DATA {...}`, as one snapshot. The stored graph only grows: every other update is a QueryError."""
        statement = self._texts.parse(text, base)
        with self._change(lambda: self._entry("update", {"text": text, "base": base})) as runtime:
            insert(runtime.core, statement)

    def query(
        self, text: str, base: str | None = None, timeout_s: float | None = None, memory_mb: int | None = None
    ) -> Solutions | bool | rdflib.Graph:
        """Ask once, over the latest stable snapshot. Does not wait for pushes, and none waits for it.

        LimitError beyond the time or memory given (None = the engine's limits).
        """
        self._opened()
        return self._one_shot.query(text, base, timeout_s, memory_mb)

    # ---- streams
    def declare_stream(
        self,
        iri: str,
        batch_ms: int = 100,
        lateness_ms: int = 0,
        timing: Iterable[str] | str | None = None,
        absorb_into: str | None = None,
        retention_ms: int = 0,
        idle_timeout_ms: int = 10_000,
        max_ahead_ms: int = 86_400_000,
        slice_mb: int | None = None,
    ) -> None:
        """Declare a stream (see `Declaration`). Saying the same again changes nothing; otherwise is a DataError.

        Without `timing` every tuple is stored for ever: UnboundedStorageWarning.
        """
        declaration = Declaration.checked(
            iri,
            batch_ms=batch_ms,
            lateness_ms=lateness_ms,
            timing=timing,
            absorb_into=absorb_into,
            retention_ms=retention_ms,
            idle_timeout_ms=idle_timeout_ms,
            max_ahead_ms=max_ahead_ms,
            slice_mb=slice_mb,
        )
        with self._change(lambda: self._entry("declare", declaration.as_json())) as runtime:
            runtime.streams.declare(declaration)
        if (warning := warning_of(iri, {"timing": timing})) is not None:
            warnings.warn(warning, UnboundedStorageWarning, stacklevel=2)

    def drop_stream(self, iri: str) -> None:
        """Forget a stream that no query reads. What it absorbed stays stored."""
        with self._change(lambda: self._entry("drop", {"iri": iri})) as runtime:
            runtime.drop_stream(iri)

    def push(
        self,
        iri: str,
        data: EventData,
        timestamp: int,
        format: str = "nt",  # noqa: A002 - a public name
    ) -> PushReport:
        """Push one event: RDF text in a format, or rdflib triples, all at `timestamp` (ms).

        A late event is no error (see `late`); the report counts it. A bad one, or one too far ahead, becomes a dead
        letter and raises DataError.
        """
        event = [(timestamp, data if isinstance(data, (str, bytes)) else list(data))]
        converted = self._parser.convert(event, format)  # others may push meanwhile
        with self._change(lambda: pushed(self._wall(), iri, event, format)) as runtime:
            taken = runtime.take(self._stream(iri, event), *self._parser.parse(event, format, converted))
        if taken.letters:
            raise DataError(taken.letters[0].reason)
        return taken.report

    def push_events(
        self,
        iri: str,
        events: Iterable[tuple[int, EventData]],
        format: str = "nt",  # noqa: A002 - a public name
    ) -> PushReport:
        """Push many events, (timestamp, data) each. Bad ones become dead letters, the others are taken.

        LimitError: those before the ones in question are taken, in chunks of some thousand.
        """
        report = PushReport()
        for chunk in _chunks(events, _CHUNK):
            if self._changes.logs:
                chunk[:] = [(t, d if isinstance(d, (str, bytes)) else list(d)) for t, d in chunk]
            converted = self._parser.convert(chunk, format)
            with self._change(partial(self._pushed, iri, chunk, format)) as runtime:
                taken = runtime.take(self._stream(iri, chunk), *self._parser.parse(chunk, format, converted))
                report += taken.report
        return report

    def push_columns(
        self, iri: str, timestamps: ArrayLike, subjects: ArrayLike, predicates: ArrayLike, objects: ArrayLike
    ) -> None:
        """Push tuples by term ids (from `encode`), each an event of its own: int64 times, uint64 ids, equal lengths.

        DataError, and nothing is taken, where a column cannot be that. With a write-ahead log the tuples are logged as
        text; it cannot hold blank nodes.
        """
        if self._changes.logs:
            self._push_decoded(iri, timestamps, subjects, predicates, objects)
            return
        with self._lock:
            runtime = self._opened()
            stream = runtime.streams.get(iri)
            if not runtime.take_columns(stream, timestamps, subjects, predicates, objects):
                times = as_column(timestamps, np.int64)
                s, p, o = (as_column(column, np.uint64) for column in (subjects, predicates, objects))
                native.Stream.check(runtime.core.dictionary, times, s, p, o, MAX_TIME_MS)
                runtime.take(stream, Events(times, None, s, p, o, _Tuples(self, s, p, o)), ())
        self._deliver()

    def advance(self, iri: str | None, timestamp: int, skip: Skip = False) -> None:
        """No tuple with τ ≤ `timestamp` will come on the stream (None: on any stream that users push to).

        Fires what becomes due. `skip=True` jumps over it; `skip="leaps"` jumps over it for the queries that would fire
        more than `max_catch_up` instants, which is a LimitError otherwise. Each query's `gaps` records what was left
        out.
        """
        until = checked_time(timestamp)
        given = {"iri": iri, "timestamp": until, "skip": skip}
        with self._change(lambda: self._entry("advance", given)) as runtime:
            runtime.advance(iri, until, skip=skip)

    def advance_idle(self) -> list[str]:
        """Advance input streams that were silent for their `idle_timeout_ms`, so that they hold back no query.

        `penstock serve` calls this several times a second; other users advance streams themselves. A stream advances to
        the highest watermark of those read together with it, or with the wall clock where its events follow that. A
        query that would fire more than `max_catch_up` instants jumps over them, and its `gaps` records that. Returns
        the streams that were advanced.
        """
        with self._lock:
            runtime = self._opened()
            looking = self._idle.look(list(runtime.streams), runtime.core.clock())
        moved: list[str] = []
        while True:
            with self._lock:
                idle = next(looking, None)
            if idle is None:
                return moved
            self.advance(idle[0].iri, idle[1], skip="leaps")
            moved.append(idle[0].iri)

    def late(self, iri: str) -> list[LateEvent]:
        """Take the stream's late events, oldest first: they changed nothing."""
        with self._lock:
            return self._runtime.streams.get(iri).late.take()

    def dead_letters(self) -> list[DeadLetter]:
        """Take what could not be used, with reasons, oldest first."""
        with self._lock:
            return self._runtime.dead_letters.take()

    @property
    def streams(self) -> Mapping[str, Declaration]:
        """Declarations of all streams by IRI, derived ones included."""
        with self._lock:
            return MappingProxyType({stream.iri: stream.declaration for stream in self._runtime.streams})

    # ---- standing queries
    def register(self, text: str, name: str | None = None, base: str | None = None) -> Query:
        """Register a standing query; QueryError with line and column where it cannot be one.

        `name` takes the place of the text's own. `base` is what relative IRIs and bare names are read against.
        """
        with planning(self.limits, text):
            statement = self._texts.parse(text, base)
            given = {"text": text, "name": name, "base": base}
            with self._change(lambda: self._entry("register", given)) as runtime:
                return self._handle(runtime.registry.register(statement, name, base))

    @property
    def queries(self) -> Mapping[str, Query]:
        """Standing queries by name."""
        with self._lock:
            return {name: self._handle(member) for name, member in self._runtime.registry.members.items()}

    def explain(self, query: str | Query, base: str | None = None) -> str:
        """Return the plan: operators, estimates, and what the last run really did. Nothing is registered or run."""
        text, base = (query.text, query.base) if isinstance(query, Query) else (query, base)
        with planning(self.limits, text):
            statement = self._texts.parse(text, base)
            with self._lock:
                return explain(self._opened(), self._one_shot, statement, base)

    # ---- terms
    def encode(self, terms: Iterable[RdflibTerm]) -> Ids:
        """Return the ids of rdflib terms, for `push_columns`. They stay valid as long as this data lives."""
        with self._lock:
            runtime = self._opened()
            ids = terms_of.encode(runtime.core.dictionary, terms)
            runtime.core.dictionary.keep(ids)
            return ids

    def decode(self, ids: ArrayLike) -> list[RdflibTerm | None]:
        """Return the rdflib terms of ids, None for 0; DataError for an id that names nothing."""
        dictionary = self._opened().core.dictionary
        wanted = as_column(ids, np.uint64)
        dictionary.check(wanted)
        return terms_of.decode(native.LocalTerms(dictionary), wanted)

    # ---- keeping
    def checkpoint(self) -> None:
        """Keep everything as of now in the data directory; an earlier checkpoint is replaced at once or not at all."""
        with self._lock:
            runtime = self._opened()
            if self._directory is None or self._read_only:
                raise StorageError("this engine has no data_dir of its own")
            runtime.progress(())  # a pass that was interrupted comes to its end first
            self._changes.save(runtime, self._directory)

    @property
    def limits(self) -> Limits:
        """The bounds that it was made with."""
        return self._runtime.core.limits

    def stats(self) -> dict[str, Any]:
        """Return numbers: of streams (with what to push again after a restart), queries, the stored graph, terms."""
        with self._lock:
            return engine_stats(self._opened()) | {"log": self._changes.stats()}

    def close(self) -> None:
        """Keep everything (where there is a data_dir), stop all queries, let go of files. Closing twice is no error."""
        with ExitStack() as unlocked, self._lock:
            if self._closed:
                return
            kept = False
            try:
                if self._directory is not None and not self._read_only:
                    self.checkpoint()
                kept = True
            finally:
                self._closed = True
                for member in self._runtime.end():
                    unlocked.callback(member.result_queue.end)  # it wakes users' code
                self._release(clean=kept)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- inside
    def _opened(self) -> Runtime:
        """The runtime of an engine that is open; whoever changes something holds the lock."""
        if self._closed:
            raise PenstockError("the engine is closed")
        return self._runtime

    def _change(self, entry: Callable[[], LogEntry] | None = None) -> _Change:
        """Return the frame of a change; `entry` is what the write-ahead log holds of it."""
        return _Change(self, entry)

    def _begin(self, entry: Callable[[], LogEntry] | None) -> int | None:
        """Take the lock and log a change. Returns the entry's number where there is one."""
        self._lock.acquire()
        try:
            self._opened()
            return self._changes.begin(entry) if self._changes.logs else None
        except BaseException:
            self._lock.release()
            raise

    def _end(self, number: int | None, error: BaseException | None) -> None:
        """Release the lock; where nothing failed wait until the change is durable, and deliver what has fired."""
        changes = self._changes
        try:
            if number is not None:
                if isinstance(error, PenstockError):
                    changes.refuse(number)
                elif changes.is_long():
                    self._shorten()
        finally:
            self._lock.release()
        if error is None:
            if number is not None:
                changes.wait(number)
            self._deliver()

    def _shorten(self) -> None:
        """Make the checkpoint that removes the log; where that fails the log goes on."""
        try:
            self.checkpoint()
        except StorageError as error:
            _log.warning("the write-ahead log grows: %s", error)

    def _entry(self, verb: str, arguments: dict[str, Any], data: bytes = b"") -> LogEntry:
        return LogEntry(verb, self._wall(), arguments, data)

    def _pushed(self, iri: str, chunk: Sequence[tuple[object, EventData]], syntax: str) -> LogEntry:
        return pushed(self._wall(), iri, chunk, syntax)

    def _wall(self) -> int:
        return self._runtime.core.clock()

    def _push_decoded(self, iri: str, timestamps: ArrayLike, *columns: ArrayLike) -> None:
        """Push tuples by their terms."""
        times = as_column(timestamps, np.int64)
        s, p, o = (as_column(column, np.uint64) for column in columns)
        native.Stream.check(self._opened().core.dictionary, times, s, p, o, MAX_TIME_MS)
        terms = [self.decode(column) for column in (s, p, o)]
        if any(isinstance(term, BNode) for column in terms for term in column):
            raise DataError("a write-ahead log holds no ids of blank nodes: push them as events, by their labels")
        self.push_events(iri, zip(times.tolist(), ([row] for row in zip(*terms, strict=True)), strict=True))

    def _stream(self, iri: str, events: Sequence[tuple[object, EventData]]) -> LiveStream:
        """The stream of a push; events for an unknown one are dead letters, and the caller's error."""
        try:
            return self._runtime.streams.get(iri)
        except UnknownStreamError as error:
            for timestamp, data in events:
                time_ms = timestamp if isinstance(timestamp, int) else None
                self._runtime.dead_letters.put(DeadLetter(iri, time_ms, str(error), original_bytes(data)))
            raise

    def _deliver(self) -> None:
        """Hand what has fired to subscribers, outside of the lock: they may call the engine."""
        if listeners := self._runtime.registry.listeners:
            for result_queue in list(listeners):
                result_queue.deliver()

    def _handle(self, member: Member) -> Query:
        if member.handle is None:
            member.handle = Query(member, WeakMethod(self._stop))
        return member.handle

    def _stop(self, member: Member) -> None:
        with self._lock:
            standing = self._opened().registry.members.get(member.name) is member
        if standing:
            with self._change(lambda: self._entry("stop", {"name": member.name})) as runtime:
                if runtime.registry.members.get(member.name) is member:
                    runtime.stop(member)

    def _release(self, *, clean: bool) -> None:
        self._changes.close()
        if self._directory is not None:
            self._directory.close(clean=clean)


def _core(
    shards: int,
    limits: Limits,
    clock: Callable[[], int],
    rng: Random,
    saved: Path | None,
) -> EngineCore:
    """The native parts: empty ones, or those of a checkpoint."""
    if not isinstance(shards, int) or not 1 <= shards <= limits.max_shards:
        raise DataError(f"shards must be an integer between 1 and {limits.max_shards}, not {shards!r}")
    dictionary = native.Dictionary()
    if saved is None:
        store = native.Store("", shards)  # memory of this process (ADR 13)
    else:
        dictionary.load(str(saved / "dictionary.bin"))
        store = native.Store.open(str(saved / "store"), "")
    return EngineCore(LocalGraph(store), dictionary, limits, clock, rng, text_functions.call)


class _Change:
    """A change of an engine: it is logged, then the caller's block applies it under the lock, then it is made durable
    and what has fired is delivered. A PenstockError of the block says that nothing has changed.
    """

    __slots__ = ("_engine", "_entry", "_number")

    def __init__(self, engine: Engine, entry: Callable[[], LogEntry] | None) -> None:
        self._engine = engine
        self._entry = entry
        self._number: int | None = None

    def __enter__(self) -> Runtime:
        self._number = self._engine._begin(self._entry)  # noqa: SLF001 - the engine's own frame
        return self._engine._runtime  # noqa: SLF001

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._engine._end(self._number, error)  # noqa: SLF001


class _Tuples(Sequence[bytes]):
    """The tuples of columns as their producer would have written them, for the outputs of what is refused."""

    def __init__(self, engine: Engine, *columns: Ids) -> None:
        self._engine = engine
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, row: Any) -> Any:
        triple = self._engine.decode([column[row] for column in self._columns])
        return original_bytes([tuple(triple)])


def _chunks(events: Iterable[tuple[int, EventData]], size: int) -> Iterator[list[tuple[int, EventData]]]:
    iterator = iter(events)
    while chunk := list(islice(iterator, size)):
        yield chunk
