"""A dictionary instance as a process: on standby until it is elected, then it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cluster.dictionary import DictionaryService
from penstock.cluster.election import Election
from penstock.cluster.heartbeats import Heart
from penstock.cluster.rpc import DictionaryServer
from penstock.log import TransientError

if TYPE_CHECKING:
    from penstock.cluster.topics import ClusterTopics
    from penstock.log import Log
    from penstock.log.clock import Clock


class DictionaryNode:
    """One instance. `location`: where it answers, as `grpc://host:port` (port 0 = any; `port` says which)."""

    def __init__(self, log: Log, topics: ClusterTopics, instance: str, location: str, clock: Clock) -> None:
        self._log = log
        self._topics = topics
        self._election = Election(log, topics, "dictionary")
        self._service: DictionaryService | None = None
        self._server = DictionaryServer(location, lambda: self._service)
        self._heart = Heart(log, topics, clock, "dictionary", instance)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.port)

    @property
    def active(self) -> bool:
        """Whether this instance serves."""
        return self._service is not None

    def step(self, timeout_s: float = 0.0) -> bool:
        """Take over or step back where that is due."""
        self._heart.beat()
        if self._server.broken is not None:
            self._step_back()
        try:
            leads = self._election.leads(timeout_s)
            if leads and self._service is None:
                service = DictionaryService(self._log, self._topics)
                with self._server.lock:
                    self._service = service
                return True
        except TransientError:
            return False
        if not leads and self._service is not None:
            self._step_back()
        return False

    def _step_back(self) -> None:
        with self._server.lock:
            service, self._service, self._server.broken = self._service, None, None
        if service is not None:
            service.close()

    def close(self) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._step_back()
        self._election.close()
