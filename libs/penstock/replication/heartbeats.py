"""Heartbeats and failure detection. Every process writes heartbeats to the log; the coordinator reads them.

A thread sends the heartbeats, so their rate does not depend on the load. They stop when the service's loop makes no
progress. A process that shuts down gracefully announces it, and the coordinator reassigns its shards and buckets at
once.
"""

from __future__ import annotations

import secrets
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from penstock.log import END, LogError, Partition, Record, TransientError
from penstock.quarantine import InternalRecords
from penstock.quarantine.kinds import HEARTBEATS
from penstock.wire import Heartbeat, encode

if TYPE_CHECKING:
    from penstock.log import Log
    from penstock.log.clock import Clock
    from penstock.replication.cluster_topics import ClusterTopics

BEAT_MS = 500
FORGET_AFTER_MS = 3_000
"""A process without heartbeats for this long is considered failed."""
STALL_S = 30.0
"""A process whose loop makes no progress for this long stops its heartbeats. Longer than any evaluation may take."""


class HeartbeatSender:
    """Sends the heartbeats of this process. After `start`, a thread sends them; otherwise `beat` does, when one is due.

    `ready`: whether the process accepts shards or buckets before its first `beat`.
    """

    def __init__(
        self,
        log: Log,
        topics: ClusterTopics,
        clock: Clock,
        service: str,
        instance: str,
        url: str | None = None,
        *,
        ready: bool = True,
    ) -> None:
        self._log = log
        self._writer = log.writer()
        self._topic = topics.heartbeats
        self._clock = clock
        self._who = service, instance, secrets.token_hex(4)
        self.url = url
        self._next_ms: int | None = None
        self._holds: tuple[int, ...] = ()
        self._vts: dict[str, int] = {}
        self._leaves, self._ready = False, ready
        self._progressed = time.monotonic()
        self._due = threading.Event()  # set: the thread sends immediately
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def beat(self, holds: tuple[int, ...] = (), vts: dict[str, int] | None = None, *, ready: bool = True) -> None:
        """Set the served shards or buckets (`holds`), the VTS, and whether the process accepts more (`ready`).

        Sends a heartbeat if one is due and there is no thread. With a thread, a change of `holds` or `ready` is sent
        immediately.
        """
        changed = (holds, ready) != (self._holds, self._ready)
        self._holds, self._vts, self._ready = holds, vts or {}, ready
        self.progress()
        if changed:
            self._due.set()
        now_ms = self._clock.now_ms()
        if self._thread is not None or (self._next_ms is not None and now_ms < self._next_ms):
            return
        self._next_ms = now_ms + BEAT_MS
        with suppress(TransientError):
            self._send()

    def progress(self) -> None:
        """Record that the loop makes progress."""
        self._progressed = time.monotonic()

    def _send(self) -> None:
        beat = Heartbeat(*self._who, self._clock.now_ms(), self.url, self._holds, self._vts, self._leaves, self._ready)
        self._writer.append([Record(self._topic, encode(beat), beat.instance.encode())])

    def leave(self) -> None:
        """Announce that the process shuts down. The coordinator reassigns what it serves."""
        self._leaves, self._next_ms = True, None
        self._due.set()

    def left(self) -> None:
        """Stop the thread and send the last heartbeat of a process that shuts down. It shows that the process serves
        nothing.
        """
        self._end_thread()
        self._leaves, self._holds = True, ()
        with suppress(LogError):
            self._send()

    # ---- the thread
    def start(self) -> None:
        """Send heartbeats from a thread until `close`."""
        self._thread = threading.Thread(target=self._run, daemon=True, name="penstock-heartbeats")
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            if time.monotonic() - self._progressed < STALL_S:
                self._send_or_reopen()
            self._due.wait(BEAT_MS / 1000)
            self._due.clear()

    def _send_or_reopen(self) -> None:
        """Send a heartbeat. An error here does not stop the service; errors of its loop do, after `give_up_s`."""
        try:
            self._send()
        except TransientError:
            return
        except LogError:
            self._writer.close()
            self._writer = self._log.writer()

    def close(self) -> None:
        """Stop the thread."""
        self._end_thread()

    def _end_thread(self) -> None:
        self._ended.set()
        self._due.set()
        if self._thread is not None:
            self._thread.join(BEAT_MS / 1000)


class FailureDetector:
    """The processes with recent heartbeats, by the clock of this process."""

    def __init__(self, log: Log, topics: ClusterTopics, clock: Clock) -> None:
        self.records = InternalRecords(log, topics.names)
        self._reader = log.reader({Partition(topics.heartbeats): END})
        self._clock = clock
        self._heard: dict[tuple[str, str], tuple[int, Heartbeat]] = {}

    def listen(self) -> None:
        """Read new heartbeats, and remove processes without one for `FORGET_AFTER_MS`. Unreadable records are ignored,
        so that they cannot stop the coordinator.
        """
        now_ms = self._clock.now_ms()
        while messages := self._reader.poll():
            for message in messages:
                if message.value is not None:
                    beat: Heartbeat | None = self.records.read_or_ignore(message, HEARTBEATS)
                    if beat is not None:
                        self._heard[beat.service, beat.instance] = now_ms, beat
        self._heard = {who: heard for who, heard in self._heard.items() if now_ms - heard[0] <= FORGET_AFTER_MS}

    def heard(self, service: str) -> dict[str, Heartbeat]:
        """Return the last heartbeat of each live instance of a service, including instances that shut down."""
        return {instance: beat for (kind, instance), (_, beat) in self._heard.items() if kind == service}

    def alive(self, service: str) -> dict[str, Heartbeat]:
        """Return the last heartbeat of each live instance of a service, excluding instances that shut down."""
        return {instance: beat for instance, beat in self.heard(service).items() if not beat.leaves}
