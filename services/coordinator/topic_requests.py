"""Requests by topic. Users write requests as records to the streams topic and the queries topic. The coordinator
executes these records like requests over HTTP.

| topic | key | value | headers |
| --- | --- | --- | --- |
| streams | the stream's name | JSON: `iri` and settings; no value: drop the stream | |
| queries | the query's name | the query's text; no value: stop the query | `base`, `topic` and options |

A record with another text replaces the registered query of the same name. Clients therefore need not write a record
that stops the old query. Compaction could remove such a record.

The coordinator processes each record exactly once. For this, one transaction contains the effect of the record and the
next offset, which is stored in the control topic. The coordinator does not use a consumer group, because brokers delete
a group's offsets when the group has had no members for some days. A refused record has no effect; the status topic
contains the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.engine.answers.evaluation_records import record_format
from penstock.engine.intake.declaration import check_settings
from penstock.errors import DataError, LimitError, NotYetError, QueryError, UnknownStreamError
from penstock.json_text import parse_json
from penstock.log import START, Partition, Record, TransientError
from penstock.mapping.encodings.schema_registration import RegistryUnavailableError
from penstock.replication.status_topic import accepted_record, refused_record
from penstock.services.coordinator.query_commands import SeparateError
from penstock.services.coordinator.registrar import MAX_NAME_BYTES, MAX_REQUEST_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.log import Log, Message, Reader
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.replication.status_topic import StatusView
    from penstock.services.coordinator.active_state import Active
    from penstock.services.coordinator.query_commands import QueryRequest
    from penstock.services.coordinator.registrar import ResultOptions, StreamRequest

REFUSALS = (DataError, QueryError, LimitError, UnknownStreamError, RegistryUnavailableError)
"""Errors in the request itself. The coordinator does not retry such a request."""
_POLL = 200  # maximum number of requests per step
_CATCH_UP_S = 0.05
_MOST_TOGETHER_BYTES = 1 << 16  # size of a query's text; no topic refuses the record of a shorter text


def declaration_of_json(body: bytes) -> tuple[str, dict[str, Any]]:
    """Return the IRI and settings of a declaration. DataError if the JSON is invalid."""
    return _declaration(parse_json(body, "the declaration"))


def declarations_of_json(body: bytes) -> list[StreamRequest]:
    """Return the declarations in a JSON object whose keys are stream names. DataError if the JSON is invalid."""
    found = parse_json(body, "the declaration")
    if not isinstance(found, dict):
        raise DataError("declarations are a JSON object, by streams' names")
    return [(iri, name, settings) for name, value in found.items() for iri, settings in [_declaration(value)]]


def queries_of_json(body: bytes) -> list[QueryRequest]:
    """Return the registrations in a JSON object whose keys are the names of queries. The values are objects with
    `query` (the text) and options. DataError if the JSON is invalid.
    """
    found = parse_json(body, "the queries")
    if not isinstance(found, dict) or not found:
        raise DataError("queries are a JSON object, by names")
    return [_query(name, value) for name, value in found.items()]


def _query(name: str, found: Any) -> QueryRequest:
    if not isinstance(found, dict) or not isinstance(found.get("query"), str):
        raise DataError(f'query {name!r} is a JSON object with "query"')
    known = {"query": str, "base": str, "max_catch_up": int, "changes": bool, "result_format": str}
    for option, value in found.items():
        if option not in known:
            raise DataError(f"query {name!r}: unknown option {option!r}; known are {', '.join(known)}")
        if value is not None and type(value) is not known[option]:
            raise DataError(f"query {name!r}: {option} is not {value!r:.40}")
    result_format = record_format(found.get("result_format"))
    options: ResultOptions = {"changes": bool(found.get("changes")), "result_format": result_format, "report": None}
    return name, found["query"], found.get("base"), None, found.get("max_catch_up"), options


def _declaration(found: Any) -> tuple[str, dict[str, Any]]:
    if not isinstance(found, dict) or not isinstance(found.get("iri"), str):
        raise DataError('a declaration is a JSON object with "iri"')
    settings = {name: value for name, value in found.items() if name != "iri"}
    check_settings(settings)
    return found["iri"], settings


class Requests:
    """Reads and processes the records of the request topics, on the active coordinator. `positions`: the offset at
    which to begin in each topic.
    """

    def __init__(self, log: Log, topics: ClusterTopics, status: StatusView, positions: Mapping[str, int]) -> None:
        self._log = log
        self._names = topics.names
        self._status = status
        self._positions = positions
        self._held: list[Message] = []  # pending queries: the first one waits for adaptors or a registry
        self._alone_before = 0  # queries before this offset are processed on their own
        self._streams, self._queries = self._reader(topics.names.streams), self._reader(topics.names.queries)

    def _reader(self, topic: str) -> Reader:
        return self._log.reader({Partition(topic): self._positions.get(topic, START)})

    def step(self, active: Active) -> bool:
        """Process new requests. Returns whether there were any requests. A query is processed after the declarations
        that precede it, and only when adaptors pass on the query's predicates. Later queries wait for this query.

        After a LogError, the caller must read the coordinator's state from the log again.
        """
        streams, queries = self._streams.poll(_POLL), [] if self._held else self._queries.poll(_POLL)
        self._declare(active, streams)
        if queries:
            partition = Partition(self._names.streams)
            end = self._log.spans([partition])[partition].end
            while self._streams.positions()[partition] < end and not self._streams.caught_up():
                self._declare(active, self._streams.poll(_POLL, _CATCH_UP_S))
        self._held += queries
        while self._held:
            if done := self._registered_together(active):
                del self._held[:done]
                continue
            try:
                self._take(active, self._held[0], "query", lambda name, m: _register(active, name, m))
            except NotYetError:
                break
            del self._held[0]
        return bool(streams or queries)

    def _declare(self, active: Active, messages: list[Message]) -> None:
        if self._declared_together(active, messages):
            return
        for message in messages:
            self._take(active, message, "stream", lambda name, m: _declare(active, name, m))

    def _declared_together(self, active: Active, messages: list[Message]) -> bool:
        """Process two or more declarations in one transaction. Returns False, without effect, if the messages must be
        processed one by one.
        """
        requested = []
        for message in messages:
            name = (message.key or b"").decode("utf-8", "replace")
            if not name or len(message.key or b"") > MAX_NAME_BYTES:
                return False
            if message.value is None or len(message.value) > MAX_REQUEST_BYTES:
                return False
            if self._status.refused("stream", name):
                return False
            try:
                iri, settings = declaration_of_json(message.value)
            except DataError:
                return False
            requested.append((iri, name, settings))
        if len(requested) < 2:
            return False
        try:
            with active.writer.attached([], {messages[-1].topic: messages[-1].offset + 1}):
                active.streams.declare(requested)
        except REFUSALS:
            _check_ahead(active)
            return False
        return True

    def _registered_together(self, active: Active) -> int:
        """Process the first pending queries in one transaction. Returns the number of processed queries. The number is
        0, and nothing has changed, if the first query must be processed on its own.
        """
        done, before = 0, active.registrar.commands
        if len(self._held) < 2 or self._held[0].offset < self._alone_before:
            return 0
        with active.writer.gathered() as change:
            for message in self._held:
                name = (message.key or b"").decode("utf-8", "replace")
                if not name or len(message.key or b"") > MAX_NAME_BYTES or self._status.refused("query", name):
                    break
                if message.value is None or len(message.value) > _MOST_TOGETHER_BYTES:
                    break
                try:
                    _register(active, name, message)
                except (*REFUSALS, NotYetError, SeparateError):
                    break
                done += 1
        _check_ahead(active)
        if done:
            last = self._held[done - 1]
            try:
                with active.writer.attached([], {last.topic: last.offset + 1}):
                    active.writer.commit_change(change)
            except LimitError:  # of one of the queries
                active.queries.undo(change, before)
                self._alone_before = last.offset + 1
                return 0
        return done

    def _take(self, active: Active, message: Message, kind: str, verb: Callable[[str, Message], None]) -> None:
        """Process one request. The transaction also contains the next offset. If the request is refused, the status
        topic gets the reason.
        """
        source = f"{message.topic}/{message.partition}/{message.offset}"
        consumed = {message.topic: message.offset + 1}
        key = message.key or b""
        name = key.decode("utf-8", "replace") if 0 < len(key) <= MAX_NAME_BYTES else source
        cleared = [accepted_record(self._names, kind, name)] if self._status.refused(kind, name) else []
        try:
            with active.writer.attached(cleared, consumed):
                if not key:
                    raise DataError(f"a {kind} without a name: the record has no key")
                if len(key) > MAX_NAME_BYTES:
                    raise LimitError(f"a {kind}'s name of {len(key)} bytes (MAX_NAME_BYTES is {MAX_NAME_BYTES})")
                if message.value is not None and len(message.value) > MAX_REQUEST_BYTES:
                    raise LimitError(f"{len(message.value)} bytes (MAX_REQUEST_BYTES is {MAX_REQUEST_BYTES})")
                verb(name, message)
        except REFUSALS as error:
            refused: list[Record] = [refused_record(self._names, kind, name, source, error), *self._status.surplus()]
            with active.writer.attached(refused, consumed):
                pass
            _check_ahead(active)

    def close(self) -> None:
        """Close the readers."""
        self._streams.close()
        self._queries.close()


def _check_ahead(active: Active) -> None:
    """Raise TransientError if a refused request has changed the state in memory. The state must then be read from the
    log again.
    """
    if active.writer.ahead:
        raise TransientError("the coordinator's state is ahead of the log: it is read again")


def _declare(active: Active, name: str, message: Message) -> None:
    if message.value is not None:
        iri, settings = declaration_of_json(message.value)
        active.streams.declare([(iri, name, settings)])
        return
    for record in list(active.registrar.streams.values()):
        if record.name == name:
            active.streams.drop(record.iri)


def _register(active: Active, name: str, message: Message) -> None:
    if message.value is None:
        active.queries.stop(name)
        return
    headers = {key.lower(): _text(f"header {key!r}", value) for key, value in message.headers}
    text = _text("the query", message.value)
    key = [_text("header key", value) for name, value in message.headers if name.lower() == "key"]
    most, options = catch_up_of(headers.get("max_catch_up")), options_of(headers, key)
    base, topic = headers.get("base"), headers.get("topic")
    active.queries.register(name, text, base, topic, most, replace=True, **options)


def options_of(given: Mapping[str, str], key: Sequence[str]) -> ResultOptions:
    """Parse the options of a registration. `key`: the names of the columns that identify a member of a query set.
    DataError if `changes` is neither `true` nor `false`, or `result_format` is unknown.
    """
    changes, result_format = option_of("changes", given.get("changes")), record_format(given.get("result_format"))
    report, parts = given.get("report"), _whole("parts", given.get("parts"))
    found: ResultOptions = {"changes": changes, "result_format": result_format, "report": report, "key": tuple(key)}
    return found if parts is None else {**found, "parts": parts}


def option_of(name: str, text: str | None) -> bool:
    """Return an option of a registration from its text. No text (None) means false. DataError if the text is neither
    `true` nor `false`. `name`: the name of the option.
    """
    if text not in (None, "true", "false"):
        raise DataError(f"{name} must be true or false, not {text[:40]!r}")
    return text == "true"


def catch_up_of(text: str | None) -> int | None:
    """Return the `max_catch_up` of a registration from its text, or None if there is no text. DataError if the text is
    not an integer.
    """
    return _whole("max_catch_up", text)


def _whole(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise DataError(f"{name} is no whole number: {text[:40]!r}") from error


def _text(what: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{what} is no UTF-8: {error}") from error
