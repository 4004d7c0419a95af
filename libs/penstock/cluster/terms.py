"""Term ids of the cluster and of this process.

The log carries ids of the dictionary service. A process that evaluates queries keeps the terms that it has met in a
dictionary of its own, whose ids its store, windows and plans use; a table by slot turns one into the other, a
column at a
time. Inline ids and blank nodes are the same everywhere. Nothing is forgotten here yet (ADR 0027).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from penstock.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from penstock.engine.answers import Ids
    from penstock.store import _native as native
    from penstock.store._native import TermTuple

_TAG_SHIFT, _PAYLOAD = np.uint64(60), np.uint64((1 << 60) - 1)
_IRI, _BLANK, _LITERAL = 0, 1, 2  # tags (native/src/rdf/term.hpp)
OWN_BLANKS = 1 << 48
"""Blank nodes that a process makes for itself are numbered from here; those of the cluster stay below."""
_BATCH = 8_192  # ids asked for at once


class TermService(Protocol):
    """The dictionary as its clients see it. Ids are durable before `encode` returns. TransientError: try again."""

    def encode(self, terms: Sequence[TermTuple]) -> Ids:
        """Return the ids of terms, made where they are new; blank nodes: one fresh node per label and call."""
        ...

    def decode(self, ids: Ids) -> list[TermTuple]:
        """Return the terms of IRIs' and literals' ids; DataError for an id that names nothing."""
        ...


class TermTable:
    """Ids of the cluster to ids of `dictionary`. `bytes` grows with the highest slot met: eight each."""

    def __init__(self, dictionary: native.Dictionary, service: TermService) -> None:
        self._dictionary = dictionary
        self.service = service
        self._own = np.zeros(1024, np.uint64)  # by the cluster's slot; 0 = not met
        dictionary.reserve_blanks(OWN_BLANKS)

    def local(self, ids: Ids) -> Ids:
        """Return the same terms' ids in this process. Asks the service for what was never met."""
        entries = _entries(ids)
        if not entries.any():
            return ids
        slots = (ids[entries] & _PAYLOAD).astype(np.int64)
        self._reach(int(slots.max()))
        own = self._own[slots]
        if not own.all():
            self._meet(np.unique(ids[entries][own == 0]))
            own = self._own[slots]
        out = ids.copy()
        out[entries] = own
        return out

    def _meet(self, unknown: Ids) -> None:
        for first in range(0, len(unknown), _BATCH):
            part = unknown[first : first + _BATCH]
            own = self._dictionary.intern_many(self.service.decode(part))
            self._dictionary.keep(own)
            self._own[(part & _PAYLOAD).astype(np.int64)] = own

    def _reach(self, slot: int) -> None:
        if slot >= len(self._own):
            grown = np.zeros(max(slot + 1, 2 * len(self._own)), np.uint64)
            grown[: len(self._own)] = self._own
            self._own = grown

    # ---- checkpoints
    def save(self) -> NDArray[np.uint64]:
        """Return the table, for `restore` beside the same dictionary."""
        used = np.flatnonzero(self._own)
        return self._own[: int(used[-1]) + 1 if len(used) else 0]

    def restore(self, saved: NDArray[np.uint64]) -> None:
        """Take over what `save` returned; StorageError where the dictionary does not have it."""
        self._own = np.zeros(max(1024, len(saved)), np.uint64)
        self._own[: len(saved)] = saved
        if not (_entries(saved) | (saved == 0)).all():
            raise StorageError("the saved table of terms names no terms")


class SameIds:
    """In place of a table where the cluster's ids are used as they are: store nodes look at no term."""

    @staticmethod
    def local(ids: Ids) -> Ids:
        """Return the ids."""
        return ids


def _entries(ids: Ids) -> NDArray[np.bool_]:
    """Which ids are slots of a dictionary."""
    tags = ids >> _TAG_SHIFT
    found: NDArray[np.bool_] = ((tags == _IRI) & (ids != 0)) | (tags == _LITERAL)
    return found
