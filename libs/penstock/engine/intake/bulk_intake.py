"""What an engine does for a bulk load that is prepared elsewhere (`penstock.spark`): tell its terms, take the result.

The load is one commit: visible at once, or not at all.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.core import _native as native
from penstock.core import arrow as co
from penstock.engine.intake.graph_loading import LoadReport
from penstock.errors import DataError, StorageError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from penstock.engine.answers.answer_values import Ids
    from penstock.engine.engine_core import EngineCore

    BinColumns: TypeAlias = tuple[Ids, Ids, Ids, Ids]

KNOWN_PART = -1
"""Column `part` of known terms: in a load's tables it numbers tasks."""

_TERMS_PER_PART = 262_144
_BYTES_PER_PART = 64 << 20
_KNOWN = pa.schema(
    [
        ("part", pa.int64()),
        ("slot", pa.int64()),  # the id
        ("kind", pa.int32()),
        ("lexical", pa.string()),
        ("datatype", pa.string()),
        ("lang", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class KnownTerms:
    """The dictionary that a load extends: its terms as a Parquet file (None = it has none), the first slot and blank
    node number that are free, and a digest of all that.
    """

    file: Path | None
    next_slot: int
    blanks: int
    digest: str


NO_TERMS = KnownTerms(None, 1, 0, "")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared load: Parquet files of new terms (ascending ids) and of edges (direction, bin, file), both given one
    at a time; the number of blank nodes from now on; pieces a shard; a name.
    """

    dictionary: Iterable[Path]
    edges: Iterable[tuple[int, int, Path]]
    blanks: int
    pieces: int
    name: str


class BinFile(Protocol):
    """The edges of one bin in one direction."""

    @property
    def direction(self) -> int:
        """Return 0 where its vertices are the subjects, 1: the objects."""

    @property
    def bin(self) -> int:
        """Its number among all shards' bins."""

    def read(self) -> BinColumns:
        """Return its columns. AwayError: not now. StorageError: it is damaged."""


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


class BulkIntake:
    """An engine's part in bulk loads. Terms that are known when it is made stay while it lives."""

    def __init__(self, core: EngineCore, writing: AbstractContextManager[object]) -> None:
        if not isinstance(core.store, native.Store):
            raise StorageError("a prepared load cannot be taken in over store nodes: load into an engine of its own")
        self._core = core
        self._store = core.store
        self._writing = writing
        self._lease = core.dictionary.lease()

    @property
    def shards(self) -> int:
        """Of the stored graph."""
        return self._store.shard_count()

    @property
    def last_load(self) -> str:
        """Name of the last prepared load that was taken in; empty where there was none."""
        return self._core.last_load

    def known_terms(self, file: Path) -> KnownTerms:
        """Write the dictionary to a Parquet file."""
        dictionary = self._core.dictionary
        end, blanks = native.next_slot(dictionary), dictionary.blank_count()
        digest = hashlib.sha256(f"{end} {blanks}".encode())
        slot = 1
        with pq.ParquetWriter(file, _KNOWN) as writer:
            while slot < end:
                ids, kinds, *texts, slot = native.dictionary_columns(dictionary, slot, _TERMS_PER_PART, _BYTES_PER_PART)
                for column in (ids, kinds, *(array for text in texts for array in text)):
                    digest.update(column.data)
                part = np.full(len(ids), KNOWN_PART, np.int64)
                arrays = [pa.array(part), co.longs(ids), pa.array(kinds, pa.int32()), *map(co.strings, texts)]
                writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=_KNOWN))
        return KnownTerms(file if dictionary.size() else None, end, blanks, digest.hexdigest())

    def take(self, known: KnownTerms, prepared: Prepared) -> LoadReport:
        """Take a prepared load in, as one snapshot. `known` is the dictionary that it extends.

        DataError, and nothing is stored, where the dictionary has got terms since, or the files are not what a load
        leaves. LimitError where the store is full.
        """
        began, core = time.perf_counter(), self._core
        with self._writing:
            triples, terms = core.store.edge_count(), core.dictionary.size()
            if core.dictionary.blank_count() != known.blanks:
                raise DataError("the engine has got new blank nodes since the load began: load again")
            core.dictionary.reserve_blanks(prepared.blanks)
            ids = [self._adopt(file) for file in prepared.dictionary]
            load = native.BulkLoad(self._store, prepared.pieces)
            for direction, number, file in prepared.edges:
                load.append(number, direction, *bin_columns(file))
            load.publish()
            for part in ids:
                core.dictionary.keep(part)
            core.last_load = prepared.name
            new = core.dictionary.size() - terms
            return LoadReport(core.store.edge_count() - triples, new, time.perf_counter() - began)

    def _adopt(self, file: Path) -> native.Ids:
        parts = [np.zeros(0, np.uint64)]
        with pq.ParquetFile(file) as parquet:
            for batch in parquet.iter_batches(_TERMS_PER_PART):
                ids = co.ids_of(batch.column("id"))
                kinds = batch.column("kind").to_numpy().astype(np.uint8)
                texts = (co.texts_of(batch.column(name)) for name in ("lexical", "datatype", "lang"))
                native.adopt_columns(self._core.dictionary, ids, kinds, *texts)
                parts.append(ids)
        return np.concatenate(parts)
