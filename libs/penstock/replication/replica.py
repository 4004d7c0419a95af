"""A replica: the streams, stored graph and registrations of the cluster, as a function of the steps of the total order.

The replica applies each step to a `StateMachine`: a store's shards, or a query engine's runtime, which evaluates the
due queries. The replica records all registrations and registration points, because all processes need these.
`services/query_engine/enrolment.py` decides which queries a runtime evaluates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from penstock.engine.history.beginning import StreamPast
from penstock.engine.runtime import Runtime
from penstock.errors import StorageError, UnavailableError
from penstock.rdf.terms import IRI
from penstock.replication.history import FOR_EVER, INSERTIONS, History
from penstock.replication.load_files import LoadFiles
from penstock.replication.registration import (
    MAX_GAPS,
    Registration,
    Registrations,
    declaration_of,
    gap_of,
    grid_of,
    handover_from,
    stable,
)
from penstock.replication.sequencer import Sequencer
from penstock.replication.state_machine import StateMachine
from penstock.wire import (
    QueryRegistration,
    QueryStop,
    ShardBatch,
    ShardInsertion,
    ShardLoad,
    ShardRemoval,
    StreamDeclaration,
    StreamDrop,
    StreamEnd,
)
from penstock.wire.insertion_parts import InsertionParts
from penstock.wire.parts import in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.engine.standing.firing import EvaluationSink
    from penstock.event_time.gaps import Gap
    from penstock.replication.sequencer import SequencedRecord, Step
    from penstock.replication.state_machine import FollowedStream
    from penstock.term_ids.cluster_terms import ClusterCore


W = TypeVar("W", bound=StateMachine)


class StepObserver(Protocol):
    """Callbacks while a query engine's replica applies a step."""

    def registered(self) -> None:
        """Retain the data that new registration points need. The replica calls this before it releases data."""

    def omit(self, registration: Registration, gap: Gap) -> None:
        """Skip the instants of a query's new gap."""


class Replica(Generic[W]):
    """Streams, stored graph and registrations after the applied steps."""

    def __init__(self, runtime: W, partitions: int, history: History | None = None) -> None:
        self.runtime = runtime
        self.sequencer = Sequencer(partitions, self._stale)
        self.registrations = Registrations()
        self.history = history or History()
        self.least_catch_up = FOR_EVER  # minimum of `max_catch_up`; an advance by at most this number of ms is no leap
        self.commands = 0
        self.insertions = 0
        self.declared: dict[str, int] = {}  # by stream: the command number of its declaration
        self.ended: dict[str, int | None] = {}  # by ended derived stream: the end of its last closed batch in ms
        self.begun: dict[str, tuple[int, int]] = {}  # by stream with progress: see `StreamPast`; the order is the step
        # registrations that are new or have changed; the caller empties the list
        self.news: list[Registration] = []
        self.held: Step | None = None  # a step that is not completely applied; the caller sets it
        self._parts = InsertionParts()

    @property
    def whole(self) -> bool:
        """Whether no step is partially applied. A checkpoint requires this."""
        return self.held is None and not self._parts

    # ---- duplicates
    def _stale(self, record: SequencedRecord) -> bool:
        """Return whether a record has no effect, because it was applied before or because it belongs to a dropped
        declaration of its stream (ADR 26).

        A batch has an effect if it ends after the stream's last closed batch. A command has an effect if its number is
        greater than the number of the last applied command. The same applies to insertions. A stale record stays stale.
        All replicas therefore count the same steps, no matter how far they have read.
        """
        if isinstance(record, ShardBatch | StreamEnd):
            declared = self.declared.get(record.stream, 0)
            if record.declared and record.declared != declared:
                return record.declared <= self.commands  # the stream was dropped; otherwise its declaration follows
            if record.stream in self.ended or isinstance(record, StreamEnd):
                return record.stream in self.ended
            if record.stream not in self.runtime.streams:
                return False
            stream = self.runtime.streams.get(record.stream)
            return stream.closed_ms is not None and (record.last + 1) * stream.batch_ms <= stream.closed_ms
        if isinstance(record, ShardInsertion | ShardRemoval | ShardLoad):
            return record.number <= self.insertions
        return record.number <= self.commands

    # ---- steps
    def ready(self, step: Step) -> bool:
        """Return whether a step can be applied. A step that drops or replaces a stream waits until no query reads or
        publishes the stream. A stopped query still counts until its evaluations are committed.
        """
        first = step[0]
        if not isinstance(first, StreamDrop | StreamDeclaration):
            return True
        return first.iri not in self.runtime.streams or not self._read(first.iri)

    def _read(self, iri: str) -> bool:
        """Return whether a registered or stopped query still reads or publishes a stream."""
        records = (registration.record for registration in self.registrations.values())
        return any(iri in record.streams or iri == record.publishes for record in records)

    def apply(self, step: Step, observer: StepObserver | None = None) -> Iterator[UnavailableError | None]:
        """Apply a step. Yields None when results can be committed: at this time, the due evaluations are done,
        except evaluations that are left to the backlog. A bulk load also yields None after each file.

        Yields an UnavailableError if a store, the dictionary or a file of a bulk load cannot be read now; the next
        iteration retries. Without an observer, the replica detects no leaps of event time.
        """
        first = step[0]
        self.history.step += 1
        match first:
            case ShardBatch():
                if self._in_force(first):
                    yield from self._batch(first, [part for part in step if isinstance(part, ShardBatch)], observer)
                    return
            case ShardInsertion() | ShardRemoval():
                self._insertion([part for part in step if isinstance(part, ShardInsertion | ShardRemoval)])
            case ShardLoad():
                yield from self._load(first, [part for part in step if isinstance(part, ShardLoad)])
            case StreamDeclaration():
                self._command(first.number)
                self._declare(first)
            case StreamDrop():
                self._command(first.number)
                self._drop(first.iri)
            case StreamEnd():
                if self._in_force(first):
                    yield from self._end(first.stream, observer)
            case QueryRegistration():
                self._command(first.number)
                self._registered(first)
                if observer is not None:
                    observer.registered()
            case QueryStop():
                self._command(first.number)
                self._stopped(first)
        yield None

    # ---- declared and dropped streams
    def _declare(self, record: StreamDeclaration) -> None:
        """Declare a stream. The new stream replaces an existing stream with the same IRI. The existing stream is either
        an ended stream, or a stream that was declared before the registration of its publishing query.
        """
        if record.iri in self.runtime.streams:
            self._drop(record.iri)
        stream = self.runtime.streams.declare(declaration_of(record))
        stream.publisher = record.publisher
        self.declared[stream.iri] = record.number
        self.history.add(stream.iri, stream.number, stream.batch_ms)

    def _drop(self, iri: str) -> None:
        self.runtime.streams.drop(iri)
        del self.declared[iri]
        self.ended.pop(iri, None)
        self.begun.pop(iri, None)
        self.history.drop(iri)

    def _moved(self, iri: str) -> Iterator[UnavailableError]:
        """Close the batches that the watermark permits, and evaluate the due queries. If another process is
        unavailable, yields the error and then retries.
        """
        while True:
            try:
                self.runtime.moved(iri)
            except UnavailableError as error:
                yield error
            else:
                return

    def _end(self, iri: str, observer: StepObserver | None) -> Iterator[UnavailableError]:
        """End a derived stream after its last batch. Queries that waited only for this stream become due."""
        stream = self.runtime.streams.get(iri)
        self._leap(iri, stream.closed_ms, None, observer)
        self.ended[iri] = stream.closed_ms
        stream.ended = True
        self.history.record(iri, FOR_EVER)
        yield from self._moved(iri)

    def tidy(self) -> None:
        """Remove ended derived streams that no query reads. No result depends on when this happens."""
        for iri in [iri for iri in self.ended if not self._read(iri)]:
            self._drop(iri)

    def _registered(self, record: QueryRegistration) -> None:
        made = Registration(record, self._point(record), self.history.step)
        earlier = self.registrations.get(record.replaces)
        if earlier is not None:
            streams = [self.runtime.streams.get(iri) for iri in {*earlier.record.streams, *record.streams}]
            closed = {stream.iri: stream.closed_ms for stream in streams}
            retentions = {stream.iri: stream.declaration.retention_ms for stream in streams}
            handover = handover_from(earlier, record, closed, self.ended, retentions)
            earlier.replaced = True
            self._ends(earlier)
            if handover is not None:
                made.point, made.after = handover.point, handover.after
                gap = handover.gap(grid_of(record))
                made.gaps = () if gap is None else (gap,)
        else:
            streams = [self.runtime.streams.get(iri) for iri in record.streams]
            made.begin_in_past(
                {s.iri: StreamPast(self.begun.get(s.iri), s.closed_ms, s.declaration.retention_ms) for s in streams}
            )
        made.pointed = None if made.point is None else made.step
        self.record_registration(made)
        self.news.append(made)

    def _point(self, record: QueryRegistration) -> int | None:
        """Return the registration point P. This is the latest time up to which any of the query's streams is closed, or
        `not_before_ms` if `not_before_ms` is later. None if no stream has progress and `not_before_ms` is None.

        `not_before_ms` is set if adaptors have discarded tuples that the query reads.
        """
        streams = [self.runtime.streams.get(iri) for iri in record.streams]
        closed = [self.ended.get(stream.iri, stream.closed_ms) for stream in streams]
        return max((end for end in (*closed, record.not_before_ms) if end is not None), default=None)

    def _in_force(self, batch: ShardBatch | StreamEnd) -> bool:
        """Return whether a record has an effect. The record contains a batch of a stream, or ends a stream. The record
        has an effect if three conditions hold: the stream is declared, the stream has not ended, and the record belongs
        to the stream's current declaration. (The dispatcher can write batches of a stream after the stream was
        dropped.)
        """
        return (
            batch.stream in self.declared
            and batch.stream not in self.ended
            and batch.declared in (0, self.declared[batch.stream])
        )

    def record_registration(self, registration: Registration) -> None:
        """Add a registration."""
        self.registrations.add(registration)
        self.least_catch_up = min(self.least_catch_up, registration.record.max_catch_up)

    def _stopped(self, stop: QueryStop) -> None:
        registration = self.registrations.standing(stop.name)
        if registration is not None:
            self._ends(registration)

    def _ends(self, registration: Registration) -> None:
        live = [iri for iri in registration.record.streams if iri not in self.ended]
        closed = [self.runtime.streams.get(iri).closed_ms for iri in live]
        until = None if None in closed else min((end for end in closed if end is not None), default=FOR_EVER)
        self.registrations.stop(registration, self.history.step, until)
        if registration.point is None or until is None:
            self.registrations.remove(registration.record.number)  # nothing was due

    def _command(self, number: int) -> None:
        if number != self.commands + 1:
            raise StorageError(f"the log goes from command {self.commands} to command {number}")
        self.commands = number

    def _batch(
        self, first: ShardBatch, parts: list[ShardBatch], observer: StepObserver | None
    ) -> Iterator[UnavailableError | None]:
        stream = self.runtime.streams.get(first.stream)
        closed = first.first * stream.batch_ms if stream.closed_ms is None else stream.closed_ms
        if first.first * stream.batch_ms > closed:
            begin = first.first * stream.batch_ms
            raise StorageError(f"the log of <{first.stream}> has no batches between {closed} ms and {begin} ms")
        self._append(stream, parts)
        if stream.closed_ms is None:
            self._begin(stream, closed if first.begin_ms is None else first.begin_ms, observer)
        end = (first.last + 1) * stream.batch_ms
        self._leap(stream.iri, stream.closed_ms, end - stream.batch_ms, observer)  # batches without tuples
        self._leap(stream.iri, end - stream.batch_ms, end, observer)
        stream.move(end)
        self.history.record(stream.iri, end)
        yield from self._moved(stream.iri)
        yield None

    def _leap(self, iri: str, before: int | None, after: int | None, observer: StepObserver | None) -> None:
        """Record a gap for each query that gets more than `max_catch_up` due instants by this advance of a stream.

        `before`, `after`: the time in ms up to which the stream is closed, before and after the advance. `before` is
        None if the stream has no progress. `after` is None if the stream has ended.
        """
        small = before is not None and after is not None and after - before <= self.least_catch_up
        if small or observer is None:
            return  # two instants are at least 1 ms apart
        closed = {name: self.runtime.streams.get(name).closed_ms for name in self.declared} | {iri: before}
        moved, ended = closed | {iri: after}, self.ended if after is not None else self.ended | {iri: before}
        for registration in self.registrations.values():
            record = registration.record
            if registration.stopped is not None or iri not in record.streams:
                continue
            then = stable(record.streams, closed, self.ended)
            gap = gap_of(record, registration.begins_after, then, stable(record.streams, moved, ended))
            if gap is not None:
                registration.gaps = (*registration.gaps, gap)[-MAX_GAPS:]
                registration.leapt = self.history.step
                self.news.append(registration)
                observer.omit(registration, gap)

    def _append(self, stream: FollowedStream, parts: list[ShardBatch]) -> None:
        if any(len(part.times) for part in parts):
            stream.append(*in_order(parts))

    def _begin(self, stream: FollowedStream, point: int, observer: StepObserver | None) -> None:
        """Record the first progress of a stream. Sets the registration point of the queries that waited for this
        progress.
        """
        self.begun[stream.iri] = self.history.step, point
        for registration in self.registrations.values():
            waits = registration.point is None and registration.refused is None
            if waits and stream.iri in registration.record.streams:
                self.registrations.set_point(registration, point, self.history.step)
                self.news.append(registration)
        if observer is not None:
            observer.registered()
        self.runtime.begin(stream.iri, point)

    def _insertion(self, parts: list[ShardInsertion | ShardRemoval]) -> None:
        whole = self._parts.take(parts, self.insertions)
        if whole is None:
            return
        self.insertions += 1
        removed, added = whole
        if len(removed[0]):
            self.runtime.change(removed, added, INSERTIONS, self.insertions)
        else:
            self.runtime.insert(*added, INSERTIONS, self.insertions)
        self.history.record("", self.insertions)

    def _load(self, first: ShardLoad, parts: list[ShardLoad]) -> Iterator[UnavailableError | None]:
        if first.number != self.insertions + 1 or self._parts:
            raise StorageError(f"the log goes from insertion {self.insertions} to load {first.number}")
        yield from self.runtime.load(LoadFiles(parts), INSERTIONS, first.number)
        self.insertions = first.number
        self.history.record("", first.number)


class EngineReplica(Replica[Runtime]):
    """The replica of a query engine. `at_once`: see `Backlog`."""

    def __init__(self, core: ClusterCore, partitions: int, sink: EvaluationSink, at_once: int | None = None) -> None:
        history = History()
        runtime = Runtime(
            core,
            sink=sink,
            as_of=lambda group, time: history.bounds(group.by_iri, time, group.since_step),
            at_once=at_once,
            releases=False,  # the retention floor decides
        )
        super().__init__(runtime, partitions, history)
        self.core = core
        self.terms = core.terms
        self.named: dict[str, int] = {}  # ids of IRIs in declarations; saved, so that a restart needs no request

    def prepare(self, step: Step) -> None:
        """If the step is a declaration, request the ids of its timing predicates and of its graph (`absorb_into`).
        UnavailableError if the dictionary is unavailable; nothing has then changed.
        """
        first = step[0]
        if isinstance(first, StreamDeclaration):
            self._name(first.timing, first.absorb_into)

    def forget_names(self) -> None:
        """Remove the ids of IRIs that only dropped streams have used."""
        declarations = [stream.declaration for stream in self.runtime.streams]
        used = {iri for d in declarations for iri in (*(d.timing if d.timing != "all" else ()), d.absorb_into)}
        self.named = {iri: number for iri, number in self.named.items() if iri in used}

    def _name(self, timing: Iterable[str], absorb_into: str | None) -> None:
        for iri in (*timing, *([absorb_into] if absorb_into else [])):
            self.named[iri] = self.terms.constant((IRI, iri, "", ""))
