r"""Lexical rules: keywords, `\u` escapes, and the spelling of strings, literals and local names."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.query.text_faults import Fault

if TYPE_CHECKING:
    from lark import Token

# Keywords of all dialects. Function names are not keywords: the grammar recognises them by their argument list.
_WORDS = """
    ADD ALL AS ASC ASK AT AVG BASE BEGINNING BIND BY CLEAR COMPUTED CONSTRUCT COPY COUNT CREATE DATA DEFAULT DELETE
    DESC DESCRIBE DISTINCT DROP DSTREAM ELEMENTS ENTAILMENT EVERY EXISTS FILTER FROM GRAPH GROUP GROUP_CONCAT HAVING
    IN INSERT INTO ISTREAM LIMIT LOAD MAX MIN MINUS MOVE NAMED NONEMPTY NOT NOW OFFSET ON OPTIONAL ORDER PREFIX
    QUERY RANGE REDUCED REGISTER REMOVED REPORT RSTREAM SAMPLE SELECT SEPARATOR SERVICE SILENT SLIDE STARTING STEP
    STREAM SUM TO TRIPLES TUMBLING UNDEF UNION USING VALUES WHERE WINDOW WITH
"""
KEYWORDS = frozenset(_WORDS.split())
_SPELLINGS = {spelling: word for word in KEYWORDS for spelling in (word, word.lower(), word.capitalize())}

_CODEPOINT = re.compile(r"\\(?:\\|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))")
_STRING_ESCAPE = re.compile(r"\\(.)")
_CONTROL = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}


def keyword(token: Token) -> Token:
    """Set the type of a NAME token that is a keyword (lexer callback). `a` is a keyword in lower case only."""
    text = str(token)
    word = _SPELLINGS.get(text)
    if word is None:
        if text == "a":
            token.type = "A"
            return token
        word = text.upper()
        if word not in KEYWORDS:
            return token
    token.type = word
    return token


@dataclass(frozen=True, slots=True)
class Source:
    r"""A text with `\u` escapes replaced (SPARQL 1.1 §19.2), and the mapping of offsets to the original text."""

    written: str
    parsed: str
    ends: tuple[int, ...] = ()  # offsets in `parsed` just after each replaced escape
    shifts: tuple[int, ...] = ()  # by how many characters the original text is longer up to that end

    def offset(self, parsed_offset: int) -> int:
        """Return the offset in the original text for an offset in the parsed text."""
        index = bisect_right(self.ends, parsed_offset)
        return parsed_offset + (self.shifts[index - 1] if index else 0)


def read_source(text: str) -> Source:
    r"""Replace `\uXXXX` and `\UXXXXXXXX`. Fault if an escape or a character of the text is a surrogate. Fault also if
    an escape is above U+10FFFF.

    An escaped backslash before `u` (`"\\u0041"`) is not an escape.
    """
    _refuse_surrogates(text)
    if "\\u" not in text and "\\U" not in text:
        return Source(text, text)
    pieces: list[str] = []
    ends: list[int] = []
    shifts: list[int] = []
    last = length = 0
    for match in _CODEPOINT.finditer(text):
        digits = match[1] or match[2]
        if digits is None:
            continue
        value = int(digits, 16)
        if 0xD800 <= value <= 0xDFFF or value > 0x10FFFF:
            raise Fault(f"{match[0]} is not a Unicode character", match.start(), match[0])
        pieces += (text[last : match.start()], chr(value))
        length += match.start() - last + 1
        last = match.end()
        ends.append(length)
        shifts.append(last - length)
    pieces.append(text[last:])
    return Source(text, "".join(pieces), tuple(ends), tuple(shifts))


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Fault("a lone surrogate is not a Unicode character", error.start) from None


def string_value(token: Token) -> str:
    """Return the value of a string token, without quotes and with escapes replaced."""
    text = str(token)
    width = 3 if len(text) >= 6 and text.startswith(('"""', "'''")) else 1
    text = text[width:-width]
    if "\\" in text:
        text = _STRING_ESCAPE.sub(lambda match: _CONTROL.get(match[1], match[1]), text)
    return text


def local_name(text: str) -> str:
    """Return the local part of a prefixed name without backslash escapes. `%hh` remains as written."""
    return text.replace("\\", "") if "\\" in text else text
