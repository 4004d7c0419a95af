"""Errors inside of the query front end: a message with an offset in the text, before line and column are known."""

from __future__ import annotations

import re

from penstock.errors import QueryError, QueryLimitError

_SHOWN = 200  # maximum length of a quoted construct, in characters
_WORD = re.compile(r"<[^<>\s]{0,200}>|[?$]?[\w:.-]{1,200}|\S")


class Fault(Exception):  # noqa: N818 - the front end replaces it by a QueryError
    """An error at offset `at` of the text.

    `construct`: the invalid piece of text. An empty string means the word at offset `at`.
    """

    def __init__(self, message: str, at: int, construct: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.construct = construct


class LimitFault(Fault):
    """The construct at offset `at` exceeds a planning limit."""


def query_error(fault: Fault, text: str) -> QueryError:
    """Return the QueryError, with line and column, for a fault in `text`."""
    offset = min(max(fault.at, 0), len(text))
    lines = text[:offset].splitlines(keepends=True)
    if not lines or lines[-1].splitlines()[0] != lines[-1]:
        lines.append("")
    word = _WORD.match(text, offset)
    construct = (fault.construct or (word[0] if word else ""))[:_SHOWN]
    error = QueryLimitError if isinstance(fault, LimitFault) else QueryError
    return error(fault.message, len(lines), len(lines[-1]) + 1, construct, text)
