"""The plain adaptor: users' events to tuples of term ids (DESIGN §2). Stateless: all it knows is in the log.

Tuples are durable before the group's progress is. So after a crash, or when a partition moves to another member, they
may be written again; each record says from which source offsets it comes, and the dispatcher drops what it has seen.
Dead letters may come twice too: their key says where they come from.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from penstock.engine.events import EventParser
from penstock.engine.limits import Limits
from penstock.errors import DataError
from penstock.ingest.declared import DeclaredStreams
from penstock.ingest.message import Event, read_event
from penstock.ingest.outgoing import OutgoingTerms
from penstock.ingest.outputs import source_key
from penstock.log import Partition, RebalancedError, Record
from penstock.wire import DeadLetter, Tuples, encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.ingest.outgoing import TermEncoder
    from penstock.log import Log, Message
    from penstock.log.topics import TopicNames
    from penstock.wire import StreamDeclaration

POLL_RECORDS = 2_000
"""Events that one step takes in."""
MAX_TUPLES = 1_000_000
"""Tuples in one record, and so in one event."""
OPENING_S = 60.0
"""How long opening may read the log before it is a TransientError."""


class Adaptor:
    """One member of the adaptors' group."""

    def __init__(
        self,
        log: Log,
        names: TopicNames,
        terms: TermEncoder,
        group: str,
        limits: Limits | None = None,
        opening_s: float = OPENING_S,
    ) -> None:
        self._log, self._names = log, names
        self._max_bytes = (limits or Limits()).max_event_bytes
        self._terms = OutgoingTerms(terms)
        self._declared = DeclaredStreams(log, names, opening_s)
        self._writer = log.writer()
        self._reader = log.join(group, [])
        self._by_topic: dict[str, StreamDeclaration] = {}
        self._work: list[Message] = []
        self._committed: dict[Partition, int] = {}
        self.events = self.tuples = self.dead = 0
        self._subscribe()

    def step(self, timeout_s: float = 0.0) -> bool:
        """Take in what has come within the time, and write it as tuples. Returns whether there was anything.

        TransientError: the log or the dictionary is away; nothing is lost, call again.
        """
        if self._declared.refresh():
            self._subscribe()
        if not self._work:
            self._work = self._reader.poll(POLL_RECORDS, timeout_s)
        if self._work:
            records = self._adapt(self._work)
            self._writer.append(records)
        worked = bool(self._work)
        self._work = []
        self._commit()
        return worked

    def lag(self) -> dict[str, int]:
        """Return how many events of each assigned topic are not yet written as tuples: a question to the brokers."""
        found: dict[str, int] = {}
        committed = dict(self._committed)
        for name, span in self._log.spans(committed).items():
            found[name.topic] = found.get(name.topic, 0) + max(0, span.end - max(committed[name], span.start))
        return found

    def _subscribe(self) -> None:
        declared = self._declared.by_iri.values()
        self._by_topic = {self._names.events(declaration.name): declaration for declaration in declared}
        self._reader.subscribe(sorted(self._by_topic))

    def _commit(self) -> None:
        positions = self._reader.positions()
        moved = {name: at for name, at in positions.items() if self._committed.get(name) != at}
        if not moved:
            return
        try:
            self._reader.commit(moved)
            self._committed = positions
        except RebalancedError:
            self._committed = {}  # another member does these again; what comes twice is dropped

    # ---- events to tuples
    def _adapt(self, messages: Sequence[Message]) -> list[Record]:
        """Return the records for some messages: parsed partition by partition, their terms asked for together."""
        self._terms.trim()
        parser = EventParser(self._terms.dictionary, self._max_bytes)
        drafts: list[Tuples] = []
        dead: list[Record] = []
        by_source = sorted(messages, key=lambda message: (message.topic, message.partition))  # stable: in order
        for (topic, partition), group in groupby(by_source, key=lambda message: (message.topic, message.partition)):
            stream = self._by_topic.get(topic)
            if stream is None:
                continue  # dropped
            events, letters = self._read(stream, list(group))
            dead += letters
            for _, run in groupby(events, key=lambda event: (event.syntax, event.advance_ms)):
                tuples, letters = self._parse(parser, stream, Partition(topic, partition), list(run))
                drafts += tuples
                dead += letters
        self.dead += len(dead)
        return [*self._encoded(drafts), *dead]

    def _read(self, stream: StreamDeclaration, messages: Sequence[Message]) -> tuple[list[Event], list[Record]]:
        events, dead = [], []
        for message in messages:
            try:
                events.append(read_event(message))
            except DataError as error:
                where = Partition(message.topic, message.partition)
                dead.append(self._letter(stream, where, message.offset, None, message.value or b"", str(error)))
        return events, dead

    def _parse(
        self, parser: EventParser, stream: StreamDeclaration, source: Partition, run: Sequence[Event]
    ) -> tuple[list[Tuples], list[Record]]:
        """Parse events of one syntax; or heartbeats."""
        advance_ms = run[-1].advance_ms
        if advance_ms is not None:
            run = ()
        good, bad = parser.parse([(event.time_ms, event.data) for event in run], run[0].syntax if run else "nt")
        dead = [self._letter(stream, source, run[each.place].offset, each.time, each.data, each.reason) for each in bad]
        unusable = {each.place for each in bad}
        usable = [event for i, event in enumerate(run) if i not in unusable]
        self.events += len(usable)
        offsets = np.array([event.offset for event in usable], np.int64)
        whole = Tuples(stream.iri, source.number, offsets, good.times, good.counts, good.s, good.p, good.o, advance_ms)
        if len(whole.subjects) <= MAX_TUPLES:
            return [whole], dead
        large = np.flatnonzero(whole.counts > MAX_TUPLES).tolist()
        reason = f"more than {MAX_TUPLES} triples in one event"
        dead += [
            self._letter(stream, source, usable[i].offset, usable[i].time_ms, usable[i].data, reason) for i in large
        ]
        return list(_cut(whole)), dead

    def _letter(
        self, stream: StreamDeclaration, source: Partition, offset: int, time_ms: int | None, data: bytes, reason: str
    ) -> Record:
        letter = DeadLetter(source.topic, source.number, offset, reason, data, stream.iri, time_ms)
        return Record(self._names.dead_letter, encode(letter), source_key(source.topic, source.number, offset))

    def _encoded(self, drafts: Sequence[Tuples]) -> list[Record]:
        """Return the records of tuples, with the cluster's ids."""
        columns = [column for t in drafts for column in (t.subjects, t.predicates, t.objects)]
        ids = self._terms.cluster_ids(np.concatenate([np.empty(0, np.uint64), *columns]))
        parts = np.split(ids, np.cumsum([len(column) for column in columns])[:-1]) if columns else []
        records: list[Record] = []
        names = {stream.iri: stream.name for stream in self._by_topic.values()}
        for i, draft in enumerate(drafts):
            subjects, predicates, objects = parts[3 * i : 3 * i + 3]
            final = Tuples(
                draft.stream,
                draft.partition,
                draft.offsets,
                draft.times,
                draft.counts,
                subjects,
                predicates,
                objects,
                draft.advance_ms,
            )
            self.tuples += len(subjects)
            records.append(Record(self._names.tuples(names[draft.stream]), encode(final), None, draft.partition))
        return records

    def close(self) -> None:
        """Leave the group."""
        self._reader.close()
        self._writer.close()
        self._declared.close()


def _cut(whole: Tuples) -> Iterator[Tuples]:
    """Yield records of at most MAX_TUPLES; events that alone have more are left out."""
    ends = np.cumsum(whole.counts)
    first = 0
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        last = int(np.searchsorted(ends, before + MAX_TUPLES, side="right"))
        rows = slice(before, int(ends[last - 1]) if last > first else before)
        if last > first:
            columns = (whole.subjects[rows], whole.predicates[rows], whole.objects[rows])
            events = slice(first, last)
            head = (whole.stream, whole.partition, whole.offsets[events], whole.times[events], whole.counts[events])
            yield Tuples(*head, *columns, whole.advance_ms)
        first = max(last, first + 1)
