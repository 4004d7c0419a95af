"""What can go wrong with a log, by what the caller should do about it (docs/semantics.md §6: transient or fatal)."""

from __future__ import annotations

from penstock.errors import AwayError, PenstockError


class LogError(PenstockError):
    """Root of the log's errors. Raised itself, it is fatal: say why and end the process."""


class TransientError(LogError, AwayError):
    """Nothing of the call took effect; the same call may be made again, after a pause."""


class Backpressure(LogError):  # noqa: N818 - it says "not now", it is no fault
    """A bound on what is in flight or held is reached. Nothing of the call took effect; go on once it has drained."""


class FencedError(LogError):
    """A younger writer with the same transactional id has begun: this one must end, its state is out of date."""


class RebalancedError(LogError):
    """The reader does not own these partitions any more: drop what was read from them, another member reads it."""


class RecordTooLargeError(LogError):
    """A record that no topic takes. Nothing of the call took effect; the same call fails again."""


class UnknownTopicError(LogError):
    """A topic or partition that nobody created."""
