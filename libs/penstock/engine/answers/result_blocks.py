"""Pending results: one block per execution, for all members of a group.

Ten thousand standing queries cost one block per instant instead of ten thousand objects. A query's evaluations are
created from the blocks when it polls.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from penstock.engine.answers.answer_values import Solutions, Triples
from penstock.engine.answers.unpolled import Unpolled
from penstock.query.ir import Form

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import rdflib
    from numpy.typing import NDArray

    from penstock.core._native import Ids
    from penstock.engine.answers.answer_values import Decoder
    from penstock.engine.answers.factors import Product
    from penstock.engine.answers.membership import Membership
    from penstock.errors import PenstockError

    Bounds: TypeAlias = tuple[int | None, int]


_BLOCK_BYTES = 1_024  # of an execution without rows
_HOLES = 4  # maximum ratio of missing to existing block numbers before the log is compacted


@dataclass(frozen=True, slots=True)
class Reading:
    """What an execution read: its instant, each window's (start, end], the snapshot, and each stream's last batch.
    Times are in ms; `attempt` is that of the engine.

    A start is None if the window has none ([ALL], a count window before its first report).
    """

    time: int
    windows: Mapping[str, Bounds]
    snapshot: int
    vts: Mapping[str, int]
    attempt: int


@dataclass(slots=True)
class Block:
    """The rows of an execution, sorted by member. `present` are the members with rows, ascending; the rows of
    present[i] are `columns[...][starts[i]:starts[i + 1]]`. `errors` contains, by member number, why there is no answer.

    `product`: the rows as factors; `columns` is empty then. `waiting`: number of members that have not consumed their
    evaluation.
    """

    reading: Reading
    form: Form
    variables: tuple[str, ...]
    columns: tuple[Ids, ...]
    members: Membership
    present: Ids
    starts: NDArray[np.int64]
    decoder: Decoder | None
    lease: object = None
    errors: Mapping[int, PenstockError] = field(default_factory=dict)
    product: Product | None = None
    sparse: bool = False  # REPORT NONEMPTY: only members with rows or an error have an evaluation
    waiting: int = 0

    def rows_of(self, member: int) -> slice:
        """Return a member's rows as a slice, empty if it has none."""
        i = int(np.searchsorted(self.present, member))
        if i == len(self.present) or self.present[i] != member:
            return slice(0, 0)
        return slice(int(self.starts[i]), int(self.starts[i + 1]))

    @property
    def bytes(self) -> int:
        """Estimated size in bytes."""
        held = self.columns if self.product is None else self.product.held
        return _BLOCK_BYTES + sum(column.nbytes for column in held)

    def concerns(self, member: int) -> bool:
        """Return whether the member has an evaluation in this block."""
        if not self.sparse or member in self.errors:
            return True
        rows = self.rows_of(member)
        return bool(rows.stop > rows.start)

    def triples(self) -> Triples:
        """Return all triples of a CONSTRUCT's block."""
        assert self.decoder is not None
        return Triples(self.columns, len(self.columns[0]), self.decoder, self.lease)

    def readers(self) -> int:
        """Return the number of members with an evaluation in this block."""
        return len({*self.present.tolist(), *self.errors}) if self.sparse else len(self.members)


class Evaluation:
    """The answer of a query at one instant.

    `windows` maps the IRI of each stream (or named window) to (start exclusive, end inclusive) in ms. `error` is None,
    or why the evaluation has no answer (a limit on time or memory); `answer` raises it.
    """

    __slots__ = ("_answer", "_block", "_member", "query")

    def __init__(self, query: str, block: Block, member: int) -> None:
        self.query = query
        self._block = block
        self._member = member
        self._answer: Solutions | bool | rdflib.Graph | None = None

    def __repr__(self) -> str:
        return f"<Evaluation of {self.query} at {self.time}>"

    @property
    def time(self) -> int:
        """The evaluation instant t, ms."""
        return self._block.reading.time

    @property
    def windows(self) -> dict[str, Bounds]:
        """Nominal bounds of each window by IRI: (start exclusive, end inclusive), ms."""
        return dict(self._block.reading.windows)

    @property
    def snapshot(self) -> int:
        """Number of the snapshot of the stored graph that the evaluation read."""
        return self._block.reading.snapshot

    @property
    def vts(self) -> dict[str, int]:
        """Vector timestamp: for each stream, the number of the last batch that the evaluation could read."""
        return dict(self._block.reading.vts)

    @property
    def attempt(self) -> int:
        """1, plus one for each restart after a crash. In a cluster, also plus one for each engine that took over the
        query.
        """
        return self._block.reading.attempt

    @property
    def error(self) -> PenstockError | None:
        """Why there is no answer, or None."""
        return self._block.errors.get(self._member)

    @property
    def answer(self) -> Solutions | bool | rdflib.Graph:
        """Solutions for SELECT, bool for ASK, an rdflib graph for CONSTRUCT and DESCRIBE. Decoded on access."""
        if self._answer is None:
            raw = self.raw
            self._answer = raw.graph() if isinstance(raw, Triples) else raw
        return self._answer

    @property
    def raw(self) -> Solutions | bool | Triples:
        """The answer in columns: like `answer`, but Triples in place of a graph. Raises `error` if it is not None."""
        if self.error is not None:
            raise self.error
        block = self._block
        rows = block.rows_of(self._member)
        if block.form is Form.ASK:
            return bool(rows.stop > rows.start)
        assert block.decoder is not None
        if block.product is not None:
            pairs = block.product.of(self._member)
            return Solutions(block.variables, pairs, len(pairs), block.decoder, block.lease)
        columns = [column[rows] for column in block.columns]
        if block.form is Form.SELECT:
            return Solutions(block.variables, columns, rows.stop - rows.start, block.decoder, block.lease)
        return Triples(columns, rows.stop - rows.start, block.decoder, block.lease)


class BlockLog:
    """The blocks of a cohort until every member has consumed its part. Other threads may read them while the engine
    evaluates.
    """

    def __init__(self, unpolled: Unpolled | None = None) -> None:
        self._unpolled = unpolled if unpolled is not None else Unpolled()
        self._blocks: dict[int, Block] = {}
        self._lock = Lock()
        self.next = 0
        self.last_bytes = 0  # of the latest block with an evaluation

    def __len__(self) -> int:
        return len(self._blocks)

    def append(self, block: Block) -> bool:
        """Add a block. Returns False if no member has an evaluation in it."""
        block.waiting = block.readers()
        with self._lock:
            if block.waiting:
                self._blocks[self.next] = block
            self.next += 1
        if block.waiting:
            self.last_bytes = block.bytes
            self._unpolled.add(self.last_bytes)
        return block.waiting > 0

    def blocks(self, first: int, end: int) -> Iterator[tuple[int, Block]]:
        """Yield the existing blocks with numbers in [`first`, `end`), in order and lazily."""
        with self._lock:
            sparse = end - first > _HOLES * len(self._blocks)
            numbers = [i for i in self._blocks if first <= i < end] if sparse else range(first, end)
        for number in numbers:
            block = self._blocks.get(number)
            if block is not None:
                yield number, block

    def taken(self, number: int) -> None:
        """Record that one more member has consumed its part of a block. After the last member, removes the block."""
        with self._lock:
            block = self._blocks.get(number)
            if block is None:
                return
            block.waiting -= 1
            if block.waiting > 0:
                return
            del self._blocks[number]
        self._unpolled.add(-block.bytes)

    def restore(self, following: int, blocks: dict[int, Block]) -> None:
        """Set the blocks of a checkpoint. `ResultQueue.restore` then counts the members that have not consumed them."""
        self.next = following
        self._blocks = blocks
        self._unpolled.add(sum(block.bytes for block in blocks.values()))

    def drop_read(self) -> None:
        """Drop restored blocks that all members have consumed."""
        read = [number for number, block in self._blocks.items() if block.waiting <= 0]
        for number in read:
            self._unpolled.add(-self._blocks.pop(number).bytes)
