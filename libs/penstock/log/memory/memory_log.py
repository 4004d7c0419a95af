"""The log in memory, for tests and the simulation.

This log provides Kafka's guarantees and reproduces Kafka's pitfalls (`memory_broker`). The given clock supplies the
time, and `Faults` injects faults. Without other threads, the same calls give the same results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.log.faults import Point
from penstock.log.memory.memory_broker import MemoryBroker
from penstock.log.memory.readers import MemoryGroupReader, MemoryReader
from penstock.log.memory.writers import MemoryTransactionalWriter, MemoryWriter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.log.port import Partition


class MemoryLog(MemoryBroker):
    """A log in the memory of this process."""

    def writer(self) -> MemoryWriter:
        """Open a writer."""
        return MemoryWriter(self)

    def transactional(self, transactional_id: str, *, offsets: bool = True) -> MemoryTransactionalWriter:  # noqa: ARG002
        """Open a writer. Fences the previous writer with the same transactional id. The writer always returns
        offsets.
        """
        self.faults.at(Point.OPEN, transactional_id)
        return MemoryTransactionalWriter(self, transactional_id, self.next_epoch(transactional_id))

    def reader(self, positions: Mapping[Partition, int] | None = None) -> MemoryReader:
        """Open a reader of these partitions."""
        reader = MemoryReader(self)
        reader.assign(positions or {})
        return reader

    def join(self, group: str, topics: Sequence[str]) -> MemoryGroupReader:
        """Join a consumer group."""
        with self.changed:
            member = self.next_member()
            self.group(group).enter(member, topics)
            self.reshare()
            return MemoryGroupReader(self, group, member, topics)
