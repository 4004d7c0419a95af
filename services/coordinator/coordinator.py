"""The coordinator service: takes declarations, queries and insertions into the log, and deals out shards and buckets.

One instance is active. What it decides becomes true by one transaction of its writer: the command goes to every
partition of the shards topic (its place there is the moment at which it takes effect, and with that the registration
point), and to the compacted control topic, from which the next active instance starts. A deposed instance is fenced.
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
from penstock.services.coordinator.active_state import Active, Opening
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
"""How long an instance that writes nothing believes that it is still the active one."""


class Coordinator:
    """One instance. Verbs raise NotActiveError while it is on standby; TransientError: nothing happened, try again.

    `discard_after_ms`: adaptors may discard what no query has looked at for so long; None = they keep everything.
    `max_catch_up`: of registrations that name none.
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
        self._sure = 0, 0  # transactions, and when there were so many

    @property
    def active(self) -> bool:
        """Whether this instance decides."""
        return self._active is not None

    @property
    def ignored(self) -> int:
        """How many records of the heartbeats topic could not be read."""
        return self._failure_detector.records.ignored

    def step(self, timeout_s: float = 0.0) -> bool:
        """Take over or step back where that is due, and deal shares out anew where processes came or went."""
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
            moved |= self._active.narrow(self._clock.now_ms())
            return self._ask(self._active) or moved
        except FencedError:
            self._step_back()
        except TransientError:
            self._step_back()  # what is in memory may be ahead of the log: begin again from there
        return False

    def _ask(self, active: Active) -> bool:
        """Do what was asked for by topic, and tidy up what was said of queries that are gone."""
        self._status.refresh()
        outdated = self._status.outdated(active.registrar.queries)
        if outdated:
            active.tell(outdated)
        self._status.checked()
        return self._requests is not None and self._requests.step(active)

    def _confirm(self, active: Active) -> None:
        """Write something once in a while: one that was deposed while it was cut off learns it so (FencedError)."""
        written, since_ms = self._sure
        now_ms = self._clock.now_ms()
        if active.written == written and now_ms - since_ms >= CONFIRM_MS:
            active.confirm()
        if active.written != written:
            self._sure = active.written, now_ms

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

    # ---- verbs
    def declare(self, iri: str, name: str | None = None, **settings: Any) -> StreamDeclaration:
        """Declare a stream; the same again changes nothing. DataError where it cannot be."""
        return self.declare_all([(iri, name, settings)])[0]

    def declare_all(self, wanted: Sequence[StreamRequest]) -> list[StreamDeclaration]:
        """Declare many streams at once (IRI, name, settings of each): all of them, or none. DataError."""
        return self._do(lambda active: active.declare(wanted))

    def drop(self, iri: str) -> None:
        """Drop a stream that no query reads."""
        self._do(lambda active: active.drop(iri))

    def register(
        self,
        name: str,
        text: str,
        base: str | None = None,
        topic: str | None = None,
        max_catch_up: int | None = None,
    ) -> QueryRegistration:
        """Register a standing query; the same again changes nothing. QueryError with line and column. NotYetError:
        adaptors discard something that it looks at, and have been told to stop that; ask again.

        `max_catch_up`: instants that one move of one of its streams may make due; where there are more, the query jumps
        over them. None = the coordinator's setting.
        """
        return self._do(lambda active: active.register(name, text, base, topic, max_catch_up))

    def stop(self, name: str) -> bool:
        """Stop a query; False where there is none of that name."""
        return self._do(lambda active: active.stop(name))

    def update(self, text: str, base: str | None = None, request: str | None = None) -> int:
        """Run `INSERT DATA`, as one snapshot; returns the number of triples. `request` names it, so that it can be
        asked for again where no answer came: blank nodes would be made twice else.
        """
        return self.insert(Insertion.of_update(self.terms, text, base), request)

    def load(
        self, data: bytes, syntax: str, graph: str | None = None, base: str | None = None, request: str | None = None
    ) -> LoadReport:
        """Store a document, as one snapshot; DataError at the first bad line. Reports its statements and terms.
        `request`: as for `update`.
        """
        began, insertion = time.perf_counter(), Insertion.of_document(self.terms, data, syntax, graph, base)
        return LoadReport(self.insert(insertion, request), insertion.terms, time.perf_counter() - began)

    def insert(self, insertion: Insertion, request: str | None = None) -> int:
        """Store quads, as one snapshot; returns their number. Documents and updates are read before: this verb neither
        parses nor asks for terms, so that other verbs and steps do not wait for it.
        """
        return self._do(lambda active: active.insert(insertion, request))

    def load_files(self, manifest: Manifest) -> int:
        """Store a prepared load, whose files all stores and engines can read, as one snapshot; returns its triples.

        DataError where the files are not what the manifest says.
        """
        return self._do(lambda active: active.load(manifest, self.terms))

    def standing(self, name: str) -> Standing | None:
        """Return the registration point of a query, None while no engine has taken the query in."""
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
        """Where query engines that live answer one-shot queries, by instance."""
        alive = self._failure_detector.alive("query-engine")
        return {instance: beat.url for instance, beat in sorted(alive.items()) if beat.url is not None}

    @property
    def _registrar(self) -> Registrar:
        if self._active is None:
            raise NotActiveError("this coordinator is on standby")
        return self._active.registrar

    def _do(self, verb: Callable[[Active], T]) -> T:
        """Run a verb on the active instance; where that fails, it is made anew from the log."""
        if self._active is None:
            raise NotActiveError("this coordinator is on standby")
        active, written = self._active, self._active.written
        try:
            try:
                found = verb(active)
            except (*REFUSALS, NotYetError):
                active.confirm()
                raise
            if active.written == written:
                active.confirm()
        except FencedError as error:
            self._step_back()
            raise NotActiveError("another coordinator has taken over") from error
        except (*REFUSALS, NotYetError):
            if active.ahead:
                self._step_back()
            raise
        except Exception:
            self._step_back()  # what is in memory may be ahead of the log
            raise
        return found

    def close(self) -> None:
        """Step back for good."""
        self._step_back()
        self._status.close()
        self._election.close()
