"""Conversion of an adaptor's local term ids to global ids, with a cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from penstock.core import _native as native
from penstock.errors import DataError
from penstock.rdf.id_layout import PAYLOAD, TAG_SHIFT
from penstock.rdf.terms import check_term_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.core._native import Ids, TermTuple

# tags (native/src/rdf/term.hpp); ids with higher tags are inline, and thus equal in all processes
_IRI, _BLANK, _LITERAL = 0, 1, 2
MAX_TERMS = 1_000_000
"""Maximum number of cached terms. A full cache is cleared."""
MAX_BYTES = 256 << 20
"""Maximum size of cached terms in bytes."""
_REQUEST = 50_000  # terms per request
_LOOKED_AT = 16  # terms decoded at once; each can be as large as an event
_NO_TERM = (0, "", "", "")


class TermEncoder(Protocol):
    """The part of the dictionary service that adaptors and stores use."""

    def encode(self, terms: Sequence[TermTuple]) -> Ids:
        """Return durable ids of terms. A blank node label denotes one new node per call. The same label in another call
        denotes another node. TransientError if the service is unavailable; retry.
        """
        ...


class OutgoingTerms:
    """Converts local ids to global ids, with a cache. The adaptor parses events into `dictionary`, which assigns the
    local ids.
    """

    def __init__(self, service: TermEncoder, max_terms: int = MAX_TERMS) -> None:
        self._service = service
        self._max_terms = max_terms
        self._begin()

    def _begin(self) -> None:
        self.dictionary = native.Dictionary()
        self._decoder = native.LocalTerms(self.dictionary)
        self._known = np.zeros(1024, np.uint64)  # by local slot; 0 = not requested yet

    def trim(self) -> bool:
        """Clear the cache if it is full. This invalidates all local ids. Returns whether the cache was cleared."""
        full = self.dictionary.size() > self._max_terms or self.dictionary.bytes() > MAX_BYTES
        if full:
            self._begin()
        return full

    def cluster_ids(self, ids: Ids) -> Ids:
        """Return the global ids of terms. `ids`: the local ids of the terms. Blank nodes become new nodes in each call.
        TransientError if the service is unavailable; retry.
        """
        tags = ids >> TAG_SHIFT
        entries = ((tags == _IRI) & (ids != 0)) | (tags == _LITERAL)
        blanks = tags == _BLANK
        slots = (ids[entries] & PAYLOAD).astype(np.int64)
        self._reach(int(slots.max(initial=0)))
        unknown = np.unique(ids[entries][self._known[slots] == 0])
        nodes, places = np.unique(ids[blanks], return_inverse=True)
        given = self._ask(np.concatenate([unknown, nodes]))
        self._known[(unknown & PAYLOAD).astype(np.int64)] = given[: len(unknown)]
        out = ids.copy()
        out[entries] = self._known[slots]
        out[blanks] = given[len(unknown) :][places]
        return out

    def oversized(self, ids: Ids) -> str | None:
        """Return the reason why the dictionary service would reject one of the terms as too large. None if it would
        accept all terms. `ids`: the local ids of the terms.
        """
        for first in range(0, len(ids), _LOOKED_AT):
            for term in self._decoder.decode(ids[first : first + _LOOKED_AT]):
                try:
                    check_term_size(term or _NO_TERM)
                except DataError as error:
                    return str(error)
        return None

    def _ask(self, ids: Ids) -> Ids:
        parts = [np.empty(0, np.uint64)]
        for first in range(0, len(ids), _REQUEST):
            terms = self._decoder.decode(ids[first : first + _REQUEST])
            parts.append(self._service.encode([term for term in terms if term is not None]))
        return np.concatenate(parts)

    def _reach(self, slot: int) -> None:
        if slot >= len(self._known):
            grown = np.zeros(max(slot + 1, 2 * len(self._known)), np.uint64)
            grown[: len(self._known)] = self._known
            self._known = grown
