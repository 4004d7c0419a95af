"""The active coordinator's state: what the control topic says is in force, and the writer that adds to it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.engine.limits import MAX_CATCH_UP, MOST_CATCH_UP, Limits
from penstock.errors import DataError, LimitError, NotYetError
from penstock.event_time.watermark import NEVER
from penstock.log import START, LogError, Partition, Record, RecordTooLargeError, Topic, TransientError
from penstock.quarantine import InternalRecords
from penstock.quarantine.kinds import CONTROL
from penstock.rdf.id_layout import TAG_IRI, TAG_SHIFT
from penstock.replication.placement_view import KEY as PLACEMENT
from penstock.replication.status_topic import stopped_record
from penstock.services.coordinator.predicate_demand import (
    KnownVersions,
    PredicatePushdown,
    grown,
    predicates_read,
    timing_of,
    version_of,
)
from penstock.services.coordinator.registrar import Beginning, Registrar
from penstock.services.coordinator.shares import place_buckets, place_shards
from penstock.wire import (
    CoordinatorState,
    InsertionDone,
    NamedGraph,
    Placement,
    QueryRegistration,
    ShardInsertion,
    StreamDeclaration,
    StreamWanted,
    encode,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.log import Log, TransactionalWriter
    from penstock.query.ir import Statement
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.replication.load_files import Manifest
    from penstock.services.coordinator.insertion import Insertion
    from penstock.services.coordinator.registrar import Change, StreamRequest
    from penstock.term_ids.cluster_terms import TermService
    from penstock.wire import Heartbeat
    from penstock.wire.codec import Wire

_STATE = b"state"
_PART_ROWS = 16_384  # triples of one insertion's part: a record stays well below the broker's limit
RETAINED_DONE = 4_096
"""Insertions that the control topic remembers by their request."""
MAX_DECLARED = 10_000
"""Streams that one request may declare: it is one transaction."""
MAX_REQUEST_BYTES = 1 << 20
"""A declaration's or query's text."""
MAX_NAME_BYTES = 1_024
"""A stream's or query's name, and a query's base."""


class Opening:
    """The writer, by which the instance before is fenced, and the control topic on its way in: nobody adds to it."""

    def __init__(self, log: Log, topics: ClusterTopics) -> None:
        self.writer: TransactionalWriter = log.transactional(f"{topics.names.prefix}.coordinator")
        self._reader = log.reader({Partition(topics.names.control): START})
        self._records = InternalRecords(log, topics.names)
        self._latest: dict[bytes, Wire] = {}

    def read(self) -> bool:
        """Read on; True at the end."""
        for message in self._reader.poll():
            if message.key is None:
                continue
            if message.value is None:
                self._latest.pop(message.key, None)
            elif (record := self._records.read(message, CONTROL)) is not None:
                self._latest[message.key] = record
        return self._reader.caught_up()

    def records(self) -> list[Wire]:
        """Return what is in force."""
        return list(self._latest.values())

    def close(self) -> None:
        """Let go."""
        self._reader.close()
        self.writer.close()


class Active:
    """The active instance's state, and its writer. A verb is one transaction; what raises has changed nothing.

    `discard_after_ms`: how long nothing must have been asked for before adaptors may discard more; None = nothing.
    `max_catch_up`: of registrations that name none.
    """

    def __init__(
        self,
        log: Log,
        topics: ClusterTopics,
        opening: Opening,
        discard_after_ms: int | None = None,
        max_catch_up: int = MAX_CATCH_UP,
    ) -> None:
        self._log = log
        self._topics = topics
        self._writer = opening.writer
        self.registrar = Registrar(Limits(max_catch_up=max_catch_up))
        self.placement = Placement(0, {}, {})
        self._insertions = 0
        self._done: dict[str, InsertionDone] = {}  # by request, the oldest first
        self.wanted: dict[str, StreamWanted] = {}
        self._known = KnownVersions(log, topics.names)
        self._pushdown = None if discard_after_ms is None else PredicatePushdown(discard_after_ms)
        self._narrowed = -1  # commands that had been given when it was last looked at what is needed
        self.written = 0  # transactions
        self._riding: tuple[Sequence[Record], Mapping[str, int]] = (), {}
        self._said = CoordinatorState(0, 0, 0)  # the state of the last commit
        self.ahead = False  # the state in memory is ahead of the log: it must be read again
        self._restore(opening.records())

    def _restore(self, records: Sequence[Wire]) -> None:
        commands = [r for r in records if isinstance(r, StreamDeclaration | QueryRegistration)]
        for record in records:
            if isinstance(record, Placement):
                self.placement = record
            if isinstance(record, StreamWanted):
                self.wanted[record.stream] = record
            if isinstance(record, NamedGraph):
                self.registrar.record_graph(record.iri)
            if isinstance(record, CoordinatorState):
                self._said, self._insertions = record, record.insertions
                self.registrar.commands = record.commands
        done = [record for record in records if isinstance(record, InsertionDone)]
        self._done = {record.request: record for record in sorted(done, key=lambda r: r.number)}
        for command in sorted(commands, key=lambda r: r.number):
            self.registrar.restore(command)
        self.registrar.restored()
        self.registrar.new_graphs.clear()

    @property
    def requests(self) -> Mapping[str, int]:
        """By topic of requests, the offset of the next one: committed with what came of those before."""
        return self._said.requests

    # ---- verbs
    def declare(self, wanted: Sequence[StreamRequest]) -> list[StreamDeclaration]:
        """Declare streams, all or none, and make their topics: they are there before anybody hears of a stream.

        Of a stream whose IRI another one had before, nothing is discarded at first: its timing predicates may differ.
        """
        if len(wanted) > MAX_DECLARED:
            raise LimitError(f"{len(wanted)} streams declared at once (MAX_DECLARED is {MAX_DECLARED})")
        for iri, name, _ in wanted:
            _check_size("a stream's name", iri if name is None else name, MAX_NAME_BYTES, "MAX_NAME_BYTES")
        all_filters = {
            iri: grown(iri, before, None) for iri, _, _ in wanted if (before := self.wanted.get(iri)) is not None
        }
        versions = {iri: record.version for iri, record in all_filters.items()}
        topics = self._log.topics()
        change = self.registrar.declare_all(wanted, self._beginnings(wanted, versions, topics))
        declared = [command for command in change.commands if isinstance(command, StreamDeclaration)]
        if declared:
            self._create(self._topics_of(declared, topics))
        self._command(change, [all_filters[each.iri] for each in declared if each.iri in all_filters])
        return [self.registrar.streams[iri] for iri, _, _ in wanted]

    def _beginnings(
        self, wanted: Sequence[StreamRequest], versions: Mapping[str, int], topics: Mapping[str, int]
    ) -> dict[str, Beginning]:
        """Say from where on what streams' topics hold cannot be an earlier stream's: what is sent once a stream was
        declared must not be taken for the one before by who has not heard of it yet.
        """
        names = self._topics.names
        named = {iri: name or iri for iri, name, _ in wanted if iri not in self.registrar.streams}
        again = {iri: name for iri, name in named.items() if names.tuples(name) in topics}
        tuples = self._ends(topics, {iri: names.tuples(name) for iri, name in again.items()})
        events = self._ends(topics, {iri: names.events(name) for iri, name in again.items()})
        return {iri: Beginning(versions.get(iri, 0), events.get(iri, ()), tuples.get(iri, ())) for iri in named}

    def _ends(self, topics: Mapping[str, int], asked: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
        """Return how far topics go, by partition: a question to the brokers, where there is any to ask about."""
        partitions = {iri: [Partition(topic, i) for i in range(topics.get(topic, 0))] for iri, topic in asked.items()}
        every = [each for found in partitions.values() for each in found]
        spans = self._log.spans(every) if every else {}
        return {iri: tuple(spans[each].end for each in found) for iri, found in partitions.items()}

    def _topics_of(self, streams: Sequence[StreamDeclaration], known: Mapping[str, int]) -> list[Topic]:
        names = self._topics.names
        made = []
        for stream in streams:
            events = names.events(stream.name)
            partitions = known.get(events, 1)  # a producer may have made it, with as many as it likes
            made += [Topic(events, partitions), Topic(names.tuples(stream.name), partitions)]
        return made

    def drop(self, iri: str) -> None:
        """Drop a stream that no query reads."""
        self._command(self.registrar.drop(iri))

    def register(
        self,
        name: str,
        text: str,
        base: str | None,
        topic: str | None,
        max_catch_up: int | None = None,
        *,
        replace: bool = False,
    ) -> QueryRegistration:
        """Register a query; `replace`: in place of another one of that name. `max_catch_up`: instants that one move of
        one of its streams may make due; None = the coordinator's. NotYetError: adaptors must learn first.
        """
        if max_catch_up is not None and not 1 <= max_catch_up <= MOST_CATCH_UP:
            raise DataError(f"max_catch_up lies between 1 and {MOST_CATCH_UP}, not {max_catch_up}")
        _check_size("a query's name", name, MAX_NAME_BYTES, "MAX_NAME_BYTES")
        _check_size("a query's base", base or "", MAX_NAME_BYTES, "MAX_NAME_BYTES")
        _check_size("a query's text", text, MAX_REQUEST_BYTES, "MAX_REQUEST_BYTES")
        stands = self.registrar.stands(name, text, base, topic, max_catch_up)
        if topic is not None and not stands:
            self._topics.check_results(topic)
        parsed = None if stands else self.registrar.parse(text, base)
        not_before_ms = None if parsed is None else self._await_adaptors(parsed.statement)
        verb = self.registrar.replace if replace else self.registrar.register
        change = verb(name, text, base, topic, not_before_ms, max_catch_up, parsed=parsed)
        if topic is not None:
            self._create([Topic(topic)])
        self._command(change)
        return self.registrar.queries[name]

    def _create(self, topics: Sequence[Topic]) -> None:
        """Make topics. DataError where the brokers refuse to."""
        try:
            self._log.create(topics)
        except TransientError:
            raise
        except LogError as error:
            self.ahead = True
            raise DataError(f"topic {topics[0].name} cannot be made: {error}") from error

    # ---- what adaptors discard
    def _await_adaptors(self, statement: Statement) -> int | None:
        """Let all through that a query looks at; NotYetError until all adaptors do. Returns the end of what is open
        now, and was cut before they did.
        """
        if not self.wanted:
            return None
        more, waits, ends = [], [], []
        for iri, every in predicates_read(statement).items():
            stream, wanted = self.registrar.streams.get(iri), self.wanted.get(iri)
            if stream is None or wanted is None or not stream.may_discard:
                continue
            needed = timing_of(stream, every)
            version = version_of(wanted, needed)
            if version is None:
                more.append(grown(iri, wanted, needed))
            end_ms = None if version is None else self._known.cut_until(stream, version)
            if end_ms is None:
                waits.append(iri)
                if self._pushdown is not None:
                    self._pushdown.asked(iri, needed)
            else:
                ends.append(end_ms)
        if more:
            self._want(more)
        if waits:
            told = ", ".join(f"<{iri}>" for iri in waits)
            raise NotYetError(f"adaptors of {told} do not let through yet what the query looks at")
        found = max(ends, default=NEVER)
        return None if found == NEVER else found

    def narrow(self, now_ms: int) -> bool:
        """Let adaptors discard what no query has looked at for a while."""
        if self._pushdown is None:
            return False
        if self.registrar.commands == self._narrowed and now_ms < self._pushdown.next_ms:
            return False
        by_stream: dict[str, set[frozenset[str] | None]] = {}
        for reads in self.registrar.reads.values():
            for iri, needed in reads.items():
                by_stream.setdefault(iri, set()).add(needed)
        self._narrowed = self.registrar.commands
        less = self._pushdown.due(self.registrar.streams.values(), self.wanted, by_stream, now_ms)
        if less:
            self._want(less)
        return bool(less)

    def _want(self, records: Sequence[StreamWanted]) -> None:
        """Tell adaptors; a transaction of its own, whatever verb it is for."""
        control = self._topics.names.control
        self._writer.commit([Record(control, encode(r), f"wanted:{r.stream}".encode()) for r in records])
        self.wanted |= {record.stream: record for record in records}
        self.written += 1

    def stop(self, name: str) -> bool:
        """Stop a query; False where there is none of that name."""
        change = self.registrar.stop(name)
        self._command(change)
        return bool(change.commands)

    def insert(self, insertion: Insertion, request: str | None = None) -> int:
        """Store quads, as one snapshot; returns how many. `request`: its name; of one by the same name that was stored
        lately, the answer is given again, and nothing stored.
        """
        if request is not None and (done := self._done.get(request)):
            return done.triples
        rows = len(insertion)
        if rows == 0:
            return 0
        for graph in insertion.graphs:
            self.registrar.record_graph(graph)
        s, p, o, g = insertion.columns
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
        self._commit([*records, *self._noted(number, request, rows)])
        return rows

    def _noted(self, number: int, request: str | None, rows: int) -> list[Record]:
        """Note a request as done, in the place of one so long ago that nobody asks again. What goes with a transaction
        that fails goes with all of this instance's state.
        """
        if request is None:
            return []
        done = self._done[request] = InsertionDone(number, request, rows)
        while len(self._done) > RETAINED_DONE:
            del self._done[next(iter(self._done))]
        return [Record(self._topics.names.control, encode(done), f"done:{number % RETAINED_DONE}".encode())]

    def load(self, manifest: Manifest, terms: TermService) -> int:
        """Store what lies in files, as one snapshot; returns how many triples they have."""
        manifest.check(self._topics.shards)
        graphs = np.unique(manifest.graphs)
        for term in terms.decode(graphs[(graphs != 0) & (graphs >> TAG_SHIFT == TAG_IRI)]):
            self.registrar.record_graph(term[1])
        number, shards = self._insertions + 1, self._topics.shards
        parts = enumerate(manifest.records(number, shards))
        records = [Record(self._topics.names.shards, encode(part), None, shard) for shard, part in parts]
        self._insertions = number
        self._commit(records)
        return manifest.triples

    def place(self, stores: Mapping[str, Heartbeat], engines: Mapping[str, Heartbeat]) -> bool:
        """Place shards and buckets anew where stores or engines came, left, died or got ready, and publish where the
        stores are. `stores`, `engines`: those heard of lately. Returns whether that changed anything.
        """
        before = self.placement
        shards, preparing = place_shards(self._topics.shards, before, stores)
        buckets = place_buckets(self._topics.buckets, before.buckets, engines)
        where = {name: beat.url for name, beat in stores.items() if beat.url is not None}
        addresses = before.stores | where
        addresses = {name: addresses[name] for name in sorted(set(shards.values())) if name in addresses}
        placement = Placement(before.epoch + 1, shards, buckets, addresses, preparing)
        if replace(placement, epoch=before.epoch) == before:
            return False
        self._commit([Record(self._topics.names.control, encode(placement), PLACEMENT)])
        self.placement = placement
        return True

    # ---- the log
    @contextmanager
    def riding(self, records: Sequence[Record], consumed: Mapping[str, int]) -> Iterator[None]:
        """Let records, and the next offsets of requests' topics, go with the transaction of the verb within, or alone
        where it writes nothing.
        """
        written, self._riding = self.written, (records, consumed)
        try:
            yield
            if self.written == written:
                self.confirm()
        finally:
            self._riding = (), {}

    def confirm(self) -> None:
        """Make sure that no other instance has taken over: what is refused or left as it is was judged by old state."""
        self._commit([])

    def _commit(self, records: Sequence[Record]) -> None:
        """Write records with the state. LimitError where one is too large: the state is ahead of the log then."""
        more, consumed = self._riding
        state, graphs = self._state(consumed), [] if self.ahead else list(self.registrar.new_graphs)
        control = self._topics.names.control
        noted = [Record(control, encode(NamedGraph(iri)), _graph_key(iri)) for iri in graphs]
        try:
            self._writer.commit([*records, *noted, *more, Record(control, encode(state), _STATE)])
        except RecordTooLargeError as error:
            self.ahead = True
            raise LimitError(str(error)) from error
        self.written += 1
        self._said = state
        del self.registrar.new_graphs[: len(graphs)]

    def tell(self, records: Sequence[Record]) -> None:
        """Write records of the status topic."""
        self._commit(records)

    def _command(self, change: Change, wanted: Sequence[StreamWanted] = ()) -> None:
        if not change.commands:
            return
        names = self._topics.names
        values = [encode(command) for command in change.commands]
        records = [Record(names.shards, value, None, shard) for value in values for shard in range(self._topics.shards)]
        compacted = [
            Record(names.control, None if record is None else encode(record), key.encode())
            for key, record in change.compacted.items()
        ]
        gone = [stopped_record(names, record.name, record.number) for record in change.stopped]
        told = [Record(names.control, encode(r), f"wanted:{r.stream}".encode()) for r in wanted]
        # In the control topic before the declaration: who reads that the stream is there knows what is wanted of it.
        self._commit([*records, *told, *compacted, *gone])
        self.wanted |= {record.stream: record for record in wanted}

    def _state(self, consumed: Mapping[str, int]) -> CoordinatorState:
        """Return the state to write: that of the last commit where the one in memory is ahead."""
        requests = {**self._said.requests, **consumed}
        if self.ahead:
            return replace(self._said, requests=requests)
        return CoordinatorState(self.placement.epoch, self.registrar.commands, self._insertions, requests)

    def close(self) -> None:
        """Let go."""
        self._writer.close()
        self._known.close()


def _graph_key(iri: str) -> bytes:
    """Return the control topic's key of a named graph: of fixed size, as the IRI may be large."""
    return b"graph:" + blake2b(iri.encode(), digest_size=32).digest()


def _check_size(what: str, text: str, limit: int, name: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > limit:
        raise LimitError(f"{what} of {size} bytes ({name} is {limit})")
