"""Heartbeats and failure detection. Coordinators, dictionaries, stores and query engines write heartbeats to the log.
The coordinator reads them.

A thread sends the heartbeats, so their rate does not depend on the load. The thread sends no heartbeats while the
service's loop makes no progress. A process that shuts down gracefully announces the shutdown. The coordinator then
reassigns the shards and buckets of this process at once.
"""

from __future__ import annotations

import logging
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
    from collections.abc import Mapping

    from penstock.log import Log
    from penstock.log.clock import Clock
    from penstock.replication.cluster_topics import ClusterTopics

_logger = logging.getLogger("penstock.heartbeats")
BEAT_MS = 500
FORGET_AFTER_MS = 3_000
"""Time in ms after which a process without heartbeats is considered failed."""
STALL_S = 30.0
"""Time in s after which a process whose loop makes no progress stops its heartbeats. This time is longer than any
permitted evaluation.
"""


class HeartbeatSender:
    """Sends the heartbeats of this process. After `start`, a thread sends the heartbeats. Without `start`, `beat` sends
    a heartbeat if one is due.

    `url`: the address of the process, if it has one. `ready`: whether the process accepts shards or buckets before its
    first `beat`.
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
        self._loads: Mapping[int, int] = {}
        self._floors: dict[str, int] = {}
        self._reported = ""  # the last error in the service's log
        self._progressed = time.monotonic()
        self._due = threading.Event()  # set: the thread sends at once
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def beat(
        self,
        holds: tuple[int, ...] = (),
        vts: dict[str, int] | None = None,
        *,
        ready: bool = True,
        loads: Mapping[int, int] | None = None,
        floors: dict[str, int] | None = None,
    ) -> None:
        """Set the content of the next heartbeats, and record that the loop makes progress. `holds`: numbers of the
        shards that a store serves, or of the buckets that an engine evaluates. `vts`: the number of the last closed
        batch, by stream. `ready`: whether the process accepts more shards or buckets. `loads`: loads of buckets, in µs
        of work per second. `floors`: see `Commitments.floors`.

        If there is no thread, sends a heartbeat if one is due. If there is a thread, the thread sends a heartbeat at
        once when `holds` or `ready` changes.
        """
        changed = (holds, ready) != (self._holds, self._ready)
        self._holds, self._vts, self._ready, self._loads = holds, vts or {}, ready, loads or {}
        self._floors = floors or {}
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
        loads = {str(bucket): load for bucket, load in self._loads.items()}
        now_ms, leaves = self._clock.now_ms(), self._leaves
        beat = Heartbeat(*self._who, now_ms, self.url, self._holds, self._vts, leaves, self._ready, loads, self._floors)
        self._writer.append([Record(self._topic, encode(beat), beat.instance.encode())])

    def leave(self) -> None:
        """Announce in the next heartbeats that the process shuts down. The coordinator then reassigns the shards or
        buckets of the process.
        """
        self._leaves, self._next_ms = True, None
        self._due.set()

    def left(self) -> None:
        """Stop the thread and send the last heartbeat of this process. This heartbeat announces the shutdown, and lists
        no shards or buckets.
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
        """Send a heartbeat. An error here does not stop the service. If the log remains unavailable, the service's loop
        fails after `give_up_s`. A permanent error, such as a denied topic, is logged once.
        """
        try:
            self._send()
        except TransientError:
            return
        except LogError as error:
            if str(error) != self._reported:
                self._reported = str(error)
                _logger.warning("heartbeats are refused: %s", error)
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
        """Read new heartbeats. Remove processes that have sent no heartbeat for `FORGET_AFTER_MS`. Unreadable records
        are ignored, so that they cannot stop the coordinator.
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
        """Return the last heartbeat of each live process of a service, by instance. Processes that are shutting down
        are included.
        """
        return {instance: beat for (kind, instance), (_, beat) in self._heard.items() if kind == service}

    def alive(self, service: str) -> dict[str, Heartbeat]:
        """Return the last heartbeat of each live process of a service, by instance. Processes that are shutting down
        are excluded.
        """
        return {instance: beat for instance, beat in self.heard(service).items() if not beat.leaves}
