"""The log in memory with a tape: what became durable in some topics, in which order, on whose demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.log import MemoryLog

if TYPE_CHECKING:
    from penstock.log import Record


class Noted(NamedTuple):
    """One record. `demand`: what the driver was asking for meanwhile."""

    demand: Any
    record: Record


class TapedLog(MemoryLog):
    """Compaction does not touch the tape. `taped`: the topics of interest; of each, partition 0."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.taped: frozenset[str] = frozenset()
        self.tape: list[Noted] = []
        self.demand: Any = None

    def append(self, record: Record) -> int:
        if record.partition == 0 and record.topic in self.taped:
            self.tape.append(Noted(self.demand, record))
        return super().append(record)
