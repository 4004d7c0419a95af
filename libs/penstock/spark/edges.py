"""The stage `edges`, in Spark tasks. The stage translates statements to ids, assigns each edge to the bins of its two
ends, and sorts the bins.

A bin is a part of a shard (`native.bins`) that fits into a task's memory. The file of a bin has one row per edge end,
without duplicates. The rows are sorted by (graph, predicate), vertex and value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.core import _native as native
from penstock.core import arrow as co
from penstock.rdf.id_layout import PAYLOAD, TAG_BLANK, TAG_IRI, TAG_LITERAL, TAG_SHIFT
from penstock.spark.numbering import ids_of_codes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.core._native import Ids

DEALT = pa.schema(
    [("place", pa.int32()), ("g", pa.binary()), ("p", pa.binary()), ("vertex", pa.binary()), ("value", pa.binary())]
)
DEALT_DDL = "place int, g binary, p binary, vertex binary, value binary"
SORTED = pa.schema(
    [
        ("direction", pa.int32()),  # 0: the vertex is the subject, 1: it is the object
        ("bin", pa.int32()),
        ("graph", pa.int64()),
        ("predicate", pa.int64()),
        ("vertex", pa.int64()),
        ("value", pa.int64()),
    ]
)
SORTED_DDL = "direction int, bin int, graph bigint, predicate bigint, vertex bigint, value bigint"

_DEAL_ROWS = 1 << 18
_ROWS_PER_BATCH = 65_536


@dataclass(frozen=True, slots=True)
class DealSettings:
    """Settings of `deal`. `pieces`: number of bins per shard. `first_entries`, `first_blanks`: one number per task of
    the stage `terms`, see `ids_of_codes`.
    """

    shards: int
    pieces: int
    first_entries: Ids
    first_blanks: Ids

    @property
    def bins(self) -> int:
        """Number of bins per direction."""
        return self.shards * self.pieces


def deal(settings: DealSettings, batches: Iterable[Any]) -> Iterator[Any]:
    """Translate the statements of parts to packed edges.

    There are two kinds of input rows. A row (part, slots, codes) has the codes of terms of a part. A row (part, s, p,
    o, g) has statements of the part in local ids. In each part, the rows with codes come first. The first column of the
    output is `direction * settings.bins + bin`.
    """
    waiting: list[tuple[Ids, ...]] = []
    part, table = None, _Table()
    for batch in batches:
        parts = batch.column("part").to_pylist()
        slots, codes = batch.column("slots"), batch.column("codes")
        terms = [batch.column(name) for name in ("s", "p", "o", "g")]
        for row, of_part in enumerate(parts):
            if of_part != part:
                part, table = of_part, _Table()
            if slots[row].is_valid:
                ids = ids_of_codes(co.unpacked(codes, row), settings.first_entries, settings.first_blanks)
                table.learn(co.unpacked(slots, row), ids)
                continue
            waiting.append(tuple(table.translate(co.unpacked(column, row)) for column in terms))
            if sum(len(columns[0]) for columns in waiting) >= _DEAL_ROWS:
                yield from _dealt(settings, waiting)
                waiting = []
    if waiting:
        yield from _dealt(settings, waiting)


class _Table:
    """Maps the local ids of a part to ids of the target's dictionary."""

    def __init__(self) -> None:
        self._entries = np.zeros(0, np.uint64)
        self._blanks = np.zeros(0, np.uint64)

    def learn(self, local: Ids, ids: Ids) -> None:
        blank = (local >> TAG_SHIFT) == TAG_BLANK
        self._entries = _filled(self._entries, local[~blank] & PAYLOAD, ids[~blank])
        self._blanks = _filled(self._blanks, local[blank] & PAYLOAD, ids[blank])

    def translate(self, local: Ids) -> Ids:
        """Translate local ids. Inline ids and 0 stay unchanged."""
        tag = local >> TAG_SHIFT
        ids = local.copy()
        entry = ((tag == TAG_IRI) | (tag == TAG_LITERAL)) & (local != 0)
        ids[entry] = self._entries[local[entry] & PAYLOAD]
        blank = tag == TAG_BLANK
        ids[blank] = self._blanks[local[blank] & PAYLOAD]
        return ids


def _filled(table: Ids, places: Ids, values: Ids) -> Ids:
    if len(places) == 0:
        return table
    size = int(places.max()) + 1
    if size > len(table):
        table = np.concatenate([table, np.zeros(size - len(table), np.uint64)])
    table[places] = values
    return table


def _dealt(settings: DealSettings, parts: list[tuple[Ids, ...]]) -> Iterator[Any]:
    s, p, o, g = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    for direction, vertex, value in ((0, s, o), (1, o, s)):
        bins = native.bins(vertex, settings.shards, settings.pieces)
        order = np.argsort(bins, kind="stable") if settings.bins > 1 else np.arange(len(bins))
        ordered = bins[order]
        for first, end in co.runs(ordered):
            chosen = order[first:end]
            place = direction * settings.bins + int(ordered[first])
            cells = [co.packed(column[chosen]) for column in (g, p, vertex, value)]
            yield pa.RecordBatch.from_arrays(
                [pa.array([cell], field.type) for cell, field in zip([place, *cells], DEALT, strict=True)], schema=DEALT
            )


def sort_bins(bins: int, batches: Iterable[Any]) -> Iterator[Any]:
    """Sort the edges of one bin in one direction, and yield their columns. A task receives only the edges of one bin
    and direction. Its output is therefore one file.
    """
    cells: list[list[Ids]] = [[], [], [], []]
    place = -1
    for batch in batches:
        for row in range(batch.num_rows):
            assert place in {-1, batch.column(0)[row].as_py()}, "a task has one place"
            place = batch.column(0)[row].as_py()
            for part, name in zip(cells, ("g", "p", "vertex", "value"), strict=True):
                part.append(co.unpacked(batch.column(name), row).copy())
    if place < 0:
        return
    columns = native.sort_edges(*(np.concatenate(part) for part in cells))
    cells.clear()
    direction, number = divmod(place, bins)
    for first in range(0, len(columns[0]), _ROWS_PER_BATCH):
        part = [co.longs(column[first : first + _ROWS_PER_BATCH]) for column in columns]
        same = [pa.array(np.full(len(part[0]), value, np.int32)) for value in (direction, number)]
        yield pa.RecordBatch.from_arrays([*same, *part], schema=SORTED)
