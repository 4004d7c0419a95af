"""The registrar: validates declarations and registrations, and applies both to an embedded engine without data.

The engine has all declarations and queries. The code that evaluates queries thus also checks the names, graphs, limits
and groups of queries. For each named graph with content, the engine stores only one triple.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict, Unpack

import numpy as np

from penstock.core import _native as native
from penstock.engine.engine_core import EngineCore
from penstock.engine.history.cluster_past import begins_in_past
from penstock.engine.intake.declaration import Declaration
from penstock.engine.limits import Limits
from penstock.engine.oneshot.engine_catalogue import EngineCatalogue
from penstock.engine.runtime import Runtime
from penstock.engine.sets.set_member import RECORD_KEY, SetMember
from penstock.engine.standing.handover import check_replacement, reads_of
from penstock.engine.stored_graph import LocalGraph
from penstock.errors import DataError, PenstockError, QueryError
from penstock.query.budget import planning
from penstock.query.functions import text_functions
from penstock.query.ir import ContinuousQuery
from penstock.query.parser import parse
from penstock.query.resolve import as_query
from penstock.rdf.terms import IRI
from penstock.replication.registration import declaration_of, declaration_record, group_of, windows_of
from penstock.services.coordinator.predicate_demand import predicates_read
from penstock.wire import QueryRegistration, QueryStop, StreamDeclaration, StreamDrop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from random import Random

    from penstock.engine.answers.avro.row_records import RowFormat
    from penstock.engine.history.cluster_past import Reached
    from penstock.engine.standing.groups import Group, Member
    from penstock.query.budget import Budget
    from penstock.query.ir import Statement
    from penstock.services.coordinator.predicate_demand import PredicatesRead

Command: TypeAlias = StreamDeclaration | StreamDrop | QueryRegistration | QueryStop
StreamRequest: TypeAlias = tuple[str, str | None, "dict[str, Any]"]
"""The IRI, name and settings of a stream. If the name is None, the IRI is also the name."""
Compacted: TypeAlias = StreamDeclaration | QueryRegistration | None
MAX_REQUEST_BYTES = 1 << 20
"""Maximum size of a declaration or of a query's text."""
MAX_NAME_BYTES = 1_024
"""Maximum size of a stream's or query's name, and of a query's base."""


class Beginning(NamedTuple):
    """The beginning of a newly declared stream: the version of its predicate filter, and the end offsets of its topics
    by partition. The offsets are not zero if the stream's IRI or topics were used before (see `StreamDeclaration`).
    """

    filter_version: int = 0
    events_before: tuple[int, ...] = ()
    tuples_before: tuple[int, ...] = ()


class Parsed(NamedTuple):
    """A parsed query, and the rest of its planning budget after parsing."""

    statement: Statement
    budget: Budget


@dataclass(slots=True)
class Change:
    """The effect of a request. `commands`: the commands to write to the shards topic, in order. `compacted`: the
    updates of the control topic, by key. `stopped`: the queries that the request stops.
    """

    commands: list[Command] = field(default_factory=list)
    compacted: dict[str, Compacted] = field(default_factory=dict)
    stopped: list[QueryRegistration] = field(default_factory=list)

    def add(self, other: Change) -> None:
        """Append another change."""
        self.commands += other.commands
        self.compacted |= other.compacted
        self.stopped += other.stopped


def empty_runtime(limits: Limits, clock: Callable[[], int], rng: Random) -> Runtime:
    """Return the `Runtime` of an embedded engine without streams and data."""
    store = native.Store("", 1)
    return Runtime(EngineCore(LocalGraph(store), native.Dictionary(), limits, clock, rng, text_functions.call))


class ResultOptions(TypedDict, total=False):
    """The options of a query's result records. `changes`: whether a record has `added` and `removed` in place of the
    answer. `result_format`: the format of the records (docs/kafka.md), `json` by default. `report`: which members of a
    query set report (`checked_report`); None for a query. `rows`: how records in Avro are written. `key`,
    `parts`: see `QueryRegistration`. If `key` is empty, the key consists of the parameters.
    """

    changes: bool
    result_format: str
    report: str | None
    rows: RowFormat | None
    key: tuple[str, ...]
    parts: int


class Registrar:
    """The current declarations and queries. `declare`, `drop`, `register`, `replace` and `stop` apply a change in
    memory and return the change, or raise an error.

    `limits.max_catch_up`: the default for registrations that do not set `max_catch_up`. `buckets`: the cluster's number
    of buckets. `reached`: see `begins_in_past`.
    """

    def __init__(self, limits: Limits | None = None, buckets: int = 1, reached: Reached = lambda _: None) -> None:
        limits = limits or Limits()
        self._buckets, self._reached, self._max_catch_up = buckets, reached, limits.max_catch_up
        self._runtime = empty_runtime(limits, lambda: 0, random.Random(0))  # noqa: S311
        self._groups: dict[Group, int] = {}
        self.commands = 0
        self.streams: dict[str, StreamDeclaration] = {}
        self.queries: dict[str, QueryRegistration] = {}
        self.reads: dict[str, PredicatesRead] = {}  # by query name
        self.graphs: set[str] = set()
        self.new_graphs: list[str] = []  # graphs that the control topic does not contain yet

    # ---- streams
    def declare(self, iri: str, name: str | None = None, begin: Beginning | None = None, **settings: Any) -> Change:
        """Declare a stream. The change is empty if the stream is already declared identically. DataError if the
        declaration is invalid, if the stream is declared differently, or if another stream has the name.

        `name` determines the names of the stream's topics. If `name` is None, the IRI determines these names. `begin`:
        where the stream's data begins in these topics.
        """
        checked = Declaration.checked(iri, **settings)
        known = self.streams.get(iri)
        number = self.commands + 1
        if known is not None:
            number, begin = known.number, Beginning(known.filter_version, known.events_before, known.tuples_before)
        record = declaration_record(number, name or iri, checked, begin=begin)
        if known is not None:
            if known != record:
                raise DataError(f"stream <{iri}> is already declared with another name or other settings")
            return Change()
        if any(other.name == record.name for other in self.streams.values()):
            raise DataError(f"another stream already has the name {record.name!r}")
        self.restore(record)
        return Change([record], {f"stream:{iri}": record})

    def declare_all(self, requested: Iterable[StreamRequest], begins: Mapping[str, Beginning]) -> Change:
        """Declare several streams, all or none. `begins`: by IRI, where each stream's data begins in its topics. Errors
        as for `declare`.
        """
        change, before = Change(), self.commands
        try:
            for iri, name, settings in requested:
                change.add(self.declare(iri, name, begins.get(iri), **settings))
        except PenstockError:
            for command in change.commands:
                assert isinstance(command, StreamDeclaration)
                self._runtime.drop_stream(command.iri)
                del self.streams[command.iri]
            self.commands = before
            raise
        return change

    def drop(self, iri: str) -> Change:
        """Drop a stream. The stream's absorbed tuples remain, and queries can still name the graph that contains these
        tuples. UnknownStreamError if the stream is not declared. DataError if a query reads or publishes the stream.
        """
        self._runtime.drop_stream(iri)
        if (absorb_into := self.streams.pop(iri).absorb_into) is not None:
            self.record_graph(absorb_into)
        return Change([StreamDrop(self._number(), iri)], {f"stream:{iri}": None})

    # ---- queries
    def parse(self, text: str, base: str | None = None) -> Parsed:
        """Parse a query's text. QueryError if the text is invalid."""
        limits = self._runtime.core.limits
        with planning(limits, text) as budget:
            return Parsed(parse(text, base, limits=limits), budget)

    def register(
        self,
        name: str,
        text: str,
        base: str | None = None,
        topic: str | None = None,
        not_before_ms: int | None = None,
        max_catch_up: int | None = None,
        *,
        parsed: Parsed | None = None,
        earlier: QueryRegistration | None = None,
        **options: Unpack[ResultOptions],
    ) -> Change:
        """Register a query. The change is empty if the query is already registered identically. QueryError if the query
        is invalid.

        `parsed`: the result of `parse` for this text, if available. `not_before_ms`: a lower bound of the registration
        point. `earlier`: the query that this query replaces, which is already stopped.
        """
        if self.stands(name, text, base, topic, max_catch_up, **options):
            return Change()
        parsed = parsed or self.parse(text, base)
        with planning(self._runtime.core.limits, text, budget=parsed.budget):
            return self._register(name, parsed.statement, base, topic, not_before_ms, max_catch_up, earlier, options)

    def _register(
        self,
        name: str,
        statement: Statement,
        base: str | None,
        topic: str | None,
        not_before_ms: int | None,
        max_catch_up: int | None,
        earlier: QueryRegistration | None,
        options: ResultOptions,
    ) -> Change:
        self._check_derived(statement)
        catalogue = EngineCatalogue(self._runtime.core, self._runtime.streams)
        past = earlier is None and begins_in_past(as_query(statement), catalogue, self._reached)
        max_catch_up = self._max_catch_up if max_catch_up is None else max_catch_up
        member = self._member(statement, name, base, max_catch_up, options)
        change, number, reads = self._publish(member), self._number(), reads_of(member.group)
        group, alone = group_of(self._groups.get(member.group), number, earlier, reads.streams, self._buckets, past)
        if not alone:
            self._groups[member.group] = group
        publishes = None if member.group.publishes is None else member.group.publishes.iri
        grid, rows = member.group.grid, options.get("rows")
        record = QueryRegistration(
            number,
            name,
            statement.text,
            group,
            reads.streams,
            base,
            topic,
            publishes,
            not_before_ms,
            steps=() if grid is None else grid.steps,
            starting_at_ms=grid.t0 if grid is not None and grid.bounded else None,
            max_catch_up=max_catch_up,
            changes=options.get("changes", False),
            result_format=options.get("result_format", "json"),
            schema_id=0 if rows is None else rows.schema_id,
            row_types=None if rows is None else rows.row_types,
            report=options.get("report"),
            windows=windows_of(reads),
            replaces=0 if earlier is None else earlier.number,
            alone=alone,
            past=past,
            key=member.key if isinstance(member, SetMember) else (),
            parts=options.get("parts", 1),
        )
        self.queries[name], self.reads[name] = record, predicates_read(statement)
        change.add(Change([record], {f"query:{name}": record}))
        return change

    def _member(
        self, statement: Statement, name: str, base: str | None, most: int, options: ResultOptions, stands: bool = False
    ) -> Member:
        registry, report, changes = self._runtime.registry, options.get("report"), options.get("changes", False)
        if report is None:
            return registry.register(statement, name, base, most, changes=changes, stands=stands)
        key = options.get("key") or ((RECORD_KEY,) if stands else None)
        return registry.register_set(statement, name, base, key, report=report, max_catch_up=most, stands=stands)

    def _check_derived(self, statement: Statement) -> None:
        """Raise QueryError if a query would become the publisher of a declared stream that queries already read."""
        if not isinstance(statement, ContinuousQuery) or not statement.publishes or statement.name not in self.streams:
            return
        stream = self._runtime.streams.get(statement.name)
        if stream.publisher is None and self._runtime.schedule.readers.of(stream):
            message = f"queries already read stream <{statement.name}>: register the query that publishes it first"
            raise QueryError(message, 1, 1, statement.name, statement.text)

    def _publish(self, member: Member) -> Change:
        """Declare the stream that a query publishes. The change is empty if the query publishes no stream."""
        stream = member.group.publishes
        if stream is None:
            return Change()
        record = declaration_record(self._number(), stream.iri, stream.declaration, member.name)
        self.streams[stream.iri] = record
        return Change([record], {f"stream:{stream.iri}": record})

    def replace(
        self,
        name: str,
        text: str,
        base: str | None = None,
        topic: str | None = None,
        not_before_ms: int | None = None,
        max_catch_up: int | None = None,
        *,
        parsed: Parsed | None = None,
        **options: Unpack[ResultOptions],
    ) -> Change:
        """Replace the query with name `name`, or register a query if there is none with this name. If the new query is
        invalid, the old query remains registered. QueryError also if the old or the new query publishes a stream.
        """
        known, before = self.queries.get(name), self.commands
        given = name, text, base, topic, not_before_ms, max_catch_up
        if known is None or self.stands(name, text, base, topic, max_catch_up, **options):
            return self.register(*given, parsed=parsed, **options)
        parsed = parsed or self.parse(text, base)
        check_replacement(self._runtime.registry.members[name], as_query(parsed.statement))
        change = self.stop(name)
        of_queries = known.report is None and options.get("report") is None
        if of_queries:
            self.commands = before  # one command stops the old query and registers the new one
        try:
            registered = self.register(*given, parsed=parsed, earlier=known if of_queries else None, **options)
        except PenstockError:
            self.commands = before
            self.restore(known)
            raise
        if of_queries:
            change.commands.clear()
        change.add(registered)
        return change

    def stop(self, name: str) -> Change:
        """Stop a query. The change is empty if no query has this name."""
        if name not in self.queries:
            return Change()
        member = self._runtime.registry.members[name]
        self._runtime.stop(member)
        stopped = self.queries.pop(name)
        del self.reads[name]
        if not any(True for _ in member.group.cohorts):
            self._groups.pop(member.group, None)
        gone = [iri for iri in self.streams if iri not in self._runtime.streams]  # ended, without readers
        for iri in gone:
            del self.streams[iri]
        compacted: dict[str, Compacted] = {f"stream:{iri}": None for iri in gone}
        return Change([QueryStop(self._number(), name)], {f"query:{name}": None, **compacted}, [stopped])

    def stands(
        self,
        name: str,
        text: str,
        base: str | None,
        topic: str | None,
        max_catch_up: int | None = None,
        **options: Unpack[ResultOptions],
    ) -> bool:
        """Return whether a query with these arguments is registered. If `max_catch_up` is None, its value does not
        matter. The same applies to an empty `key`, and to absent `parts`.
        """
        known = self.queries.get(name)
        if known is None or (text, base, topic) != (known.text, known.base, known.topic):
            return False
        chosen = options.get("changes", False), options.get("result_format", "json"), options.get("report")
        if chosen != (known.changes, known.result_format, known.report):
            return False
        same = options.get("key", ()) in ((), known.key) and options.get("parts") in (None, known.parts)
        return same and max_catch_up in (None, known.max_catch_up)

    def _number(self) -> int:
        self.commands += 1
        return self.commands

    def record_graph(self, iri: str) -> None:
        """Record that a named graph has content."""
        if iri in self.graphs:
            return
        self.graphs.add(iri)
        self.new_graphs.append(iri)
        core = self._runtime.core
        term = np.array([core.dictionary.intern(IRI, iri)], np.uint64)
        core.dictionary.keep(term)
        core.store.commit(term, term, term, term)

    # ---- restart
    def restore(self, record: StreamDeclaration | QueryRegistration) -> None:
        """Apply a declaration or registration that was accepted before. Call in the order of command numbers."""
        self.commands = max(self.commands, record.number)
        if isinstance(record, StreamDeclaration):
            self._runtime.streams.declare(declaration_of(record))
            self.streams[record.iri] = record
            return
        statement = parse(record.text, record.base, limits=self._runtime.core.limits, accepted=True)
        options: ResultOptions = {"changes": record.changes, "report": record.report, "key": record.key}
        member = self._member(statement, record.name, record.base, record.max_catch_up, options, stands=True)
        if not record.alone:
            self._groups[member.group] = record.group
        self.queries[record.name], self.reads[record.name] = record, predicates_read(statement)

    def restored(self) -> None:
        """Mark the derived streams of stopped queries as ended. Call once all commands are restored."""
        published = {record.publishes for record in self.queries.values()}
        for iri, record in self.streams.items():
            if record.publisher is not None and iri not in published:
                stream = self._runtime.streams.get(iri)
                stream.publisher, stream.ended = record.publisher, True
