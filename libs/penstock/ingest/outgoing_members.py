"""The members of a cluster's query set as records of the parameters topic (docs/kafka.md)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.engine.sets.cells import read_cells
from penstock.engine.sets.tables import as_table
from penstock.errors import DataError
from penstock.log import Record
from penstock.rdf.terms import IRI, LITERAL, XSD_STRING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from penstock.engine.sets.cells import Cells

_MAX_BYTES = 1 << 30


@dataclass(frozen=True)
class MemberRecords:
    """Conversion of rows to records. `topic`: the parameters topic of the set. `parameters`: the names of the set's
    parameters. `key`: the names of the columns that identify a member.
    """

    topic: str
    parameters: tuple[str, ...]
    key: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The column names of a member: the parameters, and then the names in `key` that are not parameters."""
        return tuple(dict.fromkeys((*self.parameters, *self.key)))

    def added(self, rows: Any) -> Iterator[Record]:
        """Return the records that add members, or replace members with the same key. `rows`: as for
        `penstock.QuerySet.add`. DataError if a column or value is missing or invalid, possibly after some records.
        """
        table = as_table(rows, self.columns)
        values = zip(self._keys(table), _values(table, self.parameters), strict=True)
        return (Record(self.topic, json.dumps(value, ensure_ascii=False).encode(), key) for key, value in values)

    def removed(self, keys: Any) -> Iterator[Record]:
        """Return the records that remove the members with these keys. `keys`: rows with the columns of the attribute
        `key`. DataError as for `added`.
        """
        return (Record(self.topic, None, key) for key in self._keys(as_table(keys, self.key)))

    def _keys(self, table: pa.Table) -> Iterator[bytes]:
        """Yield the key of each record. The key is the text of the only column, or a JSON array with the texts of all
        columns.
        """
        columns = [_cells(table, name).texts[0].to_pylist() for name in self.key]
        for texts in zip(*columns, strict=True):
            yield (texts[0] if len(texts) == 1 else json.dumps(texts, ensure_ascii=False)).encode()


def _cells(table: pa.Table, name: str) -> Cells:
    cells = read_cells(table.column(name), LITERAL, _MAX_BYTES)
    for row, fault in sorted(cells.faults.items()):
        raise DataError(f"row {row + 1}: {name} {fault}")
    return cells


def _values(table: pa.Table, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    columns = [_column(_cells(table, name)) for name in names]
    for values in zip(*columns, strict=True) if columns else ():
        yield dict(zip(names, values, strict=True))


def _column(cells: Cells) -> Iterator[Any]:
    """Yield the cells of a column as JSON values. Texts are strings, and RDF terms have the form of SPARQL Results
    JSON.
    """
    texts = (column.to_pylist() for column in cells.texts)
    for plain, kind, lexical, datatype, lang in zip(cells.plain.tolist(), cells.kinds.tolist(), *texts, strict=True):
        if plain:
            yield lexical
        elif kind == IRI:
            yield {"type": "uri", "value": lexical}
        elif cells.type == "int64":
            yield int(lexical)
        else:
            named = {"xml:lang": lang} if lang else {} if datatype == XSD_STRING else {"datatype": datatype}
            yield {"type": "literal", "value": lexical, **named}
