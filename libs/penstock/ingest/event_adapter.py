"""Conversion of events to tuples, shared by all adaptors (ADR 23).

The tuples records from a partition of an events topic are in the order of the events in this partition. Each record
covers a contiguous range of messages. All events of a message are in one record, and have the same offset.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from penstock.engine.intake.events import EventParser, Events
from penstock.engine.intake.removals import checked_removals
from penstock.engine.limits import Limits
from penstock.errors import DataError, LimitError, PenstockError, UnavailableError
from penstock.ingest.event_message import Event, read_events
from penstock.ingest.predicate_filter import PredicateFilter
from penstock.ingest.refused_records import DeadLetter, dead_letter_record
from penstock.log import Partition, Record, TransientError
from penstock.mapping.stream_mapping import compiled_text
from penstock.quarantine.place import Place
from penstock.rdf.terms import MAX_TERM_BYTES
from penstock.term_ids.outgoing_terms import OutgoingTerms
from penstock.wire import Tuples, encode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from penstock.log import Message
    from penstock.log.topics import TopicNames
    from penstock.mapping.encodings.schema_registry import SchemaRegistry
    from penstock.term_ids.outgoing_terms import TermEncoder, TransientEncoder
    from penstock.wire import StreamDeclaration, StreamPredicates

_SOURCE = attrgetter("topic", "partition")
_KIND = attrgetter("syntax", "advance_ms")
MAX_TUPLES = 1_000_000
"""Maximum number of tuples in a record. This is also the maximum number of tuples in a message, because all events of a
message are in one record.
"""


class EventAdapter:
    """Parses events, discards tuples that no query reads, and converts terms to global ids.

    The following counters are totals since the start.

    - `events`, `tuples`: events and tuples in the output.
    - `dead`: dead letters. `events` does not include these events.
    - `discarded`: discarded tuples. `tuples` does not include these tuples.

    `transient`: the service that assigns ids to terms of timing tuples. The dictionary can later remove these terms
    (ADR 50). If the filter changes (`EventAdapter.follow`) before the caller has committed records, the caller must
    make these records again. None: all terms are permanent.
    """

    def __init__(
        self,
        names: TopicNames,
        terms: TermEncoder,
        registry: SchemaRegistry | None = None,
        transient: TransientEncoder | None = None,
    ) -> None:
        self._names = names
        self._registry = registry
        self._max_bytes = Limits().max_event_bytes
        self._terms = OutgoingTerms(terms, transient=transient)
        self._transient = transient is not None
        self._by_topic: Mapping[str, StreamDeclaration] = {}
        self._filters: Mapping[str, StreamPredicates] = {}
        self._predicate_filters: dict[str, PredicateFilter] = {}
        self.events = self.tuples = self.dead = self.discarded = 0

    def follow(
        self, declared: Mapping[str, StreamDeclaration], filters: Mapping[str, StreamPredicates] | None = None
    ) -> None:
        """Set the streams, by events topic, and the predicate filters, by IRI. From now on, messages of other topics
        are skipped.
        """
        self._by_topic, self._filters = declared, filters or {}
        self._predicate_filters.clear()
        self._terms.begin_generation(max((record.generation for record in self._filters.values()), default=0))

    def records(self, messages: Sequence[Message]) -> list[Record]:
        """Return the records for a batch of messages: tuples and dead letters. The call parses each partition
        separately, and requests the ids of all terms together.

        An invalid event becomes a dead letter. If an error does not identify the invalid event, the batch is bisected
        until the event is found. TransientError if the dictionary or the schema registry is unavailable. In this case,
        the call has no effect, and the caller can retry.
        """
        discarded = self.discarded
        try:
            return self._records(messages)
        except (DataError, LimitError) as error:
            reason = str(error)
        except PenstockError:
            raise
        except Exception as error:  # noqa: BLE001 - no error of one event may affect the others
            reason = f"{type(error).__name__}: {error}"
        self.discarded = discarded
        if len(messages) > 1:
            middle = len(messages) // 2
            return [*self.records(messages[:middle]), *self.records(messages[middle:])]
        return self._refused(messages[0], reason)

    def _refused(self, message: Message, reason: str) -> list[Record]:
        self.dead += 1
        return [self._copy(self._by_topic[message.topic], message, reason)]

    def _copy(self, stream: StreamDeclaration, message: Message, reason: str) -> Record:
        letter = DeadLetter(*Place.of(message), reason, message.value or b"", stream.iri)
        return dead_letter_record(self._names, letter, message.headers)

    def _records(self, messages: Sequence[Message]) -> list[Record]:
        if self._terms.trim():
            self._predicate_filters.clear()
        parser = EventParser(self._terms.dictionary, self._max_bytes)
        drafts: list[Tuples] = []
        dead: list[Record] = []
        by_source = sorted(messages, key=_SOURCE)  # a stable sort, so events keep their order
        for (topic, partition), group in groupby(by_source, key=_SOURCE):
            stream = self._by_topic.get(topic)
            if stream is None:
                continue  # dropped
            events, letters = self._read(stream, list(group))
            dead += letters
            for _, run in groupby(events, key=_KIND):
                tuples, letters = self._parse(parser, stream, Partition(topic, partition), list(run))
                drafts += tuples
                dead += letters
        records = [*self._encoded(drafts), *dead]
        self.events += sum(len(draft.offsets) for draft in drafts)
        self.tuples += sum(len(draft.subjects) for draft in drafts)
        self.dead += len(dead)
        return records

    def _read(self, stream: StreamDeclaration, messages: Sequence[Message]) -> tuple[list[Event], list[Record]]:
        events, dead = [], []
        mapping = None if stream.mapping is None else compiled_text(stream.mapping)
        for message in messages:
            try:
                events.extend(read_events(message, mapping, self._max_bytes, self._registry))
            except DataError as error:
                dead.append(self._copy(stream, message, str(error)))
            except UnavailableError as error:
                raise TransientError(str(error)) from error
        return events, dead

    def _parse(
        self, parser: EventParser, stream: StreamDeclaration, source: Partition, run: Sequence[Event]
    ) -> tuple[list[Tuples], list[Record]]:
        """Parse consecutive events of one format, or consecutive heartbeats with the same time. If an event is refused,
        all events of its message are refused.
        """
        advance_ms = run[-1].advance_ms
        if advance_ms is not None:
            run = ()
        good, bad = parser.parse([(event.time_ms, event.text) for event in run], run[0].syntax if run else "nt")
        reasons = {run[each.place].offset: (run[each.place], each.reason) for each in reversed(bad)}
        unusable = {each.place for each in bad}
        usable = [event for i, event in enumerate(run) if i not in unusable]
        good, timed = checked_removals(good, "all" if stream.timing_all else stream.timing, self._terms.dictionary)
        if timed:
            reasons |= {usable[each.place].offset: (usable[each.place], each.reason) for each in timed}
            unusable = {each.place for each in timed}
            usable = [event for i, event in enumerate(usable) if i not in unusable]
        if any(len(event.text) > MAX_TERM_BYTES for event in usable):
            reasons |= self._oversized(usable, good)
        usable, good = _without(reasons.keys(), usable, good)
        offsets = np.array([event.offset for event in usable], np.int64)
        predicate_filter = self._predicate_filter(stream)
        assert good.counts is not None, "parsed events have counts"
        columns = good.counts, good.s, good.p, good.o
        begins = _begins(offsets)
        sizes = np.zeros(len(usable), np.int64)
        sizes[begins] = [usable[i].bytes for i in begins.tolist()]
        whole = Tuples(stream.iri, source.number, offsets, good.times, *columns, advance_ms, predicate_filter.version)
        removed = good.removed if good.removed is not None and good.removed.any() else whole.removed
        whole = replace(whole, event_bytes=int(sizes.sum()), removed=removed)
        parts = [whole]
        if len(whole.subjects) > MAX_TUPLES:
            large = begins[np.add.reduceat(whole.counts, begins) > MAX_TUPLES].tolist()
            reason = f"more than {MAX_TUPLES} triples in one event"
            reasons |= {usable[i].offset: (usable[i], reason) for i in large}
            parts = list(_cut(whole, sizes, begins))
        dead = [self._letter(stream, source, *letter) for letter in reasons.values()]
        return [self._sifted(part, predicate_filter) for part in parts], dead

    def _oversized(self, usable: Sequence[Event], good: Events) -> dict[int, tuple[Event, str]]:
        """Return the events that contain a term too large for the dictionary. The result maps the offset of an event to
        the event and the reason. Examines only events that are larger than the maximum size of a term.
        """
        assert good.counts is not None, "parsed events have counts"
        ends, found = np.cumsum(good.counts), {}
        for i in (i for i, event in enumerate(usable) if len(event.text) > MAX_TERM_BYTES):
            rows = slice(int(ends[i] - good.counts[i]), int(ends[i]))
            reason = self._terms.oversized(np.unique(np.concatenate([good.s[rows], good.p[rows], good.o[rows]])))
            if reason is not None:
                found[usable[i].offset] = usable[i], reason
        return found

    def _predicate_filter(self, stream: StreamDeclaration) -> PredicateFilter:
        if stream.iri not in self._predicate_filters:
            self._predicate_filters[stream.iri] = PredicateFilter(
                self._terms.dictionary, stream, self._filters.get(stream.iri), transient=self._transient
            )
        return self._predicate_filters[stream.iri]

    def _sifted(self, tuples: Tuples, predicate_filter: PredicateFilter) -> Tuples:
        """Remove the tuples that the predicate filter discards. The times of the events remain, because they advance
        the stream's time.
        """
        mask = predicate_filter.chosen(tuples.predicates)
        if mask is None:
            return tuples
        self.discarded += len(mask) - int(mask.sum())
        ends = np.concatenate([[0], np.cumsum(mask)])[np.concatenate([[0], np.cumsum(tuples.counts)])]
        columns = {name: getattr(tuples, name)[mask] for name in ("subjects", "predicates", "objects")}
        removed = tuples.removed[mask] if len(tuples.removed) else tuples.removed
        return replace(tuples, counts=np.diff(ends), removed=removed, **columns)

    def _letter(self, stream: StreamDeclaration, source: Partition, event: Event, reason: str) -> Record:
        letter = DeadLetter(source.topic, source.number, event.offset, reason, event.data, stream.iri, event.time_ms)
        return dead_letter_record(self._names, letter, event.headers)

    def _encoded(self, drafts: Sequence[Tuples]) -> list[Record]:
        """Replace the local ids of tuples by global ids, and return the encoded records."""
        columns = [column for t in drafts for column in (t.subjects, t.predicates, t.objects)]
        streams = {stream.iri: stream for stream in self._by_topic.values()}
        masks = []
        for t in drafts:
            passing = self._predicate_filter(streams[t.stream]).passing(t.predicates)
            masks += [passing, np.zeros(len(passing), np.bool_), passing]
        every = np.concatenate([np.empty(0, np.uint64), *columns])
        ids = self._terms.cluster_ids(every, np.concatenate([np.empty(0, np.bool_), *masks]))
        parts = np.split(ids, np.cumsum([len(column) for column in columns])[:-1]) if columns else []
        records: list[Record] = []
        names = {iri: stream.name for iri, stream in streams.items()}
        for i, draft in enumerate(drafts):
            subjects, predicates, objects = parts[3 * i : 3 * i + 3]
            final = replace(draft, subjects=subjects, predicates=predicates, objects=objects)
            records.append(Record(self._names.tuples(names[draft.stream]), encode(final), None, draft.partition))
        return records


def _begins(offsets: np.ndarray) -> np.ndarray:
    """Return the positions at which messages begin. The events of a message are contiguous."""
    if len(offsets) == 0:
        return np.empty(0, np.int64)
    return np.flatnonzero(np.concatenate([[True], offsets[1:] != offsets[:-1]]))


def _without(refused: Collection[int], usable: list[Event], good: Events) -> tuple[list[Event], Events]:
    """Return the events and tuples of the messages that are not refused. `refused`: the offsets of refused messages."""
    stays = np.array([event.offset not in refused for event in usable], bool)
    if stays.all():
        return usable, good
    assert good.counts is not None, "parsed events have counts"
    mask = np.repeat(stays, good.counts)
    left = [event for event, stay in zip(usable, stays.tolist(), strict=True) if stay]
    columns = good.s[mask], good.p[mask], good.o[mask]
    removed = None if good.removed is None else good.removed[mask]
    return left, Events(good.times[stays], good.counts[stays], *columns, (), removed)


def _cut(whole: Tuples, sizes: np.ndarray, begins: np.ndarray) -> Iterator[Tuples]:
    """Divide a record into records of at most MAX_TUPLES tuples. Each record contains whole messages. A message with
    more tuples is omitted. `begins`: the position of each message's first event.
    """
    ends = np.append(begins[1:], len(whole.counts))  # of messages, in events
    tuples = np.cumsum(whole.counts)[ends - 1]  # up to the end of each message
    first = 0
    while first < len(begins):
        before = int(tuples[first - 1]) if first else 0
        last = int(np.searchsorted(tuples, before + MAX_TUPLES, side="right"))
        if last > first:
            rows = slice(before, int(tuples[last - 1]))
            columns = (whole.subjects[rows], whole.predicates[rows], whole.objects[rows])
            events = slice(int(begins[first]), int(ends[last - 1]))
            head = (whole.stream, whole.partition, whole.offsets[events], whole.times[events], whole.counts[events])
            made = Tuples(*head, *columns, whole.advance_ms, whole.filter_version, int(sizes[events].sum()))
            yield replace(made, removed=whole.removed[rows])
        first = max(last, first + 1)
