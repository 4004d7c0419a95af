"""What may be declared and registered: the embedded engine's own checks, run on an engine without data.

It holds every declaration and query, so that names, graphs, limits and groups are judged by the same code that
will evaluate
the query. A graph that users stored something in is stood for by one triple.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.cluster.replica import declaration_of
from penstock.engine.core import Core
from penstock.engine.declaration import Declaration
from penstock.engine.directory import WorkingDirectory
from penstock.engine.limits import Limits
from penstock.engine.runtime import Runtime
from penstock.errors import DataError, QueryError
from penstock.query import functions
from penstock.query.ir import ContinuousQuery
from penstock.query.parser import parse
from penstock.rdf.terms import IRI
from penstock.store import _native as native
from penstock.wire import QueryRegistration, QueryStop, StreamDeclaration, StreamDrop

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from penstock.engine.groups import Group


def empty_runtime(working: WorkingDirectory, limits: Limits, clock: Callable[[], int], rng: Random) -> Runtime:
    """Return a runtime without streams and data, its regions in `working`."""
    store = native.Store(str(working.fresh()), 1)
    return Runtime(Core(store, native.Dictionary(), limits, clock, rng, functions.call))


class Registrar:
    """The declarations and queries in force. Every method either gives a command and takes it in, or raises."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._working = WorkingDirectory()
        self._runtime = empty_runtime(self._working, limits or Limits(), lambda: 0, random.Random(0))  # noqa: S311
        self._groups: dict[Group, int] = {}
        self.commands = 0
        self.streams: dict[str, StreamDeclaration] = {}
        self.queries: dict[str, QueryRegistration] = {}
        self.graphs: set[str] = set()

    # ---- new commands
    def declare(self, iri: str, name: str | None = None, **settings: Any) -> StreamDeclaration | None:
        """Declare a stream; None where it is declared so already. `name` is what its topics are named by."""
        checked = Declaration.checked(iri, **settings)
        known = self.streams.get(iri)
        record = _declaration(self.commands + 1 if known is None else known.number, name or iri, checked)
        if known is not None:
            if known != record:
                raise DataError(f"stream <{iri}> is already declared, otherwise")
            return None
        if any(other.name == record.name for other in self.streams.values()):
            raise DataError(f"another stream has the name {record.name!r}")
        self.restore(record)
        return record

    def drop(self, iri: str) -> StreamDrop:
        """Drop a stream that no query reads."""
        self._runtime.drop_stream(iri)
        del self.streams[iri]
        self.commands += 1
        return StreamDrop(self.commands, iri)

    def register(
        self, name: str, text: str, base: str | None = None, topic: str | None = None
    ) -> QueryRegistration | None:
        """Register a query; None where it stands so already. QueryError where it cannot be one."""
        known = self.queries.get(name)
        if known is not None and (known.text, known.base, known.topic) == (text, base, topic):
            return None
        statement = parse(text, base)
        if isinstance(statement, ContinuousQuery) and statement.publishes:
            message = "derived streams are not available in a cluster yet"
            raise QueryError(message, 1, 1, "REGISTER STREAM", text)
        member = self._runtime.registry.register(statement, name, base)
        self.commands += 1
        number = self._groups.setdefault(member.group, self.commands)
        streams = tuple(stream.iri for stream in member.group.streams)
        record = self.queries[name] = QueryRegistration(self.commands, name, text, number, streams, base, topic)
        return record

    def stop(self, name: str) -> QueryStop | None:
        """Stop a query; None where there is none of that name."""
        if name not in self.queries:
            return None
        self._remove(name)
        self.commands += 1
        return QueryStop(self.commands, name)

    def note_graph(self, iri: str) -> None:
        """Note that something is stored in a named graph."""
        if iri in self.graphs:
            return
        self.graphs.add(iri)
        core = self._runtime.core
        term = np.array([core.dictionary.intern(IRI, iri)], np.uint64)
        core.dictionary.keep(term)
        core.store.commit(term, term, term, term)

    # ---- commands of before
    def restore(self, record: StreamDeclaration | QueryRegistration) -> None:
        """Take in a command that is in the log. Call in the order of their numbers."""
        self.commands = max(self.commands, record.number)
        if isinstance(record, StreamDeclaration):
            self._runtime.streams.declare(declaration_of(record))
            self.streams[record.iri] = record
            return
        member = self._runtime.registry.register(parse(record.text, record.base), record.name, record.base)
        self._groups[member.group] = record.group
        self.queries[record.name] = record

    def close(self) -> None:
        """Let go of files."""
        self._working.close()

    def _remove(self, name: str) -> None:
        member = self._runtime.registry.members[name]
        group = member.group
        self._runtime.stop(member)
        del self.queries[name]
        if not any(True for _ in group.cohorts):
            self._groups.pop(group, None)


def _declaration(number: int, name: str, checked: Declaration) -> StreamDeclaration:
    return StreamDeclaration(
        number,
        checked.iri,
        name,
        checked.batch_ms,
        checked.lateness_ms,
        checked.timing == "all",
        () if checked.timing == "all" else checked.timing,
        checked.retention_ms,
        checked.idle_timeout_ms,
        checked.max_ahead_ms,
        checked.absorb_into,
        checked.slice_mb,
    )
