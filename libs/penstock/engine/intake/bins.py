"""Sorted edges of a bulk load, divided into bins: what a stored graph appends one by one and publishes together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pyarrow.parquet as pq

from penstock.core import arrow as co
from penstock.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.core import _native as native
    from penstock.engine.answers.answer_values import Ids

    BinColumns: TypeAlias = tuple[Ids, Ids, Ids, Ids]


class BinFile(Protocol):
    """The edges of one bin in one direction."""

    @property
    def direction(self) -> int:
        """Return 0 where its vertices are the subjects, 1: the objects."""

    @property
    def bin(self) -> int:
        """Its number among all shards' bins."""

    def read(self) -> BinColumns:
        """Return its columns. UnavailableError: not now. StorageError: it is damaged."""


class Bins(Protocol):
    """A load by its bins, wherever they are."""

    @property
    def shards(self) -> int:
        """Return for how many shards it was made; a store may have another number of them."""

    @property
    def pieces(self) -> int:
        """Bins of a shard."""

    @property
    def labels(self) -> tuple[Ids, Ids]:
        """Graphs and predicates of its edge labels, in the order in which they are numbered."""

    def files(self, shard: int | None = None) -> Iterable[BinFile]:
        """Return the bins of a shard, or all."""


def appended(load: native.BulkLoad, files: Iterable[BinFile]) -> Iterator[UnavailableError | None]:
    """Append bins, yielding after each; where one cannot be read now the error is yielded, and it is tried again."""
    for file in files:
        columns = None
        while columns is None:
            try:
                columns = file.read()
            except UnavailableError as error:
                yield error
        load.append(file.bin, file.direction, *columns)
        yield None


def bin_columns(source: Any) -> BinColumns:
    """Return graph, predicate, vertex and value of a bin's Parquet file (a path, or what Arrow reads)."""
    with pq.ParquetFile(source) as parquet:
        table = parquet.read(["graph", "predicate", "vertex", "value"])
    graph, predicate, vertex, value = (co.ids_of(column.combine_chunks()) for column in table.columns)
    return graph, predicate, vertex, value
