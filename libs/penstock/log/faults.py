"""Where the memory log lets a test or the simulation break things."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from penstock.log.port import Message


class Point(Enum):
    """A moment at which a process may die or the log may not answer."""

    OPEN = "before a transactional writer is opened, and the one before fenced"
    APPEND = "before a single record becomes durable"
    COMMIT = "before a transaction takes effect"
    COMMITTED = "after a transaction took effect, before its writer learns of it"
    PROGRESS = "before a group's progress is stored"
    POLL = "before records are handed to a reader"
    ASK = "before a question about offsets is answered"


class Faults(Protocol):
    """Asked at every point. It may raise TransientError, or an exception that stands for the end of the process; or let
    other processes of a simulation go on before it returns: nothing is half done at any of the points.
    """

    def at(self, point: Point, owner: str) -> None:
        """`owner`: the transactional id, the group, or empty."""
        ...

    def delay_ms(self, message: Message) -> int:
        """For how long this record stays invisible to readers; those behind it in the partition wait too."""
        ...


class NoFaults:
    """Everything works at once."""

    def at(self, point: Point, owner: str) -> None:
        """Do nothing."""

    def delay_ms(self, message: Message) -> int:  # noqa: ARG002
        """No delay."""
        return 0
