"""Normalized texts. Texts that differ only in constants have the same normalized text.

The constants are IRIs, local parts of prefixed names, strings and unsigned numbers. A text is normalized only if it is
short and every constant is *plain*. The lexer reads a plain constant as one token, whatever text is beside the
constant. Texts with comments, escapes or long strings are not normalized. In the text of a standing query, the name of
the query is a constant, too. `penstock.engine.oneshot.normalization` makes normalized texts.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from penstock.query.syntax.lexis import KEYWORDS

_PREFIX = re.compile(r"(?:(?<![A-Za-z0-9_.-])[A-Za-z][A-Za-z0-9_-]*)?:\Z", re.ASCII)

_HEADER = re.compile(
    r"""\s*(?:(?:PREFIX\s+(?:[A-Za-z][A-Za-z0-9_-]*)?:|BASE)\s*<[^<>"{}|^`\\\x00-\x20]*>\s*)*"""
    r"""REGISTER\s+(?:QUERY|RSTREAM|ISTREAM|DSTREAM)\s+([A-Za-z_][A-Za-z0-9_-]*)(?=\s)""",
    re.ASCII | re.IGNORECASE,
)
"""The beginning of a standing query's text, up to and including a plain name."""

IRI, LOCAL, STRING, INTEGER, DECIMAL, NAME = "i", "l", "s", "n", "d", "r"
"""Kinds of constants. In `Normalized.pattern`, a zero character and the kind replace each constant."""


class Normalized(NamedTuple):
    """`pattern`: the text, with a zero character and the kind in place of each constant. `constants`: the constants as
    they are written, in order. The constant of a prefixed name is its local part. `name`: the name of a standing query.
    `constants` does not contain this name. None if the text does not begin with `REGISTER` and a plain name.
    """

    pattern: str
    constants: tuple[str, ...]
    name: str | None = None


def split_name(text: str) -> tuple[str, str | None, str]:
    """Split a standing query's text at its name. Returns the text before the name, the name, and the text after the
    name. If the text has no plain name, the first part is "" and the name is None.
    """
    header = _HEADER.match(text)
    if header is None or header[1] == "a" or header[1].upper() in KEYWORDS:
        return "", None, text
    return text[: header.start(1)], header[1], text[header.end(1) :]


def offsets(normalized: Normalized) -> list[tuple[int, str]]:
    """Return the offset in the text and the kind of each constant. The offset of a local part is the offset at which
    the prefixed name begins, or -1 if the prefix is not plain.
    """
    found = []
    constants = iter(normalized.constants)
    before, *pieces = normalized.pattern.split("\x00")
    at = len(before)
    for piece in pieces:
        kind, after = piece[0], piece[1:]
        if kind == NAME:
            at += len(normalized.name or "")
        else:
            prefix = _PREFIX.search(before) if kind == LOCAL else None
            start = at if prefix is None else at - len(prefix[0])
            found.append((-1 if kind == LOCAL and prefix is None else start, kind))
            at += len(next(constants))
        at += len(after)
        before = after
    return found
