"""The coordinator service: writes declarations, registrations and insertions to the log, and assigns shards and
buckets.

One instance is active. The active instance commits each decision in one transaction. The transaction writes a command
to all partitions of the shards topic. The command takes effect at its position in partition 0. This position also
determines a query's registration point. The same transaction updates the compacted control topic. From this topic, the
next active instance restores the state. An instance that is no longer active is fenced, and can commit nothing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.engine.intake.graph_loading import LoadReport
from penstock.engine.limits import MAX_CATCH_UP
from penstock.errors import ConflictError, NotActiveError, NotYetError
from penstock.ingest.outgoing_members import MemberRecords
from penstock.log import FencedError, TransientError
from penstock.mapping.encodings.schema_registration import SchemaRegistration
from penstock.query.parser import declared_parameters
from penstock.replication.election import Election
from penstock.replication.heartbeats import FailureDetector, HeartbeatSender
from penstock.replication.registration import buckets_of
from penstock.replication.status_topic import StatusView
from penstock.services.coordinator.active_state import SETTLE_MS, Active
from penstock.services.coordinator.control_state import Opening
from penstock.services.coordinator.insertion import Insertion
from penstock.services.coordinator.topic_requests import REFUSALS, Requests

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Unpack

    from penstock.log import Log, Record
    from penstock.log.clock import Clock
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.replication.load_files import Manifest
    from penstock.replication.status_topic import Standing
    from penstock.services.coordinator.active_state import Forgetting
    from penstock.services.coordinator.query_commands import QueryRequest
    from penstock.services.coordinator.registrar import Registrar, ResultOptions, StreamRequest
    from penstock.term_ids.cluster_terms import TermService
    from penstock.wire import QueryRegistration, StreamDeclaration

T = TypeVar("T")
_HARMLESS = (*REFUSALS, NotYetError, ConflictError)  # errors of requests that have changed nothing
CONFIRM_MS = 2_000
"""Maximum time in ms between two transactions of the active instance. After this time, the instance commits an empty
transaction. This transaction fails if another instance has become active.
"""


class Coordinator:
    """One instance of the coordinator. On standby, requests raise NotActiveError. A request that raises TransientError
    has had no effect; retry it.

    `discard_after_ms`: time in ms after which adaptors discard a predicate that no query reads. None means that
    adaptors discard nothing. `max_catch_up`: the default for registrations that do not set `max_catch_up`. `settle_ms`:
    see `SETTLE_MS`. `schemas`: registers the schemas of result records in Avro.
    `forgetting`: how terms are removed (ADR 50); None: no term is removed.
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
        settle_ms: int = SETTLE_MS,
        schemas: SchemaRegistration | None = None,
        forgetting: Forgetting | None = None,
    ) -> None:
        self.topics, self._settle_ms = topics, settle_ms
        self._schemas, self._forgetting = schemas or SchemaRegistration(None), forgetting
        self._clock, self._discard_after_ms, self._max_catch_up = clock, discard_after_ms, max_catch_up
        self._log = log
        self.terms = terms
        self._election = Election(log, topics, "coordinator")
        self._heartbeat_sender = HeartbeatSender(log, topics, clock, "coordinator", instance, ready=False)
        self._instance = instance
        self._failure_detector = FailureDetector(log, topics, clock)
        self._status = StatusView(log, topics.names)
        self._requests: Requests | None = None
        self._active: Active | None = None
        self._opening: Opening | None = None
        self._sure = 0, 0  # number of transactions, and the time in ms at which this number was reached

    @property
    def active(self) -> bool:
        """Whether this instance is active."""
        return self._active is not None

    def answer_at(self, url: str) -> None:
        """Set the address that heartbeats contain. While this instance is active, standby instances forward requests to
        this address.
        """
        self._heartbeat_sender.url = url

    @property
    def other_active(self) -> str | None:
        """The address of the active instance. None if this instance is active, or if the address is unknown."""
        if self.active:
            return None
        beats = self._failure_detector.alive("coordinator").items()
        return next((beat.url for name, beat in beats if beat.ready and name != self._instance), None)

    @property
    def ignored(self) -> int:
        """The number of unreadable heartbeats that this instance has ignored."""
        return self._failure_detector.records.ignored

    def step(self, timeout_s: float = 0.0) -> bool:
        """Follow the election, reassign shards and buckets, and process requests from the request topics. Returns
        whether anything changed.
        """
        self._heartbeat_sender.beat(ready=self.active)
        self._failure_detector.listen()
        try:
            if not self._election.leads(timeout_s):
                self._step_back()
                return False
            if self._active is None:
                self._opening = self._opening or Opening(self._log, self.topics)
                if not self._opening.read():
                    return False
                given = self._discard_after_ms, self._max_catch_up, self._schemas, self._forgetting
                self._active, self._opening = Active(self._log, self.topics, self._opening, *given), None
                self._active.settle_ms = self._settle_ms
                self._status.check_all()
                self._requests = Requests(self._log, self.topics, self._status, self._active.requests)
                return True
            stores, engines = self._failure_detector.heard("store"), self._failure_detector.heard("query-engine")
            moved = self._active.place(stores, engines, self._clock.now_ms())
            self._confirm(self._active)
            moved |= self._active.filters.shrink(self._clock.now_ms())
            if self._active.generations is not None:
                self._active.generations.step(engines.values(), self._clock.now_ms())
            return self._ask(self._active) or moved
        except FencedError:
            self._step_back()
        except TransientError:
            self._step_back()  # memory is possibly ahead of the log; the next step restores it from the log
        return False

    def _ask(self, active: Active) -> bool:
        """Delete the statuses of stopped queries, and process requests from the request topics. Returns whether there
        were requests.
        """
        self._status.refresh()
        outdated = self._status.outdated(active.registrar.queries)
        if outdated:
            active.writer.commit(outdated)
        self._status.checked()
        return self._requests is not None and self._requests.step(active)

    def _confirm(self, active: Active) -> None:
        """Commit an empty transaction if no transaction has been committed for `CONFIRM_MS`. FencedError if another
        instance is active.
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
        """Declare a stream. An identical declaration has no effect. DataError if the declaration is invalid, or if the
        stream is declared differently.
        """
        return self.declare_all([(iri, name, settings)])[0]

    def declare_all(self, requested: Sequence[StreamRequest]) -> list[StreamDeclaration]:
        """Declare several streams, all or none. `requested`: IRI, name and settings of each stream. DataError as for
        `declare`.
        """
        return self._do(lambda active: active.streams.declare(requested))

    def drop(self, iri: str) -> None:
        """Drop a stream. DataError if a query reads or publishes the stream. UnknownStreamError if the stream is not
        declared.
        """
        self._do(lambda active: active.streams.drop(iri))

    def register(
        self,
        name: str,
        text: str,
        base: str | None = None,
        topic: str | None = None,
        max_catch_up: int | None = None,
        *,
        replace: bool = False,
        **options: Unpack[ResultOptions],
    ) -> QueryRegistration:
        """Register a standing query, or a query set if the text declares parameters. An identical registration has no
        effect. QueryError, with line and column, if the text is invalid.

        NotYetError if adaptors still discard predicates that the query reads. The coordinator has then extended the
        predicate filter; retry. NotYetError also if a schema registry has not answered yet. `max_catch_up`: maximum
        number of instants that become due at one advance of a stream. If an advance makes more instants due, the query
        skips these instants. None means the coordinator's default. `replace`: whether the query replaces a registered
        query of the same name. The new query then begins after the last instant of the earlier query (docs/semantics.md
        §3). `options`: see `ResultOptions`.
        """
        given = name, text, base, topic, max_catch_up
        return self._do(lambda active: active.queries.register(*given, replace=replace, **options))

    def register_all(self, requested: Sequence[QueryRequest]) -> list[QueryRegistration]:
        """Register several queries in one transaction, all or none. Errors: see `register` and
        `QueryCommands.register_all`.
        """
        return self._do(lambda active: active.queries.register_all(requested))

    def stop(self, name: str) -> bool:
        """Stop a query. Returns False if there is no query of that name."""
        return self._do(lambda active: active.queries.stop(name))

    def member_records(self, name: str, key: Sequence[str] = ()) -> MemberRecords | None:
        """Return the conversion of rows to records for a query set. None if there is no query set of that name. `key`:
        the names of the columns that identify a member, for a registration without a key; if empty, the parameters.
        """
        record = self._registrar.queries.get(name)
        if record is None or record.report is None:
            return None
        parameters = declared_parameters(record.text, record.base)
        return MemberRecords(self.topics.names.parameters(name), parameters, record.key or tuple(key) or parameters)

    def write_members(self, records: Sequence[Record]) -> None:
        """Write records of members of query sets in one transaction, all or none."""
        self._do(lambda active: active.writer.commit(records))

    def engines_of(self, name: str) -> dict[int, str | None]:
        """Return the buckets of a query, each with the address of the query engine to which the placement assigns the
        bucket. The address is None if the engine is not live. The result is empty if there is no query of that name.
        """
        record = self._registrar.queries.get(name)
        if record is None or self._active is None:
            return {}
        placed, engines = self._active.state.placement.buckets, self.engines
        buckets = buckets_of(record.group, record.parts, self.topics.buckets)
        return {bucket: engines.get(placed.get(str(bucket), "")) for bucket in buckets}

    def update(self, text: str, base: str | None = None, request: str | None = None) -> int:
        """Execute an update that has only INSERT DATA and DELETE DATA, as one snapshot. Returns the number of triples.
        Errors: see `Insertion.of_update`.

        `request`: a name that identifies the request. A client that got no response can then repeat the request.
        Without a name, a repeated request creates its blank nodes a second time.
        """
        return self.insert(Insertion.of_update(self.terms, text, base), request)

    def load(
        self, data: bytes, syntax: str, graph: str | None = None, base: str | None = None, request: str | None = None
    ) -> LoadReport:
        """Store an RDF document as one snapshot. Returns the numbers of statements and terms, and the duration.
        Errors: see `Insertion.of_document`.

        `request`: as for `update`.
        """
        began, insertion = time.perf_counter(), Insertion.of_document(self.terms, data, syntax, graph, base)
        return LoadReport(self.insert(insertion, request), insertion.terms, time.perf_counter() - began)

    def insert(self, insertion: Insertion, request: str | None = None) -> int:
        """Remove and store quads as one snapshot. Returns the number of removed and stored quads.

        The caller parses and encodes the quads without the coordinator's lock, so that other requests and steps need
        not wait. `request`: as for `update`. ConflictError if the insertion was computed on a snapshot that is no
        longer the latest snapshot.
        """
        return self._do(lambda active: active.insertions.insert(insertion, request))

    def stored(self, request: str | None) -> tuple[int | None, int]:
        """Return the number of triples that the request with name `request` has stored, and the number of the last
        insertion. The number of triples is None if no request with this name is known.
        """
        return self._do(lambda active: (active.insertions.completed.triples(request), active.insertions.last))

    def load_files(self, manifest: Manifest) -> int:
        """Store a prepared load as one snapshot. Returns the number of triples. DataError if the manifest does not fit
        the cluster, or if a file is missing. LimitError if there are too many files or edge labels.

        The coordinator and all stores must be able to read the files. Query engines that hold the stored graph
        themselves must also be able to read the files.
        """
        return self._do(lambda active: active.insertions.load(manifest, self.terms))

    def standing(self, name: str) -> Standing | None:
        """Return the status of a query. None if the query is not registered, or if no engine has enrolled the query."""
        record = self._registrar.queries.get(name)
        self._status.refresh()
        return None if record is None else self._status.standing(record)

    @property
    def queries(self) -> dict[str, QueryRegistration]:
        """The standing queries, by name."""
        return dict(self._registrar.queries)

    @property
    def streams(self) -> dict[str, StreamDeclaration]:
        """The declared streams, by IRI."""
        return dict(self._registrar.streams)

    @property
    def engines(self) -> dict[str, str]:
        """The addresses of the live query engines, by instance. One-shot queries can be sent to these addresses."""
        alive = self._failure_detector.alive("query-engine")
        return {instance: beat.url for instance, beat in sorted(alive.items()) if beat.url is not None}

    @property
    def placement(self) -> dict[str, Any]:
        """The placement of buckets and shards, and the reason of the last move, as JSON (see `Active.explained`)."""
        if self._active is None:
            raise NotActiveError("this coordinator is on standby")
        return self._active.explained(self._failure_detector.heard("query-engine"))

    @property
    def _registrar(self) -> Registrar:
        if self._active is None:
            raise NotActiveError("this coordinator is on standby")
        return self._active.registrar

    def _do(self, verb: Callable[[Active], T]) -> T:
        """Run a request on the active instance. If an error could leave the instance's memory ahead of the log, the
        next step restores the state from the log.
        """
        if self._active is None:
            raise NotActiveError("this coordinator is on standby")
        active, written = self._active, self._active.writer.written
        try:
            try:
                found = verb(active)
            except _HARMLESS:
                active.writer.confirm()
                raise
            if active.writer.written == written:
                active.writer.confirm()
        except FencedError as error:
            self._step_back()
            raise NotActiveError("another coordinator has taken over") from error
        except _HARMLESS:
            if active.writer.ahead:
                self._step_back()
            raise
        except Exception:
            self._step_back()  # memory is possibly ahead of the log
            raise
        return found

    def close(self) -> None:
        """Leave the election and close the log clients."""
        self._step_back()
        self._status.close()
        self._election.close()
        self._schemas.close()
