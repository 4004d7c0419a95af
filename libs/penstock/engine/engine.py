"""`Engine`: the public interface of the embedded engine. Each method delegates to the module that implements it."""

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
from typing import TYPE_CHECKING, Any, Literal, Self
from weakref import WeakMethod, WeakValueDictionary, ref

import numpy as np
from rdflib import BNode

from penstock.core import _native as native
from penstock.engine.answers.delivery import as_they_occur, poll
from penstock.engine.checkpoint.data_directory import DataDirectory
from penstock.engine.checkpoint.durability import ChangeLog, checked_durability
from penstock.engine.checkpoint.engine_checkpoint import restored
from penstock.engine.checkpoint.log_entries import LogEntry, changed, pushed
from penstock.engine.checkpoint.recovery import Recovered, replay
from penstock.engine.engine_core import EngineCore
from penstock.engine.intake.arrival import PushReport, as_column
from penstock.engine.intake.bulk_intake import BulkIntake
from penstock.engine.intake.declaration import Declaration, warning_of
from penstock.engine.intake.events import EventParser, Events, checked_time, original_bytes
from penstock.engine.intake.graph_loading import Document, LoadReport
from penstock.engine.intake.idle_sources import IdleSources
from penstock.engine.intake.pushed_events import PushedEvents
from penstock.engine.intake.rejected_events import DeadLetter
from penstock.engine.limits import MAX_TIME_MS, Limits
from penstock.engine.oneshot.compiled_updates import CompiledUpdates
from penstock.engine.oneshot.explaining import explain
from penstock.engine.oneshot.generic_plans import GenericPlans
from penstock.engine.oneshot.local_documents import checked_directory
from penstock.engine.oneshot.one_shot import OneShot
from penstock.engine.oneshot.texts import Texts
from penstock.engine.oneshot.updating import UpdateRun, data_change
from penstock.engine.sets import set_changes
from penstock.engine.sets.query_set import QuerySet, SetOperations
from penstock.engine.sets.set_changes import MembersReport
from penstock.engine.sets.set_member import REPORTS, SetMember
from penstock.engine.sets.tables import as_table, table_bytes
from penstock.engine.standing.standing_query import Operations, Query
from penstock.engine.statistics import engine_stats
from penstock.engine.stored_graph import LocalGraph
from penstock.errors import (
    DataError,
    PenstockError,
    QueryError,
    StorageError,
    UnboundedStorageWarning,
    UnknownStreamError,
)
from penstock.mapping.encodings.registry_access import RegistryAccess
from penstock.query.budget import planning
from penstock.query.functions import text_functions
from penstock.query.ir import Update
from penstock.query.protocol_dataset import dataset_of, update_with
from penstock.query.resolve import as_query, as_update
from penstock.query.supported_updates import check_supported, is_data
from penstock.rdf import terms as terms_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
    from os import PathLike
    from pathlib import Path
    from random import Random

    import pyarrow as pa
    import rdflib
    from numpy.typing import ArrayLike

    from penstock.core._native import Ids
    from penstock.engine.answers.answer_values import Solutions
    from penstock.engine.answers.engine_queue import EngineQueue
    from penstock.engine.answers.result_blocks import Evaluation, Evaluations
    from penstock.engine.intake.events import EventData
    from penstock.engine.intake.graph_change import UpdateReport
    from penstock.engine.intake.rejected_events import LateEvent
    from penstock.engine.intake.streams import LiveStream
    from penstock.engine.runtime import Runtime, Skip
    from penstock.engine.standing.groups import Member
    from penstock.mapping.encodings.schema_registry import SchemaRegistry
    from penstock.query.prepared import BoundStanding, BoundUpdate
    from penstock.rdf.terms import RdflibTerm

_log = logging.getLogger("penstock.engine")
_READ_ATTEMPTS = 5  # attempts of a read-only engine to read a checkpoint, which another engine can replace meanwhile
_CATCH_UP_S = 0.1  # for how long a call continues to evaluate queries that began in the past
_CHUNK = 8_192  # number of events that `push_events` processes together: a limit refuses either all or none of them


class Engine:
    """Continuous SPARQL over streams and a stored graph, in this process.

    `data_dir`: the directory for checkpoints. If `data_dir` is None, all data are in memory only. `shards`: the number
    of shards of a new stored graph. `read_only`: whether the engine only reads `data_dir`. Such an engine can open
    `data_dir` while another engine uses it. `limits`: see `Limits`. `clock` returns the wall-clock time in ms. `seed`:
    the seed of RAND, UUID and similar functions. If `seed` is None, the seed is random.

    `durability`: with "checkpoint", a crash loses the changes after the last checkpoint. With "commit", a write-ahead
    log makes each change durable before the call that makes the change returns. "none" has the same effect as
    "checkpoint", and is meant for callers that write no checkpoints.

    `load_directory`: the directory of the files that LOAD is allowed to read. If `load_directory` is None, LOAD is an
    error. `schema_registry`: the registry with the schemas of messages in Avro and Protobuf, as a URL or as
    `RegistryAccess`.

    Any thread can call the methods. Changes are applied one at a time. One-shot queries run concurrently, on snapshots.
    All errors are subclasses of `penstock.PenstockError`.
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
        load_directory: str | PathLike[str] | None = None,
        schema_registry: str | RegistryAccess | None = None,
    ) -> None:
        self._registry = None if schema_registry is None else _registry(schema_registry)
        self._load_directory = checked_directory(load_directory)
        commit = checked_durability(durability, writable=data_dir is not None and not read_only) == "commit"
        self._lock = threading.RLock()
        self._closed = False
        self._read_only = read_only
        self._directory: DataDirectory | None = None
        self._changes = ChangeLog()
        self._idle = IdleSources()
        self._operations = Operations(WeakMethod(self._stop), WeakMethod(self._catch_up))
        self._set_handles: WeakValueDictionary[SetMember, QuerySet] = WeakValueDictionary()
        try:
            if data_dir is not None:
                self._directory = DataDirectory(data_dir, read_only=read_only)
            make = partial(_core, shards, limits or Limits(), clock, random.Random(seed))  # noqa: S311
            recovered = self._restore(make)
            if commit and self._directory is not None:
                self._changes.open(self._directory, recovered, self.limits.log_bytes)
                if self._directory.in_force() is None:
                    self.checkpoint()  # makes the number of shards durable
        except BaseException:
            self._release(clean=False)
            raise

    def _restore(self, make: Callable[[Path | None], EngineCore]) -> Recovered:
        """Create the parts of the engine from the last checkpoint, then replay the write-ahead log."""
        for attempt in range(_READ_ATTEMPTS):
            pointer = b"" if self._directory is None else self._directory.pointer()
            try:
                return self._restored(make)
            except StorageError:  # another engine has possibly replaced the checkpoint meanwhile
                replaced = self._read_only and self._directory is not None and self._directory.pointer() != pointer
                if not replaced or attempt == _READ_ATTEMPTS - 1:
                    raise
        raise AssertionError

    def _restored(self, make: Callable[[Path | None], EngineCore]) -> Recovered:
        self._runtime, position = restored(self._directory, make)
        core = self._runtime.core
        self._texts = Texts(core.limits)
        generic = GenericPlans(self._runtime.streams, core.limits.plan_cache)
        self._one_shot = OneShot(core, self._runtime.streams, self._texts, generic)
        self._compiled = CompiledUpdates(core, generic)
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
        mapping: dict[str, Any] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> LoadReport:
        """Load an RDF file or bytes into the stored graph, as one snapshot.

        If `format` is not given, the name of the file determines the format. Bytes require `format`. Files named *.gz
        are decompressed. `graph` is the IRI of the graph for statements that name no graph. The engine calls `progress`
        regularly, with two arguments: the number of bytes that were read so far, and the total number of bytes.

        With `mapping`, the source is data in "json", "ndjson", "csv" or "parquet". `mapping` has the settings of a
        stream's mapping (`declare_stream`). The setting `time` has no effect. Records without triples are skipped. The
        source can be a folder with the files that an RML mapping names.

        DataError if the document is invalid. The error contains the line, if the line is known. After a DataError,
        nothing is loaded. After a StorageError, the document can be visible without being durable. The engine then
        refuses changes until a checkpoint succeeds.
        """
        with self._lock:
            core = self._opened().core
        # without the lock, so that other threads can push
        document = Document.read(core, source, graph, format, base, progress, mapping=mapping)
        logged = isinstance(source, bytes) and len(source) <= self.limits.log_bytes // 4
        if logged:
            given = {"graph": graph, "format": format, "base": base, "mapping": mapping}
            with self._change(lambda: self._entry("load", given, source if isinstance(source, bytes) else b"")):
                return document.commit(core)
        with self._change() as runtime:
            report = document.commit(runtime.core)
            if self._changes.logs:
                self._changes.unlogged()
                self.checkpoint()
        return report

    def bulk(self) -> BulkIntake:
        """Return the interface through which `penstock load --spark` stores a prepared load. StorageError if there is a
        write-ahead log.
        """
        if self._changes.logs:
            raise StorageError('prepared loads need durability="checkpoint"')
        return BulkIntake(self._opened().core, self._lock)

    def update(
        self,
        text: str,
        base: str | None = None,
        *,
        default_graphs: Iterable[str] = (),
        named_graphs: Iterable[str] = (),
    ) -> UpdateReport:
        """Execute a SPARQL Update as one snapshot. Each operation sees the changes of the earlier operations.

        `default_graphs`, `named_graphs`: IRIs of graphs, which the patterns read. The effect is the same as if every
        operation had USING and USING NAMED for these graphs. QueryError if such graphs are given and an operation has
        its own USING or WITH.

        `LOAD` reads a file below `load_directory`. QueryError if the text is invalid, or if an operation fails.
        LimitError if a pattern exceeds the engine's limits. After these two errors, nothing has changed. After a
        StorageError, the update can be visible without being durable. The engine then refuses changes until a
        checkpoint succeeds.
        """
        dataset = dataset_of(default_graphs, named_graphs)
        if dataset is None:
            try:
                report = self._prepared_update(text, base)
            except QueryError:  # nothing has changed; the error has a position in another text
                report = None
            if report is not None:
                return report
        return self._update(update_with(as_update(self._texts.parse(text, base)), dataset), base)

    def _prepared_update(self, text: str, base: str | None) -> UpdateReport | None:
        """Execute the update of a prepared text. The result is None if the text is not prepared."""
        compiled = None if base is not None or self._changes.logs else self._compiled
        if compiled is not None:
            number = self._begin(None)
            try:
                report = compiled.execute(text)
            except BaseException as error:
                self._end(number, error)
                raise
            self._end(number, None)
            if report is not None:
                return report
        bound = self._texts.bound_update(text, base)
        if bound is None:
            return None
        report = self._update(bound, base)
        if compiled is not None:
            with self._lock:
                compiled.add(bound)
        return report

    def _update(self, update: Update | BoundUpdate, base: str | None) -> UpdateReport:
        if self._load_directory is None and isinstance(update, Update):
            check_supported(update)
        if is_data(update):
            with self._change(lambda: self._entry("update", {"text": update.text, "base": base})) as runtime:
                return data_change(runtime.core.dictionary, update).commit(runtime.core)
        run = UpdateRun(self._opened().core, self._one_shot, update, load_directory=self._load_directory)
        with self._change(lambda: self._effect(run)) as runtime:
            change = run.evaluate() if run.change is None else run.change
            report = change.commit(runtime.core)
            if self._changes.logs and not run.logged:
                self._changes.unlogged()
                self.checkpoint()
        return report

    def query(
        self,
        text: str,
        base: str | None = None,
        timeout_s: float | None = None,
        memory_mb: int | None = None,
        *,
        default_graphs: Iterable[str] = (),
        named_graphs: Iterable[str] = (),
    ) -> Solutions | bool | rdflib.Graph:
        """Execute a one-shot query on the latest snapshot. Queries and pushes do not block each other.

        `default_graphs`, `named_graphs`: IRIs of the graphs of the dataset. These graphs replace the graphs in FROM and
        FROM NAMED. QueryError if the text is invalid. LimitError if the query exceeds `timeout_s` seconds or
        `memory_mb` MiB (None: the engine's limits).
        """
        self._opened()
        return self._one_shot.query(text, base, timeout_s, memory_mb, dataset_of(default_graphs, named_graphs))

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
        graph_history: bool = False,
        mapping: dict[str, Any] | None = None,
    ) -> None:
        """Declare a stream. `Declaration` describes the settings. A repeated declaration has no effect. DataError if
        the declaration is invalid or conflicts with an earlier declaration.

        Without `timing`, the engine stores every tuple permanently, and issues UnboundedStorageWarning.
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
            graph_history=graph_history,
            mapping=mapping,
        )
        with self._change(lambda: self._entry("declare", declaration.as_json())) as runtime:
            runtime.streams.declare(declaration)
        if (warning := warning_of(iri, {"timing": timing})) is not None:
            warnings.warn(warning, UnboundedStorageWarning, stacklevel=2)

    def drop_stream(self, iri: str) -> None:
        """Drop a stream. The triples that the stream has absorbed remain in the stored graph. DataError if a query
        reads or publishes the stream.
        """
        with self._change(lambda: self._entry("drop", {"iri": iri})) as runtime:
            runtime.drop_stream(iri)

    def push(
        self,
        iri: str,
        data: EventData,
        timestamp: int | None = None,
        format: str | None = None,  # noqa: A002 - a public name
    ) -> PushReport:
        """Push one event: RDF text in `format`, or rdflib triples. All triples of the event have the time `timestamp`,
        in ms. An event in "rdf-patch" can also remove triples from the stored graph.

        If the stream has a mapping, `data` can be a message for the mapping. In this case, `format` is None, "json",
        "ndjson", "csv", "avro" or "protobuf". A message can become several events. The `timestamp` of a message is the
        time of the message, and can be None if the mapping has a rule for event times. If the stream has no mapping,
        `format` None stands for N-Triples.

        A late event is not an error: the report counts the event, and the method `late` returns the event. An event
        that is invalid or too far ahead becomes a dead letter, and `push` raises DataError. UnavailableError if the
        event needs a schema and the registry is unavailable. In this case, the caller must push the event again later.
        """
        event = [(timestamp, data if isinstance(data, (str, bytes)) else list(data))]
        ready = self._read(iri, event, format)  # without the lock, so that other threads can push
        with self._change(lambda: self._pushed(iri, event, ready)) as runtime:
            stream = self._stream(iri, event)
            ready.check(stream.mapping)
            taken = runtime.take(stream, *ready.parse())
        if taken.letters:
            raise DataError(taken.letters[0].reason)
        return taken.report

    def push_events(
        self,
        iri: str,
        events: Iterable[tuple[int | None, EventData]],
        format: str | None = None,  # noqa: A002 - a public name
    ) -> PushReport:
        """Push many events. Each event is a pair (timestamp, data) (see `push`). Invalid events become dead letters.
        The other events are processed.

        The engine processes the events in chunks of several thousand. If a chunk fails with LimitError, the events of
        the earlier chunks stay accepted.
        """
        report = PushReport()
        for chunk in _chunks(events, _CHUNK):
            if self._changes.logs:
                chunk[:] = [(t, d if isinstance(d, (str, bytes)) else list(d)) for t, d in chunk]
            ready = self._read(iri, chunk, format)
            with self._change(partial(self._pushed, iri, chunk, ready)) as runtime:
                stream = self._stream(iri, chunk)
                ready.check(stream.mapping)
                taken = runtime.take(stream, *ready.parse())
                report += taken.report
        return report

    def push_columns(
        self, iri: str, timestamps: ArrayLike, subjects: ArrayLike, predicates: ArrayLike, objects: ArrayLike
    ) -> None:
        """Push tuples of term ids (from `encode`). Each tuple is an event. The arguments are columns of equal length:
        the timestamps in ms (int64), and the ids (uint64).

        DataError if a column is invalid. In this case, nothing is accepted. With durability="commit", ids of blank
        nodes also raise DataError, because the write-ahead log contains the tuples as text.
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
        """Advance the watermark of a stream to `timestamp` (ms). From now on, events at or before this time are late.
        If `iri` is None, advance all input streams, that is, all streams that are not derived.

        The call evaluates the instants that become due. With `skip=True`, the call skips these instants instead. With
        `skip="leaps"`, the call skips only the instants of queries for which more than `max_catch_up` instants become
        due. Without `skip`, such a query causes LimitError. The attribute `gaps` of each query contains the skipped
        instants.
        """
        until = checked_time(timestamp)
        given = {"iri": iri, "timestamp": until, "skip": skip}
        with self._change(lambda: self._entry("advance", given)) as runtime:
            runtime.advance(iri, until, skip=skip)

    def advance_idle(self) -> list[str]:
        """Advance idle input streams, so that these streams do not delay queries. A stream is idle if there has been no
        event and no `advance` for at least the stream's `idle_timeout_ms`. Returns the IRIs of the streams that have
        advanced.

        `penstock serve` calls this method several times a second. An idle stream advances to the highest watermark
        among its companions: the input streams that at least one query reads together with the idle stream. If the
        event time of the idle stream follows the wall clock, the stream advances at least to the current time minus
        `idle_timeout_ms`. A query with more than `max_catch_up` due instants skips these instants. The `gaps` of the
        query contain the skipped instants.
        """
        with self._lock:
            runtime = self._opened()
            looking = self._idle.look(list(runtime.streams), runtime.schedule.readers, runtime.core.clock())
        moved: list[str] = []
        while True:
            with self._lock:
                idle = next(looking, None)
            if idle is None:
                return moved
            self.advance(idle[0].iri, idle[1], skip="leaps")
            moved.append(idle[0].iri)

    def late(self, iri: str) -> list[LateEvent]:
        """Remove and return the late events of a stream, the oldest first. The engine retains at most `max_refused`
        late events of a stream (`Limits`). Late events affect no answer.
        """
        with self._lock:
            return self._runtime.streams.get(iri).late.take()

    def dead_letters(self) -> list[DeadLetter]:
        """Remove and return the dead letters, the oldest first. The engine retains at most `max_refused` dead letters
        (`Limits`).
        """
        with self._lock:
            return self._runtime.dead_letters.take()

    @property
    def streams(self) -> Mapping[str, Declaration]:
        """The declarations of all streams, including derived streams, by IRI."""
        with self._lock:
            return MappingProxyType({stream.iri: stream.declaration for stream in self._runtime.streams})

    # ---- standing queries
    def register(
        self,
        text: str,
        name: str | None = None,
        base: str | None = None,
        *,
        changes: bool = False,
        replace: bool = False,
    ) -> Query:
        """Register a standing query. QueryError, with line and column, if the query is invalid.

        `name` overrides the name in the text. `base` is the IRI against which relative IRIs and bare names are
        resolved. With `changes`, each evaluation also has `added` and `removed`: the differences from the previous
        answer. `changes` causes QueryError for a query that has ISTREAM, DSTREAM or REPORT NONEMPTY, or that publishes
        a stream.

        A query with FROM BEGINNING, or with STARTING AT in the past, begins in the past. The query's first instant is
        the first instant for which the retention of the query's streams keeps everything (docs/semantics.md §3). Such a
        query catches up in steps. Each change of the engine continues the catch-up for at most 0.1 s. `poll` and
        `subscribe` of the query continue the catch-up until it is complete. A query in the past with count windows
        needs all tuples since the first progress of the query's streams. QueryError if some of these tuples are
        released.

        With `replace`, the new text replaces the text of an existing query with this name (docs/semantics.md §3). The
        earlier text answers all instants that are due. The new text answers the later instants. The `Query` object
        stays the same, with its subscriptions and pending evaluations. A repeated registration has no effect.

        A replacement raises these errors. QueryError if the name is the name of a query set, if one of the texts
        publishes a stream, or if the new text has FROM BEGINNING. UnavailableError while the earlier query catches up
        with its past. LimitError if more instants become due at once than `max_catch_up` or `max_unpolled` allow. (Many
        instants become due if the earlier text has waited for a stream that the new text does not read.) After an
        error, the earlier text stays.
        """
        bound = None if replace else self._texts.bound_standing(text, base)
        if bound is not None:
            return self._register_bound(bound, name, base, changes=changes)
        with planning(self.limits, text):
            statement = self._texts.parse(text, base)
            given: dict[str, Any] = {"text": text, "name": name, "base": base, "changes": changes}
            if replace:
                given |= {"name": name or as_query(statement).name, "replace": True}
            with self._change(lambda: self._entry("register", given)) as runtime:
                return self._handle(runtime.register(statement, name, base, changes=changes, replaces=replace))

    def _register_bound(self, bound: BoundStanding, name: str | None, base: str | None, *, changes: bool) -> Query:
        """Register a standing query whose text is not parsed yet. The call parses the text only if there is no group
        for the text, or if the text has an error.
        """
        given = {"text": bound.text, "name": name, "base": base, "changes": changes}
        with self._change(lambda: self._entry("register", given)) as runtime:
            member = runtime.prepared.register(bound, name, base, changes=changes)
            if member is None:
                with planning(self.limits, bound.text):
                    statement = self._texts.parse(bound.text, base)
                    member = runtime.register(statement, name, base, changes=changes, replaces=False)
                runtime.prepared.registered(bound, member)
            return self._handle(member)

    @property
    def queries(self) -> Mapping[str, Query]:
        """The standing queries, by name. Query sets are not included."""
        with self._lock:
            members = self._runtime.registry.members.items()
            return {name: self._handle(member) for name, member in members if not isinstance(member, SetMember)}

    def register_set(
        self,
        text: str,
        parameters: Any = None,
        *,
        report: Literal["every", "nonempty", "change"] = "change",
        key: str | Sequence[str] | None = None,
        name: str | None = None,
        base: str | None = None,
    ) -> QuerySet:
        """Register a query set: a text with parameters, `REGISTER QUERY name (?parameter …) AS …`. The text is
        evaluated for each row of a table. The answers are the same as the answers of one query per row, with the row's
        values in place of the parameters.

        `parameters` contains the first members (see `QuerySet.add`). `report` says which members report at an instant.
        With "every", all members report. With "nonempty", the members with rows report. With "change", a member reports
        if the member's answer differs from the last answer that the member has reported. For a new member, this last
        answer is the empty answer. `key` contains the name or names of the columns that identify a member. If `key` is
        None, the columns of the parameters identify a member.

        QueryError, with line and column, in three cases: the text is invalid, a parameter has a position where neither
        a vertex nor a value is possible, or `report` is "change" and the text has ISTREAM or DSTREAM. DataError if
        `key` is invalid, or if a column is missing. After these errors, nothing is registered. The members are added
        after the registration. If `QuerySet.add` raises an error for the members, the set stays registered.
        """
        if report not in REPORTS:
            raise DataError(f'report is "every", "nonempty" or "change", not {report!r}')
        with planning(self.limits, text):
            statement = self._texts.parse(text, base)
            columns = None if key is None else [key] if isinstance(key, str) else list(key)
            declared = [variable.name for variable in as_query(statement).parameters]
            table = (
                None if parameters is None else as_table(parameters, list(dict.fromkeys([*declared, *(columns or ())])))
            )
            given = {"text": text, "name": name, "base": base, "key": columns, "report": report}
            with self._change(lambda: self._entry("register_set", given)) as runtime:
                member = runtime.registry.register_set(statement, name, base, columns, report=report)
        if table is not None:
            self._add_members(member, table)
        return self._set_handle(member)

    @property
    def query_sets(self) -> Mapping[str, QuerySet]:
        """The query sets, by name."""
        with self._lock:
            members = self._runtime.registry.members.values()
            return {member.name: self._set_handle(member) for member in members if isinstance(member, SetMember)}

    # ---- evaluations of all queries
    def poll(self, limit: int | None = None) -> Evaluations:
        """Remove and return pending evaluations of all standing queries, at most `limit` of them (None: all). The cost
        of a call depends on the number of evaluations, and not on the number of queries.

        The evaluations are in the order of their instants. At the same instant, the evaluations of a group are
        together, in the order in which the group's queries were registered. Either this method or `Query.poll` returns
        an evaluation. Each evaluation is returned only once. A query with a subscriber of its own has no pending
        evaluations. Steps of query sets are not returned here.

        If a query stops after the first call of this method, the query's pending evaluations remain pending here until
        the engine is closed. If a query stops before the first call, the query's evaluations are returned only if the
        program still refers to the `Query` object. Queries that began in the past catch up, as in `Query.poll`. After
        `close`, the call returns the evaluations that were pending.
        """
        return poll(self._results.take, limit, self._catch_up)

    def subscribe(self, callback: Callable[[Evaluation], object]) -> Callable[[], None]:
        """Call `callback` with every pending and future evaluation, one at a time and in the order of `poll`. Queries
        that have a subscriber of their own are left out. This method returns a function that ends the subscription.
        While there is a subscriber, `poll` returns nothing. See `Query.subscribe`.
        """
        ended = self._results.subscribe(callback)
        while self._results.subscribed and self._catch_up():
            pass
        return ended

    async def __aiter__(self) -> AsyncIterator[Evaluation]:
        """Yield each evaluation of all standing queries when it occurs, in the order of `poll`. The iteration ends when
        the engine is closed and all evaluations are consumed.

        PenstockError if there is a subscriber, which receives the evaluations instead.
        """
        if self._results.subscribed:
            raise PenstockError("the evaluations go to the engine's subscriber: nothing is left to iterate over")
        async for evaluation in as_they_occur(self._results, self.poll):
            yield evaluation

    @property
    def _results(self) -> EngineQueue:
        return self._runtime.registry.results

    def explain(self, query: str | Query | QuerySet, base: str | None = None) -> str:
        """Return the plan of a query as text. The text contains the operators, estimates from current counts, and
        measurements of earlier executions. The call neither registers nor executes the query.

        The numbers of rows come from the last execution. The times come from the last timed execution. If the last
        execution was not timed, the text contains the instant of the last timed execution. The engine times the first
        execution of a plan, every 64th execution, and the next execution after a call of this method. For a one-shot
        query, the engine times every execution.
        """
        name, text = (None, query) if isinstance(query, str) else (query.name, query.text)
        base = base if isinstance(query, str) else query.base
        with planning(self.limits, text):
            statement = self._texts.parse(text, base)
            with self._lock:
                return explain(self._opened(), self._one_shot, statement, base, name)

    # ---- terms
    def encode(self, terms: Iterable[RdflibTerm]) -> Ids:
        """Return the ids of rdflib terms, for `push_columns`. The engine and the engine's checkpoints retain these
        terms permanently, so the ids stay valid.
        """
        with self._lock:
            runtime = self._opened()
            ids = terms_of.encode(runtime.core.dictionary, terms)
            runtime.core.dictionary.keep(ids)
            return ids

    def decode(self, ids: ArrayLike) -> list[RdflibTerm | None]:
        """Return the rdflib term of each id. The id 0 becomes None. DataError for an unknown id."""
        dictionary = self._opened().core.dictionary
        column = as_column(ids, np.uint64)
        dictionary.check(column)
        return terms_of.decode(native.LocalTerms(dictionary), column)

    # ---- checkpoints
    def checkpoint(self) -> None:
        """Write a checkpoint to the data directory. The new checkpoint replaces the previous one atomically.
        StorageError if the checkpoint cannot be written, or if the engine has no writable data_dir.
        """
        with self._lock:
            runtime = self._opened()
            if self._directory is None or self._read_only:
                raise StorageError("this engine has no writable data_dir")
            runtime.progress(())  # first complete evaluations that were interrupted
            self._changes.save(runtime, self._directory)

    @property
    def limits(self) -> Limits:
        """The engine's limits."""
        return self._runtime.core.limits

    def stats(self) -> dict[str, Any]:
        """Return statistics of the streams, queries, stored graph, terms and write-ahead log. The statistics of a
        stream contain the position `push_again`. After a restart, a producer must push the stream's events from this
        position on again.
        """
        with self._lock:
            return engine_stats(self._opened()) | {"log": self._changes.stats()}

    def close(self) -> None:
        """Write a checkpoint if there is a writable data_dir, stop all queries and release all files. A repeated call
        of `close` has no effect.
        """
        with ExitStack() as unlocked, self._lock:
            if self._closed:
                return
            retained = False
            try:
                if self._directory is not None and not self._read_only:
                    self.checkpoint()
                retained = True
            finally:
                self._closed = True
                unlocked.callback(self._results.end)  # the last callback runs first; callbacks run user code
                for member in reversed(self._runtime.end()):
                    unlocked.callback(member.result_queue.end)
                self._release(clean=retained)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- inside
    def _opened(self) -> Runtime:
        """Return the runtime. PenstockError if the engine is closed. Callers that change the runtime must hold the
        lock.
        """
        if self._closed:
            raise PenstockError("the engine is closed")
        return self._runtime

    def _change(self, entry: Callable[[], LogEntry | None] | None = None) -> _Change:
        """Return the context manager of a change. `entry` creates the change's entry in the write-ahead log. If `entry`
        is None, the change is not logged.
        """
        return _Change(self, entry)

    def _begin(self, entry: Callable[[], LogEntry | None] | None) -> int | None:
        """Acquire the lock and log a change. Returns the number of the log entry, or None if the change is not
        logged.
        """
        self._lock.acquire()
        try:
            self._opened()
            return self._changes.begin(entry) if self._changes.logs else None
        except BaseException:
            self._lock.release()
            raise

    def _end(self, number: int | None, error: BaseException | None) -> None:
        """Release the lock. If the change has succeeded, also wait until the change is durable, and deliver the new
        evaluations.
        """
        changes = self._changes
        try:
            if error is None and self._runtime.history:
                self._runtime.catch_up(_CATCH_UP_S)
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
        """Write a checkpoint. The checkpoint replaces the log. If the checkpoint fails, the log continues to grow."""
        try:
            self.checkpoint()
        except StorageError as error:
            _log.warning("the write-ahead log grows: %s", error)

    def _entry(self, verb: str, arguments: dict[str, Any], data: bytes = b"") -> LogEntry:
        return LogEntry(verb, self._wall(), arguments, data)

    def _effect(self, run: UpdateRun) -> LogEntry | None:
        """Evaluate an update, and return the log entry for the update's change. The entry contains the quads and not
        the text, because a second evaluation of the text can give other quads. The result is None if the change cannot
        be logged. In this case, only a checkpoint can make the change durable.
        """
        if not run.evaluate():
            run.logged = True
            return None
        data = run.as_nquads(self.limits.log_bytes // 4)
        run.logged = data is not None
        return None if data is None else changed(self._wall(), *data)

    def _pushed(self, iri: str, chunk: Sequence[tuple[object, EventData]], ready: PushedEvents) -> LogEntry:
        return pushed(self._wall(), iri, ready.logged(chunk), ready.syntax)

    def _read(self, iri: str, events: Sequence[tuple[object, EventData]], syntax: str | None) -> PushedEvents:
        with self._lock:
            stream = self._opened().streams.find(iri)
        mapping = None if stream is None else stream.mapping
        return PushedEvents(self._parser, mapping, events, syntax, self._registry)

    def _wall(self) -> int:
        return self._runtime.core.clock()

    def _push_decoded(self, iri: str, timestamps: ArrayLike, *columns: ArrayLike) -> None:
        """Decode tuples of term ids to rdflib terms, and push them. The write-ahead log then contains the tuples as
        text.
        """
        times = as_column(timestamps, np.int64)
        s, p, o = (as_column(column, np.uint64) for column in columns)
        native.Stream.check(self._opened().core.dictionary, times, s, p, o, MAX_TIME_MS)
        terms = [self.decode(column) for column in (s, p, o)]
        if any(isinstance(term, BNode) for column in terms for term in column):
            raise DataError("a write-ahead log cannot contain ids of blank nodes: push events with blank node labels")
        self.push_events(iri, zip(times.tolist(), ([row] for row in zip(*terms, strict=True)), strict=True))

    def _stream(self, iri: str, events: Sequence[tuple[object, EventData]]) -> LiveStream:
        """Return the stream of a push. If the stream is unknown, the events become dead letters, and the call raises
        UnknownStreamError.
        """
        try:
            return self._runtime.streams.get(iri)
        except UnknownStreamError as error:
            for timestamp, data in events:
                time_ms = timestamp if isinstance(timestamp, int) else None
                self._runtime.dead_letters.put(DeadLetter(iri, time_ms, str(error), original_bytes(data)))
            raise

    def _deliver(self) -> None:
        """Deliver new evaluations to subscribers. The caller must not hold the lock, because callbacks can call the
        engine.
        """
        if queues := self._runtime.registry.listeners.queues:
            for queue in list(queues):
                queue.deliver()

    def _handle(self, member: Member) -> Query:
        with self._lock:
            handle = None if member.handle is None else member.handle()
            if handle is None:
                handle = Query(member, self._operations)
                member.handle = ref(handle)
            return handle

    def _set_handle(self, member: SetMember) -> QuerySet:
        handle = self._set_handles.get(member)
        if handle is None:
            add, remove, stop = self._add_members, self._remove_members, self._stop
            operations = SetOperations(WeakMethod(add), WeakMethod(remove), WeakMethod(stop), self._lock)
            handle = self._set_handles[member] = QuerySet(member, operations)
        return handle

    def _add_members(self, member: SetMember, table: pa.Table) -> MembersReport:
        report = MembersReport()
        for chunk in set_changes.chunks(table):
            with self._change(partial(self._members_entry, "add_members", member, chunk)) as runtime:
                self._check_standing(member)
                report += set_changes.add(runtime, member, chunk)
        return report

    def _remove_members(self, member: SetMember, table: pa.Table) -> int:
        removed = 0
        for chunk in set_changes.chunks(table):
            with self._change(partial(self._members_entry, "remove_members", member, chunk)) as runtime:
                self._check_standing(member)
                removed += set_changes.remove(runtime, member, chunk)
        return removed

    def _catch_up(self, member: Member | None = None) -> bool:
        """Evaluate instants of a query that began in the past. If `member` is None, evaluate instants of all such
        queries. Returns whether there was an evaluation.
        """
        with self._lock:
            history, group = self._runtime.history, None if member is None else member.group
            if self._closed or not history or (group is not None and not history.is_behind(group)):
                return False
            evaluated = self._runtime.catch_up(_CATCH_UP_S, group)
        self._deliver()
        return evaluated

    def _members_entry(self, verb: str, member: SetMember, chunk: pa.Table) -> LogEntry:
        return self._entry(verb, {"name": member.name}, table_bytes(chunk))

    def _check_standing(self, member: SetMember) -> None:
        if self._runtime.registry.members.get(member.name) is not member:
            raise PenstockError(f"the query set {member.name} is stopped")

    def _stop(self, member: Member) -> None:
        with self._lock:
            standing = self._opened().registry.members.get(member.name) is member
        if standing:
            with self._change(lambda: self._entry("stop", {"name": member.name})) as runtime:
                if runtime.registry.members.get(member.name) is member:
                    runtime.stop(member)

    def _release(self, *, clean: bool) -> None:
        self._changes.close()
        if self._registry is not None:
            self._registry.close()
        if self._directory is not None:
            self._directory.close(clean=clean)


def _registry(given: str | RegistryAccess) -> SchemaRegistry:
    from penstock.mapping.encodings.schema_registry import SchemaRegistry  # noqa: PLC0415 - its libraries take 0.3 s

    return SchemaRegistry(RegistryAccess.of(given))


def _core(
    shards: int,
    limits: Limits,
    clock: Callable[[], int],
    rng: Random,
    saved: Path | None,
) -> EngineCore:
    """Create the stored graph and the dictionary, empty or from the checkpoint in folder `saved`."""
    if not isinstance(shards, int) or not 1 <= shards <= limits.max_shards:
        raise DataError(f"shards must be an integer between 1 and {limits.max_shards}, not {shards!r}")
    dictionary = native.Dictionary()
    if saved is None:
        store = native.Store("", shards)  # in this process's memory (ADR 13)
    else:
        dictionary.load(str(saved / "dictionary.bin"))
        store = native.Store.open(str(saved / "store"), "")
    return EngineCore(LocalGraph(store), dictionary, limits, clock, rng, text_functions.call)


class _Change:
    """A change of an engine, as a context manager. At the beginning, the context manager acquires the lock and logs the
    change. The body of the `with` statement applies the change. At the end, the context manager releases the lock,
    waits until the change is durable, and delivers the new evaluations. The body of a logged change is allowed to raise
    PenstockError only if the body has changed nothing.
    """

    __slots__ = ("_engine", "_entry", "_number")

    def __init__(self, engine: Engine, entry: Callable[[], LogEntry | None] | None) -> None:
        self._engine = engine
        self._entry = entry
        self._number: int | None = None

    def __enter__(self) -> Runtime:
        self._number = self._engine._begin(self._entry)  # noqa: SLF001 - the engine's own frame
        return self._engine._runtime  # noqa: SLF001

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._engine._end(self._number, error)  # noqa: SLF001


class _Tuples(Sequence[bytes]):
    """The events of a push of columns, as N-Triples texts. Each event has one tuple. The texts are for late events and
    dead letters. A text is formatted only when it is accessed.
    """

    def __init__(self, engine: Engine, *columns: Ids) -> None:
        self._engine = engine
        self._columns = columns

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, row: Any) -> Any:
        triple = self._engine.decode([column[row] for column in self._columns])
        return original_bytes([tuple(triple)])


def _chunks(events: Iterable[tuple[int | None, EventData]], size: int) -> Iterator[list[tuple[int | None, EventData]]]:
    iterator = iter(events)
    while chunk := list(islice(iterator, size)):
        yield chunk
