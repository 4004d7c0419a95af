"""Registers and stops standing queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.answers.avro.row_records import RowFormat
from penstock.engine.answers.avro.row_schema import RECORD, record_name, row_schema
from penstock.engine.answers.evaluation_records import record_format
from penstock.engine.limits import MOST_CATCH_UP
from penstock.engine.sets.set_member import REPORTS
from penstock.errors import DataError, LimitError, PenstockError, QueryError
from penstock.log import Topic
from penstock.query.ir import TimeRange
from penstock.query.resolve import as_query, error_at
from penstock.replication.registration import reads_of
from penstock.services.coordinator.registrar import MAX_NAME_BYTES, MAX_REQUEST_BYTES
from penstock.wire import QueryRegistration

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias, Unpack

    from penstock.mapping.encodings.schema_registration import SchemaRegistration
    from penstock.query.ir import ContinuousQuery, Statement
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.services.coordinator.filter_updates import FilterUpdates
    from penstock.services.coordinator.registrar import Change, Registrar, ResultOptions
    from penstock.services.coordinator.state_writer import StateWriter

    QueryRequest: TypeAlias = tuple[str, str, str | None, str | None, int | None, ResultOptions]
    """The name, text, base, topic, `max_catch_up` and options of a query."""


class SeparateError(Exception):
    """A registration cannot share a transaction with other registrations if it creates a topic, if it replaces a query,
    or if query engines can refuse it later. The registration has no effect yet.
    """


MAX_PARTS = 64
"""Maximum number of parts of a query set."""
DEFAULT_REPORT = "change"
"""The report of a query set whose registration does not set a report."""


class QueryCommands:
    """Registers and stops queries, one transaction per call. A call that raises QueryError, DataError, LimitError or
    NotYetError has written no command. After any other error, the outcome is possibly unknown.
    """

    def __init__(
        self,
        topics: ClusterTopics,
        registrar: Registrar,
        writer: StateWriter,
        filters: FilterUpdates,
        schemas: SchemaRegistration,
    ) -> None:
        self._topics, self._schemas = topics, schemas
        self._registrar = registrar
        self._writer = writer
        self._filters = filters

    def register(
        self,
        name: str,
        text: str,
        base: str | None,
        topic: str | None,
        max_catch_up: int | None = None,
        *,
        replace: bool = False,
        **options: Unpack[ResultOptions],
    ) -> QueryRegistration:
        """Register a query, or a query set if the text declares parameters. `replace`: whether the query replaces a
        registered query of the same name.

        Other parameters and errors: see `Coordinator.register`. DataError if `max_catch_up`, the topic or
        `result_format` is invalid. LimitError if a text is too long. RegistryUnavailableError if the query needs a
        schema registry that is unavailable. SeparateError if changes are gathered (`StateWriter.gathered`), and the
        registration creates a topic or replaces a query.
        """
        if max_catch_up is not None and not 1 <= max_catch_up <= MOST_CATCH_UP:
            raise DataError(f"max_catch_up must be between 1 and {MOST_CATCH_UP}, not {max_catch_up}")
        check_size("a query's name", name, MAX_NAME_BYTES, "MAX_NAME_BYTES")
        check_size("a query's base", base or "", MAX_NAME_BYTES, "MAX_NAME_BYTES")
        check_size("a query's text", text, MAX_REQUEST_BYTES, "MAX_REQUEST_BYTES")
        record_format(options.get("result_format"))
        known = self._registrar.queries.get(name)
        if options.get("report") is None and known is not None and known.report is not None and known.text == text:
            options["report"] = DEFAULT_REPORT
        stands = self._registrar.stands(name, text, base, topic, max_catch_up, **options)
        if topic is not None and not stands:
            self._topics.check_results(topic)
        parsed = None if stands else self._registrar.parse(text, base)
        if parsed is not None:
            options["report"] = checked_report(parsed.statement, options)
            check_of_set(options)
            options["rows"] = self._row_format(name, parsed.statement, topic, options)
        if parsed is not None and self._writer.gathers:
            query = as_query(parsed.statement)
            if known or topic or query.parameters or _is_decided_later(query):
                raise SeparateError
        earlier = self._registrar.reads.get(name) if replace else None
        not_before_ms = None if parsed is None else self._filters.await_adaptors(parsed.statement, earlier)
        verb = self._registrar.replace if replace else self._registrar.register
        change = verb(name, text, base, topic, not_before_ms, max_catch_up, parsed=parsed, **options)
        topics = [] if topic is None else [Topic(topic)]
        if self._registrar.queries[name].report is not None:
            topics.append(Topic(self._topics.names.parameters(name), 1, "compact", compression="uncompressed"))
        if topics:
            self._writer.create(topics)
        self._writer.commit_change(change)
        return self._registrar.queries[name]

    def _row_format(
        self, name: str, statement: Statement, topic: str | None, options: ResultOptions
    ) -> RowFormat | None:
        """Return how the records of a query in Avro are written. None for other formats. The schema of the records is
        registered in the schema registry.

        The subject is `TOPIC-value` for a topic that the registration names. In the cluster's results topic, queries
        have different schemas, so the subject contains the name of the schema. DataError if there is no registry, if
        the registry refuses the schema, or if the query cannot have records in Avro. NotYetError while the registry has
        not answered.
        """
        if options.get("result_format") != "avro":
            return None
        if options.get("changes"):
            raise DataError("`changes` and result_format avro exclude each other: a record in Avro has no changes")
        schema, shared = row_schema(as_query(statement)), topic in (None, self._topics.names.results)
        full_name = record_name(name) if shared else RECORD
        subject = f"{self._topics.names.results}-{full_name}" if shared else f"{topic}-value"
        return RowFormat(self._schemas.id_of(subject, schema.text(full_name)), schema.row_types, schema.of_set)

    def register_all(self, requested: Sequence[QueryRequest]) -> list[QueryRegistration]:
        """Register several queries in one transaction, all or none. Errors: see `register`; the message begins with the
        name of the query. DataError also if a query is registered already with another text, names a topic of its own,
        or is a query set.
        """
        before = self._registrar.commands
        with self._writer.gathered() as change:
            for name, text, base, topic, max_catch_up, options in requested:
                try:
                    self.register(name, text, base, topic, max_catch_up, **options)
                except (PenstockError, SeparateError) as error:
                    self.undo(change, before)
                    raise _of_query(name, error) from error
        try:
            self._writer.commit_change(change)
        except LimitError:
            self.undo(change, before)
            raise
        return [self._registrar.queries[name] for name, *_ in requested]

    def undo(self, change: Change, commands: int) -> None:
        """Undo gathered registrations, which are not in the log. `commands`: the number of commands before these
        registrations.
        """
        for command in reversed(change.commands):
            if isinstance(command, QueryRegistration):
                self._registrar.stop(command.name)
        self._registrar.commands = commands
        self._writer.ahead = False

    def stop(self, name: str) -> bool:
        """Stop a query. Return False if there is no query of that name."""
        change = self._registrar.stop(name)
        self._writer.commit_change(change)
        return bool(change.commands)


def _of_query(name: str, error: Exception) -> Exception:
    """Add the name of the query to the error of one of several registrations. Returns the new error."""
    if isinstance(error, SeparateError):
        message = (
            "it exists with another text or options, has a topic of its own, is a query set, "
            "or begins in the past with a window without a range in time"
        )
        return DataError(f"query {name!r} must be registered on its own: {message}")
    if isinstance(error, QueryError):
        return QueryError(f"query {name!r}: {error.message}", error.line, error.column, error.construct, error.text)
    return type(error)(f"query {name!r}: {error}")


def can_be_refused(record: QueryRegistration) -> bool:
    """Return whether a query begins in the past and has a window that needs all tuples since the first progress of its
    stream. The replicas decide whether such a query is refused (ADR 107).
    """
    return record.past and (not record.steps or any(window.range_ms is None for window in reads_of(record).windows))


def _is_decided_later(query: ContinuousQuery) -> bool:
    """Return whether query engines can refuse a query after its registration, because the query begins in the past and
    has a window without a range in time (ADR 107).
    """
    ranges = [window.range for window in query.windows]
    return query.from_beginning and any(not isinstance(r, TimeRange) or r.range_ms is None for r in ranges)


def checked_report(statement: Statement, options: ResultOptions) -> str | None:
    """Return the report of a query set, by default DEFAULT_REPORT. None if the statement is a query and not a query
    set. DataError if one of `options` is invalid or does not apply. QueryError if the set has a window that begins at
    different tuples for different members. Such members could never be evaluated together.
    """
    query, report = as_query(statement), options.get("report")
    if not query.parameters:
        if report is not None:
            raise DataError("`report` is an option of query sets, and the text declares no parameters")
        return None
    if report is not None and report not in REPORTS:
        raise DataError(f"report is one of {', '.join(REPORTS)}, not {report[:40]!r}")
    if options.get("result_format", "json") not in ("json", "avro"):
        raise DataError("the records of a query set have the result_format json or avro")
    if options.get("changes"):
        raise DataError("`changes` is an option of queries: which members of a query set report is its `report`")
    for window in query.windows:
        if not isinstance(window.range, TimeRange) or (window.range.range_ms is None and not window.range.now):
            message = "in a cluster, the windows of a query set are time windows with a range"
            raise error_at(query, window.at, message)
    return report or DEFAULT_REPORT


def check_of_set(options: ResultOptions) -> None:
    """Check `key` and `parts`. DataError if one of them does not apply, or if `parts` is not in the range from 1 to
    MAX_PARTS.
    """
    parts = options.get("parts", 1)
    if options.get("report") is None:
        for name in ("key", "parts"):
            if options.get(name) not in (None, (), 1):
                raise DataError(f"`{name}` is an option of query sets, and the text declares no parameters")
    if not 1 <= parts <= MAX_PARTS:
        raise DataError(f"parts must be between 1 and {MAX_PARTS} (MAX_PARTS), not {parts}")


def check_size(what: str, text: str, limit: int, name: str) -> None:
    """Raise LimitError if a text has more than `limit` bytes in UTF-8. `what`, `name`: names of the text and of the
    limit in the message.
    """
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > limit:
        raise LimitError(f"{what} of {size} bytes ({name} is {limit})")
