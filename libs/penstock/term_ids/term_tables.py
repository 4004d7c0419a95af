"""The format of the dictionary service's requests and responses: Arrow tables of terms and ids, and the names of
requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.core._native import TermTuple

TERMS = pa.schema([("kind", pa.uint8()), ("lexical", pa.utf8()), ("datatype", pa.utf8()), ("lang", pa.utf8())])
IDS = pa.schema([("id", pa.uint64())])
MARKED = TERMS.append(pa.field("transient", pa.uint8()))
"""Columns of terms with a flag. The flag is 1 if the dictionary can remove the term (ADR 50)."""
MAX_TERMS = 100_000
"""Maximum number of terms per request."""
ENCODE, FIND, DECODE, MARK = "encode", "find", "decode", "mark"
TRANSIENT, FORGET = "transient ", "forget "
"""Prefixes of the names of requests for a generation, see `FlightTerms.encode_transient` and `FlightTerms.forget`."""


def terms_table(terms: Sequence[TermTuple]) -> pa.Table:
    """Return a table with one row per term and the columns of TERMS."""
    columns = list(zip(*terms, strict=True)) or [(), (), (), ()]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, TERMS, strict=True)], schema=TERMS)


def table_terms(table: pa.Table) -> list[TermTuple]:
    """Return one term for each row of a table. The table's columns are those of the schema TERMS."""
    return list(zip(*(table.column(name).to_pylist() for name in TERMS.names), strict=True))
