"""Readers of a memory log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from penstock.log.errors import RebalancedError
from penstock.log.faults import Point
from penstock.log.port import END, START, Message, Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from penstock.log.memory.memory_broker import MemoryBroker


class MemoryReader:
    """Reads partitions from given offsets. Polls serve partitions in turn, so that no partition starves."""

    def __init__(self, log: MemoryBroker, owner: str = "") -> None:
        self._log = log
        self._owner = owner
        self._positions: dict[Partition, int] = {}
        self._paused: set[Partition] = set()
        self._turn = 0

    def poll(self, max_records: int = 1000, timeout_s: float = 0.0) -> list[Message]:
        """Return received records."""
        self._log.faults.at(Point.POLL, self._owner)
        return wait_for(self._log, lambda: self._take(max_records), timeout_s)

    def _take(self, max_records: int) -> list[Message]:
        now_ms = self._log.clock.now_ms()
        names = [name for name in self._positions if name not in self._paused]
        self._turn += 1
        taken: list[Message] = []
        for i in range(len(names)):
            name = names[(i + self._turn) % len(names)]
            messages, position = self._log.partition(name).read(self._positions[name], max_records - len(taken), now_ms)
            self._positions[name] = position
            taken += messages
        return taken

    def assign(self, positions: Mapping[Partition, int]) -> None:
        """Read each partition from its position. A partition that is already assigned moves there."""
        with self._log.changed:
            for name, offset in positions.items():
                span = self._log.partition(name).span
                known = {START: span.start, END: span.end}.get(offset)
                self._positions[name] = max(offset, span.start) if known is None else known

    def unassign(self, partitions: Iterable[Partition]) -> None:
        """Stop reading these partitions."""
        for name in partitions:
            self._positions.pop(name, None)
            self._paused.discard(name)

    def pause(self, partitions: Iterable[Partition]) -> None:
        """Stop returning records of these partitions."""
        self._paused.update(name for name in partitions if name in self._positions)

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Resume paused partitions."""
        self._paused.difference_update(partitions)

    def positions(self) -> dict[Partition, int]:
        """Return the next offset to read of each partition."""
        return dict(self._positions)

    def caught_up(self) -> bool:
        """Return whether each partition has been polled to its end."""
        with self._log.changed:
            return all(position >= self._log.partition(name).end for name, position in self._positions.items())

    def close(self) -> None:
        """Drop the assignment."""
        self._positions.clear()


class MemoryGroupReader:
    """A member of a consumer group."""

    def __init__(self, log: MemoryBroker, group: str, member: int, topics: Sequence[str]) -> None:
        self._log = log
        self._group = group
        self._member = member
        self._topics = tuple(topics)
        self._reader = MemoryReader(log, group)
        self._assigned: frozenset[Partition] = frozenset()
        self.generation = 0

    def poll(self, max_records: int = 1000, timeout_s: float = 0.0) -> list[Message]:
        """Apply a new assignment, if any, and then return received records."""

        def take() -> list[Message]:
            self._rebalance()
            return self._reader._take(max_records)  # noqa: SLF001 - the two are one module

        self._log.faults.at(Point.POLL, self._group)
        return wait_for(self._log, take, timeout_s)

    def _rebalance(self) -> None:
        group = self._log.group(self._group)
        if not group.has(self._member):
            self._come_back()
        owned = group.owned(self._member)
        if owned == self._assigned:
            return
        self._reader.unassign(self._assigned - owned)
        self._reader.assign({name: group.progress.get(name, START) for name in owned - self._assigned})
        self._assigned = owned
        self.generation += 1

    def _come_back(self) -> None:
        """Rejoin after an expulsion. The member no longer owns its former partitions."""
        self._reader.unassign(self._assigned)
        self._assigned = frozenset()
        self.generation += 1
        self.subscribe(self._topics)

    def expel(self) -> None:
        """Expel this member, as after a session timeout. Its next commit fails, and its next poll rejoins the group."""
        with self._log.changed:
            self._log.group(self._group).leave(self._member)
            self._log.reshare()

    def subscribe(self, topics: Sequence[str]) -> None:
        """Replace the subscribed topics."""
        with self._log.changed:
            self._topics = tuple(topics)
            self._log.group(self._group).enter(self._member, topics)
            self._log.reshare()

    def assigned(self) -> frozenset[Partition]:
        """Return this member's partitions as of the last poll."""
        return self._assigned

    def positions(self) -> dict[Partition, int]:
        """Return the next offset to read of each partition."""
        return self._reader.positions()

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Store the group's progress."""
        self._log.faults.at(Point.PROGRESS, self._group)
        with self._log.changed:
            group = self._log.group(self._group)
            lost = set(positions) - (group.owned(self._member) & self._assigned)
            if lost:
                raise RebalancedError(f"{sorted(lost)} are now read by another member of {self._group}")
            group.progress.update(positions)

    def close(self) -> None:
        """Leave the group."""
        with self._log.changed:
            self._log.group(self._group).leave(self._member)
            self._log.reshare()
            self._reader.close()
            self._assigned = frozenset()
            self._log.changed.notify_all()


def wait_for(log: MemoryBroker, take: Callable[[], list[Message]], timeout_s: float) -> list[Message]:
    """Call `take` until it returns messages or the timeout passes. The timeout is in real time, even if the log has a
    virtual clock.
    """
    deadline = time.monotonic() + timeout_s
    with log.changed:
        while not (taken := take()):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            log.changed.wait(left)
        return taken
