"""Derived streams of the reference where clocks leap: streams like all others, with the batches that the log has.

How many batches without tuples one move closes is decided by the commits of the engine that publishes, and with that
what is a leap for readers. The reference therefore evaluates the publishing query as one that does not publish, and
moves the stream where the log does. What a batch contains, and how far it may go, it finds out by itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.event_time.grid import batch_start, closed_until
from penstock.event_time.watermark import NEVER
from penstock.replication.registration import declaration_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import penstock
    from penstock.engine.answers.result_blocks import Evaluation
    from penstock.wire import QueryRegistration, ShardBatch, StreamDeclaration, StreamEnd
    from simulation.leaps import Gaps

_PUBLISHES = re.compile(r"REGISTER (STREAM|ISTREAM|DSTREAM|RSTREAM) <[^>]*>")


def unpublished(text: str) -> str:
    """Return the text of a query that publishes its answers, without that it does."""
    return _PUBLISHES.sub(lambda found: f"REGISTER {'RSTREAM' if found[1] == 'STREAM' else found[1]} p", text, count=1)


@dataclass(slots=True)
class _Derived:
    """One declaration of a derived stream. `handle`: its query's. `until_ms`: how far that had come when it stopped."""

    record: StreamDeclaration
    handle: Any = None
    until_ms: int | None = None
    closed_ms: int = NEVER
    ended: bool = False
    open: list[Evaluation] = field(default_factory=list)
    begins: set[int] = field(default_factory=set)

    def reached_ms(self) -> int:
        """Return the time before which its query has nothing more to report, once it has evaluated or skipped any."""
        if self.until_ms is not None:
            return self.until_ms
        cohort = self.handle._member.cohort
        return NEVER if cohort.trigger is None or cohort.trigger.last <= cohort.point else int(cohort.next) - 1


class DerivedStreams:
    """The derived streams of an engine whose queries do not publish. `wrong`: what cannot be, in words."""

    def __init__(self, engine: penstock.Engine, gaps: Gaps, wrong: list[str]) -> None:
        self._engine, self._gaps, self._wrong = engine, gaps, wrong
        self._streams: dict[str, _Derived] = {}
        self._makers: dict[str, _Derived] = {}  # by the names of their queries

    def declare(self, record: StreamDeclaration) -> None:
        """A query is going to publish a stream."""
        if record.iri in self._streams:
            self._drop(record.iri)
        self._engine._runtime.streams.declare(declaration_of(record))
        self._streams[record.iri] = _Derived(record)

    def register(self, record: QueryRegistration, handle: Any) -> None:
        """Follow a query that publishes."""
        if record.publishes is not None:
            derived = self._makers[record.name] = self._streams[record.publishes]
            derived.handle = handle

    def stop(self, name: str) -> None:
        """A query is going to be stopped; what it has made due is still published."""
        derived = self._makers.pop(name, None)
        if derived is not None:
            derived.until_ms = derived.reached_ms()

    def collect(self, name: str, evaluation: Evaluation) -> None:
        """Take an evaluation of a query that may publish."""
        derived = self._makers.get(name)
        if derived is not None:
            derived.open.append(evaluation)
            derived.begins.add(batch_start(evaluation.time, derived.record.batch_ms))

    def knows(self, record: ShardBatch | StreamEnd) -> bool:
        """Whether a record is of a derived stream as it is declared now."""
        derived = self._streams.get(record.stream)
        return derived is not None and derived.record.number == record.declared and not derived.ended

    def feed(self, batch: ShardBatch, leap: Callable[[str, int], None]) -> None:
        """Close batches as the log does."""
        iri, derived = batch.stream, self._streams[batch.stream]
        batch_ms = derived.record.batch_ms
        end_ms = (batch.last + 1) * batch_ms
        if end_ms > closed_until(derived.reached_ms(), batch_ms):
            self._wrong.append(f"<{iri}>: batch {batch.last} was published before its time")
        if batch.begin_ms is not None:
            self._begin(derived, batch.begin_ms)
        leap(iri, end_ms - batch_ms)
        due = [evaluation for evaluation in derived.open if evaluation.time <= end_ms]
        if any(evaluation.time <= end_ms - batch_ms and len(_triples(evaluation)) for evaluation in due):
            self._wrong.append(f"<{iri}>: answers before batch {batch.last} were not published")
        derived.open = [evaluation for evaluation in derived.open if evaluation.time > end_ms]
        for evaluation in due:
            found = _triples(evaluation)
            if len(found):
                times = np.full(len(found), evaluation.time, np.int64)
                self._engine.push_columns(iri, times, *found.published)
        leap(iri, end_ms)
        derived.closed_ms = end_ms

    def _begin(self, derived: _Derived, begin_ms: int) -> None:
        runtime, iri = self._engine._runtime, derived.record.iri
        grid = derived.handle._member.group.grid
        if begin_ms not in derived.begins and (grid is None or grid.next_after(begin_ms) != begin_ms + 1):
            self._wrong.append(f"<{iri}>: nothing that was published begins it at {begin_ms} ms")
        runtime.registry.begin(runtime.streams.get(iri), begin_ms)
        self._gaps.begin(iri, begin_ms)

    def end(self, record: StreamEnd) -> None:
        """A stream holds nothing back any more."""
        derived, runtime = self._streams[record.stream], self._engine._runtime
        self._check_closed(derived)
        derived.ended = True
        self._gaps.end(record.stream)
        stream = runtime.streams.get(record.stream)
        stream.ended = True
        runtime.progress([stream, *runtime._skip([stream], "leaps", {})])

    def tidy(self) -> None:
        """Drop streams that have ended and that no query reads, as engines do."""
        readers, streams = self._engine._runtime.schedule.readers, self._engine._runtime.streams
        for iri in [iri for iri, each in self._streams.items() if each.ended and not readers.of(streams.get(iri))]:
            self._drop(iri)

    def _drop(self, iri: str) -> None:
        self._engine._runtime.drop_stream(iri)
        self._gaps.drop(iri)
        del self._streams[iri]

    def check(self) -> None:
        """At rest: all has been published."""
        for derived in self._streams.values():
            if not derived.ended:
                self._check_closed(derived)

    def _check_closed(self, derived: _Derived) -> None:
        reached = NEVER if derived.handle is None else derived.reached_ms()
        if reached != NEVER and closed_until(reached, derived.record.batch_ms) > derived.closed_ms:
            self._wrong.append(f"<{derived.record.iri}> should have been closed until {reached} ms")


def _triples(evaluation: Evaluation) -> Any:
    return () if evaluation.error is not None else evaluation.raw
