"""`Client`: access to a cluster."""

from __future__ import annotations

import json
import time
import warnings
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote
from uuid import uuid4

from penstock.client.answers import answer_of, graph_of
from penstock.client.cluster_status import status_of_documents
from penstock.client.documents import document_of, event_of
from penstock.client.refused_events import Refused
from penstock.client.results import Answered, ClusterQuery, Results
from penstock.client.service_requests import Credentials, NotFoundError, ServiceClient, ServiceRequest, urls, with_query
from penstock.engine.intake.declaration import warning_of
from penstock.engine.intake.graph_loading import LoadReport
from penstock.errors import DataError, QueryError, TimestampUnitWarning, UnboundedStorageWarning, UnknownStreamError
from penstock.event_time.gaps import Gap
from penstock.event_time.time_units import unit_warning
from penstock.log import Record
from penstock.log.topics import TopicNames
from penstock.query.ir import ContinuousQuery
from penstock.query.parser import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from os import PathLike

    import rdflib

    from penstock.client.cluster_status import ClusterQueryStatus
    from penstock.engine.answers.answer_values import Solutions
    from penstock.engine.intake.events import EventData
    from penstock.engine.intake.rejected_events import DeadLetter, LateEvent
    from penstock.log import Log

_SPARQL_ACCEPT = "application/sparql-results+json, application/n-triples"


class Client:
    """Access to a cluster, with the answers, the errors and most methods of the embedded engine.

    url: coordinator URLs, comma-separated. sparql_url: query engine URLs, comma-separated; by default those known to
    the coordinators. prefix: prefix of the cluster's topics. kafka: additional librdkafka properties (TLS, SASL).
    token: bearer token for coordinators and query engines. ca: file of the CA (PEM) of their certificates; by default
    the system's CAs. AccessError if a token is missing or its role does not suffice.

    A stream is identified by its IRI or by the name used in its topics. Declarations, registrations and stored data
    take effect in log order and are durable on return, as are events when `push` returns. Reading evaluations, late
    events and dead letters does not remove them from their topics. The client has no `advance_idle`, `bulk`,
    `checkpoint`, `decode`, `encode`, `explain`, `limits`, `push_columns` and `stats`.
    """

    def __init__(
        self,
        bootstrap_servers: str | None = None,
        url: str = "",
        sparql_url: str = "",
        *,
        log: Log | None = None,
        prefix: str = "penstock",
        kafka: Mapping[str, str] | None = None,
        token: str | None = None,
        ca: str | PathLike[str] | None = None,
    ) -> None:
        if log is None:
            try:
                from penstock.log.kafka.kafka_log import KafkaLog  # noqa: PLC0415 - the cluster extra
            except ModuleNotFoundError as error:
                message = f"{error.name} not installed: a client needs `pip install 'penstock[cluster]'`"
                raise ModuleNotFoundError(message, name=error.name) from error
            if bootstrap_servers is None:
                raise DataError("a client needs bootstrap_servers")
            log = KafkaLog(bootstrap_servers, dict(kafka or {}))
        self._log = log
        self._topics = TopicNames(prefix)
        self._writer = log.writer()
        self._results = Results(log)
        self._refused = Refused(log, self._topics)
        self._services = ServiceClient(Credentials(token, None if ca is None else str(ca)))
        self._coordinators, self._engines = urls(url), urls(sparql_url)
        self._units: set[str] = set()  # streams with a timestamp warning
        self._names: dict[str, str] = {}  # names of streams by IRI, as far as looked up
        self._named: set[str] = set()  # names with known topics
        self._held: dict[str, ClusterQuery] = {}

    # ---- declarations
    def declare_stream(self, iri: str, name: str | None = None, **settings: Any) -> None:
        """Declare a stream. Repeating the call has no effect. `name` is used in its topic names.

        Settings are those of `Engine.declare_stream`. DataError if they are invalid.
        """
        if (warning := warning_of(iri, settings)) is not None:
            warnings.warn(warning, UnboundedStorageWarning, stacklevel=2)
        body = json.dumps({"iri": iri, **settings}).encode()
        self._coordinator("PUT", f"/streams/{quote(name or iri, safe='')}", body)

    def declare_streams(self, streams: Mapping[str, Mapping[str, Any]]) -> None:
        """Declare many streams atomically: by name, each with its `iri` and settings. DataError if one is invalid."""
        self._coordinator("POST", "/streams", json.dumps(streams, default=dict).encode())

    def drop_stream(self, iri: str) -> None:
        """Drop a stream that no query reads. Absorbed triples stay stored."""
        self._coordinator("DELETE", f"/streams/{quote(iri, safe='')}")
        self._names.pop(iri, None)

    @property
    def streams(self) -> dict[str, Any]:
        """Declarations of all streams, by IRI."""
        found: dict[str, Any] = json.loads(self._coordinator("GET", "/streams"))
        return found

    # ---- standing queries
    def register(
        self,
        text: str,
        name: str | None = None,
        base: str | None = None,
        topic: str | None = None,
        max_catch_up: int | None = None,
    ) -> ClusterQuery:
        """Register a standing query. Repeating the call has no effect. QueryError with line and column if it is
        invalid.

        `name` overrides the name in the text. `topic`: a separate results topic. `max_catch_up`: maximum number of
        instants that one advance of a stream may make due; if more become due, the query skips them and `gaps` lists
        them (None = the setting of the coordinator).
        """
        query_name = name or _name_of(text, base)
        path = with_query(f"/queries/{quote(query_name, safe='')}", base=base, topic=topic, max_catch_up=max_catch_up)
        self._results.follow(topic or self._topics.results, query_name)
        try:
            reply = json.loads(self._coordinator("PUT", path, text.encode()))
        except BaseException:
            if query_name not in self._held:
                self._results.unfollow(query_name)
            raise
        self._results.follow(topic or self._topics.results, query_name, made=True)
        return self._hold(reply)

    @property
    def queries(self) -> dict[str, ClusterQuery]:
        """The standing queries by name. Queries of other clients deliver evaluations from now on."""
        reply = json.loads(self._coordinator("GET", "/queries"))
        for name, record in reply.items():
            topic = record["topic"] or self._topics.results
            self._results.follow(topic, name)
            self._results.follow(topic, name, made=True)
        return {name: self._hold(record) for name, record in reply.items()}

    def registration_point(self, name: str) -> int | None:
        """Return the registration point of a query in ms, None while its streams have no progress or no engine
        evaluates it.
        """
        found = json.loads(self._coordinator("GET", f"/queries/{quote(name, safe='')}"))
        point: int | None = found["point"]
        return point

    def _gaps(self, name: str) -> list[Gap]:
        found = json.loads(self._coordinator("GET", f"/queries/{quote(name, safe='')}"))
        return [Gap(**gap) for gap in found["gaps"]]

    def _status(self, name: str, number: int) -> ClusterQueryStatus:
        path = f"/queries/{quote(name, safe='')}"
        try:
            registration = json.loads(self._coordinator("GET", path))
        except NotFoundError:
            registration = None
        if registration is None or registration["number"] != number:  # the name has another query
            return status_of_documents(name, None, None)
        found = self._services.first_found(self._sparql(), ServiceRequest("GET", f"{path}/status"))
        return status_of_documents(name, registration, None if found is None else json.loads(found))

    def stop(self, name: str) -> None:
        """Stop a standing query. Evaluations that are due are still committed."""
        self._coordinator("DELETE", f"/queries/{quote(name, safe='')}")
        held = self._held.pop(name, None)
        if held is not None:
            held.stopped = True

    # ---- stored data
    def load(
        self,
        source: str | PathLike[str] | bytes,
        graph: str | None = None,
        format: str | None = None,  # noqa: A002 - a public name
        base: str | None = None,
    ) -> LoadReport:
        """Store a document as one snapshot: a file (by name, also .gz) or bytes with a `format`.

        DataError for the first invalid line; nothing is stored then. `triples` and `terms` of the report count the
        document's content, new or not.
        """
        began = time.perf_counter()
        data, syntax, base = document_of(source, format, base)
        path = with_query("/data", graph=graph, base=base)
        reply = json.loads(self._coordinator("POST", path, data, syntax.media_type, uuid4().hex))
        return LoadReport(int(reply["triples"]), int(reply["terms"]), time.perf_counter() - began)

    def update(self, text: str, base: str | None = None) -> int:
        """Execute `INSERT DATA {...}` as one snapshot. Returns the number of triples."""
        path = with_query("/update", base=base)
        answer = self._coordinator("POST", path, text.encode(), name=uuid4().hex)
        return int(json.loads(answer)["triples"])

    def query(
        self, text: str, base: str | None = None, timeout_s: float | None = None, memory_mb: int | None = None
    ) -> Solutions | bool | rdflib.Graph:
        """Execute a one-shot query over the latest snapshot of a query engine. LimitError if it exceeds time or
        memory.
        """
        path = with_query("/sparql", base=base, timeout_s=timeout_s, memory_mb=memory_mb)
        request = ServiceRequest("POST", path, text.encode(), "application/sparql-query", _SPARQL_ACCEPT)
        try:
            answer = self._services.send(self._sparql, request, timeout_s or 0.0)
        except QueryError as error:
            raise _with_text(error, text) from None
        return answer_of(json.loads(answer)) if answer[:1] == b"{" else graph_of(answer.decode())

    # ---- events
    def push(
        self,
        stream: str,
        data: EventData,
        timestamp: int,
        format: str = "nt",  # noqa: A002 - a public name
    ) -> None:
        """Produce one event: RDF text in a format (a name or media type), or rdflib triples. Durable on return.

        The adaptor validates the event; an invalid one goes to the dead-letter topic.
        """
        self.push_events(stream, [(timestamp, data)], format)

    def push_events(
        self,
        stream: str,
        events: Iterable[tuple[int, EventData]],
        format: str = "nt",  # noqa: A002 - a public name
    ) -> None:
        """Produce events, (timestamp, data) each, in order. Durable on return.

        TransientError: the brokers did not respond in time, and the events are still in flight. Repeating the call with
        this client waits for them and writes no event twice.
        """
        events = list(events)
        topic = self._topics.events(self._name(stream))
        self._check_unit(stream, events)
        self._writer.append([event_of(topic, time_ms, data, format) for time_ms, data in events])

    def advance(self, stream: str | None, timestamp: int) -> None:
        """Declare that no later event has a time (ms) at or before `timestamp`. `stream` None: for every stream with an
        events topic.

        The declaration covers all producers of the stream: it goes to every partition of its topic.
        """
        if stream is None:
            names = [record["name"] for record in self.streams.values() if record["publisher"] is None]
        else:
            names = [self._name(stream)]
        beat = (("heartbeat", str(timestamp).encode()),)
        partitions = self._log.topics()
        topics = [self._topics.events(name) for name in names]
        beats = [Record(t, b"", partition=i, headers=beat) for t in topics for i in range(partitions.get(t, 1))]
        self._writer.append(beats)

    def late(self, stream: str) -> list[LateEvent]:
        """Return the stream's late events that this client has not received yet, oldest first. UnknownStreamError if
        there is no such stream.
        """
        late = self._refused.late(stream)
        if not late:
            self._name(stream)
        return late

    def dead_letters(self) -> list[DeadLetter]:
        """Return the dead letters that this client has not received yet, with reasons, oldest first."""
        return self._refused.dead_letters()

    # ---- results topics
    def results(self, topic: str | None = None, *, until_idle_s: float | None = None) -> Iterator[Answered]:
        """Yield committed evaluations from the topic's start. Ends after `until_idle_s` seconds without a new one
        (None: never).
        """
        heard = time.monotonic()
        for answered in self.watch(topic):
            if answered is not None:
                heard = time.monotonic()
                yield answered
            elif until_idle_s is not None and time.monotonic() - heard > until_idle_s:
                return

    def watch(self, topic: str | None = None) -> Iterator[Answered | None]:
        """Yield committed evaluations from the topic's start, and None about ten times per second while idle."""
        return self._results.watch(topic or self._topics.results)

    def close(self) -> None:
        """Close all connections. Standing queries keep running."""
        self._results.close()
        self._refused.close()
        self._writer.close()
        self._services.close()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- inside
    def _check_unit(self, stream: str, events: Iterable[tuple[int, EventData]]) -> None:
        """Warn once per stream about timestamps that may be in seconds."""
        if stream not in self._units and (reply := unit_warning(stream, (at for at, _ in events))) is not None:
            self._units.add(stream)
            warnings.warn(reply, TimestampUnitWarning, stacklevel=4)

    def _coordinator(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = "text/plain",
        name: str | None = None,
    ) -> bytes:
        try:
            request = ServiceRequest(method, path, body, content_type, name=name)
            return self._services.send(lambda: self._coordinators, request)
        except QueryError as error:
            raise _with_text(error, (body or b"").decode()) from None

    def _sparql(self) -> list[str]:
        """Return the URLs of the query engines, as far as known."""
        if self._engines or not self._coordinators:
            return self._engines
        return list(json.loads(self._coordinator("GET", "/engines")).values())

    def _name(self, stream: str) -> str:
        """Return the name of a stream given by its IRI or name. UnknownStreamError if there is no such stream."""
        if ":" not in stream:
            if stream not in self._named and self._topics.events(stream) not in self._log.topics():
                raise UnknownStreamError(f"there is no stream named {stream!r}")
            self._named.add(stream)
            return stream
        if stream not in self._names:
            self._names = {iri: record["name"] for iri, record in self.streams.items()}
        if stream not in self._names:
            raise UnknownStreamError(f"there is no stream <{stream}>")
        return self._names[stream]

    def _hold(self, record: Mapping[str, Any]) -> ClusterQuery:
        name, number = record["name"], int(record["number"])
        held = self._held.get(name)
        if held is None or held.number != number:
            held = ClusterQuery(name, number, record["text"], self._results, self.stop, self._gaps, self._status)
            self._held[name] = held
        return held


def _name_of(text: str, base: str | None) -> str:
    """Return the query name in a text, or a name derived from the text, which is the same for the same text."""
    statement = parse(text, base)
    if isinstance(statement, ContinuousQuery) and statement.name is not None:
        return statement.name
    return "query-" + blake2b(f"{base}\n{text}".encode(), digest_size=8).hexdigest()


def _with_text(error: QueryError, text: str) -> QueryError:
    return type(error)(error.message, error.line, error.column, error.construct, text)
