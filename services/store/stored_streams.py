"""The streams of a store. These streams have no windows and no slices, because their batches only change the stored
graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.errors import LimitError, UnknownStreamError
from penstock.event_time.grid import batch_of
from penstock.replication.absorption import Absorption

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from penstock.core._native import Ids
    from penstock.engine.intake.declaration import Declaration
    from penstock.term_ids.outgoing_terms import TermEncoder
    from penstock.wire.records import Flags, Numbers

MAX_STREAMS = 100_000


@dataclass(slots=True)
class OpenBatch:
    """The tuples of a batch that is not closed yet."""

    batch: int
    s: Ids
    p: Ids
    o: Ids
    removed: Flags | None = None  # 1 for each triple whose last operation in the batch is a removal


class StoredStream:
    """A stream of a store: its declaration, its watermark, and its open batch."""

    def __init__(self, declaration: Declaration, number: int, absorption: Absorption) -> None:
        self.declaration = declaration
        self.absorption = absorption
        self._number = number
        self.publisher: str | None = None
        self.ended = False
        self.closed_ms: int | None = None
        self.watermark: int | None = None
        self.open_batch: OpenBatch | None = None

    @property
    def iri(self) -> str:
        """The stream's IRI."""
        return self.declaration.iri

    @property
    def number(self) -> int:
        """The stream's number in the stored graph."""
        return self._number

    @property
    def batch_ms(self) -> int:
        """The batch interval in milliseconds."""
        return self.declaration.batch_ms

    def append(self, times: Numbers, s: Ids, p: Ids, o: Ids, removed: Flags | None = None) -> None:
        """Add the tuples of one batch, in order of arrival. `times` in ms; `s`, `p`, `o`: term ids. `removed`: a flag
        that is 1 for a removed tuple.
        """
        batch = batch_of(int(times[0]), self.batch_ms)
        if removed is None:
            self.open_batch = OpenBatch(batch, s, p, o)
            return
        rows = last_operations(times, s, p, o)
        self.open_batch = OpenBatch(batch, s[rows], p[rows], o[rows], removed[rows])

    def move(self, watermark: int) -> None:
        """Advance the watermark to `watermark`, in ms. `ShardSet.moved` then closes the batches up to the new
        watermark.
        """
        self.watermark = watermark


def last_operations(times: Numbers, s: Ids, p: Ids, o: Ids) -> NDArray[np.intp]:
    """Return the positions of the last operation on each triple, in ascending order. The last operation is the
    operation with the latest time. Among operations with equal times, the last operation is the operation that arrived
    last.
    """
    order = np.lexsort((np.arange(len(times)), times, o, p, s))
    ordered = np.stack([s[order], p[order], o[order]])
    last = np.ones(len(order), np.bool_)
    last[:-1] = (ordered[:, :-1] != ordered[:, 1:]).any(axis=0)
    return np.sort(order[last])


class StoredStreams:
    """The declared streams. Numbers follow the order of declarations, as in query engines, and are never reused."""

    def __init__(self) -> None:
        self._by_iri: dict[str, StoredStream] = {}
        self._learnt: tuple[Declaration, Absorption] | None = None
        self.next_number = 1
        self.dropped: list[StoredStream] = []  # since the last `ShardSet.release`

    def __contains__(self, iri: object) -> bool:
        return iri in self._by_iri

    def __iter__(self) -> Iterator[StoredStream]:
        return iter(self._by_iri.values())

    def get(self, iri: str) -> StoredStream:
        """Return the stream. UnknownStreamError if the stream was not declared or was dropped."""
        if iri not in self._by_iri:
            raise UnknownStreamError(f"unknown stream <{iri}>: declare it first")
        return self._by_iri[iri]

    def learn(self, declaration: Declaration, terms: TermEncoder) -> None:
        """Request the ids of a declaration's terms, before the declaration is applied. TransientError if the dictionary
        is unavailable. Nothing has then changed; call again.
        """
        self._learnt = declaration, Absorption.of(declaration, terms)

    def declare(self, declaration: Declaration) -> StoredStream:
        """Add a stream. The previous call of `learn` must have been for the same declaration. LimitError if there are
        already `MAX_STREAMS` streams.
        """
        if len(self._by_iri) >= MAX_STREAMS:
            raise LimitError(f"there are already {MAX_STREAMS} streams")
        assert self._learnt is not None, declaration.iri
        assert self._learnt[0] == declaration, declaration.iri
        return self.add(declaration, self.next_number, self._learnt[1])

    def add(self, declaration: Declaration, number: int, absorption: Absorption) -> StoredStream:
        """Add a stream with the given number, which a checkpoint contains."""
        stream = self._by_iri[declaration.iri] = StoredStream(declaration, number, absorption)
        self.next_number = max(self.next_number, number + 1)
        return stream

    def drop(self, iri: str) -> None:
        """Remove a stream. The stream's absorbed tuples remain in the stored graph."""
        self.dropped.append(self._by_iri.pop(iri))
