"""Division of large batches into several records, and the reverse.

A batch has the same number of records for every shard. A writer commits all records of a batch in one transaction. A
reader joins the records before it applies the batch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.wire.records import Flags, Ids, Numbers, ShardBatch

PART_TUPLES = 250_000
"""Maximum number of tuples in one record of a batch. This many tuples take 9 MB, well below the maximum size of a
record.
"""
_COLUMNS = ("positions", "times", "subjects", "predicates", "objects")


def split(batches: Sequence[ShardBatch], most: int | None = None) -> list[list[ShardBatch]]:
    """Divide a batch into records. `batches`: for each shard, one record with all tuples of the batch in this shard.
    Return the list of records of each shard. `most`: maximum number of tuples per record. None: PART_TUPLES.
    """
    most = PART_TUPLES if most is None else most
    parts = max(1, *(-(-len(batch.times) // most) for batch in batches))
    if parts == 1:
        return [[batch] for batch in batches]
    return [[_part(batch, part, parts, most) for part in range(parts)] for batch in batches]


def in_order(records: Sequence[ShardBatch]) -> tuple[Numbers, Ids, Ids, Ids, Flags | None]:
    """Return the tuples of a batch in order of arrival. `records`: the records of all shards. The result has times,
    subjects, predicates, objects, and the flags of removed tuples. The flags are None if no tuple is removed.
    """
    order = np.argsort(np.concatenate([record.positions for record in records]), kind="stable")
    times, s, p, o = (np.concatenate([getattr(record, name) for record in records])[order] for name in _COLUMNS[1:])
    removed = _removed(records)
    return times, s, p, o, removed[order] if len(removed) else None


def _removed(records: Sequence[ShardBatch]) -> Flags:
    """Return the flags of all tuples of several records. The result is empty if no tuple is removed."""
    if not any(len(record.removed) for record in records):
        return np.empty(0, np.uint8)
    flags = [r.removed if len(r.removed) else np.zeros(len(r.times), np.uint8) for r in records]
    return np.concatenate(flags)


def _part(batch: ShardBatch, part: int, parts: int, most: int) -> ShardBatch:
    rows = slice(part * most, (part + 1) * most)
    columns: dict[str, Any] = {name: getattr(batch, name)[rows] for name in _COLUMNS}
    return replace(batch, part=part, parts=parts, removed=batch.removed[rows], **columns)


def joined(records: Mapping[int, ShardBatch]) -> ShardBatch:
    """Return one record that contains the tuples of several records. `records`: the records by part number."""
    if len(records) == 1:
        return records[0]
    ordered = [records[part] for part in range(len(records))]
    columns: dict[str, Any] = {name: np.concatenate([getattr(record, name) for record in ordered]) for name in _COLUMNS}
    return replace(ordered[0], part=0, parts=1, removed=_removed(ordered), **columns)
