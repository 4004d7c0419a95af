"""Normalized texts. Texts that differ only in constants have the same normalized text.

The constants are IRIs, local parts of prefixed names, strings and unsigned numbers. A text is normalized only if it is
short and every constant is *plain*: the lexer reads the constant as one token of its kind, whatever stands beside it.
Texts with comments, escapes or long strings are not normalized. In the text of a standing query, the name is a
constant, too.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from penstock.query.syntax.lexis import KEYWORDS

_LONGEST = 1 << 12  # maximum length of a normalized text, in characters
_MOST = 128  # maximum number of its constants

_END = r"(?=[\s;,)}\]]|\.[\s}]|\Z)"
_CONSTANT = re.compile(
    r"""(<[A-Za-z][A-Za-z0-9+.-]*:[^<>"{}|^`\\\x00-\x20]*>"""
    rf"""|(?<![_?$<])(?<=:)[A-Za-z0-9_][A-Za-z0-9_-]*{_END}"""
    r"""|"[^"\\\n\r]*"|'[^'\\\n\r]*'"""
    rf"""|(?<![\w?$:.+@^%-])(?:[0-9]+(?:\.[0-9]+)?){_END})""",
    re.ASCII,
)
_EXCLUDED = re.compile(r"""\\|\x00|\"\"\"|\'\'\'""")
_UNCERTAIN = re.compile(r"#|<(?!=?\s)")  # a comment, or what may be the beginning of an IRI that is not plain
_PREFIX = re.compile(r"(?:(?<![A-Za-z0-9_.-])[A-Za-z][A-Za-z0-9_-]*)?:\Z", re.ASCII)

_HEADER = re.compile(
    r"""\s*(?:(?:PREFIX\s+(?:[A-Za-z][A-Za-z0-9_-]*)?:|BASE)\s*<[^<>"{}|^`\\\x00-\x20]*>\s*)*"""
    r"""REGISTER\s+(?:QUERY|RSTREAM|ISTREAM|DSTREAM)\s+([A-Za-z_][A-Za-z0-9_-]*)(?=\s)""",
    re.ASCII | re.IGNORECASE,
)
"""The beginning of a standing query's text, up to a plain name."""

IRI, LOCAL, STRING, INTEGER, DECIMAL, NAME = "i", "l", "s", "n", "d", "r"
"""Kinds of constants, as they stand in `Normalized.pattern` behind a zero character."""


class Normalized(NamedTuple):
    """`pattern`: the text, with a zero character and the kind in place of each constant. `constants`: the constants as
    they are written, in order. The constant of a prefixed name is its local part. `name`: the name of a standing
    query, which is not among the constants. None if the text does not begin with a plain name and `REGISTER`.
    """

    pattern: str
    constants: tuple[str, ...]
    name: str | None = None


def normalize(text: str, *, registered: bool = False) -> Normalized | None:
    """Return the normalized form of a text. None if the text has no constants, or is not normalized (see the module
    docstring). `registered`: whether the text is that of a standing query.
    """
    if len(text) > _LONGEST or _EXCLUDED.search(text) is not None:
        return None
    head, name, rest = _split(text) if registered else ("", None, text)
    parts = _CONSTANT.split(rest)
    constants = parts[1::2]
    if not constants or len(constants) > _MOST:
        return None
    between = parts[0::2]
    parts[1::2] = [_placeholder(constant, before) for constant, before in zip(constants, between, strict=False)]
    pattern = "".join(parts)
    if _UNCERTAIN.search(pattern) is not None or not _encodable(text):
        return None
    if name is not None:
        pattern = f"{head}\x00{NAME}{pattern}"
    return Normalized(pattern, tuple(constants), name)


def _split(text: str) -> tuple[str, str | None, str]:
    """Return the parts of a standing query's text before and after its name, and the name. The first part is "" and the
    name None if the text has no plain name.
    """
    header = _HEADER.match(text)
    if header is None or header[1] == "a" or header[1].upper() in KEYWORDS:
        return "", None, text
    return text[: header.start(1)], header[1], text[header.end(1) :]


def kind(constant: str, before: str) -> str:
    """Return the kind of a constant. `before`: the part of the text between the previous constant and this one."""
    first = constant[0]
    if first == "<":
        return IRI
    if first in "\"'":
        return STRING
    if before.endswith(":"):
        return LOCAL
    return DECIMAL if "." in constant else INTEGER


def offsets(text: str, *, registered: bool = False) -> list[tuple[int, str]]:
    """Return the offset and the kind of each constant of a text that has a normalized form. The offset of a local part
    is that of its prefixed name; -1 if the name's prefix is not plain.
    """
    found = []
    rest = _split(text)[2] if registered else text
    parts, at = _CONSTANT.split(rest), len(text) - len(rest)
    for before, constant in zip(parts[0::2], parts[1::2], strict=False):
        at += len(before)
        what = kind(constant, before)
        start = at
        if what == LOCAL:
            prefix = _PREFIX.search(before)
            start = -1 if prefix is None else at - len(prefix[0])
        found.append((start, what))
        at += len(constant)
    return found


def _placeholder(constant: str, before: str) -> str:
    return "\x00" + kind(constant, before)


def _encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which is an error with a position
        return False
    return True
