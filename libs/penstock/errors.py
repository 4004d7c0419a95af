"""The errors of the public API, with one root class. See docs/architecture.md, "Faults"."""

from __future__ import annotations

__all__ = [
    "AccessError",
    "ConflictError",
    "DataError",
    "DataPlaneError",
    "LimitError",
    "NotActiveError",
    "NotYetError",
    "PenstockError",
    "QueryError",
    "QueryLimitError",
    "StorageError",
    "UnavailableError",
    "UnboundedStorageWarning",
    "UnknownStreamError",
]


_SHOWN = 120  # characters of a line on either side of a fault


class PenstockError(Exception):
    """Base class of all errors that Penstock raises."""


class QueryError(PenstockError):
    """An invalid query.

    `line` and `column` count from 1 and locate the first character of `construct`, the invalid piece of text (empty at
    an unexpected end). `str()` shows the line with a caret.
    """

    def __init__(self, message: str, line: int, column: int, construct: str = "", text: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column
        self.construct = construct
        self.text = text

    def __str__(self) -> str:
        """Return `message (line L, column C)`, then the line of the query with a caret below the column."""
        head = f"{self.message} (line {self.line}, column {self.column})"
        lines = self.text.splitlines()
        if not 1 <= self.line <= len(lines):
            return head
        source = lines[self.line - 1]
        begin = max(0, self.column - 1 - _SHOWN)
        end = self.column - 1 + _SHOWN
        before, after = source[begin : self.column - 1], source[self.column - 1 : end]
        lead, tail = "…" if begin else "", "…" if end < len(source) else ""
        pad = " " * len(lead) + "".join("\t" if c == "\t" else " " for c in before)
        return f"{head}\n  {lead}{before}{after}{tail}\n  {pad}^"


class DataError(PenstockError):
    """Invalid input: for example, RDF that does not parse, a term in a position where it is not allowed, or a setting
    that is out of range.
    """


class TimestampUnitWarning(UserWarning):
    """An event's timestamp is before 2001, which suggests seconds instead of milliseconds."""


class UnboundedStorageWarning(UserWarning):
    """A stream without `timing` stores every tuple and never removes one."""


class UnknownStreamError(PenstockError):
    """The stream was not declared, or was dropped."""


class LimitError(PenstockError):
    """An operation would exceed a limit on time, memory or size. It had no effect.

    `limit` is the limit's name if callers may react to it, else empty.
    """

    def __init__(self, message: str = "", *, limit: str = "") -> None:
        super().__init__(message)
        self.limit = limit


class QueryLimitError(QueryError, LimitError):
    """A query's text or plan exceeds a planning limit, which the message names. The call had no effect."""


class AccessError(PenstockError):
    """A service refuses the caller: no valid token, a role that does not suffice, too many requests, or a host name by
    which the service may not be called.
    """


class StorageError(PenstockError):
    """A local resource cannot be used, or stored data is damaged: for example, a checkpoint cannot be read or
    written.
    """


class UnavailableError(PenstockError):
    """A required service is unavailable; retry later. The call had no effect, unless the error is a `TransientError`
    and the documentation of the method states that there may be an effect.
    """


class NotActiveError(PenstockError):
    """The instance is on standby: another instance of the service is active. Retry the request, or send it to the
    active instance.
    """


class NotYetError(PenstockError):
    """Adaptors still filter out predicates that the query reads. Retry shortly."""


class ConflictError(PenstockError):
    """An update of a cluster was evaluated several times, and other changes were stored during each evaluation. The
    update had no effect; repeat it.
    """


class DataPlaneError(PenstockError):
    """The memory of another node is not readable. The error fails one evaluation, not the engine.

    `fault`: "disconnected", "timed out", "out of range", "retired" (the region is gone: read the directory again),
    "refused" (another secret or version, or a limit) or "behind" (the node has not reached the requested snapshot:
    wait).
    """

    def __init__(self, message: str, fault: str) -> None:
        super().__init__(message)
        self.fault = fault
