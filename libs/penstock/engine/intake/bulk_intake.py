"""The engine's part in bulk loads. The engine exports the terms of the dictionary. `penstock.spark` then prepares the
load, and the engine stores the prepared load.

A load is one commit. It becomes visible atomically.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.core import _native as native
from penstock.core import arrow as co
from penstock.engine.intake.bins import bin_columns
from penstock.engine.intake.graph_loading import LoadReport
from penstock.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from penstock.core._native import Ids
    from penstock.engine.engine_core import EngineCore
    from penstock.engine.intake.bins import BinColumns

KNOWN_PART = -1
"""The value in the column `part` for terms that the dictionary already contains. For new terms, `part` is the number of
a Spark task of the load.
"""

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
    """A description of the dictionary that a load extends. `file` is a Parquet file with the terms, or None if the
    dictionary is empty. `next_slot` is the first free slot. `blanks` is the first free blank node number. `digest` is a
    digest of all these parts.
    """

    file: Path | None
    next_slot: int
    blanks: int
    digest: str


NO_TERMS = KnownTerms(None, 1, 0, "")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared load. `dictionary`: Parquet files of the new terms, in ascending order of ids. `edges`: for each bin,
    the direction, the number, and the Parquet file of the bin. `blanks`: the number of blank nodes after the load.
    `pieces`: the number of bins per shard.
    """

    dictionary: Iterable[Path]
    edges: Iterable[tuple[int, int, Path]]
    blanks: int
    pieces: int
    name: str


@dataclass(frozen=True, slots=True)
class _PreparedFile:
    """A local file with the edges of a bin, for one direction of the edges."""

    direction: int
    bin: int
    path: Path

    def read(self) -> BinColumns:
        """Return the columns of the file."""
        return bin_columns(self.path)


@dataclass(frozen=True, slots=True)
class _PreparedBins:
    """The bins of a prepared load. The store numbers the edge labels of the bins in order of occurrence."""

    prepared: Prepared
    shards: int

    @property
    def pieces(self) -> int:
        """The number of bins per shard."""
        return self.prepared.pieces

    @property
    def labels(self) -> tuple[Ids, Ids]:
        """Two empty columns, because no labels are numbered in advance."""
        none = np.empty(0, np.uint64)
        return none, none

    def files(self, shard: int | None = None) -> Iterator[_PreparedFile]:
        """Return all bins. `shard` must be None."""
        assert shard is None
        return (_PreparedFile(*edges) for edges in self.prepared.edges)


class BulkIntake:
    """The engine's interface for bulk loads. While a BulkIntake exists, the dictionary retains all terms that the
    dictionary contained when the BulkIntake was created.
    """

    def __init__(self, core: EngineCore, writing: AbstractContextManager[object]) -> None:
        self._core = core
        self._writing = writing
        self._lease = core.dictionary.lease()

    @property
    def shards(self) -> int:
        """The stored graph's number of shards."""
        return self._core.store.shards

    @property
    def last_load(self) -> str:
        """The name of the last load that was stored, or an empty string if no load was stored."""
        return self._core.last_load

    def known_terms(self, file: Path) -> KnownTerms:
        """Write the dictionary's terms to the Parquet file `file`, and return a description of the dictionary."""
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
        """Store a prepared load as one snapshot. `known` describes the dictionary for which the load was prepared.

        DataError if the dictionary has changed after `known_terms` has described the dictionary, or if the files do not
        belong to a load. LimitError if the store is full. After a DataError, no triple is stored.
        """
        began, core = time.perf_counter(), self._core
        with self._writing:
            triples, terms = core.store.edge_count(), core.dictionary.size()
            if core.dictionary.blank_count() != known.blanks:
                raise DataError("the engine has new blank nodes since the load began: repeat the load")
            core.dictionary.reserve_blanks(prepared.blanks)
            ids = [self._adopt(file) for file in prepared.dictionary]
            for _ in core.store.load(_PreparedBins(prepared, self.shards), 0, 0):
                pass  # local files are never temporarily unavailable
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
