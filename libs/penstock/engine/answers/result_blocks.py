"""Pending answers. Each execution gives one block, for all members of a cohort.

A cohort of ten thousand queries needs one block per instant, not ten thousand objects. The evaluations of a query are
created from the blocks when they are polled.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat, starmap
from typing import TYPE_CHECKING, TypeAlias, overload

import numpy as np

from penstock.engine.answers.answer_values import Solutions, Triples
from penstock.errors import PenstockError
from penstock.query.ir import Form

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import rdflib
    from numpy.typing import NDArray

    from penstock.core._native import Ids
    from penstock.engine.answers.answer_values import Decoder
    from penstock.engine.answers.answer_versions import AnswerChanges
    from penstock.engine.answers.factors import Product
    from penstock.engine.answers.membership import Membership
    from penstock.engine.answers.rows import Changes, Rows

    Bounds: TypeAlias = tuple[int | None, int]
    Raw: TypeAlias = Solutions | bool | Triples
    Decoded: TypeAlias = Solutions | bool | rdflib.Graph


_BLOCK_BYTES = 1_024  # estimated size of a block without rows


@dataclass(frozen=True, slots=True)
class Reading:
    """The instant of an execution, and the input that the execution has read. The input consists of the bounds (start,
    end] of each window by IRI, the snapshot number, and the number of the last batch of each stream. Times are in ms.
    `attempt` is the engine's attempt (see `Evaluation.attempt`).

    A start is None if the window has no start. A window `[ALL]` can have no start. A count window has no start before
    the first report of the window.
    """

    time: int
    windows: Mapping[str, Bounds]
    snapshot: int
    vts: Mapping[str, int]
    attempt: int


@dataclass(slots=True)
class Block:
    """The rows of an execution, sorted by member. `present` contains the numbers of the members with rows, ascending.
    The rows of the member `present[i]` are at the positions from `starts[i]` (inclusive) to `starts[i + 1]`
    (exclusive). `errors` maps the number of each member without an answer to the reason.

    `product` contains the rows as factors, or is None. If `product` contains factors, `columns` is empty. For a query
    with `changes`, the attribute `changes` contains the version of the answer and the differences from the previous
    version. In this case, the block itself has no rows, and `present` contains the numbers of the members with changes.
    `waiting` is the number of members whose evaluation is not consumed yet.
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
    changes: AnswerChanges | None = None
    # only members with rows (with `changes`: with changed rows) or with an error have an evaluation
    sparse: bool = False
    waiting: int = 0
    taken: bytearray | None = None
    first_pending: int = 1

    def rows_of(self, member: int) -> slice:
        """Return the positions of a member's rows. The result is an empty slice if the member has no rows."""
        i = int(np.searchsorted(self.present, member))
        if i == len(self.present) or self.present[i] != member:
            return slice(0, 0)
        return slice(int(self.starts[i]), int(self.starts[i + 1]))

    @property
    def bytes(self) -> int:
        """The estimated size of the block in bytes."""
        own = _BLOCK_BYTES + (0 if self.taken is None else len(self.taken))
        if self.changes is not None:
            return own + self.changes.bytes
        held = self.columns if self.product is None else self.product.held
        return own + sum(column.nbytes for column in held)

    def concerns(self, member: int) -> bool:
        """Return whether a member has an evaluation in this block."""
        if not self.sparse or member in self.errors:
            return True
        if self.changes is not None:
            return bool(len(self.present[slice(*np.searchsorted(self.present, (member, member + 1)))]))
        rows = self.rows_of(member)
        return bool(rows.stop > rows.start)

    def pending(self, member: int) -> bool:
        """Return whether a member has an evaluation in this block that is not consumed yet."""
        return self.concerns(member) if self.taken is None else not self.taken[member]

    def concerned(self) -> Sequence[int]:
        """Return the numbers of the members with an evaluation in this block, ascending."""
        if self.sparse:
            return sorted({*self.present.tolist(), *self.errors})
        return range(1, len(self.members) + 1)

    def none_taken(self) -> bytearray:
        """Return the initial value of `taken`. With this value, all evaluations of the block are pending."""
        taken = bytearray(len(self.members) + 1)
        if self.sparse:
            taken = bytearray(b"\1") * len(taken)
            for member in self.concerned():
                taken[member] = 0
        taken[0] = 1
        return taken

    def names_of(self, members: Sequence[int]) -> Iterable[str]:
        """Return the names of the queries with these numbers."""
        names = self.members.names
        return names if len(members) == len(names) else [names[member - 1] for member in members]

    def reported(self, numbers: Ids) -> Ids:
        """Select the members in `numbers` that have an evaluation in this block. `numbers` must be ascending."""
        if not self.sparse:
            return numbers
        found = np.union1d(self.present, np.fromiter(self.errors, np.uint64)) if self.errors else self.present
        return numbers[np.isin(numbers, found, assume_unique=True)]

    def triples(self) -> Triples:
        """Return the triples of all members. The block must belong to a CONSTRUCT or DESCRIBE."""
        assert self.decoder is not None
        return Triples(self.columns, len(self.columns[0]), self.decoder, self.lease)

    def readers(self) -> int:
        """Return the number of readers of this block. Each member with an evaluation in the block is a reader. If the
        members belong to a query set, the set is the only reader.
        """
        if self.members.one_reader:
            return int(not self.sparse or len(self.present) > 0 or len(self.errors) > 0)
        return len(self.concerned())


class Evaluation:
    """The answer of a query at one instant.

    An evaluation can fail, for example because of a limit on time or memory. In this case, `error` has the reason, and
    access to `answer` raises `error`.
    """

    __slots__ = ("_answer", "_block", "_member", "query")

    def __init__(self, query: str, block: Block, member: int) -> None:
        self.query = query
        self._block = block
        self._member = member
        self._answer: Decoded | None = None

    def __repr__(self) -> str:
        return f"<Evaluation of {self.query} at {self.time}>"

    @property
    def place(self) -> tuple[Block, list[int]]:
        """The block of the answer, and a list that contains only the member's number."""
        return self._block, [self._member]

    @property
    def reading(self) -> Reading:
        """The instant of the execution, and the input that the execution has read."""
        return self._block.reading

    @property
    def time(self) -> int:
        """The instant t of the evaluation, in ms."""
        return self._block.reading.time

    @property
    def windows(self) -> dict[str, Bounds]:
        """The nominal bounds of each window, by IRI of the stream or named window. Bounds are (start, end) in ms: the
        start is exclusive, the end inclusive. A start is None if the window has no start.
        """
        return dict(self._block.reading.windows)

    @property
    def snapshot(self) -> int:
        """The number of the snapshot of the stored graph that the evaluation has read."""
        return self._block.reading.snapshot

    @property
    def vts(self) -> dict[str, int]:
        """The vector timestamp of the evaluation: by stream IRI, the number of the last batch that was available to the
        evaluation.
        """
        return dict(self._block.reading.vts)

    @property
    def attempt(self) -> int:
        """The attempt of the engine. In an embedded engine, this is 1 plus the number of restarts after a crash. In a
        cluster, this is the highest epoch of the buckets that the query engine has opened.
        """
        return self._block.reading.attempt

    @property
    def error(self) -> PenstockError | None:
        """The reason why the evaluation has no answer, or None."""
        return self._block.errors.get(self._member)

    @property
    def answer(self) -> Decoded:
        """The answer: Solutions for SELECT, bool for ASK, an rdflib graph for CONSTRUCT and DESCRIBE. If `error` is not
        None, access raises `error`.
        """
        if self._answer is None:
            self._answer = _decoded(self.raw)
        return self._answer

    @property
    def raw(self) -> Raw:
        """The answer as in `answer`, but with Triples in place of an rdflib graph. The terms of Triples are not decoded
        yet.
        """
        if self.error is not None:
            raise self.error
        block = self._block
        if block.changes is not None:
            now = block.changes.now
            # of a set, only this member's rows are computed
            return self._of(now.rows_of(np.array([self._member], np.uint64)) if block.sparse else now.rows)
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

    @property
    def complete(self) -> bool:
        """Whether the evaluation does not depend on an earlier evaluation. An evaluation is complete in three cases:
        the evaluation has an `error`, the query was registered without `changes`, or the evaluation is the first one of
        the query's text. For a query set, the third case is the first evaluation of a cohort of members.
        """
        changes = self._block.changes
        if changes is None or self.error is not None or changes.before is None:
            return True
        if self._block.members.one_reader:
            return False
        recipient = self._block.members.all[self._member - 1]
        return recipient is None or changes.before.number_of(recipient) is None

    @property
    def added(self) -> Decoded:
        """The part of this answer that the previous answer did not have. For SELECT, this is the multiset difference of
        the rows, as Solutions. For CONSTRUCT and DESCRIBE, this is an rdflib graph of triples. For ASK, this is True if
        the answer became true, and False otherwise.

        The previous answer is the answer of the query's last evaluation without an error. The first evaluation of a
        text is compared with an empty answer, or with False for ASK (see `complete`). If `error` is not None, access
        raises `error`. PenstockError if the query was registered without `changes`.
        """
        return _decoded(self._of(self._changes().added))

    @property
    def removed(self) -> Decoded:
        """The part of the previous answer that this answer does not have, in the form of `added`. For ASK, this is True
        if the answer became false, and False otherwise.
        """
        return _decoded(self._of(self._changes().removed))

    @property
    def raw_changes(self) -> tuple[Raw, Raw]:
        """`added` and `removed`, with Triples in place of rdflib graphs."""
        changes = self._changes()
        return self._of(changes.added), self._of(changes.removed)

    @property
    def has_changes(self) -> bool:
        """Whether the evaluation has `added` and `removed`. This is the case if the query was registered with
        `changes`, or if the query set reports changes.
        """
        return self._block.changes is not None

    def _changes(self) -> Changes:
        if self._block.changes is None:
            raise PenstockError(f"`added` and `removed` exist if a query is registered with changes=True: {self.query}")
        if self.error is not None:
            raise self.error
        return self._block.changes.changes

    def _of(self, rows: Rows) -> Raw:
        """Return this member's rows as an answer."""
        block, span = self._block, rows.span_of(self._member)
        count = span.stop - span.start
        if block.form is Form.ASK:
            return bool(count)
        assert block.decoder is not None
        columns = [column[span] for column in rows.columns]
        if block.form is Form.SELECT:
            return Solutions(block.variables, columns, count, block.decoder, block.lease)
        return Triples(columns, count, block.decoder, block.lease)


def _decoded(raw: Raw) -> Decoded:
    return raw.graph() if isinstance(raw, Triples) else raw


class Evaluations(Sequence[Evaluation]):
    """Evaluations that one call has removed from result queues. Each access creates a new `Evaluation`. A loop that
    retains no evaluation therefore needs the memory of only one evaluation.
    """

    __slots__ = ("_ends", "_parts")

    def __init__(self) -> None:
        self._parts: list[tuple[Block, Sequence[int]]] = []
        self._ends: list[int] = []

    def add(self, block: Block, members: Sequence[int]) -> None:
        """Append the evaluations that a block has for the members with the given numbers."""
        if members:
            self._parts.append((block, members))
            self._ends.append(len(self) + len(members))

    def extend(self, others: Evaluations) -> None:
        """Append other evaluations."""
        for part in others._parts:
            self.add(*part)

    def __repr__(self) -> str:
        return f"<{len(self)} evaluations>"

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[Evaluation]:
        return chain.from_iterable(starmap(_evaluations, self._parts))

    @overload
    def __getitem__(self, index: int) -> Evaluation: ...

    @overload
    def __getitem__(self, index: slice) -> list[Evaluation]: ...

    def __getitem__(self, index: int | slice) -> Evaluation | list[Evaluation]:
        places = range(len(self))[index]
        return self._at(places) if isinstance(places, int) else [self._at(place) for place in places]

    def _at(self, place: int) -> Evaluation:
        part = bisect_right(self._ends, place)
        block, members = self._parts[part]
        member = members[place - self._ends[part]]  # a negative index, from the end of the part
        return next(iter(_evaluations(block, [member])))


def _evaluations(block: Block, members: Sequence[int]) -> Iterable[Evaluation]:
    return map(Evaluation, block.names_of(members), repeat(block), members)
