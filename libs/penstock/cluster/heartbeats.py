"""Heartbeats: every process says in the log, once in a while, that it lives; the coordinator listens."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from penstock.log import END, Partition, Record, TransientError
from penstock.quarantine import InternalRecords
from penstock.quarantine.kinds import HEARTBEATS
from penstock.wire import Heartbeat, encode

if TYPE_CHECKING:
    from penstock.cluster.topics import ClusterTopics
    from penstock.log import Log
    from penstock.log.clock import Clock

BEAT_MS = 500
SILENT_MS = 3_000
"""A process that was not heard of for so long is taken for dead."""


class Heart:
    """The process's own heartbeat."""

    def __init__(
        self, log: Log, topics: ClusterTopics, clock: Clock, service: str, instance: str, url: str | None = None
    ) -> None:
        self._writer = log.writer()
        self._topic = topics.heartbeats
        self._clock = clock
        self._who = service, instance, secrets.token_hex(4)
        self.url = url
        self._next_ms: int | None = None

    def beat(self, holds: tuple[int, ...] = (), vts: dict[str, int] | None = None) -> None:
        """Say so where it is time."""
        now_ms = self._clock.now_ms()
        if self._next_ms is not None and now_ms < self._next_ms:
            return
        self._next_ms = now_ms + BEAT_MS
        beat = Heartbeat(*self._who, now_ms, self.url, holds, vts or {})
        try:
            self._writer.append([Record(self._topic, encode(beat), beat.instance.encode())])
        except TransientError:
            return


class Ear:
    """Who was heard of lately, by this process's clock."""

    def __init__(self, log: Log, topics: ClusterTopics, clock: Clock) -> None:
        self.records = InternalRecords(log, topics.names)
        self._reader = log.reader({Partition(topics.heartbeats): END})
        self._clock = clock
        self._heard: dict[tuple[str, str], tuple[int, Heartbeat]] = {}

    def listen(self) -> None:
        """Take in what was said. A record that cannot be read is ignored: it must not stop the coordinators."""
        now_ms = self._clock.now_ms()
        while messages := self._reader.poll():
            for message in messages:
                if message.value is not None:
                    beat: Heartbeat | None = self.records.read_or_ignore(message, HEARTBEATS)
                    if beat is not None:
                        self._heard[beat.service, beat.instance] = now_ms, beat
        self._heard = {who: heard for who, heard in self._heard.items() if now_ms - heard[0] <= SILENT_MS}

    def alive(self, service: str) -> dict[str, Heartbeat]:
        """Return the living instances of a service."""
        return {instance: beat for (kind, instance), (_, beat) in self._heard.items() if kind == service}
