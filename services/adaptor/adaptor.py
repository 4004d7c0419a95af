"""The plain adaptor: converts users' events to tuples of term ids (ADR 23). Its only state is in the log.

Predicate filter: the adaptor discards tuples of timing predicates that no query reads. If the filter of a stream
discards tuples, or has a generation of transient terms (ADR 50), the adaptor reads the control topic to its end before
it commits the group's offsets. If the filter has changed by then, the adaptor writes the tuples of the same events
again (ADR 45).

Tuples are durable before the group's offsets are committed. After a crash or a rebalance, the adaptor can therefore
write tuples again. Each record contains its source offsets, and the dispatcher uses these offsets to remove duplicates.
Dead letters can be duplicated, too. Consumers recognise duplicate dead letters by the key, which is the position of the
source event.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from penstock.ingest.declared_streams import OPENING_S, DeclaredStreams
from penstock.ingest.event_adapter import EventAdapter
from penstock.ingest.predicate_filter import discards, marker, passing_generation, versions
from penstock.log import Partition, RebalancedError, Record
from penstock.log.view import records_behind
from penstock.rdf.parse_limits import PARSE_LIMITS
from penstock.wire import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from penstock.log import Log, Message
    from penstock.log.topics import TopicNames
    from penstock.mapping.encodings.schema_registry import SchemaRegistry
    from penstock.term_ids.outgoing_terms import TermEncoder, TransientEncoder

POLL_RECORDS = 2_000
"""Maximum number of events per step."""
STEP_S = 5.0
"""Time in s after which a step starts no further portion of its events. A parser can need seconds per portion (ADR 52),
and a service whose steps take too long is not live (`Health`).
"""
PORTION_CPU_S = 20.0
"""Maximum CPU time of the parsers of one portion, in s."""


class Adaptor:
    """One member of the adaptors' consumer group. `transient`: see `EventAdapter`."""

    def __init__(
        self,
        log: Log,
        names: TopicNames,
        terms: TermEncoder,
        group: str,
        opening_s: float = OPENING_S,
        now: Callable[[], float] = time.monotonic,
        registry: SchemaRegistry | None = None,
        transient: TransientEncoder | None = None,
    ) -> None:
        self._log, self._names, self._now = log, names, now
        self.adapting = EventAdapter(names, terms, registry, transient)
        self._declared = DeclaredStreams(log, names, opening_s)
        self._writer = log.writer()
        self._reader = log.join(group, [])
        self._work: list[Message] = []
        self._committed: dict[Partition, int] = {}
        # number of partitions of each events topic whose tuples topic has as many partitions
        self._partitions: dict[str, int] = {}
        self._marked: dict[Partition, int] = {}
        # changes and assignment at the last call of `_mark`
        self._seen: tuple[int, frozenset[Partition]] = -1, frozenset()
        self._followed = -1
        self._follow()

    def step(self, timeout_s: float = 0.0) -> bool:
        """Read events and write the tuples of these events. Waits at most `timeout_s` seconds for events. Returns
        whether there were any events.

        TransientError if the log, the dictionary or the schema registry is unavailable. No event is lost; call again.
        """
        self._declared.refresh()
        self._follow()
        if not self._work:
            self._work = self._reader.poll(POLL_RECORDS, timeout_s)
        self._mark()
        worked = bool(self._work)
        if worked:
            self._make_room((message.topic, message.partition) for message in self._work)
        deadline = self._now() + STEP_S
        while self._work:
            portion = _portion(self._work)
            self._write(portion)
            self._work = self._work[len(portion) :]
            if self._now() > deadline:
                break
        self._commit()
        return worked

    def _make_room(self, sources: Iterable[tuple[str, int]]) -> None:
        """Add partitions to tuples topics whose events topics have gained partitions."""
        counts: dict[str, int] = {}
        for topic, number in sources:
            if number >= self._partitions.get(topic, 0):
                counts[topic] = max(number + 1, counts.get(topic, 0))
        if not counts:
            return
        topics, declared = self._log.topics(), self._declared.by_topic()
        for topic in counts.keys() & declared.keys():
            count = max(counts[topic], topics.get(topic, 0))
            tuples = self._names.tuples(declared[topic].name)
            if topics.get(tuples, 0) < count:
                self._log.grow(tuples, count)
            self._partitions[topic] = count

    def lag(self) -> dict[str, int]:
        """Return the number of unprocessed events per assigned topic. Queries the brokers."""
        return records_behind(self._log, dict(self._committed))

    def _follow(self) -> None:
        if self._declared.changes == self._followed:
            return
        by_topic = self._declared.by_topic()
        self.adapting.follow(by_topic, self._declared.filters)
        self._reader.subscribe(sorted(by_topic))
        self._followed = self._declared.changes

    def _write(self, work: Sequence[Message]) -> None:
        """Write the tuples of messages. If the predicate filter has changed meanwhile, write the tuples again, filtered
        by the new filter.
        """
        by_topic, filters = self._declared.by_topic(), self._declared.filters
        topics = sorted({message.topic for message in work} & by_topic.keys())
        while True:
            before = versions(by_topic, filters, topics)
            used = [(by_topic[topic], filters.get(by_topic[topic].iri)) for topic in topics]
            cut = any(discards(*each) or passing_generation(*each) > 0 for each in used)
            self._writer.append(self.adapting.records(work))
            if not cut:
                return
            self._declared.catch_up()
            if versions(by_topic, filters, topics) == before:
                return
            self.adapting.follow(by_topic, filters)

    def _mark(self) -> None:
        """Write the current version of the predicate filter to every assigned partition, including partitions without
        events.
        """
        seen = self._declared.changes, self._reader.assigned()
        if seen == self._seen:
            return
        by_topic = self._declared.by_topic()
        assigned = {partition for partition in seen[1] if partition.topic in by_topic}
        due, marked = [], {}
        for partition in sorted(assigned):
            [version] = versions(by_topic, self._declared.filters, [partition.topic])
            if version > self._marked.get(partition, 0):
                stream = by_topic[partition.topic]
                value = encode(marker(stream, partition.number, version))
                due.append(Record(self._names.tuples(stream.name), value, None, partition.number))
                marked[partition] = version
        if due:
            self._make_room((partition.topic, partition.number) for partition in marked)
            self._writer.append(due)
        self._marked = {name: v for name, v in (self._marked | marked).items() if name in assigned}
        self._seen = seen

    def _commit(self) -> None:
        positions = self._reader.positions()
        for message in reversed(self._work):  # not written yet
            source = Partition(message.topic, message.partition)
            if source in positions:
                positions[source] = message.offset
        moved = {name: at for name, at in positions.items() if self._committed.get(name) != at}
        if not moved:
            return
        try:
            self._reader.commit(moved)
            self._committed = positions
        except RebalancedError:
            self._committed = {}  # another member processes these events again; the dispatcher removes duplicates

    def close(self) -> None:
        """Leave the group and close the log clients."""
        self._reader.close()
        self._writer.close()
        self._declared.close()


def _portion(work: Sequence[Message]) -> Sequence[Message]:
    """Return as many of the first messages as fit: the sum of the parsers' CPU limits is at most PORTION_CPU_S. The
    first message is always included. Small messages count as 0 s, because this process parses small messages itself.
    """
    cpu_s = 0.0
    for i, message in enumerate(work):
        size = 0 if message.value is None else len(message.value)
        if size > PARSE_LIMITS.small_document_bytes:
            cpu_s += PARSE_LIMITS.cpu_s(size)
            if cpu_s > PORTION_CPU_S and i:
                return work[:i]
    return work
