"""Collects the parts of an insertion. An insertion consists of the quads that one snapshot removes and adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from penstock.errors import StorageError
from penstock.wire.records import ShardInsertion, ShardRemoval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.wire.records import Ids

    InsertionPart: TypeAlias = ShardInsertion | ShardRemoval
    Quads: TypeAlias = tuple[Ids, Ids, Ids, Ids]  # columns s, p, o and g


class InsertionParts:
    """The parts of the next insertion that were added so far."""

    def __init__(self) -> None:
        self._removed: list[Quads] = []
        self._added: list[Quads] = []

    def __len__(self) -> int:
        return len(self._removed) + len(self._added)

    def take(self, parts: Sequence[InsertionPart], last: int) -> tuple[Quads, Quads] | None:
        """Add one part of an insertion. `parts`: the records of this part, one per shard. `last`: the number of the
        last complete insertion. If the part is the last part, return the removed and the added quads of the insertion,
        and start the next insertion. Otherwise return None. StorageError if the part does not follow the previous part
        or the last insertion.
        """
        first = parts[0]
        if first.number != last + 1 or first.part != len(self):
            raise StorageError(f"the log goes from insertion {last} to {first.number}, part {first.part}")
        quads = _joined([(part.subjects, part.predicates, part.objects, part.graphs) for part in parts])
        (self._removed if isinstance(first, ShardRemoval) else self._added).append(quads)
        if len(self) < first.parts:
            return None
        whole = _joined(self._removed), _joined(self._added)
        self._removed, self._added = [], []
        return whole


def _joined(parts: Sequence[Quads]) -> Quads:
    if not parts:
        none = np.empty(0, np.uint64)
        return none, none, none, none
    s, p, o, g = (np.concatenate(column) for column in zip(*parts, strict=True))
    return s, p, o, g
