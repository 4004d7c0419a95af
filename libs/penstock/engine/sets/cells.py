"""Conversion of columns of Arrow values to terms, and of the values of keys back to Arrow. A cell that is neither an
IRI nor a literal has a fault. A row with such a cell is rejected.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core import _native as native
from penstock.core.arrow import texts_of
from penstock.engine.answers.arrow_terms import ARROW_TERM, KINDS, lexical_column, term_arrays, term_column
from penstock.engine.sets.tables import TEXT, as_table
from penstock.errors import DataError
from penstock.rdf.terms import BLANK, IRI, LITERAL, RDF_LANG_STRING, XSD_STRING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from penstock.core._native import Dictionary, Ids, TermArrays, TermTexts

_XSD = XSD_STRING.removesuffix("string")
_KEY_TYPES = {"string": pa.string(), "int64": pa.int64(), "double": pa.float64(), "bool": pa.bool_()}
_UNUSABLE = 0
_CODES = np.array([_UNUSABLE, IRI, BLANK, LITERAL, LITERAL], np.uint8)  # for no type, each of KINDS, TEXT


@dataclass(slots=True)
class Cells:
    """A column of cells. `texts` contains lexical forms, datatypes and languages. `type` is the type of a key column
    with these cells: "string", "int64", "double", "bool" or "term". `plain` is a mask of the cells that are text
    without a type. `faults` maps the number of a row to the reason why the row's cell cannot be used. For such a cell,
    the kind in `texts` has no meaning.
    """

    kinds: NDArray[np.uint8]
    texts: tuple[pa.Array, pa.Array, pa.Array]
    type: str
    plain: NDArray[np.bool_]
    faults: dict[int, str] = field(default_factory=dict)

    def intern(self, dictionary: Dictionary, rows: NDArray[np.bool_]) -> Ids:
        """Return the ids of the terms in the rows that the mask `rows` selects. These rows must have no fault."""
        kinds, texts = self.kinds, self.texts
        if not rows.all():
            mask = pa.array(rows)
            kinds, texts = kinds[rows], tuple(column.filter(mask) for column in texts)
        return native.intern_columns(dictionary, kinds, *map(texts_of, texts))


def read_cells(column: pa.ChunkedArray, text_kind: int, max_bytes: int) -> Cells:
    """Return the terms of a column. Text without a type denotes terms of the kind `text_kind` (IRI or LITERAL).
    DataError if the Arrow type is not supported, or if the column has more than 2 GiB of text.
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # the chunks do not fit into one array
        raise DataError("a column of members has more than 2 GiB of text")
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    cells = _of_struct(array, text_kind) if pa.types.is_struct(array.type) else _of_values(array, text_kind)
    for row in np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).tolist():
        cells.faults.setdefault(row, "has no value")
    size = pc.binary_length(cells.texts[0]).to_numpy()
    for row in np.flatnonzero(size > max_bytes).tolist():
        cells.faults.setdefault(row, f"has {size[row]} bytes (max_member_bytes is {max_bytes})")
    invalid = native.invalid_terms(cells.kinds, *map(texts_of, cells.texts))
    for row in np.flatnonzero(invalid).tolist():
        cells.faults.setdefault(row, _invalid(cells, row))
    return cells


def _invalid(cells: Cells, row: int) -> str:
    try:
        native.check_term(int(cells.kinds[row]), *(column[row].as_py() for column in cells.texts))
    except DataError as error:
        return f"is {error}"
    raise AssertionError


def _of_values(array: pa.Array, text_kind: int) -> Cells:
    """Return the terms of a column of strings, numbers, booleans, dates or instants."""
    kind, count = array.type, len(array)
    if pa.types.is_null(kind) or pa.types.is_string(kind) or _is_text(kind):
        lexicals = array.cast(pa.string()).fill_null("")
        datatype = "" if text_kind == IRI else XSD_STRING
        return Cells(
            np.full(count, text_kind, np.uint8), _texts(lexicals, datatype), "string", np.ones(count, np.bool_)
        )
    written = _written(array)
    if written is None:
        raise DataError(f"members cannot have the Arrow type {kind}: use strings, numbers, booleans, dates or terms")
    lexicals, datatype, name = written
    texts = _texts(lexicals.fill_null(""), _XSD + datatype)
    return Cells(np.full(count, LITERAL, np.uint8), texts, name, np.zeros(count, np.bool_))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _written(array: pa.Array) -> tuple[pa.Array, str, str] | None:
    """Return the lexical forms of values, the name of the values' datatype, and the type of a key column with such
    values (see `Cells.type`). The result is None if the Arrow type of the values is not supported.
    """
    kind = array.type
    if pa.types.is_integer(kind):
        return array.cast(pa.string()), "integer", "term" if pa.types.is_uint64(kind) else "int64"
    if pa.types.is_floating(kind):
        values = array.cast(pa.float64())
        lexicals = pc.replace_substring(values.cast(pa.string()), "inf", "INF")
        return pc.replace_substring(lexicals, "nan", "NaN"), "double", "double"
    if pa.types.is_boolean(kind):
        return array.cast(pa.string()), "boolean", "bool"
    if pa.types.is_decimal(kind):
        return array.cast(pa.string()), "decimal", "term"
    if pa.types.is_date(kind):
        return array.cast(pa.date32()).cast(pa.string()), "date", "term"
    if pa.types.is_timestamp(kind):
        zoned = pc.strftime(array.cast(pa.timestamp("us", kind.tz)), "%Y-%m-%dT%H:%M:%S")
        return (pc.binary_join_element_wise(zoned, "Z", "") if kind.tz == "UTC" else zoned), "dateTime", "term"
    return None


def _texts(lexicals: pa.Array, datatype: str) -> tuple[pa.Array, pa.Array, pa.Array]:
    count = len(lexicals)
    return lexicals, pa.repeat(pa.scalar(datatype), count), pa.repeat(pa.scalar(""), count)


def _of_struct(array: pa.Array, text_kind: int) -> Cells:
    """Return the terms of a column of terms (`ARROW_TERM`)."""
    names = {each.name for each in array.type}
    if not {"type", "value"} <= names:
        raise DataError(
            f"a column of terms has the fields {', '.join(each.name for each in ARROW_TERM)}, not {array.type}"
        )

    def values(name: str) -> pa.Array:
        found = pc.struct_field(array, name) if name in names else pa.nulls(len(array), pa.string())
        return found.cast(pa.string()).fill_null("")

    places = (
        pc.index_in(values("type"), value_set=pa.array([*KINDS, TEXT])).fill_null(-1).to_numpy(zero_copy_only=False)
    )
    kinds = _CODES[places + 1]
    plain = places == len(KINDS)
    kinds[plain] = text_kind
    langs, datatypes = values("lang"), values("datatype")
    default = pc.if_else(pc.equal(langs, ""), XSD_STRING, RDF_LANG_STRING)
    datatypes = pc.if_else(pc.equal(datatypes, ""), default, datatypes)
    is_literal = pa.array(kinds == LITERAL)
    lexicals = values("value")
    cells = Cells(
        kinds, (lexicals, pc.if_else(is_literal, datatypes, ""), pc.if_else(is_literal, langs, "")), "term", plain
    )
    for row in np.flatnonzero(kinds == BLANK).tolist():
        cells.faults[row] = "is a blank node, which is not a constant"
    for row in np.flatnonzero(kinds == _UNUSABLE).tolist():
        cells.faults[row] = "has no value" if not array[row].is_valid else f"is not a term: {lexicals[row]}"
    kinds[(kinds == BLANK) | (kinds == _UNUSABLE)] = LITERAL
    return cells


# ---- keys
def key_column(
    ids: Ids, terms: TermTexts, kind: str, read: Callable[[Ids, TermTexts], list[TermArrays]] = term_arrays
) -> pa.ChunkedArray:
    """Return the key values `ids` as an Arrow column. `kind`: the type of the key column (see `Cells.type`). `read`
    returns the arrays of the terms.
    """
    if kind not in _KEY_TYPES:
        return term_column(ids, terms, read)
    return lexical_column(ids, terms, read).cast(_KEY_TYPES[kind])


def key_ids(
    dictionary: Dictionary, types: Sequence[str], text_kinds: Sequence[int], key: object
) -> tuple[int, ...] | None:
    """Return the ids of a key's values. `key` is the value, or a tuple of several values. The result is None in two
    cases: `key` does not have the types of the key columns, or the dictionary does not contain one of the values. In
    both cases, no member has this key.
    """
    names = [str(i) for i in range(len(types))]
    try:
        table = as_table([key], names)
        found = []
        for column, kind, text_kind in zip(table.columns, types, text_kinds, strict=True):
            cells = read_cells(column, text_kind, 1 << 30)
            if cells.faults or not fits(cells, kind).all():
                return None
            found.append(dictionary.find(int(cells.kinds[0]), *(text[0].as_py() for text in cells.texts)))
    except DataError:
        return None
    return tuple(found) if all(found) else None


def fits(cells: Cells, kind: str) -> NDArray[np.bool_]:
    """Return a mask of the cells that can be values of a key column of the type `kind`. All cells fit the types "term"
    and "" (the type of a new column).
    """
    count = len(cells.kinds)
    if kind in ("", cells.type) or (kind == "term" and cells.type in _KEY_TYPES):
        return np.ones(count, np.bool_)
    if kind == "string" and cells.type == "term":
        return cells.plain
    return np.zeros(count, np.bool_)


def type_of(cells: Cells) -> str:
    """Return the type of a new key column with these cells."""
    return "string" if cells.type == "term" and bool(cells.plain.all()) else cells.type


def shown(value: Any) -> Any:
    """Return the value of a cell, in a form that JSON can represent."""
    return value if value is None or isinstance(value, (str, int, float, bool, dict)) else str(value)
