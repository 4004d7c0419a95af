"""The answers of evaluations: `Solutions`, a boolean, or `Triples`. Users get `Triples` as an rdflib graph.

An answer contains columns of term ids. The first access to the terms decodes the ids.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

import numpy as np
import pyarrow as pa
import rdflib

from penstock.core import _native as native
from penstock.engine.answers.arrow_terms import term_column
from penstock.engine.answers.pairs import Pairs
from penstock.rdf.id_layout import TAG_LOCAL, TAG_SHIFT
from penstock.rdf.terms import from_tuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from penstock.core._native import Ids, TermTuple
    from penstock.rdf.terms import RdflibTerm

    _Places: TypeAlias = range | NDArray[np.intp]

_FEW = 128  # maximum number of ids in a small answer

T = TypeVar("T")
TextFormat: TypeAlias = Literal["json", "xml", "csv", "tsv"]
Decoder: TypeAlias = native.LocalTerms | native.TextTerms
"""Decodes the term ids of an answer. `publish` replaces the ids of computed terms by dictionary ids. Dictionary ids are
valid in the whole engine, not only in the evaluation. Each computed blank node becomes a new node of the dictionary.
"""


class Answer:
    """Columns of ids, the decoder of these ids, and a lease that retains the terms of the ids.

    `columns` can also be `Pairs`, the cross product of several parts. In that case, the first access to whole columns
    creates these columns.
    """

    def __init__(self, columns: Sequence[Ids] | Pairs, rows: int, decoder: Decoder, lease: object = None) -> None:
        self._pairs = columns if isinstance(columns, Pairs) else None
        self._held = columns.held if isinstance(columns, Pairs) else tuple(columns)
        self._rows = rows
        self._decoder = decoder
        self._lease = lease

    def __len__(self) -> int:
        return self._rows

    @cached_property
    def columns(self) -> tuple[Ids, ...]:
        """The columns of ids. Ids of computed terms are only valid within this answer (see `published`)."""
        return self._whole(self._held)

    @cached_property
    def published(self) -> tuple[Ids, ...]:
        """The columns, with dictionary ids in place of the ids of computed terms. Dictionary ids are valid in the whole
        engine.
        """
        return publish(self.columns, self._decoder)

    def _whole(self, held: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], ...]:
        """Return columns with one value per row. The argument `held` has the same shape as `_held`, but has values in
        place of ids.
        """
        return tuple(held) if self._pairs is None else self._pairs.expand(held)

    def _columns_to_write(self) -> tuple[Sequence[Ids], Sequence[int]]:
        """Return (columns, repeats). `columns` contains one column per variable. `repeats` contains a number n for each
        column: each value of the column stands for n successive rows. If each column has one value per row, `repeats`
        is empty.
        """
        return (self._held, ()) if self._pairs is None else (self._pairs.columns, self._pairs.repeats)

    def _zipped(self, held: Sequence[Sequence[T]]) -> Iterator[tuple[T, ...]]:
        """Yield the rows of the columns that `_whole` would return."""
        if self._pairs is not None:
            return self._pairs.rows(held)
        return zip(*held, strict=True) if held else (() for _ in range(self._rows))

    @cached_property
    def _decoded(self) -> tuple[list[TermTuple | None], list[_Places]]:
        """The decoded terms of the answer, as a pair (terms, positions). The list `positions` has one element for each
        column in `_held`. This element contains the positions of the column's terms in the list `terms`. For a small
        answer, `terms` can contain a term several times.
        """
        if sum(map(len, self._held)) <= _FEW:  # decoding duplicates costs less than sorting
            terms: list[TermTuple | None] = []
            places: list[_Places] = []
            for column in self._held:
                places.append(range(len(terms), len(terms) + len(column)))
                terms += self._decoder.decode(column)
            return terms, places
        ids, ends = np.concatenate(self._held), np.cumsum([len(column) for column in self._held])[:-1]
        ids, positions = np.unique(ids, return_inverse=True)
        return self._decoder.decode(ids), [*np.split(positions, ends)]

    def _by_row(self, terms: list[T]) -> Iterator[tuple[T, ...]]:
        """Yield the rows of the answer as tuples of values. `terms` contains the value for each decoded term."""
        return self._zipped(
            [
                terms[places.start : places.stop] if isinstance(places, range) else [terms[i] for i in places.tolist()]
                for places in self._decoded[1]
            ]
        )

    @cached_property
    def _terms(self) -> list[RdflibTerm | None]:
        return [None if term is None else from_tuple(term) for term in self._decoded[0]]

    def rdf_rows(self) -> Iterator[tuple[RdflibTerm | None, ...]]:
        """Yield each row as a tuple of rdflib terms. The tuple has None for an unbound variable."""
        return self._by_row(self._terms)


class Solutions(Answer):
    """The answer of a SELECT: a sequence of solutions, each a dict from variable name to rdflib term.

    Unbound variables are missing from a solution. If the query has ORDER BY, the solutions are in this order.
    """

    def __init__(
        self,
        variables: Sequence[str],
        columns: Sequence[Ids] | Pairs,
        rows: int,
        decoder: Decoder,
        lease: object = None,
    ) -> None:
        super().__init__(columns, rows, decoder, lease)
        self.variables = tuple(variables)

    def __iter__(self) -> Iterator[dict[str, RdflibTerm]]:
        names, rows = self.variables, self.rdf_rows()
        if None in self._decoded[0]:
            return ({name: term for name, term in zip(names, row, strict=True) if term is not None} for row in rows)
        # the common case: here the creation of dicts dominates the cost
        bound = cast("Iterator[tuple[RdflibTerm, ...]]", rows)
        if len(names) == 1:
            name = names[0]
            return ({name: term} for (term,) in bound)
        return (dict(zip(names, row)) for row in bound)  # noqa: B905 - `strict` would double the time

    def __repr__(self) -> str:
        return f"<Solutions: {len(self)} rows of {' '.join('?' + name for name in self.variables)}>"

    @property
    def ids(self) -> dict[str, Ids]:
        """The columns of term ids by variable name, with 0 for unbound variables. `Engine.decode` accepts these ids
        while this object exists.
        """
        return dict(zip(self.variables, self.published, strict=True))

    def to_json(self) -> str:
        """Return the answer as a SPARQL Results JSON document."""
        return native.answer_text("json", *self.written())

    def to_xml(self) -> str:
        """Return the answer as a SPARQL Results XML document. Raises DataError if a term contains a character that XML
        1.0 does not allow.
        """
        return native.answer_text("xml", *self.written())

    def to_csv(self) -> str:
        """Return the answer as SPARQL Results CSV. This format contains no types."""
        return native.answer_text("csv", *self.written())

    def to_tsv(self) -> str:
        """Return the answer as SPARQL Results TSV."""
        return native.answer_text("tsv", *self.written())

    def parts(self, text_format: TextFormat, part_bytes: int) -> Iterator[bytes]:
        """Yield the answer in UTF-8, in parts of at least `part_bytes` bytes. The last part can be smaller. The whole
        text is never in memory at once. If the format cannot represent a term, the call raises DataError before the
        first part.
        """
        if text_format == "xml":
            check = native.AnswerText(text_format, *self.written())
            while check.read(part_bytes):
                pass
        text = native.AnswerText(text_format, *self.written())
        while part := text.read(part_bytes):
            yield part

    def written(self) -> tuple[Sequence[str], Sequence[Ids], Sequence[int], int, native.TermTexts]:
        """Return the arguments with which the native module writes the answer: variables, columns, repeats, terms, and
        the number of rows.
        """
        return (self.variables, *self._columns_to_write(), self._rows, self._decoder)

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table with one column per variable. The type of a column is struct(type, value, datatype,
        lang). A cell is null if the variable is unbound.

        `type` is "uri", "bnode" or "literal". `datatype` is null for IRIs and blank nodes. `lang` is null unless the
        literal has a language tag.
        """
        columns = [term_column(column, self._decoder) for column in self.columns]
        return pa.table(columns, names=list(self.variables))


class Triples(Answer):
    """The answer of a CONSTRUCT or DESCRIBE: three columns of ids, without duplicate triples."""

    def graph(self) -> rdflib.Graph:
        """Return the triples as an rdflib graph."""
        graph = rdflib.Graph()
        for triple in self.rdf_rows():
            graph.add(triple)  # type: ignore[arg-type]  # each row has three bound terms
        return graph

    def to_ntriples(self) -> str:
        """Return the triples as an N-Triples document."""
        return native.answer_text("ntriples", *self.written())

    def written(self) -> tuple[Sequence[str], Sequence[Ids], Sequence[int], int, native.TermTexts]:
        """Return the arguments with which the native module writes the triples (see `Solutions.written`)."""
        return (_TRIPLE, *self._columns_to_write(), self._rows, self._decoder)


_TRIPLE = ("s", "p", "o")


def publish(columns: Sequence[Ids], decoder: Decoder) -> tuple[Ids, ...]:
    """Return the columns, with dictionary ids in place of the ids of computed terms.

    One call must get all columns of an answer. Each computed blank node then becomes the same new node in all columns.
    """
    if not any((column >> TAG_SHIFT == TAG_LOCAL).any() for column in columns):
        return tuple(columns)
    return tuple(np.split(decoder.publish(np.concatenate(columns)), len(columns)))
