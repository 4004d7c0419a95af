"""`GraphChange`: the quads that an update removes from the stored graph, and the quads that the update adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from penstock.engine.intake.graph_loading import Document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from penstock.engine.engine_core import EngineCore
    from penstock.engine.stored_graph import Columns

_NONE = np.zeros(0, np.uint64)
NO_QUADS: Columns = (_NONE, _NONE, _NONE, _NONE)
"""Columns s, p, o and g without rows."""


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """The effect of an update: the number of added triples, and the number of removed triples. A triple that the update
    removes and adds again is not counted.
    """

    added: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True)
class GraphChange:
    """Quads to remove, and quads to add afterwards. If a quad is both removed and added, the stored graph contains the
    quad after the change. The columns s, p, o and g contain ids. For the default graph, g is 0.
    """

    removed: Columns = NO_QUADS
    added: Columns = NO_QUADS

    def __bool__(self) -> bool:
        return bool(len(self.removed[0]) or len(self.added[0]))

    @classmethod
    def joined(cls, changes: Sequence[Self]) -> Self:
        """Return one change with the same effect as `changes`, applied in order."""
        if len(changes) == 1:
            return changes[0]
        removed = joined([change.removed for change in changes])
        if not len(removed[0]):
            return cls(removed, joined([change.added for change in changes]))
        added = NO_QUADS
        for change in changes:
            added = joined([_without(added, change.removed), change.added])
        return cls(removed, added)

    @classmethod
    def of_nquads(cls, core: EngineCore, removed: bytes, added: bytes) -> Self:
        """Return a change from N-Quads. DataError if the N-Quads are invalid."""
        documents = [Document.read(core, data, None, "nquads", None) for data in (removed, added)]
        gone, new = (document.columns for document in documents)
        return cls(gone, new)

    def commit(self, core: EngineCore) -> UpdateReport:
        """Commit the change as one snapshot. The caller must hold the engine's lock."""
        if not self:
            return UpdateReport()
        for column in self.added:
            core.dictionary.keep(column)
        if len(self.removed[0]):
            _, added, removed = core.store.change(self.removed, self.added)
            return UpdateReport(added, removed)
        before = core.store.edge_count()
        core.store.commit(*self.added)
        return UpdateReport(core.store.edge_count() - before)


def joined(parts: Sequence[Columns]) -> Columns:
    """Return the rows of several parts."""
    parts = [part for part in parts if len(part[0])]
    if len(parts) < 2:
        return parts[0] if parts else NO_QUADS
    s, p, o, g = (np.concatenate(column) for column in zip(*parts, strict=True))
    return s, p, o, g


def distinct(quads: Columns) -> Columns:
    """Return the distinct rows, in the order of their first occurrence."""
    if len(quads[0]) < 2:
        return quads
    order = np.lexsort(quads)  # stable: of equal rows, the first one comes first
    differs = np.ones(len(order), bool)
    differs[1:] = np.any([column[order[1:]] != column[order[:-1]] for column in quads], axis=0)
    first = np.sort(order[differs])
    s, p, o, g = (column[first] for column in quads)
    return s, p, o, g


def _without(quads: Columns, others: Columns) -> Columns:
    """Return the rows of `quads` that are not in `others`."""
    if not len(quads[0]) or not len(others[0]):
        return quads
    left = ~np.isin(_rows(quads), _rows(others))
    s, p, o, g = (column[left] for column in quads)
    return s, p, o, g


def _rows(quads: Columns) -> NDArray[np.void]:
    """Return each row as one value."""
    rows = np.empty(len(quads[0]), [(name, np.uint64) for name in "spog"])
    for name, column in zip("spog", quads, strict=True):
        rows[name] = column
    return rows
