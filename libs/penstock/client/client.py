"""`Client`: access to a cluster."""

from __future__ import annotations

import json
import time
import warnings
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import quote
from uuid import uuid4

from penstock.client.answers import answer_of, graph_of
from penstock.client.cluster_sets import ClusterQuerySet
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
from penstock.log import Partition, Record, UnknownTopicError
from penstock.log.topics import TopicNames
from penstock.query.ir import ContinuousQuery
from penstock.query.parser import declared_parameters, parse
from penstock.rdf.formats import Format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from os import PathLike

    import rdflib

    from penstock.client.cluster_status import ClusterQueryStatus
    from penstock.engine.answers.answer_values import Solutions
    from penstock.engine.answers.evaluation_records import RecordFormat
    from penstock.engine.intake.events import EventData
    from penstock.engine.intake.rejected_events import DeadLetter, LateEvent
    from penstock.log import Log, Writer

_SPARQL_ACCEPT = "application/sparql-results+json, application/n-triples"


class Client:
    """Access to a cluster, with the answers, the errors and most methods of the embedded engine.

    - `url`: URLs of the coordinators, comma-separated.
    - `sparql_url`: URLs of query engines, comma-separated; by default, the query engines that the coordinators know.
    - `prefix`: prefix of the cluster's topics.
    - `kafka`: additional librdkafka properties (TLS, SASL).
    - `token`: bearer token for coordinators and query engines, or a function that returns the token; the client calls
    the function again when a service refuses the token.
    - `ca`: file of the CA (PEM) of the services' certificates; by default, the system's CAs.

    Requests raise AccessError if a token is missing, or if the role of the token does not suffice.

    A stream is identified by its IRI or by its name in topic names. Methods that declare, register, store or push
    something return when the change is durable. Evaluations, late events and dead letters stay in their topics after
    the client has read them. The client does not have the methods and properties `advance_idle`, `bulk`, `checkpoint`,
    `decode`, `encode`, `explain`, `limits`, `push_columns`, `query_sets` and `stats` of the engine.
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
        token: str | Callable[[], str] | None = None,
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
        self._writer: Writer | None = None  # opened by the first push: a reader often has no right to write
        self._results = Results(log)
        self._refused = Refused(log, self._topics)
        self._services = ServiceClient(Credentials(token, None if ca is None else str(ca)))
        self._coordinators, self._engines = urls(url), urls(sparql_url)
        self._units: set[str] = set()  # streams with a timestamp warning
        self._names: dict[str, str] = {}  # the names of streams that were looked up, by IRI
        self._named: set[str] = set()  # names with known topics
        self._mapped: set[str] = set()  # streams that are known to have a mapping
        self._held: dict[str, ClusterQuery] = {}

    # ---- declarations
    def declare_stream(self, iri: str, name: str | None = None, **settings: Any) -> None:
        """Declare a stream. A repeated declaration has no effect. `name` determines the names of the stream's topics.
        If `name` is None, the IRI determines these names.

        The settings are the same as for `Engine.declare_stream`. DataError if a setting is invalid, or if the stream is
        already declared with other settings.
        """
        if (warning := warning_of(iri, settings)) is not None:
            warnings.warn(warning, UnboundedStorageWarning, stacklevel=2)
        body = json.dumps({"iri": iri, **settings}).encode()
        self._coordinator("PUT", f"/streams/{quote(name or iri, safe='')}", body)

    def declare_streams(self, streams: Mapping[str, Mapping[str, Any]]) -> None:
        """Declare several streams, all or none. `streams`: for each name of a stream, its `iri` and settings. DataError
        if a declaration is invalid.
        """
        self._coordinator("POST", "/streams", json.dumps(streams, default=dict).encode())

    def drop_stream(self, iri: str) -> None:
        """Drop a stream. Its absorbed triples remain in the stored graph. DataError if a query reads or publishes the
        stream.
        """
        self._coordinator("DELETE", f"/streams/{quote(iri, safe='')}")
        self._names.pop(iri, None)
        self._mapped.clear()

    @property
    def streams(self) -> dict[str, Any]:
        """The declarations of all streams, by IRI."""
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
        *,
        changes: bool = False,
        result_format: RecordFormat = "json",
        replace: bool = False,
    ) -> ClusterQuery:
        """Register a standing query. A repeated registration has no effect. QueryError, with line and column, if the
        query is invalid.

        `name` overrides the name in the text. With FROM BEGINNING, or with STARTING AT in the past, the query begins
        with the oldest tuples that its streams retain. Such a query cannot read the stored graph (docs/semantics.md
        §3).

        - `topic`: the query's own results topic. None: the results topic of the cluster.
        - `max_catch_up`: maximum number of instants that become due at one advance of a stream. If more instants become
          due, the query skips these instants, and `gaps` lists the skipped instants. None: the coordinator's default.
        - `changes`: whether the evaluations contain the rows or triples that the answer gains and loses
          (`ClusterEvaluation.added`).
        - `result_format`: the format of the records in the results topic. With `json`, each evaluation has its own
          record. With `json-batch` or `arrow`, one record contains the evaluations of many similar queries at one
          instant. With `avro`, each row of an answer has its own record, for sinks of Kafka Connect; the coordinator
          needs a schema registry. This client reads all formats except `avro`.
        - `replace`: if a query of this name exists, the new text replaces its text. The new text answers the instants
          after the last instant of the old text (docs/semantics.md §3). The object of the old query then stands for the
          new text.
        """
        query_name = name or _name_of(text, base)
        options = {"base": base, "topic": topic, "max_catch_up": max_catch_up, "changes": "true" if changes else None}
        options["result_format"] = None if result_format == "json" else result_format
        options["replace"] = "true" if replace else None
        return self._hold(self._register(query_name, text, topic, options), replaces=replace)

    def register_set(
        self,
        text: str,
        parameters: Any = None,
        *,
        report: Literal["every", "nonempty", "change"] = "change",
        key: str | Sequence[str] | None = None,
        name: str | None = None,
        base: str | None = None,
        topic: str | None = None,
        max_catch_up: int | None = None,
        result_format: Literal["json", "avro"] = "json",
        parts: int | None = None,
    ) -> ClusterQuerySet:
        """Register a query set. A repeated registration has no effect. QueryError, with line and column, if the text is
        invalid.

        `parameters`: members to add (see `ClusterQuerySet.add`). `report`: which members report at an instant (see
        `Engine.register_set`). `key`: the name or names of the columns that identify a member. None: the key of the
        registered set or, for a new set, the parameters. In the parameters topic, the key of a member is the key of its
        record. `parts`: the number of parts (1 to 64). None: that of the registered set or, for a new set, 1. Several
        query engines can evaluate the parts. The evaluations of a member are in order of time, but evaluations of
        members of different parts are in any order. Other parameters: see `register`. QueryError also if the set is
        registered with another key or other parts.
        """
        set_name = name or _name_of(text, base)
        options = {"base": base, "topic": topic, "max_catch_up": max_catch_up, "report": report}
        options["result_format"] = None if result_format == "json" else result_format
        options["parts"] = parts
        columns = [] if key is None else [key] if isinstance(key, str) else [*key]
        made = self._hold_set(self._register(set_name, text, topic, options | {"key": columns}), tuple(columns))
        if parameters is not None:
            made.add(parameters)
        return made

    def register_all(
        self,
        texts: Mapping[str, str],
        base: str | None = None,
        max_catch_up: int | None = None,
        *,
        changes: bool = False,
        result_format: RecordFormat = "json",
    ) -> dict[str, ClusterQuery]:
        """Register several standing queries in one transaction, all or none. `texts`: the text of each query, by name.
        The options apply to all queries (see `register`).

        QueryError or DataError if a query is invalid, exists with another text, or is a query set. The message begins
        with the name of the query.
        """
        options = {"base": base, "max_catch_up": max_catch_up, "changes": changes, "result_format": result_format}
        for name in texts:
            self._results.follow(self._topics.results, name)
        try:
            body = json.dumps({name: {"query": text} | options for name, text in texts.items()}).encode()
            reply = json.loads(self._coordinator("POST", "/queries", body, "application/json"))
        except BaseException:
            for name in texts.keys() - self._held.keys():
                self._results.unfollow(name)
            raise
        for name in texts:
            self._results.follow(self._topics.results, name, made=True)
        return {name: self._hold(record) for name, record in reply.items()}

    def _register(self, name: str, text: str, topic: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
        """Register a query or a query set, and return its document."""
        path = with_query(f"/queries/{quote(name, safe='')}", **options)
        self._results.follow(topic or self._topics.results, name)
        try:
            reply = json.loads(self._coordinator("PUT", path, text.encode()))
        except BaseException:
            if name not in self._held:
                self._results.unfollow(name)
            raise
        self._results.follow(topic or self._topics.results, name, made=True)
        return dict(reply)

    @property
    def queries(self) -> dict[str, ClusterQuery]:
        """The standing queries, by name, including queries of other clients. From this access on, this client receives
        the evaluations of all these queries.
        """
        reply = json.loads(self._coordinator("GET", "/queries"))
        for name, record in reply.items():
            topic = record["topic"] or self._topics.results
            self._results.follow(topic, name)
            self._results.follow(topic, name, made=True)
        return {name: self._hold(record) for name, record in reply.items()}

    def registration_point(self, name: str) -> int | None:
        """Return the registration point of a query in ms. None until a stream of the query has progress and an
        engine has enrolled the query. NotFoundError if there is no such query.
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
        # the query was stopped; another query perhaps has its name now
        if registration is None or registration["number"] != number:
            return status_of_documents(name, None)
        found = self._services.each_found(self._sparql(), ServiceRequest("GET", f"{path}/status"))
        engines = None if registration["parts"] > 1 else 1  # how many of the engines evaluate the query
        return status_of_documents(name, registration, map(json.loads, islice(found, engines)))

    def stop(self, name: str) -> None:
        """Stop a standing query. Evaluations that are due at the stop are still committed."""
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
        """Store a document as one snapshot. `source`: a file name (gzip if the name ends with .gz), or bytes. Bytes
        require `format`. `graph`: IRI of the graph for statements without a graph.

        DataError, with the line, if the document is invalid. LimitError above a million triples. After these errors,
        nothing is stored. The report counts all triples and terms of the document, including triples and terms that are
        stored already.
        """
        began = time.perf_counter()
        data, syntax, base = document_of(source, format, base)
        path = with_query("/data", graph=graph, base=base)
        reply = json.loads(self._coordinator("POST", path, data, syntax.media_type, uuid4().hex))
        return LoadReport(int(reply["triples"]), int(reply["terms"]), time.perf_counter() - began)

    def update(
        self,
        text: str,
        base: str | None = None,
        *,
        default_graphs: Iterable[str] = (),
        named_graphs: Iterable[str] = (),
    ) -> int:
        """Execute a SPARQL Update as one snapshot, exactly once. Returns the total number of removed and added triples,
        including triples whose removal or addition changes nothing. `default_graphs`, `named_graphs`: see
        `Engine.update`.

        QueryError if the text is invalid or an operation fails. `LOAD` reads files of the query engines
        (`PENSTOCK_LOAD_DIRECTORY`). LimitError if a pattern exceeds the limits of queries, or if the update removes and
        adds more than a million triples. If another change is stored during the evaluation, the cluster repeats the
        evaluation. ConflictError after several repetitions.
        """
        graphs = {"using-graph-uri": list(default_graphs), "using-named-graph-uri": list(named_graphs)}
        path = with_query("/update", base=base, **graphs)
        answer = self._coordinator("POST", path, text.encode(), "application/sparql-update", uuid4().hex)
        return int(json.loads(answer)["triples"])

    def query(
        self,
        text: str,
        base: str | None = None,
        timeout_s: float | None = None,
        memory_mb: int | None = None,
        *,
        default_graphs: Iterable[str] = (),
        named_graphs: Iterable[str] = (),
    ) -> Solutions | bool | rdflib.Graph:
        """Execute a one-shot query on the latest snapshot of a query engine. QueryError if the query is invalid.
        LimitError if the query exceeds `timeout_s` seconds or `memory_mb` MiB (None: the engine's limits).
        `default_graphs`, `named_graphs`: see `Engine.query`.
        """
        graphs = {"default-graph-uri": list(default_graphs), "named-graph-uri": list(named_graphs)}
        path = with_query("/sparql", base=base, timeout_s=timeout_s, memory_mb=memory_mb, **graphs)
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
        timestamp: int | None = None,
        format: str | None = None,  # noqa: A002 - a public name
    ) -> None:
        """Produce one event: RDF text in `format` (a name or media type), or rdflib triples. `timestamp`: the time of
        the event in ms. The event is durable when the call returns. Errors: see `push_events`.

        If the stream has a mapping, and `format` is None, "json", "ndjson", "csv", "avro" or "protobuf", then `data` is
        a message for the mapping. One message can become several events. `timestamp` is the time of the message. If
        `timestamp` is None, the message has the time of its Kafka record. If the stream has no mapping, `format` None
        means N-Triples.

        The adaptor validates the event. An invalid event goes to the dead-letter topic.
        """
        self.push_events(stream, [(timestamp, data)], format)

    def push_events(
        self,
        stream: str,
        events: Iterable[tuple[int | None, EventData]],
        format: str | None = None,  # noqa: A002 - a public name
    ) -> None:
        """Produce events in order. Each event is given as (timestamp, data); see `push`. The events are durable when
        the call returns.

        DataError if a time or the format is invalid. UnknownStreamError if there is no such stream. TransientError if
        the brokers do not respond in time. The events can still arrive later. If the caller repeats the same call with
        this client, the repeated call waits for these events and writes no event twice.
        """
        events = list(events)
        topic = self._topics.events(self._name(stream))
        if format is None and any(at is None for at, _ in events) and not self._is_mapped(stream):
            format = Format.N_TRIPLES.value  # noqa: A001 - an event of RDF needs a time
        self._check_unit(stream, events)
        self._append([event_of(topic, time_ms, data, format) for time_ms, data in events])

    def advance(self, stream: str | None, timestamp: int) -> None:
        """Advance a stream to `timestamp`, in ms. From then on, events with this time or an earlier time are late. If
        `stream` is None, advance every stream that is not derived.

        The call advances every partition of the stream's events topic, and thus affects all producers of the stream.
        """
        if stream is None:
            names = [record["name"] for record in self.streams.values() if record["publisher"] is None]
        else:
            names = [self._name(stream)]
        beat = (("heartbeat", str(timestamp).encode()),)
        partitions = self._log.topics()
        topics = [self._topics.events(name) for name in names]
        beats = [Record(t, b"", partition=i, headers=beat) for t in topics for i in range(partitions.get(t, 1))]
        self._append(beats)

    def _append(self, records: Sequence[Record]) -> None:
        if self._writer is None:
            self._writer = self._log.writer()
        self._writer.append(records)

    def late(self, stream: str) -> list[LateEvent]:
        """Return the late events of a stream that this client has not received yet, the oldest first.
        UnknownStreamError if there is no such stream.
        """
        late = self._refused.late(stream)
        if not late:
            self._name(stream)
        return late

    def dead_letters(self) -> list[DeadLetter]:
        """Return the dead letters that this client has not received yet, the oldest first."""
        return self._refused.dead_letters()

    # ---- results topics
    def results(self, topic: str | None = None, *, until_idle_s: float | None = None) -> Iterator[Answered]:
        """Yield the committed evaluations of a results topic, from its start. `topic` None: the results topic of the
        cluster. Ends after `until_idle_s` seconds without a new evaluation (None: never).
        """
        heard = time.monotonic()
        for answered in self.watch(topic):
            if answered is not None:
                heard = time.monotonic()
                yield answered
            elif until_idle_s is not None and time.monotonic() - heard > until_idle_s:
                return

    def watch(self, topic: str | None = None) -> Iterator[Answered | None]:
        """Yield the committed evaluations of a results topic, from its start. `topic` None: the results topic of the
        cluster. While there are no new evaluations, yields None about ten times per second.
        """
        return self._results.watch(topic or self._topics.results)

    def close(self) -> None:
        """Close all connections. Standing queries continue in the cluster."""
        self._results.close()
        self._refused.close()
        if self._writer is not None:
            self._writer.close()
        self._services.close()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- inside
    def _check_unit(self, stream: str, events: Iterable[tuple[int | None, EventData]]) -> None:
        """Warn once per stream about timestamps that seem to be in seconds."""
        if (
            stream not in self._units
            and (reply := unit_warning(stream, (at for at, _ in events if at is not None))) is not None
        ):
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
        """Return the URLs of query engines from `sparql_url` or, without this parameter, from the coordinators."""
        if self._engines or not self._coordinators:
            return self._engines
        return list(json.loads(self._coordinator("GET", "/engines")).values())

    def _name(self, stream: str) -> str:
        """Return the name of a stream. `stream`: its IRI or name. UnknownStreamError if there is no such stream."""
        if ":" not in stream:
            if stream not in self._named:
                try:
                    self._log.spans([Partition(self._topics.events(stream))])
                except UnknownTopicError as error:
                    raise UnknownStreamError(f"there is no stream named {stream!r}") from error
            self._named.add(stream)
            return stream
        if stream not in self._names:
            self._names = {iri: record["name"] for iri, record in self.streams.items()}
        if stream not in self._names:
            raise UnknownStreamError(f"there is no stream <{stream}>")
        return self._names[stream]

    def _is_mapped(self, stream: str) -> bool:
        """Return whether a stream has a mapping. `stream`: its IRI or name. False if the client knows no
        coordinator.
        """
        if stream not in self._mapped and self._coordinators:
            found = (record for iri, record in self.streams.items() if stream in (iri, record["name"]))
            if any(record["mapping"] is not None for record in found):
                self._mapped.add(stream)
        return stream in self._mapped

    def _hold(self, record: Mapping[str, Any], *, replaces: bool = False) -> ClusterQuery:
        name, number = record["name"], int(record["number"])
        held = self._held.get(name)
        if held is not None and replaces:
            held.number, held.text = number, record["text"]
        if held is None or held.number != number:
            if record["report"] is not None:
                return self._hold_set(record)
            held = ClusterQuery(name, number, record["text"], self._results, self.stop, self._gaps, self._status)
            self._held[name] = held
        return held

    def _hold_set(self, record: Mapping[str, Any], key: tuple[str, ...] = ()) -> ClusterQuerySet:
        name, number, text = record["name"], int(record["number"]), record["text"]
        held = self._held.get(name)
        key = tuple(record["key"]) or key  # the registration of a set can lack the key
        if isinstance(held, ClusterQuerySet) and held.number == number and key in ((), held.key):
            return held
        if record["report"] is None:
            raise DataError(f"{name} is a query: its text declares no parameters")
        names = declared_parameters(text, record["base"])
        given = name, number, text, self._results, self.stop, self._gaps, self._status
        place = self._topics.parameters(name)
        made = ClusterQuerySet(*given, topic=place, parameters=names, key=key, append=self._append)
        self._held[name] = made
        return made


def _name_of(text: str, base: str | None) -> str:
    """Return the name in the text of a query. If the text has no name, derive one from the text and the base IRI."""
    statement = parse(text, base)
    if isinstance(statement, ContinuousQuery) and statement.name is not None:
        return statement.name
    return "query-" + blake2b(f"{base}\n{text}".encode(), digest_size=8).hexdigest()


def _with_text(error: QueryError, text: str) -> QueryError:
    return type(error)(error.message, error.line, error.column, error.construct, text)
