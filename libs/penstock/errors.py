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

    `construct`: the invalid piece of text, empty at an unexpected end. `line`, `column`: the position of its first
    character, counted from 1. `str()` shows the line with a caret.
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
    """Invalid input. Examples are RDF that does not parse, a term in a position where this kind of term is not allowed,
    or a setting that is out of range.
    """


class TimestampUnitWarning(UserWarning):
    """An event's timestamp is before 2001, which suggests seconds instead of milliseconds."""


class UnboundedStorageWarning(UserWarning):
    """A stream without `timing` stores every tuple and never removes a tuple."""


class UnknownStreamError(PenstockError):
    """The stream was not declared, or was dropped."""


class LimitError(PenstockError):
    """An operation would exceed a limit on time, memory or size. It had no effect.

    `limit`: the name of the limit, if callers can react to this limit. Otherwise empty.
    """

    def __init__(self, message: str = "", *, limit: str = "") -> None:
        super().__init__(message)
        self.limit = limit


class QueryLimitError(QueryError, LimitError):
    """A query's text or plan exceeds a planning limit. The message names the limit. The call had no effect."""


class AccessError(PenstockError):
    """A service refuses the caller. The caller has no valid token, has a role that does not suffice, sends too many
    requests, or calls the service by a host name that is not allowed.
    """


class StorageError(PenstockError):
    """A local resource cannot be used, or stored data are damaged. For example, a checkpoint cannot be read or
    written.
    """


class UnavailableError(PenstockError):
    """A required service is unavailable. The caller can retry later. The call had no effect, with one exception: a
    `TransientError` of a method whose documentation states that an effect is possible.
    """


class NotActiveError(PenstockError):
    """The instance is on standby, and another instance of the service is active. Retry the request, or send the request
    to the active instance.
    """


class NotYetError(PenstockError):
    """Adaptors still discard tuples with predicates that the query reads, or a schema registry has not answered yet.
    Retry the call soon.
    """


class ConflictError(PenstockError):
    """An update of a cluster was evaluated several times, and other changes were stored during each evaluation. The
    update had no effect. The caller can repeat it.
    """


class DataPlaneError(PenstockError):
    """The memory of another node is not readable. The error fails one evaluation, not the engine.

    `fault`: one of the following. "disconnected", "timed out", "out of range". "retired": the region no longer exists;
    the caller must read the directory again. "refused": the other side has another secret or version, or a limit is
    reached. "behind": the node has not reached the requested snapshot yet; the caller must wait.
    """

    def __init__(self, message: str, fault: str) -> None:
        super().__init__(message)
        self.fault = fault
