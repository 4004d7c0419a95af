"""Conversion of columns from local ids, assigned during parsing, to global ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.rdf.id_layout import PAYLOAD, TAG_BLANK, TAG_SHIFT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.core._native import Ids
    from penstock.term_ids.cluster_terms import TermService

_REQUEST = 50_000  # terms per request; the service limits a request
_INLINE_FROM = np.uint64(3)  # ids with this tag or a higher one are inline (native/src/rdf/term.hpp)


def to_cluster(
    dictionary: native.Dictionary, columns: Sequence[Ids], service: TermService, own_blanks: int = 0
) -> list[Ids]:
    """Return columns of global ids for columns of ids of `dictionary`. Requests each distinct term once; blank nodes
    become new nodes. Errors: see `TermService.encode`.

    `own_blanks`: blank nodes with lower numbers are already global. In a partial dictionary, ids of IRIs and literals
    that are not private are already global.
    """
    every = np.concatenate(columns) if columns else np.empty(0, np.uint64)
    distinct, places = np.unique(every, return_inverse=True)
    requested = ((distinct >> TAG_SHIFT) < _INLINE_FROM) & (distinct != 0)
    requested &= ((distinct >> TAG_SHIFT) != TAG_BLANK) | ((distinct & PAYLOAD) >= np.uint64(own_blanks))
    if dictionary.partial:
        requested &= ((distinct >> TAG_SHIFT) == TAG_BLANK) | ((distinct & PAYLOAD) >= np.uint64(native.PRIVATE_SLOTS))
    terms = [term for term in native.LocalTerms(dictionary).decode(distinct[requested]) if term is not None]
    mapped = distinct.copy()
    if terms:
        parts = (terms[first : first + _REQUEST] for first in range(0, len(terms), _REQUEST))
        mapped[requested] = np.concatenate([service.encode(part) for part in parts])
    return np.split(mapped[places], np.cumsum([len(column) for column in columns])[:-1])
