"""Idle-source detection: excludes idle partitions from the watermark, and advances idle streams (semantics.md §2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.event_time.watermark import NEVER
from penstock.log import Partition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.log import Log, Reader
    from penstock.log.topics import TopicNames
    from penstock.services.dispatcher.stream_time import StreamTime

CHECK_MS = 250
"""Interval of checks for idle partitions, in ms. If a partition is possibly idle, a check sends requests to the
brokers.
"""
HEARTBEATS_S, HEARTBEATS_AT_ONCE = 1_000, 100
"""Limits on advances of idle streams: maximum number per second, and maximum burst. Only advances that close a batch
count.

If idle streams need more advances, the streams take turns. Several batches of a stream then close together. The more
idle streams there are, the more rarely each idle stream advances. Streams that are not idle have no additional latency.
"""
_Waiting = dict[Partition, tuple["StreamTime", int]]


class IdlePartitions:
    """Detects the idle partitions of all streams. `adaptor_group`: the adaptors' consumer group, whose offsets show
    whether adaptors still have to process events of a partition.
    """

    def __init__(self, log: Log, names: TopicNames, adaptor_group: str) -> None:
        self._log, self._names, self._adaptor_group = log, names, adaptor_group
        self._idle: dict[str, StreamTime] = {}  # in the order of their turns
        self._next_check_ms = 0
        self._allowance = float(HEARTBEATS_AT_ONCE)
        self._beaten_ms = 0

    def over(self, stream: StreamTime) -> None:
        """Record that a stream is no longer idle or was dropped."""
        self._idle.pop(stream.declaration.iri, None)

    # ---- detection
    def look(self, streams: Mapping[str, StreamTime], reader: Reader, wall_ms: int) -> Iterator[StreamTime]:
        """Exclude idle partitions from the watermarks of streams, and yield the streams that have such partitions.
        `wall_ms`: the current time.

        A partition with unprocessed events or tuples is not excluded. `reader`: the reader of the tuples topics.
        """
        if wall_ms < self._next_check_ms:
            return
        self._next_check_ms = wall_ms + CHECK_MS
        overdue = [(stream, number) for stream in streams.values() for number in stream.overdue(wall_ms)]
        for stream, number in self._drained(overdue, reader) if overdue else ():
            stream.leave_out(number)
            if stream.idle:
                self._idle[stream.declaration.iri] = stream
            yield stream

    def _drained(self, overdue: list[tuple[StreamTime, int]], reader: Reader) -> Iterator[tuple[StreamTime, int]]:
        """Yield each overdue partition without unprocessed input: the adaptors have processed all events of the
        partition, and the dispatcher has read all tuples. The number of requests to the brokers does not depend on the
        number of partitions.
        """
        topics = self._log.topics()
        sources: _Waiting = {}
        for stream, number in overdue:
            source = Partition(self._names.events(stream.declaration.name), number)
            if number < topics.get(source.topic, 0):
                sources[source] = stream, number
            else:
                yield stream, number
        spans = self._log.spans(sources)
        adapted = self._log.committed(self._adaptor_group, sources)
        tuples: _Waiting = {
            Partition(self._names.tuples(stream.declaration.name), number): (stream, number)
            for source, (stream, number) in sources.items()
            if adapted.get(source, spans[source].start) >= spans[source].end
        }
        spans, positions = self._log.spans(tuples), reader.positions()
        yield from (waiting for name, waiting in tuples.items() if positions.get(name, 0) >= spans[name].end)

    # ---- advance of idle streams
    def heartbeats(self, highest_ms: int, wall_ms: int) -> Iterator[StreamTime]:
        """Advance idle streams, and yield the streams that advance. `highest_ms`: the maximum watermark of all streams.
        `wall_ms`: the current time.

        A stream advances to `highest_ms`. A stream whose events follow the wall clock advances at least to `wall_ms`
        minus its idle timeout. The rate of advances that close a batch is limited. When the limit is reached, streams
        wait for a later call.
        """
        earned = HEARTBEATS_S * max(0, wall_ms - self._beaten_ms) / 1000
        self._allowance, self._beaten_ms = min(self._allowance + earned, HEARTBEATS_AT_ONCE), wall_ms
        for iri, stream in list(self._idle.items()):
            behind_wall = wall_ms - stream.declaration.idle_timeout_ms if stream.follows_wall else NEVER
            time_ms = max(highest_ms, behind_wall)
            if stream.would_close(time_ms):
                if self._allowance < 1:
                    return
                self._allowance -= 1
                self._idle[iri] = self._idle.pop(iri)  # move it to the end: its next turn is after those of all others
            if time_ms > stream.watermark_ms:
                stream.advance(time_ms)
                yield stream
