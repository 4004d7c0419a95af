"""Assembles the parts of an engine, and determines the order in which the parts process a change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from penstock.engine.history.past_queries import History
from penstock.engine.intake.arrival import Intake, Taken
from penstock.engine.intake.rejected_events import DeadLetter, Output
from penstock.engine.intake.streams import Streams
from penstock.engine.standing.evaluator import Evaluator
from penstock.engine.standing.firing import Firing
from penstock.engine.standing.prepared_registration import PreparedRegistration
from penstock.engine.standing.references import References
from penstock.engine.standing.registry import Registry
from penstock.engine.standing.replacement import Replacements
from penstock.engine.windows.reach import reach
from penstock.engine.windows.schedule import Schedule
from penstock.engine.windows.term_collection import Forgetting
from penstock.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike

    from penstock.core import _native as native
    from penstock.core._native import Ids
    from penstock.engine.engine_core import EngineCore
    from penstock.engine.history.timeline import Timeline
    from penstock.engine.intake.bins import Bins
    from penstock.engine.intake.events import BadEvent, Events
    from penstock.engine.intake.streams import LiveStream
    from penstock.engine.standing.evaluator import AsOf
    from penstock.engine.standing.firing import EvaluationSink
    from penstock.engine.standing.groups import Group, Member
    from penstock.engine.stored_graph import Columns
    from penstock.errors import UnavailableError
    from penstock.query.ir import Statement


Skip: TypeAlias = Literal["leaps"] | bool
"""Which due instants `advance` skips. False: no instants. True: all instants. "leaps": only the instants of queries
for which more than `max_catch_up` instants are due.
"""


class Runtime:
    """The parts of an engine. Callers must hold the engine's lock.

    Most keyword arguments are for the query engines of a cluster: `sink` (see `Firing`), `as_of` (see `Evaluator`),
    `at_once` (see `Backlog`), and `releases`. `releases`: whether the append log of a stream is released when the
    stream is dropped. `past` is the store of an embedded engine whose queries can begin in the past. If `past` is None,
    queries cannot begin in the past.
    """

    def __init__(
        self,
        core: EngineCore,
        *,
        sink: EvaluationSink | None = None,
        as_of: AsOf | None = None,
        at_once: int | None = None,
        releases: bool = True,
        past: native.Store | None = None,
    ) -> None:
        limits = core.limits
        self.core = core
        self.dead_letters: Output[DeadLetter] = Output(limits.max_refused, limits.refused_bytes)
        self.streams = Streams(core.store, core.dictionary, limits, core.iri_id, releases=releases)
        self.schedule = Schedule(limits, at_once)
        self.history = None if past is None else History(core, past, self.streams, self.schedule)
        self.registry = Registry(core, self.streams, self.schedule, self.history)
        self._replacements = (
            None
            if self.history is None
            else Replacements(core, self.streams, self.schedule, self.registry, self.history)
        )
        self.prepared = PreparedRegistration(core, self.registry)
        references, cached = References(core, self.registry), limits.cached_terms_mb << 20
        self.forgetting = Forgetting(core.dictionary, self.streams, references.roots, cached, references.renew_leases)
        self.evaluator = Evaluator(core, self.streams, as_of, self.history)
        parts = self.streams, self.evaluator, self.forgetting, self.registry
        self.firing = Firing(core, *parts, self.dead_letters, sink, self.timeline)
        self._intake = Intake(core, self.registry, self.schedule, self.dead_letters)

    @property
    def timeline(self) -> Timeline | None:
        """The timeline of an embedded engine, or None in a cluster."""
        return None if self.history is None else self.history.timeline

    # ---- input
    def take(self, stream: LiveStream, events: Events, bad: Sequence[BadEvent]) -> Taken:
        """Add parsed events to a stream, and evaluate the instants that become due. Errors: see `Intake.take`;
        DataError for a derived stream.
        """
        self._check_input(stream)
        taken = self._intake.take(stream, events, bad)
        self.progress([stream])
        return taken

    def take_columns(self, stream: LiveStream, times: ArrayLike, s: ArrayLike, p: ArrayLike, o: ArrayLike) -> bool:
        """Add events of one tuple each, as columns. This call handles only the common case: all events are accepted and
        no batch closes. In any other case, the call returns False and has no effect. DataError for a derived stream.
        """
        settled = not (self.schedule.unfinished or self.registry.waiting)
        if settled and stream.take(times, s, p, o):
            return True
        self._check_input(stream)
        return False

    def advance(self, iri: str | None, time: int, *, skip: Skip) -> None:
        """Advance the watermark of a stream to `time`, in ms. If `iri` is None, advance all streams that are not
        derived. The call evaluates or skips the instants that become due. DataError for a derived stream, LimitError if
        a limit would be exceeded.
        """
        streams = self._input_streams() if iri is None else [self._input_stream(iri)]
        moved = [stream for stream in streams if stream.watermark is None or stream.watermark < time]
        if skip is not True:
            self.schedule.check(moved, time, time, leaps=skip == "leaps")
        reached = {group: reach(group) for group in self.schedule.backlog.groups()} if skip else {}
        for stream in moved:
            self.registry.begin(stream, time)
            stream.move(time)
        self.progress([*moved, *self._skip(moved, skip, reached)] if skip else moved)

    def _input_streams(self) -> list[LiveStream]:
        return [stream for stream in self.streams if stream.publisher is None]

    def _input_stream(self, iri: str) -> LiveStream:
        stream = self.streams.get(iri)
        self._check_input(stream)
        return stream

    @staticmethod
    def _check_input(stream: LiveStream) -> None:
        if stream.publisher is not None:
            raise DataError(f"stream <{stream.iri}> is derived: only its query {stream.publisher} feeds it")

    def _skip(self, moved: Iterable[LiveStream], skip: Skip, reached: Mapping[Group, int | None]) -> list[LiveStream]:
        """Skip due instants. Returns the derived streams that advance as a result. `reached`: see `Schedule.skip`."""
        published = []
        at_most = self.core.limits.max_catch_up if skip == "leaps" else 0
        for cohort, gap in self.schedule.skip(moved, at_most, reached):
            for member in cohort:
                if not member.gaps or member.gaps[-1] != gap:  # several cohorts of a query set skip the same instants
                    member.skip([gap])
            self.firing.skipped(cohort)
            if cohort.group.publishes is not None:
                published.append(cohort.group.publishes)
        return published

    def progress(self, moved: Iterable[LiveStream]) -> None:
        """Close batches and evaluate due instants, as far as the watermarks of the streams permit. Then release unused
        state.
        """
        due = [stream for stream in moved if stream.target_ms != stream.closed_ms or stream.ended]
        if not due and not self.schedule.unfinished:
            return
        if self.history is not None:
            self.history.timeline.begin()
        self.schedule.run(due, self.firing)
        if self.history is not None:
            self.history.end_pass()
        self.firing.tidy()

    def catch_up(self, budget_s: float, only: Group | None = None) -> bool:
        """Evaluate due instants of queries that began in the past, for about `budget_s` seconds. If `only` is given,
        evaluate only the queries of this group. Returns whether there was an evaluation.
        """
        if self.history is None:
            return False
        before = self.firing.evaluations
        self.progress(self.history.catch_up(self.firing.fire, budget_s, only))
        return self.firing.evaluations > before

    # ---- steps of a cluster's total order
    def moved(self, iri: str) -> None:
        """Close the batches of a stream that end at or before the stream's watermark. Evaluate the instants that become
        due.
        """
        self.progress([self.streams.get(iri)])

    def begin(self, iri: str, point: int) -> None:
        """Start the queries that have waited for the first progress of a stream. `point` is the registration point of
        these queries, in ms.
        """
        self.registry.begin(self.streams.get(iri), point)

    def insert(self, s: Ids, p: Ids, o: Ids, g: Ids, stream: int, number: int) -> None:
        """Store quads as one commit with this stream and batch number. The quads are given as columns of ids."""
        self.core.store.commit(s, p, o, g, stream, number)

    def change(self, removed: Columns, added: Columns, stream: int, number: int) -> None:
        """Remove quads and then store other quads, as one commit with this stream and batch number."""
        self.core.store.change(removed, added, stream, number)

    def load(self, bins: Bins, stream: int, number: int) -> Iterator[UnavailableError | None]:
        """Store sorted bins as one commit with this stream and batch number. The generator yields None after each bin.
        If a bin cannot be read now, the generator yields the error, and retries the bin in the next iteration.
        """
        return self.core.store.load(bins, stream, number)

    # ---- queries
    def register(
        self, statement: Statement, name: str | None, base: str | None, *, changes: bool, replaces: bool
    ) -> Member:
        """Add a standing query.

        `replaces` has an effect only if there is a query with this name. If the text, the base or `changes` of this
        query is different, the query is replaced from the next instant on. If all three are the same, nothing changes.
        Errors: see `Registry.register` and `Replacements.replace`.
        """
        replacements = self._replacements
        known = replacements.replaced(statement, name) if replaces and replacements is not None else None
        if known is None or replacements is None:
            return self.registry.register(statement, name, base, changes=changes)
        if (known.text, known.base, known.changes) != (statement.text, base, changes):
            self.progress(())  # first complete evaluations that were interrupted
            for stream in replacements.replace(known, statement, base, changes=changes):
                self.schedule.unfinished[stream] = None
            self.progress(())
        return known

    def stop(self, member: Member) -> None:
        """Stop a query. If the query has published a stream, the stream ends. Evaluations that waited only for this
        stream then become due.
        """
        ended = self.registry.remove(member)
        member.result_queue.end()
        if ended is not None and self.schedule.readers.of(ended):
            reached = {group: reach(group) for group in self.schedule.backlog.groups()}
            self.progress([ended, *self._skip([ended], "leaps", reached)])
        self._drop_unread()

    def end(self) -> list[Member]:
        """Stop all queries without further evaluations. Returns the stopped queries."""
        members = list(self.registry.members.values())
        for member in members:
            self.registry.remove(member)
        return members

    def _drop_unread(self) -> None:
        """Drop ended derived streams that no query reads."""
        for stream in list(self.streams):
            if stream.ended and not self.schedule.readers.of(stream):
                self.streams.drop(stream.iri)

    def drop_stream(self, iri: str) -> None:
        """Drop a stream. UnknownStreamError if the stream does not exist. DataError if a query reads or publishes the
        stream.
        """
        stream = self.streams.get(iri)
        if stream.publisher is not None and not stream.ended:
            raise DataError(f"stream <{iri}> is published by query {stream.publisher}: stop that first")
        readers = [name for group in self.schedule.readers.of(stream) for name in group.names()]
        if readers:
            raise DataError(f"stream <{iri}> is read by {len(readers)} queries ({readers[0]}, …): stop them first")
        self.streams.drop(iri)
