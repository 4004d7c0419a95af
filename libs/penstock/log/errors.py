"""What can go wrong with a log, by what the caller should do about it (docs/semantics.md §6: transient or fatal)."""

from __future__ import annotations

from penstock.errors import PenstockError, UnavailableError


class LogError(PenstockError):
    """Root of the log's errors. Raised itself, it is fatal: say why and end the process."""


class TransientError(LogError, UnavailableError):
    """Nothing of the call took effect; the same call may be made again, after a pause."""


class Backpressure(LogError):  # noqa: N818 - it says "not now", it is no fault
    """A bound on what is in flight or held is reached. Nothing of the call took effect; go on once it has drained."""


class FencedError(LogError):
    """A younger writer with the same transactional id has begun: this one must end, its state is out of date."""


class RebalancedError(LogError):
    """The reader does not own these partitions any more: drop what was read from them, another member reads it."""


class RecordRefusedError(LogError):
    """A topic refuses a record for good, by a limit, a policy or an access list. Nothing of the call took effect; the
    same call fails again. `topic` is empty where it is not known. `over`: the writer must be opened again.
    """

    def __init__(self, message: str, topic: str = "", *, over: bool = False) -> None:
        super().__init__(message)
        self.topic = topic
        self.over = over


class RecordTooLargeError(RecordRefusedError):
    """A record exceeds what its topic takes."""


class UnknownTopicError(RecordRefusedError):
    """A topic or partition that does not exist."""
