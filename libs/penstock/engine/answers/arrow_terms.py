"""Columns of term ids as Arrow arrays, without a Python object for each term."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from penstock.core import _native as native
from penstock.core.arrow import strings
from penstock.errors import LimitError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.core._native import Ids, TermTexts

ARROW_TERM = pa.struct(
    [("type", pa.string()), ("value", pa.string()), ("datatype", pa.string()), ("lang", pa.string())]
)
KINDS = ("uri", "bnode", "literal")
"""The values of `type`, in the order of the term kinds: the first value is for kind 1."""


def term_column(ids: Ids, terms: TermTexts) -> pa.ChunkedArray:
    """Return a column of terms as struct(type, value, datatype, lang). The id 0 (unbound) becomes null."""
    return pa.chunked_array(_chunks(ids, terms), ARROW_TERM)


def _chunks(ids: Ids, terms: TermTexts) -> list[pa.Array]:
    try:
        kinds, lexicals, datatypes, langs, names = native.term_arrays(terms, ids)
    except LimitError:  # more text than an array can have
        if len(ids) <= 1:
            raise
        half = len(ids) // 2
        return [*_chunks(ids[:half], terms), *_chunks(ids[half:], terms)]
    unbound = kinds == 0
    columns = [
        _named(np.where(unbound, -1, kinds.astype(np.int32) - 1), list(KINDS)),
        strings(lexicals),
        _named(datatypes, names),
        _named(langs, names),
    ]
    if not unbound.any():
        return [pa.StructArray.from_arrays(columns, fields=list(ARROW_TERM))]
    return [pa.StructArray.from_arrays(columns, fields=list(ARROW_TERM), mask=pa.array(unbound))]


def lexical_column(ids: Ids, terms: TermTexts) -> pa.ChunkedArray:
    """Return the lexical forms of a column of terms."""
    column = term_column(ids, terms)
    return pa.chunked_array([chunk.field("value") for chunk in column.chunks], pa.string())


def _named(places: NDArray[np.int32], names: list[str]) -> pa.Array:
    """Return `names[place]` for each position in `places`, and null for the position -1."""
    if not names or (len(places) and places.max() < 0):
        return pa.nulls(len(places), pa.string())
    absent = places < 0
    indices = pa.array(places, mask=absent) if absent.any() else pa.array(places)
    return pa.array(names, pa.string()).take(indices)
