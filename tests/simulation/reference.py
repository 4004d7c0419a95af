"""What should have come out: the embedded engine, given what the producers sent in the order of the cluster's spine.

The spine decides where commands take effect among closed batches (ADR 26), so the tape of the log says when the reference
registers, stores and closes; what it closes then, and which events are late, it finds out by itself from what was sent.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import penstock
from penstock.engine.lines import json_line
from penstock.wire import (
    DispatcherState,
    QueryRegistration,
    QueryStop,
    ShardBatch,
    ShardInsertion,
    StreamDeclaration,
    decode,
)
from property.script import Load, Register
from simulation.producers import EVENT, FAR, HEARTBEAT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from penstock.ingest.refused import LateEvent
    from simulation.producers import Producers, Sent, Source
    from simulation.tape import Noted

_BLANK_JSON, _BLANK_NT = re.compile(r'"bnode", "value": "[^"]*"'), re.compile(r"_:\w+")
Key = tuple[str, int]


def solutions(answer: Any) -> list[str]:
    """Return the rows of a SELECT, in an order; labels of blank nodes may differ."""
    rows = json.loads(answer.to_json())["results"]["bindings"]
    return sorted(_BLANK_JSON.sub('"bnode", "value": "b"', json.dumps(row, sort_keys=True)) for row in rows)


def content(line: dict[str, Any]) -> dict[str, Any]:
    """What must be equal: snapshots and attempts may differ, the order of rows and the labels of blank nodes too."""
    found = {k: v for k, v in line.items() if k not in ("snapshot", "attempt")}
    if "results" in found:
        rows = [json.dumps(row, sort_keys=True) for row in found["results"]["bindings"]]
        found["results"] = sorted(_BLANK_JSON.sub('"bnode", "value": "b"', row) for row in rows)
    if "graph" in found:
        found["graph"] = sorted(_BLANK_NT.sub("_:b", line) for line in found["graph"].splitlines())
    return found


class Reference:
    """`late`: what the cluster took for late. `wrong` collects what cannot be, in words."""

    def __init__(self, producers: Producers, late: Sequence[LateEvent], now_ms: int) -> None:
        self._engine = penstock.Engine(clock=lambda: now_ms, seed=0)
        self._producers = producers
        self._handles: dict[str, Any] = {}
        self._cursor: Counter[str] = Counter()  # streams of one partition: messages taken; of several: closed until
        self._ends: dict[str, int] = {}  # of streams' last batches in the spine
        self._said_late = {(event.stream, event.partition, event.offset): event for event in late}
        self.expected: dict[Key, dict[str, Any]] = {}
        self.wrong: list[str] = []
        self._check_doubles(late)

    def _check_doubles(self, late: Sequence[LateEvent]) -> None:
        if len(self._said_late) < len(late):
            self.wrong.append(f"{len(late) - len(self._said_late)} late events came twice")

    def play(self, tape: Sequence[Noted], shards: str) -> None:
        """Take in everything on the tape."""
        states: dict[str, DispatcherState] = {}
        todo: list[tuple[Any, Any, DispatcherState | None]] = []
        for noted in reversed(tape):  # a batch is followed by its stream's state, in the same transaction
            record = None if noted.record.value is None else decode(noted.record.value)
            if isinstance(record, DispatcherState):
                states[record.stream] = record
            elif noted.record.topic == shards:
                todo.append((noted.demand, record, states.get(getattr(record, "stream", ""))))
        for demand, record, state in reversed(todo):
            self._take(demand, record, state)
            self._collect()
        for source in self._producers.sources.values():
            if len(source.partitions) == 1:
                self._push_until(source, lambda _: False)
        self._collect()
        self._check_late()

    def ask(self, text: str) -> list[str]:
        """Answer a one-shot query, once all has been played."""
        return solutions(self._engine.query(text))

    def close(self) -> None:
        self._engine.close()

    def _take(self, demand: Any, record: Any, state: DispatcherState | None) -> None:
        match record:
            case StreamDeclaration(iri=iri, publisher=None):
                self._engine.declare_stream(iri, **self._producers.sources[iri].settings)
            case QueryRegistration(name=name, text=text):
                assert isinstance(demand, Register), demand
                with self._not_before(record.not_before_ms):
                    self._handles[name] = self._engine.register(text, name=name)
            case QueryStop(name=name):
                self._collect()
                self._handles.pop(name).stop()
            case ShardInsertion(part=part, parts=parts) if part + 1 == parts:
                if isinstance(demand, Load):
                    self._engine.load(demand.data.encode(), graph=demand.graph, format="nt")
                else:
                    self._engine.update(demand.text)
            case ShardBatch(stream=iri) if iri in self._producers.sources:
                source = self._producers.sources[iri]
                self._ends[iri] = (record.last + 1) * source.batch_ms
                if len(source.partitions) == 1:
                    self._follow(source, record, state)
                else:
                    self._feed(source, record)

    @contextmanager
    def _not_before(self, time_ms: int | None) -> Iterator[None]:
        """Registration points that are no earlier: adaptors had discarded what the query looks at (ADR 45)."""
        registry = self._engine._runtime.registry

        def point(streams: Any) -> int | None:
            # A stream may begin behind what its first batches end (ADR 26): there the reference is ahead.
            closed = [self._ends.get(s.iri) if s.iri in self._producers.sources else s.closed_ms for s in streams]
            return max((end for end in (*closed, time_ms) if end is not None), default=None)

        registry.registration_point = point
        try:
            yield
        finally:
            registry.__dict__.pop("registration_point", None)

    # ---- one partition: the same messages in the same order close the same batches
    def _follow(self, source: Source, batch: ShardBatch, state: DispatcherState | None) -> None:
        """`state`: the stream's, written with the batch; it tells how far an idle stream has been moved on."""
        end_ms = (batch.last + 1) * source.batch_ms
        idles = source.idles and state is not None and state.watermark_ms is not None
        taken = int(state.next_offsets[0]) if state is not None and idles else len(source.partitions[0])
        self._push_until(source, lambda at: self._closed_ms(source) >= end_ms or at >= taken)
        if self._closed_ms(source) < end_ms:
            if state is None or state.watermark_ms is None or not source.idles:
                self.wrong.append(f"<{source.iri}>: batch {batch.last} was closed before its time")
                return
            if batch.begin_ms is not None:
                self._begin(source, batch.begin_ms, end_ms)  # by a heartbeat, which has no offset among events
            self._engine.advance(source.iri, state.watermark_ms)

    def _begin(self, source: Source, begin_ms: int, end_ms: int) -> None:
        """The stream's first progress. Where one of several partitions told it, the stream may be closed until less."""
        if begin_ms <= end_ms:
            self._engine.advance(source.iri, begin_ms)
            return
        runtime = self._engine._runtime
        runtime.registry.begin(runtime.streams.get(source.iri), begin_ms)

    def _push_until(self, source: Source, enough: Callable[[int], bool]) -> None:
        sent = source.partitions[0]
        while self._cursor[source.iri] < len(sent) and not enough(self._cursor[source.iri]):
            self._push(source, self._cursor[source.iri], sent[self._cursor[source.iri]])
            self._cursor[source.iri] += 1

    def _push(self, source: Source, offset: int, message: Sent) -> None:
        said = self._said_late.get((source.iri, 0, offset))
        if said is not None and source.idles:
            self._engine.advance(source.iri, message.time_ms)  # the stream was idle before, and went on
        if message.kind == HEARTBEAT:
            self._engine.advance(source.iri, message.time_ms)
        if message.kind not in (EVENT, FAR):
            return
        before = self._engine.stats()["streams"][source.iri]["late"]
        self._engine.push_events(source.iri, [(message.time_ms, message.data)])
        late = self._engine.stats()["streams"][source.iri]["late"] > before
        if late != (said is not None):
            self.wrong.append(f"<{source.iri}> offset {offset}: late here {late}, there {said is not None}")

    def _closed_ms(self, source: Source) -> int:
        closed = self._engine._runtime.streams.get(source.iri).closed_ms
        return -(1 << 63) if closed is None else closed

    # ---- several: which came first is open, so what was accepted is taken from there, and checked for what must hold
    def _feed(self, source: Source, batch: ShardBatch) -> None:
        end_ms = (batch.last + 1) * source.batch_ms
        if batch.begin_ms is not None:
            self._begin(source, batch.begin_ms, end_ms)
            self._cursor[source.iri] = -(1 << 62)
        if end_ms > min(source.own_ms(number) for number in range(len(source.partitions))):
            self.wrong.append(f"<{source.iri}>: batch {batch.last} was closed before its time")
        due = [
            (message.time_ms, number, offset, message.data)
            for number, offset, message in source.all_of(EVENT)
            if self._cursor[source.iri] < message.time_ms <= end_ms
            and (source.iri, number, offset) not in self._said_late
        ]
        self._engine.push_events(source.iri, [(time_ms, data) for time_ms, _, _, data in sorted(due)])
        self._engine.advance(source.iri, end_ms)
        self._cursor[source.iri] = end_ms

    def _check_late(self) -> None:
        for (iri, number, offset), event in self._said_late.items():
            source = self._producers.sources[iri]
            message = source.partitions[number][offset]
            if message != type(message)(EVENT, event.time_ms, event.data):
                self.wrong.append(f"<{iri}>[{number}] offset {offset}: a late event is not what was sent")
            if event.time_ms > event.watermark_ms:
                self.wrong.append(f"<{iri}>[{number}] offset {offset}: late, and after the watermark that it met")
            if not source.idles and event.time_ms > min(event.watermark_ms, source.own_ms(number, offset)):
                self.wrong.append(f"<{iri}>[{number}] offset {offset}: late without reason")

    # ---- answers
    def _collect(self) -> None:
        for name, handle in self._handles.items():
            for evaluation in handle.poll():
                self.expected[name, evaluation.time] = content(json.loads(json_line(evaluation, name)))
