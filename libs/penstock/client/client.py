"""`Client`: one user of a cluster."""

from __future__ import annotations

import json
import time
import warnings
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote
from uuid import uuid4

from penstock.client.answers import answer_of, graph_of
from penstock.client.asking import Question, ask, urls, with_query
from penstock.client.documents import document_of, event_of
from penstock.client.refused import Refused
from penstock.client.results import Answered, ClusterQuery, Results
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

    from penstock.engine.answers.answer_values import Solutions
    from penstock.engine.intake.events import EventData
    from penstock.engine.intake.rejected_events import DeadLetter, LateEvent
    from penstock.log import Log

_SPARQL_ACCEPT = "application/sparql-results+json, application/n-triples"


class Client:
    """A user of a cluster: the embedded engine's verbs, whose answers and errors are the same.

    url: coordinators, by comma. sparql_url: query engines, by comma; none = those that coordinators know. prefix: of
    the cluster's topics. kafka: further properties of librdkafka (TLS, SASL).

    Streams are named by their IRI, or by the name that their topics have. Declarations, registrations and stored data
    take effect in the order of the cluster's log, durable on return; so are events when `push` returns. What this
    client reads (evaluations, late events, dead letters) it takes from the topics, where it stays for others.
    Not here: term ids (`encode`, `decode`, `push_columns`) and `checkpoint`, which are the cluster's own affair.
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
    ) -> None:
        if log is None:
            from penstock.log.kafka import KafkaLog  # noqa: PLC0415 - the cluster extra

            if bootstrap_servers is None:
                raise DataError("a client needs bootstrap_servers")
            log = KafkaLog(bootstrap_servers, dict(kafka or {}))
        self._log = log
        self._topics = TopicNames(prefix)
        self._writer = log.writer()
        self._results = Results(log)
        self._refused = Refused(log, self._topics)
        self._coordinators, self._engines = urls(url), urls(sparql_url)
        self._units: set[str] = set()  # streams whose timestamps were warned of
        self._names: dict[str, str] = {}  # of streams by IRI, as far as they were looked up
        self._named: set[str] = set()  # names whose topics were found
        self._held: dict[str, ClusterQuery] = {}

    # ---- declarations
    def declare_stream(self, iri: str, name: str | None = None, **settings: Any) -> None:
        """Declare a stream; the same again changes nothing. `name` is what its topics are named by.

        Settings are those of `Engine.declare_stream`. DataError where one cannot be.
        """
        if (warning := warning_of(iri, settings)) is not None:
            warnings.warn(warning, UnboundedStorageWarning, stacklevel=2)
        body = json.dumps({"iri": iri, **settings}).encode()
        self._coordinator("PUT", f"/streams/{quote(name or iri, safe='')}", body)

    def declare_streams(self, streams: Mapping[str, Mapping[str, Any]]) -> None:
        """Declare many streams at once, all or none: by name, each with its `iri` and settings. DataError."""
        self._coordinator("POST", "/streams", json.dumps(streams, default=dict).encode())

    def drop_stream(self, iri: str) -> None:
        """Forget a stream that no query reads. What it absorbed stays stored."""
        self._coordinator("DELETE", f"/streams/{quote(iri, safe='')}")
        self._names.pop(iri, None)

    @property
    def streams(self) -> dict[str, Any]:
        """Declarations of all streams by IRI."""
        found: dict[str, Any] = json.loads(self._coordinator("GET", "/streams"))
        return found

    # ---- standing queries
    def register(
        self, text: str, name: str | None = None, base: str | None = None, topic: str | None = None
    ) -> ClusterQuery:
        """Register a standing query; QueryError with line and column. The same again changes nothing.

        `name` takes the place of the text's own. `topic`: results go to a topic of its own.
        """
        called = name or _name_of(text, base)
        path = with_query(f"/queries/{quote(called, safe='')}", base=base, topic=topic)
        self._results.follow(topic or self._topics.results, called)
        try:
            told = json.loads(self._coordinator("PUT", path, text.encode()))
        except BaseException:
            if called not in self._held:
                self._results.unfollow(called)
            raise
        self._results.follow(topic or self._topics.results, called, made=True)
        return self._hold(told)

    @property
    def queries(self) -> dict[str, ClusterQuery]:
        """The standing queries by name. Of those that others registered, evaluations are taken from now on."""
        told = json.loads(self._coordinator("GET", "/queries"))
        for name, record in told.items():
            topic = record["topic"] or self._topics.results
            self._results.follow(topic, name)
            self._results.follow(topic, name, made=True)
        return {name: self._hold(record) for name, record in told.items()}

    def registration_point(self, name: str) -> int | None:
        """Return P of a standing query, ms; None where none of its streams has any progress, or no engine runs."""
        found = json.loads(self._coordinator("GET", f"/queries/{quote(name, safe='')}"))
        point: int | None = found["point"]
        return point

    def _gaps(self, name: str) -> list[Gap]:
        found = json.loads(self._coordinator("GET", f"/queries/{quote(name, safe='')}"))
        return [Gap(**gap) for gap in found["gaps"]]

    def stop(self, name: str) -> None:
        """Stop a standing query. What is due by then is still committed."""
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
        """Store a document (a file by its name, .gz too, or bytes with a `format`) as one snapshot.

        DataError at the first bad line: nothing is stored then. Of the report, `triples` and `terms` are what the
        document has, whether it is new or not.
        """
        began = time.perf_counter()
        data, syntax, base = document_of(source, format, base)
        path = with_query("/data", graph=graph, base=base)
        told = json.loads(self._coordinator("POST", path, data, syntax.media_type, uuid4().hex))
        return LoadReport(int(told["triples"]), int(told["terms"]), time.perf_counter() - began)

    def update(self, text: str, base: str | None = None) -> int:
        """Run `INSERT DATA {...}`, as one snapshot; returns the number of triples."""
        path = with_query("/update", base=base)
        answer = self._coordinator("POST", path, text.encode(), name=uuid4().hex)
        return int(json.loads(answer)["triples"])

    def query(
        self, text: str, base: str | None = None, timeout_s: float | None = None, memory_mb: int | None = None
    ) -> Solutions | bool | rdflib.Graph:
        """Ask once, over the newest snapshot that the engine asked has come to. LimitError beyond time or memory."""
        path = with_query("/sparql", base=base, timeout_s=timeout_s, memory_mb=memory_mb)
        question = Question("POST", path, text.encode(), "application/sparql-query", _SPARQL_ACCEPT)
        try:
            answer = ask(self._sparql, question, timeout_s or 0.0)
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
        """Produce one event: RDF text in a format (a name or media type), or rdflib triples; durable on return.

        What is wrong with it the adaptor finds: it goes to `dead_letters`.
        """
        self.push_events(stream, [(timestamp, data)], format)

    def push_events(
        self,
        stream: str,
        events: Iterable[tuple[int, EventData]],
        format: str = "nt",  # noqa: A002 - a public name
    ) -> None:
        """Produce events, (timestamp, data) each, in order; durable on return.

        TransientError: brokers did not answer in time, and the events are still in flight. The same call of this client
        again continues: it waits for them and writes no event twice.
        """
        events = list(events)
        self._check_unit(stream, events)
        topic = self._topics.events(self._name(stream))
        self._writer.append([event_of(topic, time_ms, data, format) for time_ms, data in events])

    def advance(self, stream: str | None, timestamp: int) -> None:
        """Say that no event at or before a time (ms) will follow (None: on any stream that users push to).

        It holds for all producers of the stream: each partition of its topic is told.
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
        """Take the stream's late events that this client has not taken yet, oldest first. UnknownStreamError."""
        late = self._refused.late(stream)
        if not late:
            self._name(stream)
        return late

    def dead_letters(self) -> list[DeadLetter]:
        """Take what could not be used and this client has not taken yet, with reasons, oldest first."""
        return self._refused.dead_letters()

    # ---- results topics
    def results(self, topic: str | None = None, *, until_idle_s: float | None = None) -> Iterator[Answered]:
        """Yield committed evaluations from the topic's start on; ends after `until_idle_s` without a new one."""
        heard = time.monotonic()
        for answered in self.watch(topic):
            if answered is not None:
                heard = time.monotonic()
                yield answered
            elif until_idle_s is not None and time.monotonic() - heard > until_idle_s:
                return

    def watch(self, topic: str | None = None) -> Iterator[Answered | None]:
        """Yield committed evaluations from the topic's start on, and None about ten times a second while none comes."""
        return self._results.watch(topic or self._topics.results)

    def close(self) -> None:
        """Close the connections. Standing queries stay."""
        self._results.close()
        self._refused.close()
        self._writer.close()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- inside
    def _check_unit(self, stream: str, events: Iterable[tuple[int, EventData]]) -> None:
        """Warn once a stream of timestamps that may be seconds."""
        if stream not in self._units and (told := unit_warning(stream, (at for at, _ in events))) is not None:
            self._units.add(stream)
            warnings.warn(told, TimestampUnitWarning, stacklevel=4)

    def _coordinator(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = "text/plain",
        name: str | None = None,
    ) -> bytes:
        try:
            return ask(lambda: self._coordinators, Question(method, path, body, content_type, name=name))
        except QueryError as error:
            raise _with_text(error, (body or b"").decode()) from None

    def _sparql(self) -> list[str]:
        """Where one-shot queries are answered, as far as that is known now."""
        if self._engines or not self._coordinators:
            return self._engines
        return list(json.loads(self._coordinator("GET", "/engines")).values())

    def _name(self, stream: str) -> str:
        """Return the name of a stream that is given by its IRI, or by its name. UnknownStreamError."""
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
            held = self._held[name] = ClusterQuery(name, number, record["text"], self._results, self.stop, self._gaps)
        return held


def _name_of(text: str, base: str | None) -> str:
    """Return the name that a text gives its query, or else one that the text decides: the same again is the same."""
    statement = parse(text, base)
    if isinstance(statement, ContinuousQuery) and statement.name is not None:
        return statement.name
    return "query-" + blake2b(f"{base}\n{text}".encode(), digest_size=8).hexdigest()


def _with_text(error: QueryError, text: str) -> QueryError:
    return type(error)(error.message, error.line, error.column, error.construct, text)
