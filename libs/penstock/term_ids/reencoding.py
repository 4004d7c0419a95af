"""Conversion of columns of local ids to columns of global ids. Local ids are assigned during parsing or evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.rdf.id_layout import PAYLOAD, TAG_BLANK, TAG_SHIFT
from penstock.rdf.terms import term_fits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from penstock.core._native import Ids, TermTuple
    from penstock.term_ids.cluster_terms import TermService

_REQUEST = 50_000  # terms per request; the service limits a request
_INLINE_FROM = np.uint64(3)  # ids with this tag or a higher one are inline (native/src/rdf/term.hpp)


def to_cluster(
    dictionary: native.Dictionary,
    columns: Sequence[Ids],
    service: TermService,
    own_blanks: int = 0,
    *,
    transient: bool = False,
) -> list[Ids]:
    """Return columns of global ids for columns of ids of `dictionary`. Requests each distinct term only once. Blank
    nodes become new nodes. For errors, see `TermService`.

    `transient`: whether the columns can contain transient terms, for example because they come from a window. The
    transient terms of the columns become permanent (ADR 50).

    `own_blanks`: a bound on the numbers of blank nodes. Blank nodes with lower numbers are already global. In a partial
    dictionary, an id of an IRI or literal is already global, unless the id is private.
    """
    distinct, places = _distinct(columns)
    requested = _local(dictionary, distinct, own_blanks)
    if transient:
        requested |= dictionary.removable(distinct).astype(np.bool_)
    mapped = distinct.copy()
    mapped[requested] = _in_parts(service.encode, _terms(dictionary, distinct[requested]))
    return np.split(mapped[places], np.cumsum([len(column) for column in columns])[:-1])


def to_stored(
    dictionary: native.Dictionary, columns: Sequence[Ids], service: TermService, own_blanks: int = 0
) -> list[Ids]:
    """Return columns of global ids for the rows in which all terms are in the cluster's dictionary. The result omits
    the other rows, because the stored graph cannot contain these rows. Assigns no ids. For errors, see `TermService`.
    `own_blanks`: as for `to_cluster`.
    """
    distinct, places = _distinct(columns)
    requested = _local(dictionary, distinct, own_blanks)
    mapped, known = distinct.copy(), ~requested
    asked = np.flatnonzero(requested & ((distinct >> TAG_SHIFT) != TAG_BLANK))  # new blank nodes are stored nowhere
    terms = _terms(dictionary, distinct[asked])
    asked = asked[[term_fits(term) for term in terms]]
    mapped[asked] = _in_parts(service.find, [term for term in terms if term_fits(term)])
    known[asked] = mapped[asked] != 0
    rows = known[places].reshape(len(columns), -1).all(axis=0)
    return [column[rows] for column in mapped[places].reshape(len(columns), -1)]


def _distinct(columns: Sequence[Ids]) -> tuple[Ids, NDArray[np.intp]]:
    every = np.concatenate(columns) if columns else np.empty(0, np.uint64)
    return np.unique(every, return_inverse=True)


def _local(dictionary: native.Dictionary, ids: Ids, own_blanks: int) -> NDArray[np.bool_]:
    """Return a mask of the ids that are not global."""
    local: NDArray[np.bool_] = ((ids >> TAG_SHIFT) < _INLINE_FROM) & (ids != 0)
    local &= ((ids >> TAG_SHIFT) != TAG_BLANK) | ((ids & PAYLOAD) >= np.uint64(own_blanks))
    if dictionary.partial:
        local &= ((ids >> TAG_SHIFT) == TAG_BLANK) | ((ids & PAYLOAD) >= np.uint64(native.PRIVATE_SLOTS))
    return local


def _terms(dictionary: native.Dictionary, ids: Ids) -> list[TermTuple]:
    return [term for term in native.LocalTerms(dictionary).decode(ids) if term is not None]


def _in_parts(ask: Callable[[Sequence[TermTuple]], Ids], terms: Sequence[TermTuple]) -> Ids:
    parts = [ask(terms[first : first + _REQUEST]) for first in range(0, len(terms), _REQUEST)]
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)
