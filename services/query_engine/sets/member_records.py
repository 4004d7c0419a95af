"""Records of a parameters topic as rows of a query set. The key of a record is the key of the member, and the value of
the record is a JSON object with the parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.engine.sets.set_member import RECORD_KEY
from penstock.engine.sets.tables import as_table
from penstock.errors import DataError
from penstock.json_text import parse_json
from penstock.rdf.terms import LITERAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from penstock.core._native import TermTuple
    from penstock.engine.sets.set_changes import MemberRows
    from penstock.engine.sets.set_member import SetMember
    from penstock.log import Message


@dataclass(slots=True)
class ReadRecords:
    """Records that were read, at most one of each key. `rows`: the records that have the form of a member. `removed`:
    the keys whose record is a tombstone or cannot be a member. `faults`: the records that cannot be a member, with the
    reasons.
    """

    rows: list[tuple[Message, tuple[Any, ...]]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    faults: list[tuple[Message, str]] = field(default_factory=list)

    @classmethod
    def of(cls, messages: Iterable[Message], columns: Sequence[str]) -> ReadRecords:
        """Read records. Only the last record of each key counts. `messages`: the records in ascending order of offsets.
        `columns`: the columns of the set, including `RECORD_KEY`.
        """
        found = cls()
        last = {message.key: message for message in messages}
        for message in last.values():
            try:
                key = _key(message)
            except DataError as error:
                found.faults.append((message, str(error)))
                continue
            try:
                if message.value is None:
                    found.removed.append(key)
                else:
                    found.rows.append((message, _row(message.value, key, columns)))
            except DataError as error:
                found.removed.append(key)
                found.faults.append((message, str(error)))
        found.rows.sort(key=lambda row: row[0].offset)
        return found

    def table(self, columns: Sequence[str]) -> pa.Table:
        """Return the rows as a table."""
        return as_table([row for _, row in self.rows], columns)

    def refuse(self, reasons: dict[int, str]) -> None:
        """Move rows to the faults. `reasons`: the reason for each of these rows, by row number."""
        for number, reason in sorted(reasons.items()):
            message, row = self.rows[number]
            self.faults.append((message, reason))
            self.removed.append(row[-1])
        self.rows = [row for number, row in enumerate(self.rows) if number not in reasons]


def _key(message: Message) -> str:
    if not message.key:
        raise DataError("the record has no key: the key of a record is that of the member")
    try:
        return message.key.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"the record's key is no UTF-8: {error}") from error


def _row(value: bytes, key: str, columns: Sequence[str]) -> tuple[Any, ...]:
    found = parse_json(value, "the record")
    if not isinstance(found, dict):
        raise DataError("the value of the record is no JSON object with the parameters")
    return tuple(key if name == RECORD_KEY else found.get(name) for name in columns)


def parameter_terms(rows: MemberRows, member: SetMember) -> Iterator[TermTuple]:
    """Yield the values of the parameters in all valid rows, as terms."""
    for name in member.set_template.names:
        cells = rows.cells[name]
        texts = (column.to_pylist() for column in cells.texts)
        for good, kind, *text in zip(rows.good.tolist(), cells.kinds.tolist(), *texts, strict=True):
            if good:
                yield (kind, text[0], text[1] if kind == LITERAL else "", text[2])
