"""Errors of the log, classified by the required reaction (docs/semantics.md §6: transient or fatal)."""

from __future__ import annotations

from penstock.errors import AccessError, PenstockError, UnavailableError


class LogError(PenstockError):
    """Base class of the log's errors. An instance of this class itself is fatal: report it and exit."""


class TransientError(LogError, UnavailableError):
    """The operation did not complete now. The caller can repeat the call after a pause. The docstring of each method
    states whether the failed call had an effect.
    """


class Backpressure(LogError):  # noqa: N818 - it says "not now", it is no fault
    """A limit on buffered or in-flight records is reached. The call had no effect. The caller can retry after the
    buffer has drained.
    """


class FencedError(LogError):
    """A newer writer with the same transactional id exists. This writer must stop, because its state is stale."""


class RebalancedError(LogError):
    """The reader no longer owns some partitions. Another member reads these partitions. The caller must drop all
    records of these partitions that are read but not yet committed.
    """


class DeniedError(LogError, AccessError):
    """The access lists of the brokers deny an operation. The message names principal, operation and resource."""


class RecordRefusedError(LogError):
    """A topic refuses a record permanently. The reason is a limit, a policy or an access list, or the topic does not
    exist.

    The call had no effect, and the same call would fail again. `topic`: the name of the topic, empty if unknown.
    `over`: whether the writer is unusable. The caller must then open a new writer.
    """

    def __init__(self, message: str, topic: str = "", *, over: bool = False) -> None:
        super().__init__(message)
        self.topic = topic
        self.over = over


class RecordTooLargeError(RecordRefusedError):
    """A record exceeds its topic's maximum size."""


class UnknownTopicError(RecordRefusedError):
    """The topic or partition does not exist."""
