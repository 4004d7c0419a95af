"""Fault injection points of the memory log, for tests and the simulation."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from penstock.log.port import Message


class Point(Enum):
    """A point at which a test can make a process fail, or keep the log from responding."""

    OPEN = "before a transactional writer is opened and its predecessor fenced"
    APPEND = "before a single record becomes durable"
    COMMIT = "before a transaction takes effect"
    COMMITTED = "after a transaction took effect, before its writer is notified"
    PROGRESS = "before a group's progress is stored"
    POLL = "before records are returned to a reader"
    ASK = "before offsets are returned"


class Faults(Protocol):
    """Fault injection. The memory log calls `at` at every point.

    An implementation can raise TransientError, or an exception that represents a process failure. An implementation can
    also run other processes of a simulation before the call returns. No operation is half done at any point.
    """

    def at(self, point: Point, owner: str) -> None:
        """Inject a fault at a point, or return. `owner`: the transactional id or the group. Empty if the operation has
        neither.
        """
        ...

    def delay_ms(self, message: Message) -> int:
        """Return the time in ms during which this record stays invisible to readers. Later records of the partition
        wait, too.
        """
        ...


class NoFaults:
    """Injects no faults."""

    def at(self, point: Point, owner: str) -> None:
        """Do nothing."""

    def delay_ms(self, message: Message) -> int:  # noqa: ARG002
        """Return 0."""
        return 0
