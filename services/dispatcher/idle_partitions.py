"""Streams in which nobody speaks: which partitions are waited for no more, how idle streams go on (semantics.md §2)."""

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
"""How often silent partitions are looked at: some questions to the brokers."""
HEARTBEATS_S, HEARTBEATS_AT_ONCE = 1_000, 100
"""Heartbeats a second that close batches of idle streams, and how many may come together. Beyond that idle streams take
turns, and some batches of each close together: the more are idle the farther apart, in place of all streams being late.
"""
_Waiting = dict[Partition, tuple["StreamTime", int]]


class IdlePartitions:
    """`adaptor_group`: whose progress tells whether a silent partition has anything on the way."""

    def __init__(self, log: Log, names: TopicNames, adaptor_group: str) -> None:
        self._log, self._names, self._adaptor_group = log, names, adaptor_group
        self._idle: dict[str, StreamTime] = {}  # in the order of their turns
        self._next_check_ms = 0
        self._allowance = float(HEARTBEATS_AT_ONCE)
        self._beaten_ms = 0

    def over(self, stream: StreamTime) -> None:
        """Note that a stream speaks, or is no more."""
        self._idle.pop(stream.declaration.iri, None)

    # ---- who is silent
    def look(self, streams: Mapping[str, StreamTime], reader: Reader, wall_ms: int) -> Iterator[StreamTime]:
        """Leave out partitions that are silent because nothing is there, and yield their streams.

        What is on the way is waited for. `reader`: of the tuples topics.
        """
        if wall_ms < self._next_check_ms:
            return
        self._next_check_ms = wall_ms + CHECK_MS
        silent = [(stream, number) for stream in streams.values() for number in stream.silent(wall_ms)]
        for stream, number in self._drained(silent, reader) if silent else ():
            stream.leave_out(number)
            if stream.idle:
                self._idle[stream.declaration.iri] = stream
            yield stream

    def _drained(self, silent: list[tuple[StreamTime, int]], reader: Reader) -> Iterator[tuple[StreamTime, int]]:
        """Those of which every event has come through the adaptor, and been read here. All are asked about at once."""
        topics = self._log.topics()
        sources: _Waiting = {}
        for stream, number in silent:
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

    # ---- how they go on
    def heartbeats(self, highest_ms: int, wall_ms: int) -> Iterator[StreamTime]:
        """Move idle streams to the highest watermark of all, or along with the wall clock; yield those moved."""
        earned = HEARTBEATS_S * max(0, wall_ms - self._beaten_ms) / 1000
        self._allowance, self._beaten_ms = min(self._allowance + earned, HEARTBEATS_AT_ONCE), wall_ms
        for iri, stream in list(self._idle.items()):
            behind_wall = wall_ms - stream.declaration.idle_timeout_ms if stream.follows_wall else NEVER
            time_ms = max(highest_ms, behind_wall)
            if stream.would_close(time_ms):
                if self._allowance < 1:
                    return
                self._allowance -= 1
                self._idle[iri] = self._idle.pop(iri)  # its next turn is after all others'
            if time_ms > stream.watermark_ms:
                stream.advance(time_ms)
                yield stream
