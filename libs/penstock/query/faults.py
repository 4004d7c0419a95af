"""Errors inside the front end: a message and a place, before line and column are known."""

from __future__ import annotations

from penstock.errors import QueryError


class Fault(Exception):  # noqa: N818 - becomes a QueryError before anyone outside sees it
    """Something is wrong at offset `at` of the text.

    `construct` is the piece of text at fault; empty means the word that stands at `at`.
    """

    def __init__(self, message: str, at: int, construct: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.construct = construct


def query_error(message: str, text: str, offset: int, construct: str) -> QueryError:
    """The QueryError for an offset into the text as written."""
    offset = min(max(offset, 0), len(text))
    lines = text[:offset].splitlines(keepends=True)
    if not lines or lines[-1].splitlines()[0] != lines[-1]:
        lines.append("")
    return QueryError(message, len(lines), len(lines[-1]) + 1, construct, text)
