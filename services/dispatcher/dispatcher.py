"""The dispatcher: computes event time, and writes closed batches to all shards (ADR 22).

A transaction contains closed batches for all shards, refused events, and the dispatcher's state in a compacted topic.
The state includes the next offsets to read in the tuples topics. A restarted dispatcher continues from the state of the
last transaction. The dispatcher therefore closes no batch twice, and decides about each event as before the restart.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.event_time.watermark import NEVER
from penstock.ingest.declared_streams import OPENING_S, DeclaredStreams
from penstock.log import LogError, Partition, Record, Topic, TransientError, UnknownTopicError
from penstock.log.sizes import wire_bytes
from penstock.log.view import Lookup, records_behind
from penstock.quarantine import InternalRecords
from penstock.quarantine.kinds import DISPATCHER, TUPLES
from penstock.services.dispatcher.idle_partitions import IdlePartitions
from penstock.services.dispatcher.output_records import batch_records, refused_records
from penstock.services.dispatcher.stream_time import MAX_BATCH_TUPLES, StreamTime, Tallies
from penstock.wire import encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.log import Log, Message, Reader
    from penstock.log.clock import Clock
    from penstock.log.topics import TopicNames
    from penstock.services.dispatcher.refused_runs import Refused
    from penstock.wire import DispatcherState, StreamDeclaration, Tuples

POLL_RECORDS = 1_000
"""Maximum number of tuples records per step."""
TRANSACTION_BYTES = 64 << 20
"""Size in bytes at which the dispatcher commits a transaction. A transaction can be larger, because a batch and a
record's refused events are never divided.
"""
OPEN_BYTES = 256 << 20
"""Limit in bytes for the size of a stream's open batches. Above this limit, the dispatcher pauses the partitions whose
watermark is ahead of the watermark of the slowest partition. The setting `slice_mb` of a declaration overrides the
limit.
"""
GROWTH_MS = 5_000
"""Interval of checks for new partitions, in ms."""


class Dispatcher:
    """The active instance. Its construction fences the previous instance. The next transaction of the previous instance
    raises FencedError.

    `adaptor_group`: the adaptors' consumer group. The group's offsets show whether adaptors still have to process
    events of a partition.
    """

    def __init__(
        self,
        log: Log,
        names: TopicNames,
        shards: int,
        clock: Clock,
        adaptor_group: str,
        opening_s: float = OPENING_S,
        max_batch_tuples: int = MAX_BATCH_TUPLES,
    ) -> None:
        self._max_batch_tuples = max_batch_tuples
        self._log, self._names, self._shards, self._clock = log, names, shards, clock
        self._opening_s = opening_s
        log.create([Topic(names.dispatcher, 1, "compact")])
        self._writer = log.transactional(f"{names.prefix}.dispatcher")
        self._declared = DeclaredStreams(log, names, opening_s)
        self._reader: Reader = log.reader()
        self._lookup = Lookup(log)
        self._records = InternalRecords(log, names)
        self._streams: dict[str, StreamTime] = {}
        self._by_topic: dict[str, StreamTime] = {}
        self._idle_partitions = IdlePartitions(log, names, adaptor_group)
        self._next_growth_ms = 0
        self._touched: dict[str, StreamTime] = {}  # streams with batches to close or a state to write
        self._highest_ms = NEVER  # maximum watermark of all streams
        self._fresh: dict[Partition, int] = {}  # partitions to read from now on, with the offsets at which to begin
        self._saved = self._read_states()
        self._unread: deque[Message] = deque()  # records that are polled and not processed yet
        self._refused: list[tuple[StreamDeclaration, list[Refused]]] = []
        self._refused_bytes = 0  # upper bound
        self._copies: dict[str, list[Record]] = {}  # records of refused events, by stream, not in the outbox
        self._outbox: list[Record] = []
        self._outbox_bytes = 0
        self.batches = self.late = self.dead = self.transactions = 0
        self._gone = Tallies()
        self._follow()

    @property
    def streams(self) -> dict[str, StreamTime]:
        """The event time of each declared stream, by IRI."""
        return self._streams

    def tallies(self) -> Tallies:
        """Return the sums of all streams' counters since the start of this instance. Any thread can call this
        method.
        """
        return sum((stream.tallies for stream in list(self._streams.values())), self._gone)

    def step(self, timeout_s: float = 0.0) -> bool:
        """Read tuples, and write closed batches, refused events and states. Waits at most `timeout_s` seconds for
        tuples. Returns whether there were any tuples.

        After a TransientError, call again: the next call writes the rest. Any other LogError ends this instance.
        """
        if self._outbox or self._touched:  # the previous step was not completed
            self._write()
        if self._declared.refresh() or len(self._streams) < len(self._declared.by_iri):
            self._follow()
        wall_ms = self._clock.now_ms()
        self._look_for_growth(wall_ms)
        self._read_on()
        if not self._unread:
            self._unread += self._reader.poll(POLL_RECORDS, timeout_s)
        wall_ms, worked = self._clock.now_ms(), bool(self._unread)
        while self._unread and self._refused_bytes < TRANSACTION_BYTES:
            self._take(self._unread[0], wall_ms)
            self._unread.popleft()
        if not self._unread:  # otherwise a partition that seems idle possibly has unprocessed records
            for stream in self._idle_partitions.look(self._streams, self._reader, wall_ms):
                self._record_state(stream)
        for stream in self._idle_partitions.heartbeats(self._highest_ms, wall_ms):
            self._record_state(stream)
        self._write()
        return worked

    def lag(self) -> dict[str, int]:
        """Return the number of unread records per tuples topic. Queries the brokers."""
        positions = {
            name: part.position
            for stream in list(self._streams.values())
            for name, part in zip(self._partitions(stream), stream.partitions, strict=True)
        }
        return records_behind(self._log, positions)

    # ---- input
    def _take(self, message: Message, wall_ms: int) -> None:
        """Process one record of a tuples topic. After a TransientError, nothing has changed."""
        stream = self._by_topic.get(message.topic)
        if stream is None:
            return  # the stream was dropped
        tuples: Tuples | None = self._records.read(message, TUPLES)
        if tuples is None:
            return
        # the version counts once all partitions have it, so look for new partitions now
        if tuples.filter_version > stream.known:
            self._next_growth_ms = wall_ms
            self._look_for_growth(wall_ms)
        refused = stream.take(message.partition, tuples, message.offset, wall_ms)
        self._idle_partitions.over(stream)
        self._record_state(stream)
        if refused:
            self._refused.append((stream.declaration, refused))
            self._refused_bytes += tuples.event_bytes
        if stream.open.bytes > (stream.declaration.slice_mb << 20 if stream.declaration.slice_mb else OPEN_BYTES):
            self._reader.pause(self._partitions(stream, stream.leading()))

    def _record_state(self, stream: StreamTime) -> None:
        """Mark a stream for `_write`. The stream possibly has batches to close, or its state has possibly changed."""
        self._touched[stream.declaration.iri] = stream
        self._highest_ms = max(self._highest_ms, stream.watermark_ms)

    def _partitions(self, stream: StreamTime, numbers: list[int] | None = None) -> list[Partition]:
        topic = self._names.tuples(stream.declaration.name)
        return [Partition(topic, i) for i in (range(len(stream.partitions)) if numbers is None else numbers)]

    # ---- output
    def _write(self) -> None:
        """Write closed batches, refused events and changed states. After a TransientError, the next call continues.

        A transaction is committed when its size reaches `TRANSACTION_BYTES`. A transaction always contains the state
        that follows from its records. Otherwise, a restart would write refused events again.
        """
        self._commit()
        self._copy_refused()
        while self._touched:
            iri, stream = next(iter(self._touched.items()))
            self._put(self._copies.pop(iri, []))
            for batch in stream.close():
                self.batches += batch.last - batch.first + 1
                self._put(batch_records(self._names, self._shards, stream.declaration, batch))
                if self._outbox_bytes >= TRANSACTION_BYTES:
                    self._put([self._state_record(stream)])
                    self._commit()
            if stream.changed:
                self._put([self._state_record(stream)])
                self._reader.resume(self._partitions(stream))
            del self._touched[iri]
            if self._outbox_bytes >= TRANSACTION_BYTES:
                self._commit()
        self._commit()

    def _copy_refused(self) -> None:
        """Read the original bytes of refused events, and make records of these bytes. After a TransientError, nothing
        has changed.
        """
        if not self._refused:
            return
        self._copies = refused_records(self._names, self._lookup, self._refused)
        late = [event.late for _, refused in self._refused for event in refused for _ in range(event.events)]
        self.late += sum(late)
        self.dead += len(late) - sum(late)
        self._refused, self._refused_bytes = [], 0

    def _put(self, records: Sequence[Record]) -> None:
        self._outbox += records
        self._outbox_bytes += sum(map(wire_bytes, records))

    def _state_record(self, stream: StreamTime) -> Record:
        return Record(self._names.dispatcher, encode(stream.state()), _key(stream.declaration))

    def _commit(self) -> None:
        """Commit the outbox. After a TransientError, the outbox is unchanged."""
        if self._outbox:
            self._writer.commit(self._outbox)
            self.transactions += 1
            self._outbox, self._outbox_bytes = [], 0

    # ---- declared and dropped streams
    def _follow(self) -> None:
        declared = self._declared.by_iri
        for iri, stream in list(self._streams.items()):
            if iri not in declared or declared[iri].number != stream.declaration.number:
                self._drop(iri, stream)
        topics = self._log.topics()
        for iri, declaration in declared.items():
            if iri in self._streams:
                continue
            topic = self._names.tuples(declaration.name)
            partitions = topics.get(topic, 0)
            if not partitions:
                with suppress(UnknownTopicError):
                    self._log.spans([Partition(topic)])  # DeniedError if ACLs hide the topic
            state = self._state_of(declaration)
            taken = 1 if state is None else len(state.positions)  # brokers can briefly report fewer partitions
            if partitions >= taken:
                self._add(declaration, partitions)
        self._read_on()

    def _look_for_growth(self, wall_ms: int) -> None:
        """Add new partitions of tuples topics to their streams. The dispatcher reads the new partitions from the
        start.
        """
        if wall_ms < self._next_growth_ms:
            return
        self._next_growth_ms = wall_ms + GROWTH_MS
        topics = self._log.topics()
        for topic, stream in self._by_topic.items():
            if topics.get(topic, 0) > (before := len(stream.partitions)):
                stream.grow(topics[topic], wall_ms)
                self._fresh |= dict.fromkeys(self._partitions(stream)[before:], 0)
                self._idle_partitions.over(stream)

    def _read_on(self) -> None:
        """Begin to read the partitions in `_fresh`."""
        if self._fresh:
            self._reader.assign(self._fresh)
            self._fresh = {}

    def _drop(self, iri: str, stream: StreamTime) -> None:
        """Remove a stream. Its state remains in the topic, because a later stream with the same topics begins where
        this stream ends.
        """
        names = self._partitions(stream)
        self._reader.unassign(names)
        self._fresh = {name: at for name, at in self._fresh.items() if name not in names}
        self._idle_partitions.over(stream)
        self._touched.pop(iri, None)
        self._gone += stream.tallies
        del self._streams[iri]
        del self._by_topic[self._names.tuples(stream.declaration.name)]
        key = _key(stream.declaration)
        self._saved[key] = state = stream.state()
        self._put([Record(self._names.dispatcher, encode(state), key)])
        self._highest_ms = max((other.watermark_ms for other in self._streams.values()), default=NEVER)

    def _add(self, declaration: StreamDeclaration, partitions: int) -> None:
        stream = StreamTime(declaration, partitions, self._clock.now_ms(), self._max_batch_tuples)
        state = self._state_of(declaration)
        if state is not None and state.number == declaration.number:
            stream.restore(state)
            self._replay(stream, state)
            stream.replayed(state)
        elif state is not None:
            stream.begin_after(state)
        if state is None or state.number != declaration.number:
            # Skip tuples that were filtered for an earlier stream of the same name. Use the filter version at the
            # declaration, not the current one: adaptors may already have filtered and committed events of this stream
            # by an older version than the current one.
            stream.demand(declaration.filter_version)
        self._saved.pop(_key(declaration), None)
        self._streams[declaration.iri] = stream
        self._by_topic[self._names.tuples(declaration.name)] = stream
        self._record_state(stream)
        names = self._partitions(stream)
        self._fresh |= {name: part.position for name, part in zip(names, stream.partitions, strict=True)}

    # ---- restart
    def _read_states(self) -> dict[bytes, DispatcherState]:
        view = self._records.view([Partition(self._names.dispatcher)], DISPATCHER)
        try:
            latest = view.catch_up(self._opening_s)
            return {key: self._records.read(message, DISPATCHER) for key, message in latest.items()}
        finally:
            view.close()

    def _state_of(self, declaration: StreamDeclaration) -> DispatcherState | None:
        """Return the saved state of a stream's topics, or None. An earlier stream with the same topics has possibly
        saved this state.
        """
        return self._saved.get(_key(declaration))

    def _replay(self, stream: StreamTime, state: DispatcherState) -> None:
        """Read the tuples of a stream's open batches again, after a restart. LogError if retention has removed some of
        these tuples.
        """
        for name, start, end in zip(
            self._partitions(stream), state.replay_positions.tolist(), state.positions.tolist(), strict=False
        ):
            if start == end:
                continue
            if self._log.spans([name])[name].start > start:
                raise LogError(
                    f"{name.topic}[{name.number}]: retention has removed tuples of open batches from {start} on"
                )
            self._replay_partition(stream, name, start, end)
            stream.partitions[name.number].position = end

    def _replay_partition(self, stream: StreamTime, name: Partition, start: int, end: int) -> None:
        reader = self._log.reader({name: start})
        deadline = time.monotonic() + self._opening_s
        try:
            while reader.positions()[name] < end:
                for message in reader.poll(POLL_RECORDS, min(0.1, self._opening_s)):
                    tuples = self._records.read(message, TUPLES) if message.offset < end else None
                    if tuples is not None:
                        stream.replay(name.number, tuples, message.offset)
                if time.monotonic() > deadline and reader.positions()[name] < end:
                    raise TransientError(f"{name.topic}[{name.number}] was not read up to {end} in time")
        finally:
            reader.close()

    def close(self) -> None:
        """Close the log clients. The next instance reads the tuples of unwritten batches again."""
        self._writer.close()
        self._reader.close()
        self._declared.close()
        self._lookup.close()


def _key(declaration: StreamDeclaration) -> bytes:
    """Return the key of a stream's state. The key names the stream's topics, so that a later stream with the same
    topics finds the state.
    """
    return f"topics {declaration.name}".encode()
