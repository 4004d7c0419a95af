"""Query sets of a cluster, as objects of a client. Members are records of the parameters topic (docs/kafka.md)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from penstock.client.results import ClusterQuery
from penstock.engine.sets.cells import read_cells
from penstock.engine.sets.tables import as_table
from penstock.errors import DataError
from penstock.log import Record
from penstock.rdf.terms import IRI, LITERAL, XSD_STRING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from penstock.engine.sets.cells import Cells

_MAX_BYTES = 1 << 30
_AT_ONCE = 10_000  # records


class ClusterQuerySet(ClusterQuery):
    """A query set of a cluster. The set delivers the evaluations of the members that report. The property `member` of
    an evaluation is the key of its member. `columns`: the names of the parameters, and of the other columns of `key`.
    `key`: the names of the columns that identify a member.
    """

    def __init__(
        self,
        *given: Any,
        topic: str,
        parameters: tuple[str, ...],
        key: tuple[str, ...] | None,
        append: Callable[[Sequence[Record]], None],
    ) -> None:
        super().__init__(*given)
        self._topic, self._parameters, self._append = topic, parameters, append
        self.key = key or parameters
        self.columns = tuple(dict.fromkeys((*parameters, *self.key)))

    def add(self, rows: Any) -> int:
        """Add members, or replace members with the same key. Returns the number of rows. `rows`: as for
        `penstock.QuerySet.add`.

        When the call returns, the records are durable. A record takes effect when the query engine of the set reads the
        record. A row that cannot be a member then becomes a dead letter, and the engine removes the member with the key
        of this row. DataError if a column or value is missing or invalid. The earlier rows are perhaps added already.
        """
        table = as_table(rows, self.columns)
        return self._write(
            Record(self._topic, json.dumps(value, ensure_ascii=False).encode(), key)
            for key, value in zip(self._keys(table), _values(table, self._parameters), strict=True)
        )

    def remove(self, keys: Any) -> int:
        """Remove the members with these keys. `keys`: rows with the columns `key`. Unknown keys have no effect. Returns
        the number of rows.
        """
        return self._write(Record(self._topic, None, key) for key in self._keys(as_table(keys, self.key)))

    def _keys(self, table: pa.Table) -> Iterator[bytes]:
        """Yield the key of each record. The key is the text of the only column, or a JSON array with the texts of all
        columns.
        """
        columns = [_cells(table, name).texts[0].to_pylist() for name in self.key]
        for texts in zip(*columns, strict=True):
            yield (texts[0] if len(texts) == 1 else json.dumps(texts, ensure_ascii=False)).encode()

    def _write(self, records: Iterator[Record]) -> int:
        count, part = 0, list[Record]()
        for record in records:
            part.append(record)
            count += 1
            if len(part) == _AT_ONCE:
                self._append(part)
                part = []
        if part:
            self._append(part)
        return count


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
    """Yield values in JSON: text as strings, and terms in the form of SPARQL Results JSON."""
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
