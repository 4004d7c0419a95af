"""The sorted edges of a bulk load, divided into bins. A stored graph appends the bins one by one, and publishes them
together at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pyarrow.parquet as pq

from penstock.core import arrow as co
from penstock.errors import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.core import _native as native
    from penstock.core._native import Ids

    BinColumns: TypeAlias = tuple[Ids, Ids, Ids, Ids]


class BinFile(Protocol):
    """The edges of a bin, for one direction of the edges."""

    @property
    def direction(self) -> int:
        """The direction of the edges. 0 means that the vertices of the bin are subjects. 1 means that the vertices are
        objects.
        """

    @property
    def bin(self) -> int:
        """The number of the bin among the bins of all shards."""

    def read(self) -> BinColumns:
        """Return the columns graph, predicate, vertex and value. UnavailableError if the file cannot be read now: the
        caller must retry later. StorageError if the file is damaged.
        """


class Bins(Protocol):
    """The bins of a load. An implementation can store the bins anywhere."""

    @property
    def shards(self) -> int:
        """The number of shards for which the load was prepared. The stored graph can have another number of shards."""

    @property
    def pieces(self) -> int:
        """The number of bins per shard."""

    @property
    def labels(self) -> tuple[Ids, Ids]:
        """The ids of the edge labels: a column of graphs and a column of predicates, in the order of the label
        numbers.
        """

    def files(self, shard: int | None = None) -> Iterable[BinFile]:
        """Return the bins of a shard. If `shard` is None, return the bins of all shards."""


def appended(load: native.BulkLoad, files: Iterable[BinFile]) -> Iterator[UnavailableError | None]:
    """Append the bins in `files` to the load `load`. The generator yields None after each bin. If a bin cannot be read
    now, the generator yields the error, and retries this bin in the next iteration.
    """
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
    """Read the Parquet file of a bin. Returns the columns graph, predicate, vertex and value. `source` is a path, or
    another input that Arrow accepts.
    """
    with pq.ParquetFile(source) as parquet:
        table = parquet.read(["graph", "predicate", "vertex", "value"])
    graph, predicate, vertex, value = (co.ids_of(column.combine_chunks()) for column in table.columns)
    return graph, predicate, vertex, value
