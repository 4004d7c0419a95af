"""Columns of term ids as Arrow arrays, without a Python object for each term."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.core import _native as native
from penstock.core.arrow import strings
from penstock.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from penstock.core._native import EarlierColumn, Ids, TermArrays, TermTexts, Texts

ARROW_TERM = pa.struct(
    [("type", pa.string()), ("value", pa.string()), ("datatype", pa.string()), ("lang", pa.string())]
)
KINDS = ("uri", "bnode", "literal")
"""The values of `type`, in the order of the term kinds: the first value is for kind 1."""


def term_arrays(
    ids: Ids, terms: TermTexts, members: Ids | None = None, earlier: EarlierColumn | None = None
) -> list[TermArrays]:
    """Return a column of terms as Arrow arrays. There are several arrays if one array cannot hold the text of all
    terms. `members` and `earlier`: see `native.term_arrays`.
    """
    try:
        return [native.term_arrays(terms, ids, members, earlier)]
    except LimitError:
        if len(ids) <= 1:
            raise
        half = len(ids) // 2
        return [*term_arrays(ids[:half], terms), *term_arrays(ids[half:], terms)]


def term_column(
    ids: Ids, terms: TermTexts, read: Callable[[Ids, TermTexts], list[TermArrays]] = term_arrays
) -> pa.ChunkedArray:
    """Return a column of terms as struct(type, value, datatype, lang). The id 0 (unbound) becomes null."""
    return pa.chunked_array([_terms(*arrays) for arrays in read(ids, terms)], ARROW_TERM)


def lexical_column(
    ids: Ids, terms: TermTexts, read: Callable[[Ids, TermTexts], list[TermArrays]] = term_arrays
) -> pa.ChunkedArray:
    """Return the lexical forms of a column of terms. The column must have no unbound term."""
    return pa.chunked_array([strings(lexicals) for _, lexicals, _, _, _ in read(ids, terms)], pa.string())


def _terms(
    kinds: NDArray[np.uint8], lexicals: Texts, datatypes: NDArray[np.int32], langs: NDArray[np.int32], names: list[str]
) -> pa.Array:
    count, unbound = len(kinds), kinds == 0
    if count and kinds[0] and (kinds == kinds[0]).all():
        types = pa.repeat(KINDS[kinds[0] - 1], count)
    else:
        types = _named(np.where(unbound, -1, kinds.astype(np.int32) - 1), list(KINDS), count)
    columns = [types, strings(lexicals), _named(datatypes, names, count), _named(langs, names, count)]
    mask = pa.array(unbound) if unbound.any() else None
    return pa.StructArray.from_arrays(columns, fields=list(ARROW_TERM), mask=mask)


def _named(places: NDArray[np.int32], names: list[str], count: int) -> pa.Array:
    """Return `names[place]` for each position in `places`, and null for the position -1. If `places` is empty, return
    `count` nulls.
    """
    if not len(places) or places.max() < 0:
        return pa.nulls(count, pa.string())
    absent = places < 0
    indices = pa.array(places, mask=absent) if absent.any() else pa.array(places)
    return pa.array(names, pa.string()).take(indices)
