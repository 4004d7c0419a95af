"""A dictionary instance: follows the topic on standby, and serves clients after its election."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from penstock.errors import StorageError
from penstock.log import TransientError
from penstock.replication.election import Election
from penstock.replication.heartbeats import HeartbeatSender
from penstock.services.dictionary.dictionary import DictionaryService
from penstock.services.dictionary.flight_server import DictionaryServer
from penstock.services.dictionary.known_terms import KnownTerms
from penstock.services.dictionary.term_archive import TermArchive

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.engine.checkpoint.data_directory import DataDirectory
    from penstock.errors import PenstockError
    from penstock.log import Log
    from penstock.log.clock import Clock
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.services.dictionary.flight_gate import GateLimits
    from penstock.term_ids.peer_certificates import PeerCertificates


_log = logging.getLogger("penstock.dictionary")


class DictionaryNode:
    """One instance. `location`: the instance's address, `grpc://host:port`. If the port in `location` is 0, `port`
    returns the chosen port.

    `directory`: folder of snapshots. If `directory` is None, every start reads the whole topic. `every_s`: seconds
    between snapshots. Without new terms, no snapshot is written. `limits`: limits of clients' requests. `certificates`:
    see `DictionaryServer`.

    `in_memory`: if more than this number of terms are in memory, the least recently used terms leave the memory. All
    terms are then in an archive, a folder in `directory`. The archive takes the place of the snapshots (ADR 104). 0:
    all terms remain in memory.
    """

    def __init__(
        self,
        log: Log,
        topics: ClusterTopics,
        instance: str,
        location: str,
        clock: Clock,
        directory: DataDirectory | None = None,
        every_s: float = 60.0,
        now: Callable[[], float] = time.monotonic,
        limits: GateLimits | None = None,
        certificates: PeerCertificates | None = None,
        in_memory: int = 0,
    ) -> None:
        self._log = log
        self._topics = topics
        self._directory = directory
        self._in_memory = in_memory
        self._archive: TermArchive | None = None
        if in_memory and directory is not None:
            self._archive = TermArchive(directory.path, topics.names.dictionary)
        self._every_s = every_s
        self._now = now
        self._due = now() + every_s
        self.unsaved: str | None = None  # why the last snapshot failed
        self._election = Election(log, topics, "dictionary")
        self._known = self._open()
        self._saved = self._known.position
        self._service: DictionaryService | None = None
        self._server = DictionaryServer(location, lambda: self._service, limits, certificates)
        self._heartbeat_sender = HeartbeatSender(log, topics, clock, "dictionary", instance)
        self.last_error: str | None = None  # why this instance last stepped down, or failed to become active

    def _open(self) -> KnownTerms:
        snapshot = None if self._directory is None else self._directory.current()
        return KnownTerms(self._log, self._topics.names, snapshot, self._archive, self._in_memory)

    @property
    def port(self) -> int:
        """The port on which this instance listens."""
        return int(self._server.port)

    @property
    def active(self) -> bool:
        """Whether this instance is active."""
        return self._service is not None

    @property
    def bytes(self) -> int:
        """The memory of the terms, in bytes."""
        return int(self._known.terms.bytes())

    @property
    def terms(self) -> int:
        """The number of terms, in memory and in the archive."""
        return self._known.held.size

    @property
    def terms_in_memory(self) -> int:
        """The number of terms in memory."""
        return int(self._known.terms.size())

    def step(self, timeout_s: float = 0.0) -> bool:
        """Perform one step: follow the election, read new records of the topic while on standby, and write a snapshot
        if one is due. Returns whether there were new records.
        """
        self._heartbeat_sender.beat()
        if (broken := self._server.broken) is not None:
            self._failed("steps back", broken)
            self._step_back()
        try:
            read = self._service is None and self._known.read()
            leads = self._election.leads(0.0 if read else timeout_s)
            if leads and self._service is None:
                service = DictionaryService(self._log, self._topics, known=self._known)
                with self._server.lock:
                    self._service = service
                self.last_error = None
                return True
        except TransientError as error:
            self._failed("waits for the log", error)
            return False
        if not leads and self._service is not None:
            self._step_back()
        self._save_if_due()
        return read

    def _failed(self, what: str, error: PenstockError) -> None:
        """Log a failure that differs from the previous failure."""
        reason = f"{type(error).__name__}: {error}"
        if reason != self.last_error:
            _log.error("the dictionary %s: %s", what, reason)
        self.last_error = reason

    def _save_if_due(self) -> None:
        if self._directory is None or self._now() < self._due:
            return
        if self._known.position == self._saved and self._known.unsaved is None:
            return
        self._due = self._now() + self._every_s
        try:
            saved = self._save(self._directory)
        except (OSError, StorageError) as error:  # the previous snapshot remains, and a restart reads more of the topic
            self.unsaved = f"{self._directory.path}: no snapshot could be written: {error}"
            return
        self._saved, self.unsaved = saved, None

    def _save(self, directory: DataDirectory) -> int:
        """Write a snapshot, or new terms to the archive. Returns the offset in the topic before which all terms are
        saved.
        """
        folder = directory.begin() if self._archive is None else None
        with self._server.lock:  # so that no id is assigned meanwhile
            source = self._service or self._known
            if folder is None:
                source.archive_new()
            else:
                source.snapshot(folder)
            saved = self._known.position
        if folder is not None:
            directory.publish(folder)
        return saved

    def _step_back(self) -> None:
        """Become a standby instance. The instance then reads the terms from the topic again, because some interned
        terms are possibly not durable.
        """
        with self._server.lock:
            service, self._service, self._server.broken = self._service, None, None
        if service is not None:
            service.close()
            self._known = self._open()
            self._saved = self._known.position

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        with self._server.lock:
            service, self._service = self._service, None
        if service is not None:
            service.close()
        self._known.close()
        self._election.close()
        if self._archive is not None:
            self._archive.close()
