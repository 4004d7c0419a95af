"""The expected output: that of an embedded engine which gets the producers' events in the cluster's total order.

The total order decides where commands take effect among closed batches (ADR 26). The recorded log therefore determines
when the reference registers queries, stores data and closes batches. From the produced events, the reference computes
the content of each batch and which events are late. If a stream was dropped and declared again, the log also determines
where the second stream begins in its topic: before the first event that was sent after its declaration.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any
from unittest import mock

import penstock
from penstock.engine.answers.json_lines import json_line
from penstock.engine.standing import handover
from penstock.event_time.grid import closed_until
from penstock.event_time.watermark import NEVER
from penstock.services.query_engine import result_sinks
from penstock.wire import (
    DispatcherState,
    QueryRegistration,
    QueryStop,
    ShardBatch,
    ShardInsertion,
    ShardRemoval,
    StreamDeclaration,
    StreamDrop,
    StreamEnd,
    decode,
)
from property.script import Load, Register
from simulation.derived import DerivedStreams, unpublished
from simulation.past import ReferencePast
from simulation.producers import EVENT, FAR, HEARTBEAT, syntax_of
from simulation.sets import MembersChange, ReferenceSets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from penstock.engine.answers.result_blocks import Evaluation
    from penstock.ingest.refused_records import LateEvent
    from penstock.wire import Tuples
    from simulation.leaps import Gaps
    from simulation.producers import Producers, Sent, Source
    from simulation.tape import Noted

_BLANK_JSON, _BLANK_NT = re.compile(r'"bnode", "value": "[^"]*"'), re.compile(r"_:\w+")
_LENGTH = re.compile(r"the answer has \d+ bytes")  # more of them where snapshots and labels have more digits

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
    if "error" in found:
        found["error"] = _LENGTH.sub("the answer has", found["error"])
    if "graph" in found:
        found["graph"] = sorted(_BLANK_NT.sub("_:b", line) for line in found["graph"].splitlines())
    return found


def _place(event: LateEvent) -> tuple[str, int, int]:
    return event.stream, event.partition, event.offset


def _alone(source: Source) -> bool:
    """Whether it is plain what a stream's dispatcher takes in, and in which order."""
    return len(source.partitions) == 1 and source.begins is None


def _least(these: Sequence[int], those: Sequence[int], count: int) -> list[int]:
    """Return the lesser by partition; who has none of one says nothing of the second, and 0 of the first."""
    these = [*these, *[0] * (count - len(these))]
    return [min((here, *those[i : i + 1])) for i, here in enumerate(these)]


class Reference:
    """`late`: what the cluster took for late. `tuples`: what adaptors wrote of each stream, as (partition, offset,
    record). `gaps`: follows what leaps leave out; None: nothing may leap. `wrong` collects what cannot be, in words.
    """

    def __init__(
        self,
        producers: Producers,
        late: Sequence[LateEvent],
        now_ms: int,
        tuples: Mapping[str, Sequence[tuple[int, int, Tuples]]],
        gaps: Gaps | None = None,
    ) -> None:
        self._tuples = tuples
        self._gaps = gaps
        limits = None if gaps is None else penstock.Limits(max_catch_up=gaps.most)
        self._engine = penstock.Engine(clock=lambda: now_ms, seed=0, limits=limits)
        self._producers = producers
        self._handles: dict[str, Any] = {}
        self._again: Counter[str] = Counter()  # how often streams have been declared
        self._cursor: Counter[str] = Counter()  # streams of one partition: messages taken; of several: closed until
        self._ends: dict[str, int] = {}  # of streams' last batches in the total order
        self._declared: dict[str, tuple[int, Source]] = {}  # what is in force
        self._said_late = {_place(event): event for event in late}
        self.expected: dict[Key, dict[str, Any]] = {}
        self.wrong: list[str] = []
        self._late = late
        self._sets = ReferenceSets(self._engine, self._not_before, content)
        self.past = ReferencePast(self._engine, content)
        self._derived = None if gaps is None else DerivedStreams(self._engine, gaps, self.wrong)

    def _check_doubles(self) -> None:
        """Of two declarations, each may say once that what both may take in is late."""
        sources = self._producers.declared
        for (iri, number, offset), times in Counter(map(_place, self._late)).items():
            both = [s for s in sources[iri] if s.taken is not None and s.span(number)[0] <= offset < s.taken[number]]
            if times > 1 + len(both):
                self.wrong.append(f"<{iri}>[{number}] offset {offset}: late {times} times")

    def play(self, tape: Sequence[Noted], shards: str) -> None:
        """Take in everything on the tape."""
        records = [None if noted.record.value is None else decode(noted.record.value) for noted in tape]
        self._divide(records)
        self.past.plan(records)
        self._check_doubles()
        states: dict[str, DispatcherState] = {}
        todo: list[tuple[Any, Any, DispatcherState | None]] = []
        for noted in reversed(tape):  # a batch is followed by its stream's state, in the same transaction
            record = None if noted.record.value is None else decode(noted.record.value)
            if isinstance(record, DispatcherState):
                states[record.stream] = record
            elif noted.record.topic == shards or isinstance(noted.demand, MembersChange):
                todo.append((noted.demand, record, states.get(getattr(record, "stream", ""))))
        for demand, record, state in reversed(todo):
            self._take(demand, record, state)
            self._collect()
            if self._derived is not None:
                self._derived.tidy()
        for _, source in self._declared.values():
            if self._follows(source):
                self._push_until(source, lambda _: False)
            else:
                self._check_closed(source)
        self._collect()
        if self._derived is not None:
            self._derived.check()
        self._check_late()
        for name in self._handles:
            self._check_gaps(name)

    def _divide(self, records: Sequence[Any]) -> None:
        """Find out which events are which declaration's: one begins behind what those before had taken in by then."""
        declared: dict[str, list[StreamDeclaration]] = {iri: [] for iri in self._producers.declared}
        states: dict[tuple[str, int], DispatcherState] = {}
        for record in records:
            match record:
                case StreamDeclaration(iri=iri, publisher=None):
                    declared[iri].append(record)
                case DispatcherState():
                    states[record.stream, record.number] = record
        for iri, declarations in declared.items():
            sources = self._producers.declared[iri]
            if len(declarations) != len(sources):
                self.wrong.append(f"<{iri}> was declared {len(declarations)} times, and not {len(sources)}")
            last: DispatcherState | None = None
            for before, source, declaration in zip(sources, sources[1:], declarations[1:], strict=False):
                last = states.get((iri, declarations[sources.index(before)].number), last)
                self._begin_after(before, source, declaration, last)

    def _begin_after(
        self, before: Source, source: Source, declaration: StreamDeclaration, last: DispatcherState | None
    ) -> None:
        """`last`: what the dispatcher had said of the ones before."""
        count = len(source.partitions)
        taken = [0] * count if last is None else last.next_offsets.tolist()
        read = [0] * count if last is None else last.positions.tolist()
        source.begins = before.ends = _least(taken, declaration.events_before, count)
        source.taken = taken + [0] * (count - len(taken))
        assert source.surely is not None
        if any(begin > sure for begin, sure in zip(source.begins, source.surely, strict=True)):
            self.wrong.append(f"<{source.iri}>: what was sent from {source.surely} on is not the new one's")
        source.passed = self._passed(source, declaration, _least(read, declaration.tuples_before, count))
        before.passed_after = source.passed

    def _passed(
        self, source: Source, declaration: StreamDeclaration, read: Sequence[int]
    ) -> frozenset[tuple[int, int]]:
        """What this one might have taken in is nobody's where adaptors wrote it for nobody (no such stream was declared
        then), or for an earlier one, which passed it over, or wants less than this one (ADR 45).
        """
        assert source.surely is not None
        passed = {(n, offset) for n, offset, _ in source.all_of(EVENT) if offset < source.surely[n]}
        taken = set()
        for number, position, tuples in self._tuples[source.iri]:
            places = {(number, offset) for offset in tuples.offsets.tolist() if offset < source.surely[number]}
            is_passed = position < read[number] or 0 < tuples.filter_version < declaration.filter_version
            (passed if is_passed else taken).update(places)
        return frozenset(passed - taken)

    def ask(self, text: str) -> list[str]:
        """Answer a one-shot query, once all has been played."""
        return solutions(self._engine.query(text))

    def close(self) -> None:
        self._engine.close()

    def _take(self, demand: Any, record: Any, state: DispatcherState | None) -> None:
        match record:
            case StreamDeclaration(iri=iri, publisher=None):
                self._declare(record)
            case StreamDeclaration() if self._derived is not None:
                self._derived.declare(record)
            case StreamDrop(iri=iri) if iri in self._declared:
                self._engine.drop_stream(iri)
                del self._declared[iri]
                self._ends.pop(iri, None)
                if self._gaps is not None:
                    self._gaps.drop(iri)
            case None:
                self._sets.change(demand)
            case QueryRegistration() if self.past.register(record):
                pass
            case QueryStop(name=name) if self.past.knows(name):
                self._collect()
                self.past.stop(name)
            case QueryRegistration(report=str()):
                self._sets.register(record)
            case QueryStop(name=name) if self._sets.knows(name):
                self._collect()
                self._sets.stop(name)
            case QueryRegistration(name=name, text=text):
                assert isinstance(demand, Register), demand
                text = text if self._derived is None and not record.past else unpublished(text)
                text = text.replace(" FROM BEGINNING", "")
                with self._not_before(record.not_before_ms):
                    self._handles[name] = self._engine.register(text, name=name, replace=bool(record.replaces))
                if self._gaps is not None and self._derived is not None:
                    self._gaps.register(record)
                    self._derived.register(record, self._handles[name])
            case QueryStop(name=name):
                self._collect()
                self._check_gaps(name)
                if self._gaps is not None and self._derived is not None:
                    self._gaps.stop(name)
                    self._derived.stop(name)
                self._handles.pop(name).stop()
            case ShardInsertion(part=part, parts=parts) | ShardRemoval(part=part, parts=parts) if part + 1 == parts:
                if isinstance(demand, Load):
                    self._engine.load(demand.data.encode(), graph=demand.graph, format="nt")
                else:
                    self._engine.update(demand.text)
            case ShardBatch(stream=iri, part=0) if iri in self._declared and self._declared[iri][0] == record.declared:
                _, source = self._declared[iri]
                self.past.batch(record)
                self._ends[iri] = (record.last + 1) * source.batch_ms
                if self._follows(source):
                    self._follow(source, record, state)
                else:
                    self._feed(source, record)
            case ShardBatch(part=0) if self._derived is not None and self._derived.knows(record):
                self._derived.feed(record, self._leap)
            case StreamEnd() if self._derived is not None and self._derived.knows(record):
                self._derived.end(record)

    def _declare(self, record: StreamDeclaration) -> None:
        sources = self._producers.declared[record.iri]
        source = sources[self._again[record.iri]]
        self._again[record.iri] += 1
        self._engine.declare_stream(record.iri, **source.settings)
        self._declared[record.iri] = record.number, source
        self.past.declare(record)
        self._cursor[record.iri] = 0

    @contextmanager
    def _not_before(self, time_ms: int | None) -> Iterator[None]:
        """Registration points that are no earlier: adaptors had discarded what the query looks at (ADR 45)."""
        registry = self._engine._runtime.registry

        def point(streams: Any) -> int | None:
            # A stream may begin behind what its first batches end (ADR 26): there the reference is ahead.
            closed = [self._ends.get(s.iri) if s.iri in self._declared else s.closed_ms for s in streams]
            return max((end for end in (*closed, time_ms) if end is not None), default=None)

        registry.registration_point = point
        try:
            with mock.patch.object(handover, "hand_over", partial(handover.hand_over, not_before=time_ms)):
                yield
        finally:
            registry.__dict__.pop("registration_point", None)

    # ---- one partition: the same messages in the same order close the same batches
    def _follow(self, source: Source, batch: ShardBatch, state: DispatcherState | None) -> None:
        """`state`: the stream's, written with the batch; it tells how far an idle stream has been moved on."""
        end_ms = (batch.last + 1) * source.batch_ms
        idles = source.idles and state is not None and state.watermark_ms is not None
        taken = int(state.next_offsets[0]) if state is not None and idles else len(source.partitions[0])
        self._push_until(
            source, lambda at: self._closed_ms(source) >= end_ms or at >= taken or self._closes_more(source, at, end_ms)
        )
        if NEVER < self._closed_ms(source) < end_ms and self._closes_more(source, self._cursor[source.iri], end_ms):
            self._engine.advance(source.iri, end_ms)
        if self._closed_ms(source) < end_ms:
            if state is None or state.watermark_ms is None or not source.idles:
                self.wrong.append(f"<{source.iri}>: batch {batch.last} was closed before its time")
                return
            if batch.begin_ms is not None:
                self._begin(source, batch.begin_ms)  # by a heartbeat, which has no offset among events
            self._engine.advance(source.iri, state.watermark_ms)

    def _closes_more(self, source: Source, at: int, end_ms: int) -> bool:
        """Whether one message closes batches after this one too. The dispatcher may write them in later transactions,
        with a stop of a query in between, so the reference closes this batch alone, and takes the message in with them.
        """
        sent = source.partitions[0][: source.heard_until(0)]
        if at >= len(sent) or sent[at].kind not in (EVENT, HEARTBEAT) or self._closed_ms(source) == NEVER:
            return False
        if (source.iri, 0, at) in self._said_late:
            return False
        setting = self._engine._runtime.streams.get(source.iri).declaration
        before = 0 if sent[at].kind == HEARTBEAT else setting.lateness_ms + 1
        return closed_until(sent[at].time_ms - before, setting.batch_ms) > end_ms

    def _follows(self, source: Source) -> bool:
        """Whether the reference finds out by itself what is closed. What leaps is closed as the log has it: a leap is a
        move of one step, and the log decides what one step is.
        """
        return self._gaps is None and _alone(source)

    def _begin(self, source: Source, begin_ms: int) -> None:
        """The stream's first progress. Where one of several partitions told it, the others may come with what
        is older.
        """
        runtime = self._engine._runtime
        runtime.registry.begin(runtime.streams.get(source.iri), begin_ms)

    def _push_until(self, source: Source, enough: Callable[[int], bool]) -> None:
        sent = source.partitions[0][: source.heard_until(0)]
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
        self._engine.push_events(source.iri, [(message.time_ms, message.data)], syntax_of(message.data))
        late = self._engine.stats()["streams"][source.iri]["late"] > before
        if late != (said is not None):
            self.wrong.append(f"<{source.iri}> offset {offset}: late here {late}, there {said is not None}")

    def _closed_ms(self, source: Source) -> int:
        closed = self._engine._runtime.streams.get(source.iri).closed_ms
        return NEVER if closed is None else closed

    # ---- several, or declared again: which came first, and where it began, is open, so what was accepted is taken from there, and checked for what must hold
    def _feed(self, source: Source, batch: ShardBatch) -> None:
        end_ms = (batch.last + 1) * source.batch_ms
        if batch.begin_ms is not None:
            if batch.begin_ms not in source.beginnings():
                self.wrong.append(f"<{source.iri}>: nothing that was sent begins it at {batch.begin_ms} ms")
            self._begin(source, batch.begin_ms)
            if self._gaps is not None:
                self._gaps.begin(source.iri, batch.begin_ms)
            self._cursor[source.iri] = -(1 << 62)
        if end_ms > min(source.own_ms(number) for number in range(len(source.partitions))):
            self.wrong.append(f"<{source.iri}>: batch {batch.last} was closed before its time")
        due = [
            (message.time_ms, number, offset, message.data)
            for number, offset, message in source.all_of(EVENT)
            if self._cursor[source.iri] < message.time_ms <= end_ms
            and (source.iri, number, offset) not in self._said_late
        ]
        if self._gaps is not None:
            self._leap(source.iri, end_ms - source.batch_ms)  # batches without tuples
        for syntax, run in groupby(sorted(due), key=lambda event: syntax_of(event[3])):
            self._engine.push_events(source.iri, [(time_ms, data) for time_ms, _, _, data in run], syntax)
        if self._gaps is not None:
            self._leap(source.iri, end_ms)
        self._engine.advance(source.iri, end_ms)
        self._cursor[source.iri] = end_ms

    def _leap(self, iri: str, until_ms: int) -> None:
        """Move a stream by one move, which skips the instants of queries of which it makes too many due."""
        assert self._gaps is not None
        closed_ms = self._gaps.closed_ms(iri)
        if closed_ms is None or until_ms > closed_ms:
            self._gaps.move(iri, until_ms)
            self._engine.advance(iri, until_ms, skip="leaps")

    def _check_gaps(self, name: str) -> None:
        """The embedded engine has left out what the rule says."""
        if self._gaps is None:
            return
        found, expected = self._gaps.as_omitted(name, self._handles[name].gaps), self._gaps.of(name)
        if found != expected:
            self.wrong.append(f"{name}: gaps {found} here, and not {expected}")

    def _check_closed(self, source: Source) -> None:
        """All has been closed that what was surely sent to it allows."""
        since = source.surely or [0] * len(source.partitions)
        sure_ms = min(source.own_ms(number, since=first) for number, first in enumerate(since))
        if sure_ms > NEVER and closed_until(sure_ms, source.batch_ms) > self._ends.get(source.iri, NEVER):
            self.wrong.append(f"<{source.iri}> should have been closed until {sure_ms} ms")

    def _check_late(self) -> None:
        for (iri, number, offset), event in self._said_late.items():
            source = next(s for s in reversed(self._producers.declared[iri]) if s.span(number)[0] <= offset)
            message = source.partitions[number][offset]
            if message != type(message)(EVENT, event.time_ms, event.data):
                self.wrong.append(f"<{iri}>[{number}] offset {offset}: a late event is not what was sent")
            if event.time_ms > event.watermark_ms:
                self.wrong.append(f"<{iri}>[{number}] offset {offset}: late, and after the watermark that it met")
            if not source.idles and event.time_ms > min(event.watermark_ms, source.own_ms(number, offset)):
                self.wrong.append(f"<{iri}>[{number}] offset {offset}: late without reason")

    # ---- answers
    def _collect(self) -> None:
        self.expected.update(self._sets.collect())
        self.expected.update(self.past.collect())
        for name, handle in self._handles.items():
            for evaluation in handle.poll():
                if self._derived is not None:
                    self._derived.collect(name, evaluation)
                self.expected[name, evaluation.time] = content(json.loads(_line(evaluation, name)))


def _line(evaluation: Evaluation, name: str) -> bytes:
    """The record of an evaluation in JSON, with an error if the answer is too long."""
    line = json_line(evaluation, name)
    if len(line) > result_sinks.MAX_LINE_BYTES:
        most = result_sinks.MAX_LINE_BYTES
        return json_line(evaluation, name, f"the answer has {len(line)} bytes (MAX_LINE_BYTES is {most})")
    return line
