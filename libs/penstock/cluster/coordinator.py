"""The coordinator service: takes declarations, queries and insertions into the log, and deals out shards and buckets.

One instance is active. What it decides becomes true by one transaction of its writer: the command goes to
every partition
of the shards topic (its place there is the moment at which it takes effect, and with that the registration
point), and to the
compacted control topic, from which the next active instance starts. A deposed instance is fenced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from penstock.cluster.election import Election
from penstock.cluster.encoding import to_cluster
from penstock.cluster.heartbeats import Ear, Heart
from penstock.cluster.placement import KEY as PLACEMENT
from penstock.cluster.placement import share_out
from penstock.cluster.registrar import Registrar
from penstock.engine.storing import quads_of
from penstock.errors import DataError, LimitError, PenstockError, QueryError, UnknownStreamError
from penstock.log import START, FencedError, Partition, Record, Topic, TransientError
from penstock.query.ir import ContinuousQuery
from penstock.query.parser import parse
from penstock.rdf.parsing import parse as parse_document
from penstock.store import _native as native
from penstock.wire import (
    CoordinatorState,
    Placement,
    QueryRegistration,
    QueryStop,
    ShardInsertion,
    StreamDeclaration,
    StreamDrop,
    decode,
    encode,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from penstock.cluster.terms import TermService
    from penstock.cluster.topics import ClusterTopics
    from penstock.engine.answers import Ids
    from penstock.log import Log, TransactionalWriter
    from penstock.log.clock import Clock
    from penstock.wire.codec import Wire

T = TypeVar("T")
_STATE = b"state"
_PART_ROWS = 16_384  # triples of one insertion's part: a record stays well below the broker's limit
MAX_INSERTION = 1_000_000
"""Triples that one insertion may store: it is one transaction."""


class NotActiveError(PenstockError):
    """Another instance is the active one: ask that."""


class Coordinator:
    """One instance. Verbs raise NotActiveError while it is on standby; TransientError: nothing happened, try again."""

    def __init__(self, log: Log, topics: ClusterTopics, instance: str, terms: TermService, clock: Clock) -> None:
        self.topics = topics
        self._log = log
        self._terms = terms
        self._election = Election(log, topics, "coordinator")
        self._heart = Heart(log, topics, clock, "coordinator", instance)
        self._ear = Ear(log, topics, clock)
        self._active: _Active | None = None
        self._opening: _Opening | None = None

    @property
    def active(self) -> bool:
        """Whether this instance decides."""
        return self._active is not None

    def step(self, timeout_s: float = 0.0) -> bool:
        """Take over or step back where that is due, and deal shares out anew where processes came or went."""
        self._heart.beat()
        self._ear.listen()
        try:
            if not self._election.leads(timeout_s):
                self._step_back()
                return False
            if self._active is None:
                self._opening = self._opening or _Opening(self._log, self.topics)
                if not self._opening.read():
                    return False
                self._active, self._opening = _Active(self._log, self.topics, self._opening), None
                return True
            stores, engines = self._ear.alive("store"), self._ear.alive("query-engine")
            return self._active.place(stores, engines)
        except FencedError:
            self._step_back()
        except TransientError:
            self._step_back()  # what is in memory may be ahead of the log: begin again from there
        return False

    def _step_back(self) -> None:
        if self._opening is not None:
            self._opening.close()
            self._opening = None
        if self._active is not None:
            self._active.close()
            self._active = None

    # ---- verbs
    def declare(self, iri: str, name: str | None = None, **settings: Any) -> StreamDeclaration:
        """Declare a stream; the same again changes nothing. DataError where it cannot be."""
        return self._do(lambda active: active.declare(iri, name, settings))

    def drop(self, iri: str) -> None:
        """Drop a stream that no query reads."""
        self._do(lambda active: active.drop(iri))

    def register(self, name: str, text: str, base: str | None = None, topic: str | None = None) -> QueryRegistration:
        """Register a standing query; the same again changes nothing. QueryError with line and column."""
        return self._do(lambda active: active.register(name, text, base, topic))

    def stop(self, name: str) -> bool:
        """Stop a query; False where there is none of that name."""
        return self._do(lambda active: active.stop(name))

    def update(self, text: str, base: str | None = None) -> int:
        """Run `INSERT DATA`, as one snapshot; returns the number of triples."""
        statement = parse(text, base)
        if isinstance(statement, ContinuousQuery):
            raise QueryError("a query is no update", 1, 1, text=text)
        dictionary = native.Dictionary()
        return self._do(lambda active: active.insert(quads_of(dictionary, statement), dictionary, self._terms))

    def load(self, data: bytes, syntax: str, graph: str | None = None, base: str | None = None) -> int:
        """Store a document, as one snapshot; returns the number of its statements. DataError at the first bad line."""
        dictionary = native.Dictionary()
        quads = parse_document(dictionary, data, syntax, base)
        graphs = quads.graphs
        if graph is not None:
            graphs = np.where(graphs == 0, np.uint64(dictionary.intern(1, graph)), graphs)
        columns = quads.subjects, quads.predicates, quads.objects, graphs
        return self._do(lambda active: active.insert(columns, dictionary, self._terms))

    @property
    def queries(self) -> dict[str, QueryRegistration]:
        """The standing queries."""
        return dict(self._registrar.queries)

    @property
    def streams(self) -> dict[str, StreamDeclaration]:
        """The declared streams."""
        return dict(self._registrar.streams)

    @property
    def _registrar(self) -> Registrar:
        if self._active is None:
            raise NotActiveError("this coordinator is on standby")
        return self._active.registrar

    def _do(self, verb: Callable[[_Active], T]) -> T:
        """Run a verb on the active instance; after a failed transaction that is made anew from the log."""
        if self._active is None:
            raise NotActiveError("this coordinator is on standby")
        active, written = self._active, self._active.written
        try:
            try:
                found = verb(active)
            except (DataError, QueryError, LimitError, UnknownStreamError):
                active.confirm()
                raise
            if active.written == written:
                active.confirm()
        except FencedError as error:
            self._step_back()
            raise NotActiveError("another coordinator has taken over") from error
        except TransientError:
            self._step_back()
            raise
        return found

    def close(self) -> None:
        """Step back for good."""
        self._step_back()
        self._election.close()


class _Opening:
    """The writer, by which the instance before is fenced, and the control topic on its way in: nobody adds to it."""

    def __init__(self, log: Log, topics: ClusterTopics) -> None:
        self.writer: TransactionalWriter = log.transactional(f"{topics.names.prefix}.coordinator")
        self._reader = log.reader({Partition(topics.names.control): START})
        self._latest: dict[bytes, bytes | None] = {}

    def read(self) -> bool:
        """Read on; True at the end."""
        for message in self._reader.poll():
            assert message.key is not None
            self._latest[message.key] = message.value
        return self._reader.caught_up()

    def records(self) -> list[Wire]:
        """Return what is in force."""
        return [decode(value) for value in self._latest.values() if value is not None]

    def close(self) -> None:
        self._reader.close()
        self.writer.close()


class _Active:
    """The active instance's state: what the control topic says, and its writer."""

    def __init__(self, log: Log, topics: ClusterTopics, opening: _Opening) -> None:
        self._log = log
        self._topics = topics
        self._writer = opening.writer
        self.registrar = Registrar()
        self.placement = Placement(0, {}, {})
        self._insertions = 0
        self.written = 0  # transactions
        self._restore(opening.records())

    def _restore(self, records: Sequence[Wire]) -> None:
        commands = [r for r in records if isinstance(r, StreamDeclaration | QueryRegistration)]
        for record in records:
            if isinstance(record, Placement):
                self.placement = record
            if isinstance(record, CoordinatorState):
                self._insertions = record.insertions
                for graph in record.graphs:
                    self.registrar.note_graph(graph)
                self.registrar.commands = record.commands
        for command in sorted(commands, key=lambda r: r.number):
            self.registrar.restore(command)

    # ---- verbs
    def declare(self, iri: str, name: str | None, settings: dict[str, Any]) -> StreamDeclaration:
        record = self.registrar.declare(iri, name, **settings)
        if record is not None:
            names = self._topics.names  # the topics are there before anybody hears of the stream
            events, tuples = names.events(record.name), names.tuples(record.name)
            partitions = self._log.topics().get(events, 1)  # a producer may have made it, with as many as it likes
            self._log.create([Topic(events, partitions), Topic(tuples, partitions)])
            self._command(record, f"stream:{iri}", record)
        return self.registrar.streams[iri]

    def drop(self, iri: str) -> None:
        self._command(self.registrar.drop(iri), f"stream:{iri}", None)

    def register(self, name: str, text: str, base: str | None, topic: str | None) -> QueryRegistration:
        if topic is not None:
            self._log.create([Topic(topic)])
        record = self.registrar.register(name, text, base, topic)
        if record is not None:
            self._command(record, f"query:{name}", record)
        return self.registrar.queries[name]

    def stop(self, name: str) -> bool:
        record = self.registrar.stop(name)
        if record is not None:
            self._command(record, f"query:{name}", None)
        return record is not None

    def insert(self, columns: Sequence[Ids], dictionary: native.Dictionary, terms: TermService) -> int:
        rows = len(columns[0])
        if rows > MAX_INSERTION:
            raise LimitError(f"{rows} triples in one insertion (at most {MAX_INSERTION})")
        if rows == 0:
            return 0
        graphs = native.LocalTerms(dictionary).decode(np.unique(columns[3]))
        s, p, o, g = to_cluster(dictionary, columns, terms)
        for graph in graphs:
            if graph is not None:
                self.registrar.note_graph(graph[1])
        number = self._insertions + 1
        starts = range(0, rows, _PART_ROWS)
        records = []
        for part, first in enumerate(starts):
            piece = [column[first : first + _PART_ROWS] for column in (s, p, o, g)]
            shards = native.shard_numbers(piece[0], self._topics.shards)
            for shard in range(self._topics.shards):
                mine = [column[shards == shard] for column in piece]
                value = encode(ShardInsertion(number, part, len(starts), *mine))
                records.append(Record(self._topics.names.shards, value, None, shard))
        self._insertions = number
        self._commit([*records, self._state()])
        return rows

    def place(self, stores: Collection[str], engines: Collection[str]) -> bool:
        """Deal out anew what the dead held. True where that changed anything."""
        shards = share_out(self._topics.shards, self.placement.shards, stores)
        buckets = share_out(self._topics.buckets, self.placement.buckets, engines)
        if (shards, buckets) == (self.placement.shards, self.placement.buckets):
            return False
        placement = Placement(self.placement.epoch + 1, shards, buckets)
        self._commit([Record(self._topics.names.control, encode(placement), PLACEMENT)])
        self.placement = placement
        return True

    # ---- the log
    def confirm(self) -> None:
        """Make sure that no other instance has taken over: what is refused or left as it is was judged by old state."""
        self._commit([self._state()])

    def _commit(self, records: Sequence[Record]) -> None:
        self._writer.commit(records)
        self.written += 1

    def _command(
        self, command: StreamDeclaration | StreamDrop | QueryRegistration | QueryStop, key: str, kept: Wire | None
    ) -> None:
        value, names = encode(command), self._topics.names
        records = [Record(names.shards, value, None, shard) for shard in range(self._topics.shards)]
        control = Record(names.control, None if kept is None else encode(kept), key.encode())
        self._commit([*records, control, self._state()])

    def _state(self) -> Record:
        graphs = tuple(sorted(self.registrar.graphs))
        state = CoordinatorState(self.placement.epoch, self.registrar.commands, self._insertions, graphs)
        return Record(self._topics.names.control, encode(state), _STATE)

    def close(self) -> None:
        self._writer.close()
        self.registrar.close()
