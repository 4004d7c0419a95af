"""The log that an engine keeps of what it told the nodes: a node that comes back takes it again from its beginning.

In a cluster the log is Kafka's; here it is a list in memory, with a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import LimitError

if TYPE_CHECKING:
    from penstock.node.control import Columns


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: its fields, and its columns."""

    fields: dict[str, Any]
    columns: Columns


class Journal:
    """Entries by position, from 0."""

    def __init__(self, max_bytes: int) -> None:
        self._entries: list[Entry] = []
        self._bytes = 0
        self._max_bytes = max_bytes

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, position: int) -> Entry:
        return self._entries[position]

    def append(self, fields: dict[str, Any], columns: Columns) -> int:
        """Add an entry and return its position; LimitError beyond the bound, and nothing is added."""
        size = sum(column.nbytes for column in columns.values()) + 256
        if self._bytes + size > self._max_bytes:
            raise LimitError(f"the journal of the nodes' log would exceed {self._max_bytes} bytes")
        self._bytes += size
        self._entries.append(Entry(fields, columns))
        return len(self._entries) - 1
