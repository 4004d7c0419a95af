"""The results of a query set at one instant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from penstock.engine.answers.arrow_terms import term_arrays, term_column
from penstock.engine.answers.membership import Recipient
from penstock.engine.answers.result_blocks import Evaluation
from penstock.engine.sets.cells import key_column, key_ids
from penstock.engine.sets.set_members import SetMembership
from penstock.errors import PenstockError
from penstock.query.ir import Form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import rdflib

    from penstock.core._native import Dictionary, Ids, LocalTerms, TermArrays, TermTexts
    from penstock.engine.answers.answer_values import Solutions
    from penstock.engine.answers.answer_versions import AnswerChanges
    from penstock.engine.answers.result_blocks import Block, Bounds
    from penstock.engine.answers.rows import Rows
    from penstock.engine.sets.earlier_texts import EarlierTexts, TableTexts

TRIPLE = ("subject", "predicate", "object")
"""Names of the columns of a CONSTRUCT or DESCRIBE."""


class KeyedSet(Recipient, Protocol):
    """The part of a query set that the set's steps use. `key` contains the names of the key columns. `key_types`
    contains the types of the values in these columns.
    """

    key: tuple[str, ...]
    key_types: list[str]
    dictionary: Dictionary
    terms: LocalTerms
    texts: EarlierTexts

    def text_kind(self, name: str) -> int:
        """Return the kind of term (IRI or LITERAL) that text in a column denotes."""


class Step:
    """The results of the members of a query set at one instant.

    The set's `report` determines which members report: all members, the members with rows, or the members with a
    changed answer. Members with an error always report. `len()` is the number of members that report. If the evaluation
    of a member has failed, the member is in `errors` and has no rows. The other members are not affected.
    """

    def __init__(self, owner: KeyedSet, blocks: list[Block]) -> None:
        self.query = owner.name
        self._key, self._types, self._terms = owner.key, tuple(owner.key_types), owner.terms
        self._text_kinds, self._dictionary = tuple(map(owner.text_kind, owner.key)), owner.dictionary
        self._texts, self._blocks = owner.texts, blocks

    def __repr__(self) -> str:
        return f"<Step of {self.query} at {self.time}: {len(self)} members>"

    @property
    def time(self) -> int:
        """The instant t, in ms."""
        return self._blocks[0].reading.time

    @property
    def windows(self) -> dict[str, Bounds]:
        """The nominal bounds of each window (see `Evaluation.windows`)."""
        return dict(self._blocks[0].reading.windows)

    @property
    def snapshot(self) -> int:
        """The number of the snapshot of the stored graph that the evaluation has read."""
        return self._blocks[0].reading.snapshot

    @property
    def vts(self) -> dict[str, int]:
        """By stream IRI, the number of the last batch that was available to the evaluation."""
        return dict(self._blocks[0].reading.vts)

    @property
    def attempt(self) -> int:
        """See `Evaluation.attempt`."""
        return self._blocks[0].reading.attempt

    def __len__(self) -> int:
        return sum(len(_reporting(block)) for block in self._blocks)

    @property
    def members(self) -> pa.Table:
        """The keys of the members that report, as a table of the key columns."""
        return self._table([self._keys(block, _reporting(block)) for block in self._blocks])

    @property
    def errors(self) -> list[tuple[Any, PenstockError]]:
        """The members whose evaluation has failed, as (key, error)."""
        found: list[tuple[Any, PenstockError]] = []
        for block in self._blocks:
            numbers = np.array(sorted(block.errors), np.uint64)
            keys = self._table([self._keys(block, numbers)]).to_pylist()
            found += [(_key_of(key), block.errors[int(number)]) for key, number in zip(keys, numbers, strict=True)]
        return found

    def to_arrow(self) -> pa.Table:
        """Return the rows of the members that report as an Arrow table. The first columns are the columns of the key.
        The columns of the answer follow (see `Solutions.to_arrow`). The table of an ASK has only the columns of the
        key, and contains the members for which the answer is true.
        """
        texts = self._texts.table()
        table = self._table([self._rows(block, texts, part) for part, block in enumerate(self._blocks)])
        self._texts.retain(texts)
        return table

    @property
    def added(self) -> pa.Table:
        """The added rows, by member: the new answer of the member without the rows of the member's previously reported
        answer, as a multiset difference. The table has the form of `to_arrow`. PenstockError if the set does not report
        changes.
        """
        return self._table([self._changed_rows(block, self._changes(block).changes.added) for block in self._blocks])

    @property
    def removed(self) -> pa.Table:
        """The removed rows, by member: the member's previously reported answer without the rows of the new answer (see
        `added`).
        """
        return self._table([self._changed_rows(block, self._changes(block).changes.removed) for block in self._blocks])

    @property
    def rows(self) -> int:
        """The number of rows of all answers. If the set reports changes, this is the number of added and removed
        rows.
        """
        return sum(
            int(block.starts[-1]) if block.changes is None else len(block.changes.changes) for block in self._blocks
        )

    def evaluation(self, key: object) -> Evaluation | None:
        """Return the evaluation of a member, or None if the member does not report. `key`: see `__getitem__`."""
        place = self._place(key)
        return None if place is None else Evaluation(self.query, *place)

    def __contains__(self, key: object) -> bool:
        return self._place(key) is not None

    def __getitem__(self, key: object) -> Solutions | bool | rdflib.Graph:
        """Return the answer of a member that reports. KeyError if the member does not report. If the evaluation of the
        member has failed, the call raises the error of this evaluation.

        `key` is the value of the key, or a tuple if the key has several columns. The call reads the keys of all
        members.
        """
        if (found := self.evaluation(key)) is None:
            raise KeyError(key)
        return found.answer

    def evaluations(self) -> Iterator[tuple[Any, Evaluation]]:
        """Yield (key, evaluation) for each member that reports. The key is the value of the key column, or a tuple if
        the key has several columns. A key whose column contains terms is a dict, as in `members`.
        """
        for block in self._blocks:
            numbers, keys = self.reporting(block)
            for number, key in zip(numbers.tolist(), keys, strict=True):
                yield key, Evaluation(self.query, block, number)

    def reporting(self, block: Block) -> tuple[Ids, list[Any]]:
        """Return the members that report in a block of this step: their numbers, ascending, and their keys (see
        `evaluations`).
        """
        numbers = _reporting(block)
        return numbers, [_key_of(key) for key in self._table([self._keys(block, numbers)]).to_pylist()]

    # ---- inside
    def _place(self, key: object) -> tuple[Block, int] | None:
        ids = key_ids(self._dictionary, self._types, self._text_kinds, key)
        if ids is None:
            return None
        for block in self._blocks:
            columns = _columns(block)
            same = np.logical_and.reduce([column == term for column, term in zip(columns.keys, ids, strict=True)])
            for number in columns.numbers[same].tolist():
                if block.concerns(number):
                    return block, number
        return None

    def _keys(
        self, block: Block, numbers: Ids, texts: TableTexts | None = None, part: int = 0
    ) -> list[pa.ChunkedArray]:
        """Return the keys of members. A number can occur several times."""
        columns = _columns(block)
        rows = columns.rows_of(numbers)
        return [
            key_column(ids[rows], self._terms, kind, _reader(texts, part, i, numbers))
            for i, (ids, kind) in enumerate(zip(columns.keys, self._types, strict=True))
        ]

    def _changes(self, block: Block) -> AnswerChanges:
        if block.changes is None:
            raise PenstockError(
                f'`added` and `removed` exist if a set is registered with report="change": {self.query}'
            )
        return block.changes

    def _changed_rows(self, block: Block, rows: Rows) -> list[pa.ChunkedArray]:
        """Return rows of a block with changes, with the keys of their members."""
        return [*self._keys(block, rows.member), *(term_column(column, self._terms) for column in rows.columns)]

    def _rows(self, block: Block, texts: TableTexts, part: int) -> list[pa.ChunkedArray]:
        """Return the answers of the members that report, with the keys of the members. The block is the part of the
        table with the number `part`.
        """
        if block.changes is not None:
            return self._changed_rows(block, block.changes.now.rows_of(block.present))
        counts = np.diff(block.starts)
        if block.form is Form.ASK:
            return self._keys(block, block.present[counts > 0])
        columns = block.columns if block.product is None else block.product.rows().columns
        decoder, members = block.decoder or self._terms, np.repeat(block.present, counts)
        keys = self._keys(block, members, texts, part)
        return [
            *keys,
            *(
                term_column(column, decoder, _reader(texts, part, i, members))
                for i, column in enumerate(columns, len(keys))
            ),
        ]

    def _table(self, parts: list[list[pa.ChunkedArray]]) -> pa.Table:
        names = [*self._key, *self._answer_columns] if len(parts[0]) > len(self._key) else list(self._key)
        tables = [pa.table(columns, names=names) for columns in parts]
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables)

    @property
    def _answer_columns(self) -> tuple[str, ...]:
        block = self._blocks[0]
        return block.variables if block.form is Form.SELECT else TRIPLE


def _key_of(row: dict[str, Any]) -> Any:
    """Return the key in one row of the key columns."""
    return tuple(row.values()) if len(row) > 1 else next(iter(row.values()))


def _reader(
    texts: TableTexts | None, part: int, column: int, members: Ids
) -> Callable[[Ids, TermTexts], list[TermArrays]]:
    return term_arrays if texts is None else texts.reader(part, column, members)


def _columns(block: Block) -> Any:
    assert isinstance(block.members, SetMembership)
    return block.members.columns


def _reporting(block: Block) -> Ids:
    """Return the numbers of the members that report."""
    if not block.sparse:
        numbers: Ids = _columns(block).numbers
        return numbers
    if not block.errors:
        return block.present
    return np.union1d(block.present, np.array(list(block.errors), np.uint64))
