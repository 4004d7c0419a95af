"""Writes insertions and bulk loads to the shards topic, each as one snapshot. If a client repeats an insertion with the
same request name, the insertion is written only once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.errors import ConflictError
from penstock.log import Record
from penstock.rdf.id_layout import TAG_IRI, TAG_SHIFT
from penstock.wire import InsertionDone, ShardInsertion, ShardRemoval, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.core._native import Ids
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.replication.load_files import Manifest
    from penstock.services.coordinator.control_state import ControlState
    from penstock.services.coordinator.insertion import Insertion
    from penstock.services.coordinator.state_writer import StateWriter
    from penstock.term_ids.cluster_terms import TermService
    from penstock.wire.codec import Wire

_PART_ROWS = 16_384  # triples of one insertion's part: a record stays well below the broker's limit
RETAINED_DONE = 4_096
"""Maximum number of stored insertions whose request names are retained."""


class CompletedRequests:
    """The latest insertions with a request name that were stored, at most RETAINED_DONE. `records`: the records of the
    control topic. The `InsertionDone` records in `records` restore this object.
    """

    def __init__(self, records: Iterable[Wire]) -> None:
        done = [record for record in records if isinstance(record, InsertionDone)]
        self._done = {record.request: record for record in sorted(done, key=lambda r: r.number)}  # the oldest first

    def names(self) -> list[str]:
        """Return the names of the requests, the oldest first."""
        return list(self._done)

    def triples(self, request: str | None) -> int | None:
        """Return the number of triples that the request with name `request` has stored. None if no request of this name
        is known, or if `request` is None.
        """
        done = None if request is None else self._done.get(request)
        return None if done is None else done.triples

    def add(self, done: InsertionDone) -> dict[bytes, InsertionDone | None]:
        """Add a completed request. Returns the records to write to the control topic, by key; None deletes a key.

        If there are more than RETAINED_DONE requests, the oldest requests are removed, here and in the control topic.
        """
        self._done[done.request] = done
        changes: dict[bytes, InsertionDone | None] = {_key(done): done}
        while len(self._done) > RETAINED_DONE:
            changes[_key(self._done.pop(next(iter(self._done))))] = None
        return changes


def _pieces(columns: Sequence[Ids]) -> list[list[Ids]]:
    """Divide rows into pieces of at most _PART_ROWS."""
    starts = range(0, len(columns[0]), _PART_ROWS)
    return [[column[first : first + _PART_ROWS] for column in columns] for first in starts]


def _key(done: InsertionDone) -> bytes:
    return f"done:{done.number}".encode()


class InsertionWriter:
    """Stores and removes quads, one transaction and one snapshot per call.

    After an exception, the state in memory can be ahead of the log. The owner must then read the state from the log
    again.
    """

    def __init__(
        self, topics: ClusterTopics, state: ControlState, writer: StateWriter, completed: CompletedRequests
    ) -> None:
        self._topics = topics
        self._state = state
        self._writer = writer
        self.completed = completed

    @property
    def last(self) -> int:
        """The number of the last insertion."""
        return self._state.insertions

    def insert(self, insertion: Insertion, request: str | None = None) -> int:
        """Remove and store quads. Returns the number of removed and stored quads.

        `request`: a name chosen by the client. If one of the latest RETAINED_DONE requests had the same name, nothing
        changes. The call then returns the number of quads of the earlier request.

        ConflictError if the quads were computed on a snapshot that is no longer the latest snapshot.
        """
        if (stored := self.completed.triples(request)) is not None:
            return stored
        if insertion.evaluated_on not in (None, self._state.insertions):
            raise ConflictError(
                f"the update was evaluated on insertion {insertion.evaluated_on}, before {self._state.insertions}"
            )
        rows = len(insertion)
        if rows == 0:
            return 0
        for graph in insertion.graphs:
            self._state.registrar.record_graph(graph)
        number = self._state.insertions + 1
        pieces: list[tuple[type[ShardRemoval | ShardInsertion], list[Ids]]]
        pieces = [(ShardRemoval, piece) for piece in _pieces(insertion.removed)]
        pieces += [(ShardInsertion, piece) for piece in _pieces(insertion.columns)]
        records = []
        for part, (kind, piece) in enumerate(pieces):
            shards = native.shard_numbers(piece[0], self._topics.shards)
            for shard in range(self._topics.shards):
                mine = [column[shards == shard] for column in piece]
                value = encode(kind(number, part, len(pieces), *mine))
                records.append(Record(self._topics.names.shards, value, None, shard))
        self._state.insertions = number
        self._writer.commit([*records, *self._completed(number, request, rows)])
        return rows

    def _completed(self, number: int, request: str | None, rows: int) -> list[Record]:
        if request is None:
            return []
        changes = self.completed.add(InsertionDone(number, request, rows))
        control = self._topics.names.control
        return [Record(control, None if done is None else encode(done), key) for key, done in changes.items()]

    def load(self, manifest: Manifest, terms: TermService) -> int:
        """Commit a prepared bulk load: one load record per shard, in the shards topic. Returns the number of the load's
        triples. `terms` decodes the ids of the load's named graphs. Errors as for `Manifest.check`.
        """
        manifest.check(self._topics.shards)
        graphs = np.unique(manifest.graphs)
        for term in terms.decode(graphs[(graphs != 0) & (graphs >> TAG_SHIFT == TAG_IRI)]):
            self._state.registrar.record_graph(term[1])
        number, shards = self._state.insertions + 1, self._topics.shards
        parts = enumerate(manifest.records(number, shards))
        records = [Record(self._topics.names.shards, encode(part), None, shard) for shard, part in parts]
        self._state.insertions = number
        self._writer.commit(records)
        return manifest.triples
