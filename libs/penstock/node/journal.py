"""The log that an engine keeps of what it told the nodes: a node that comes back takes it again, from its beginning or
from the node's last checkpoint.

In a cluster the log is Kafka's; here it is a list in memory, with a bound.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import LimitError

if TYPE_CHECKING:
    from penstock.remote.control_connection import Columns


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: its fields, and its columns."""

    fields: dict[str, Any]
    columns: Columns

    @property
    def bytes(self) -> int:
        """What it counts against the bound."""
        return sum(column.nbytes for column in self.columns.values()) + 256


class Journal:
    """Entries by position, from `begin` to `end`."""

    def __init__(self, max_bytes: int) -> None:
        self._entries: deque[Entry] = deque()
        self._max_bytes = max_bytes
        self.begin = 0
        self.bytes = 0

    @property
    def end(self) -> int:
        """The position that the next entry gets."""
        return self.begin + len(self._entries)

    def __getitem__(self, position: int) -> Entry:
        return self._entries[position - self.begin]

    def append(self, fields: dict[str, Any], columns: Columns) -> int:
        """Add an entry and return its position; LimitError beyond the bound, and nothing is added."""
        entry = Entry(fields, columns)
        if self.bytes + entry.bytes > self._max_bytes:
            raise LimitError(
                f"the journal of the nodes' log would exceed {self._max_bytes} bytes: let the nodes keep checkpoints"
            )
        self.bytes += entry.bytes
        self._entries.append(entry)
        return self.end - 1

    def forget_before(self, position: int) -> None:
        """Let go of the entries before that position."""
        while self._entries and self.begin < position:
            self.bytes -= self._entries.popleft().bytes
            self.begin += 1
