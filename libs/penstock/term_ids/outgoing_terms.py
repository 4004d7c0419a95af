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

    from numpy.typing import NDArray

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
    """The methods of the dictionary service that adaptors and stores use."""

    def encode(self, terms: Sequence[TermTuple]) -> Ids:
        """Return durable ids of terms. A blank node label denotes one new node per call. The same label in another call
        denotes another node. TransientError if the service is unavailable. The caller can then retry.
        """
        ...


class TransientEncoder(Protocol):
    """The interface of the dictionary service for requests of transient terms (ADR 50)."""

    def encode_transient(self, terms: Sequence[TermTuple], generation: int) -> Ids:
        """Return the ids of IRIs and literals. New terms are transient: the dictionary can remove a transient term that
        is not requested in a later generation. The ids are valid in records whose filter version belongs to
        `generation`.
        """
        ...


class OutgoingTerms:
    """Converts local ids to global ids, with a cache. The adaptor parses events into `dictionary`, which assigns the
    local ids.

    `transient`: the service that assigns ids to transient terms. None: all terms are permanent.
    """

    def __init__(
        self, service: TermEncoder, max_terms: int = MAX_TERMS, transient: TransientEncoder | None = None
    ) -> None:
        self._service = service
        self._transient = transient
        self._max_terms = max_terms
        self._generation = 0
        self._begin()

    def _begin(self) -> None:
        self.dictionary = native.Dictionary()
        self._decoder = native.LocalTerms(self.dictionary)
        self._known = np.zeros(1024, np.uint64)  # by local slot; 0 = not requested yet
        self._passing = np.zeros(1024, np.bool_)  # by local slot: whether the id is valid in this generation only

    def trim(self) -> bool:
        """Clear the cache if it is full. This invalidates all local ids. Returns whether the cache was cleared."""
        full = self.dictionary.size() > self._max_terms or self.dictionary.bytes() > MAX_BYTES
        if full:
            self._begin()
        return full

    def begin_generation(self, generation: int) -> None:
        """Begin a generation. Before the next use of a transient term, the term is requested again. No effect if the
        generation has already begun.
        """
        if generation > self._generation:
            self._generation = generation
            self._known[self._passing] = 0
            self._passing[:] = False

    def cluster_ids(self, ids: Ids, passing: NDArray[np.bool_] | None = None) -> Ids:
        """Return the global ids of terms. `ids`: the local ids of the terms. `passing`: a mask that is true for ids
        whose terms can be transient. Blank nodes become new nodes in each call. TransientError if the service is
        unavailable. The caller can then retry.
        """
        tags = ids >> TAG_SHIFT
        entries = ((tags == _IRI) & (ids != 0)) | (tags == _LITERAL)
        blanks = tags == _BLANK
        slots = (ids[entries] & PAYLOAD).astype(np.int64)
        self._reach(int(slots.max(initial=0)))
        if passing is not None and self._transient is not None:
            self._request_passing(self._transient, ids[entries], slots, passing[entries])
            permanent = ~passing[entries]
            unknown = np.unique(ids[entries][permanent & ((self._known[slots] == 0) | self._passing[slots])])
        else:
            unknown = np.unique(ids[entries][(self._known[slots] == 0) | self._passing[slots]])
        nodes, places = np.unique(ids[blanks], return_inverse=True)
        given = self._ask(np.concatenate([unknown, nodes]))
        asked = (unknown & PAYLOAD).astype(np.int64)
        self._known[asked], self._passing[asked] = given[: len(unknown)], False
        out = ids.copy()
        out[entries] = self._known[slots]
        out[blanks] = given[len(unknown) :][places]
        return out

    def _request_passing(
        self, service: TransientEncoder, ids: Ids, slots: NDArray[np.int64], passing: NDArray[np.bool_]
    ) -> None:
        """Request the ids of unknown terms, if none of their occurrences needs a permanent term."""
        permanent = np.unique(slots[~passing])
        asked = np.unique(ids[passing & (self._known[slots] == 0) & ~np.isin(slots, permanent)])
        for first in range(0, len(asked), _REQUEST):
            part = asked[first : first + _REQUEST]
            terms = [term for term in self._decoder.decode(part) if term is not None]
            places = (part & PAYLOAD).astype(np.int64)
            self._known[places] = service.encode_transient(terms, self._generation)
            self._passing[places] = True

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
            passing = np.zeros(len(grown), np.bool_)
            passing[: len(self._passing)] = self._passing
            self._passing = passing
