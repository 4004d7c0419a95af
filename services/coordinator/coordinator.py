"""The coordinator service: writes declarations, registrations and insertions to the log, and assigns shards and
buckets.

One instance is active. Each decision takes effect with one transaction. The transaction writes the command to all
partitions of the shards topic; its position there determines when it takes effect, and thereby the registration point.
The transaction also updates the compacted control topic, from which the next active instance restores its state. A
deposed instance is fenced.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.engine.intake.graph_loading import LoadReport
from penstock.engine.limits import MAX_CATCH_UP
from penstock.errors import NotActiveError, NotYetError
from penstock.log import FencedError, TransientError
from penstock.replication.election import Election
from penstock.replication.heartbeats import FailureDetector, HeartbeatSender
from penstock.replication.status_topic import StatusView
from penstock.services.coordinator.active_state import Active
from penstock.services.coordinator.control_state import Opening
from penstock.services.coordinator.insertion import Insertion
from penstock.services.coordinator.topic_requests import REFUSALS, Requests

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.log import Log
    from penstock.log.clock import Clock
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.replication.load_files import Manifest
    from penstock.replication.status_topic import Standing
    from penstock.services.coordinator.registrar import Registrar, StreamRequest
    from penstock.term_ids.cluster_terms import TermService
    from penstock.wire import QueryRegistration, StreamDeclaration

T = TypeVar("T")
CONFIRM_MS = 2_000
"""Maximum age of the last transaction by which an instance considers itself active. Older: it writes a confirmation."""


class Coordinator:
    """One instance. On standby, requests raise NotActiveError. TransientError: the request had no effect; retry.

    `discard_after_ms`: adaptors discard predicates that no query has read for this long; None: they discard nothing.
    `max_catch_up`: default for registrations without one.
    """

    def __init__(
        self,
        log: Log,
        topics: ClusterTopics,
        instance: str,
        terms: TermService,
        clock: Clock,
        discard_after_ms: int | None = None,
        max_catch_up: int = MAX_CATCH_UP,
    ) -> None:
        self.topics = topics
        self._clock, self._discard_after_ms, self._max_catch_up = clock, discard_after_ms, max_catch_up
        self._log = log
        self.terms = terms
        self._election = Election(log, topics, "coordinator")
        self._heartbeat_sender = HeartbeatSender(log, topics, clock, "coordinator", instance)
        self._failure_detector = FailureDetector(log, topics, clock)
        self._status = StatusView(log, topics.names)
        self._requests: Requests | None = None
        self._active: Active | None = None
        self._opening: Opening | None = None
        self._clock = clock
        self._sure = 0, 0  # number of transactions, and the time at which it was reached

    @property
    def active(self) -> bool:
        """Whether this instance is active."""
        return self._active is not None

    @property
    def ignored(self) -> int:
        """The number of unreadable records in the heartbeats topic."""
        return self._failure_detector.records.ignored

    def step(self, timeout_s: float = 0.0) -> bool:
        """Follow the election, reassign shards and buckets, and process requests by topic. Returns whether anything
        changed.
        """
        self._heartbeat_sender.beat()
        self._failure_detector.listen()
        try:
            if not self._election.leads(timeout_s):
                self._step_back()
                return False
            if self._active is None:
                self._opening = self._opening or Opening(self._log, self.topics)
                if not self._opening.read():
                    return False
                self._active, self._opening = (
                    Active(self._log, self.topics, self._opening, self._discard_after_ms, self._max_catch_up),
                    None,
                )
                self._status.check_all()
                self._requests = Requests(self._log, self.topics, self._status, self._active.requests)
                return True
            stores, engines = self._failure_detector.heard("store"), self._failure_detector.heard("query-engine")
            moved = self._active.place(stores, engines)
            self._confirm(self._active)
            moved |= self._active.filters.shrink(self._clock.now_ms())
            return self._ask(self._active) or moved
        except FencedError:
            self._step_back()
        except TransientError:
            self._step_back()  # memory may be ahead of the log: restore from the log
        return False

    def _ask(self, active: Active) -> bool:
        """Process requests made by topic, and delete the statuses of stopped queries."""
        self._status.refresh()
        outdated = self._status.outdated(active.registrar.queries)
        if outdated:
            active.writer.commit(outdated)
        self._status.checked()
        return self._requests is not None and self._requests.step(active)

    def _confirm(self, active: Active) -> None:
        """Write a confirmation if there was no transaction for `CONFIRM_MS`. A deposed instance then gets
        FencedError.
        """
        written, since_ms = self._sure
        now_ms = self._clock.now_ms()
        if active.writer.written == written and now_ms - since_ms >= CONFIRM_MS:
            active.writer.confirm()
        if active.writer.written != written:
            self._sure = active.writer.written, now_ms

    def _step_back(self) -> None:
        if self._requests is not None:
            self._requests.close()
            self._requests = None
        if self._opening is not None:
            self._opening.close()
            self._opening = None
        if self._active is not None:
            self._active.close()
            self._active = None

    # ---- requests
    def declare(self, iri: str, name: str | None = None, **settings: Any) -> StreamDeclaration:
        """Declare a stream. Idempotent. DataError if the declaration is invalid."""
        return self.declare_all([(iri, name, settings)])[0]

    def declare_all(self, requested: Sequence[StreamRequest]) -> list[StreamDeclaration]:
        """Declare several streams atomically, each by IRI, name and settings. DataError if a declaration is invalid."""
        return self._do(lambda active: active.streams.declare(requested))

    def drop(self, iri: str) -> None:
        """Drop a stream. DataError if a query reads or publishes it. UnknownStreamError if it is not declared."""
        self._do(lambda active: active.streams.drop(iri))

    def register(
        self,
        name: str,
        text: str,
        base: str | None = None,
        topic: str | None = None,
        max_catch_up: int | None = None,
    ) -> QueryRegistration:
        """Register a standing query. Idempotent. QueryError, with line and column, if the text is invalid.

        NotYetError if adaptors discard predicates that the query reads: the coordinator has extended the predicate
        filter; retry. `max_catch_up`: maximum number of instants that one advance of a stream may make due; the query
        skips them if there are more. None: the coordinator's default.
        """
        return self._do(lambda active: active.queries.register(name, text, base, topic, max_catch_up))

    def stop(self, name: str) -> bool:
        """Stop a query. Returns False if there is no query of that name."""
        return self._do(lambda active: active.queries.stop(name))

    def update(self, text: str, base: str | None = None, request: str | None = None) -> int:
        """Execute `INSERT DATA` as one snapshot. Returns the number of triples.

        `request`: identifies the request, so that a client may repeat it if it got no response. Without it, a repeated
        request creates blank nodes twice.
        """
        return self.insert(Insertion.of_update(self.terms, text, base), request)

    def load(
        self, data: bytes, syntax: str, graph: str | None = None, base: str | None = None, request: str | None = None
    ) -> LoadReport:
        """Store an RDF document as one snapshot. Returns the numbers of statements and terms, and the duration.
        DataError at the first invalid line.

        `request`: as for `update`.
        """
        began, insertion = time.perf_counter(), Insertion.of_document(self.terms, data, syntax, graph, base)
        return LoadReport(self.insert(insertion, request), insertion.terms, time.perf_counter() - began)

    def insert(self, insertion: Insertion, request: str | None = None) -> int:
        """Store quads as one snapshot. Returns their number.

        `insertion` is already parsed and encoded: doing this here would delay other requests and steps.
        """
        return self._do(lambda active: active.insertions.insert(insertion, request))

    def load_files(self, manifest: Manifest) -> int:
        """Store a prepared load as one snapshot. Returns the number of triples. DataError if the files do not match the
        manifest.

        All stores and engines must be able to read the files.
        """
        return self._do(lambda active: active.insertions.load(manifest, self.terms))

    def standing(self, name: str) -> Standing | None:
        """Return the status of a query, or None if no engine has enrolled it."""
        record = self._registrar.queries.get(name)
        self._status.refresh()
        return None if record is None else self._status.standing(record)

    @property
    def queries(self) -> dict[str, QueryRegistration]:
        """The standing queries."""
        return dict(self._registrar.queries)

    @property
    def streams(self) -> dict[str, StreamDeclaration]:
        """The declared streams."""
        return dict(self._registrar.streams)

    @property
    def engines(self) -> dict[str, str]:
        """The addresses of live query engines, for one-shot queries, by instance."""
        alive = self._failure_detector.alive("query-engine")
        return {instance: beat.url for instance, beat in sorted(alive.items()) if beat.url is not None}

    @property
    def _registrar(self) -> Registrar:
        if self._active is None:
            raise NotActiveError("this coordinator is on standby")
        return self._active.registrar

    def _do(self, verb: Callable[[Active], T]) -> T:
        """Run a request on the active instance. After an error, the instance restores its state from the log."""
        if self._active is None:
            raise NotActiveError("this coordinator is on standby")
        active, written = self._active, self._active.writer.written
        try:
            try:
                found = verb(active)
            except (*REFUSALS, NotYetError):
                active.writer.confirm()
                raise
            if active.writer.written == written:
                active.writer.confirm()
        except FencedError as error:
            self._step_back()
            raise NotActiveError("another coordinator has taken over") from error
        except (*REFUSALS, NotYetError):
            if active.writer.ahead:
                self._step_back()
            raise
        except Exception:
            self._step_back()  # memory may be ahead of the log
            raise
        return found

    def close(self) -> None:
        """Leave the election and close the log clients."""
        self._step_back()
        self._status.close()
        self._election.close()
