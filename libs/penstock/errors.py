"""The errors users see: one root, three fates (bad input, limits, storage). See docs/architecture.md, "Faults"."""

from __future__ import annotations

__all__ = [
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
    """Root of every error that Penstock raises on purpose."""


class QueryError(PenstockError):
    """A query that cannot be registered or asked.

    `line` and `column` count from 1 and point at the first character of `construct`, the piece of text at fault
    (empty where the text ends too early). `str()` shows the line with a caret.
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
    """Input that is not what it claims to be: unparsable RDF, a term that cannot stand where it stands."""


class TimestampUnitWarning(UserWarning):
    """An event's timestamp is before 2001: seconds where milliseconds are meant?"""


class UnboundedStorageWarning(UserWarning):
    """A stream that is declared without `timing` stores every tuple and never removes one."""


class UnknownStreamError(PenstockError):
    """A stream that was never declared (or was dropped)."""


class LimitError(PenstockError):
    """A limit on time, memory or size would be exceeded; nothing was changed.

    `limit` is the limit's name where a caller may react to it; empty otherwise.
    """

    def __init__(self, message: str = "", *, limit: str = "") -> None:
        super().__init__(message)
        self.limit = limit


class QueryLimitError(QueryError, LimitError):
    """A query whose text or plan exceeds a limit of planning; the message names the limit. Nothing was changed."""


class StorageError(PenstockError):
    """A checkpoint or region that cannot be read or written."""


class UnavailableError(PenstockError):
    """A service that is needed does not answer. Nothing of the call took effect: it may be made again, later."""


class NotActiveError(PenstockError):
    """An instance on standby: another instance of the service answers. The request may be sent again, there or here."""


class NotYetError(PenstockError):
    """Adaptors do not let through yet what a query looks at. The request may be sent again in a moment."""


class DataPlaneError(PenstockError):
    """Another node's memory could not be read: an error of one evaluation, never of the engine.

    `fault` says why: "disconnected", "timed out", "out of range", "retired" (the region has gone: ask for the
    directory again), "refused" (another secret or version, or a limit) or "behind" (a node has not come as far as
    what is read: wait for it).
    """

    def __init__(self, message: str, fault: str) -> None:
        super().__init__(message)
        self.fault = fault
