"""The SPARQL functions that the native core calls in Python: regular expressions, hashes, upper and lower case.

The native core calls `call` once per distinct list of arguments and caches the result (native/src/expr/frame.cpp).
Before a call, the core checks the kinds of the arguments. The core itself evaluates patterns that are plain text,
without a call of Python.
"""

from __future__ import annotations

import hashlib
from time import monotonic
from typing import TYPE_CHECKING

from penstock.errors import LimitError
from penstock.query.functions.xpath_regex import MATCH_SECONDS, Match, Pattern, PatternError, compile_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    Function: TypeAlias = Callable[[list["TermTuple"], float], "TermTuple | None"]

__all__ = ["TermTuple", "call"]

TermTuple = tuple[int, str, str, str]  # (kind: 1 IRI, 2 blank, 3 literal), lexical, datatype, lang

_LITERAL = 3
_XSD = "http://www.w3.org/2001/XMLSchema#"
_QUOTED = 60  # maximum length of a quoted pattern, in characters
MAX_TEXT = 1 << 26  # maximum length of a result, in characters
_PROBE_SECONDS = 0.1


def call(name: str, args: Sequence[TermTuple | None], seconds_left: float = 0.0) -> TermTuple | None:
    """Return the result of a function, or None for an expression error. A call of an unknown function is an expression
    error.

    `seconds_left`: the remaining time of the evaluation in s. 0 means no limit. A search ends when this time is over,
    or after MATCH_SECONDS of processor time. LimitError if a pattern, a search or a result exceeds its limit.
    """
    function = _FUNCTIONS.get(name)
    terms = [term for term in args if term is not None and term[0] == _LITERAL]
    if function is None or len(terms) != len(args) or not terms:
        return None
    try:
        return _in_time(function, terms, seconds_left) if seconds_left else function(terms, MATCH_SECONDS)
    except PatternError:
        return None
    except TimeoutError:
        limit = f"{MATCH_SECONDS:g} s"
        raise LimitError(
            f"the regular expression {_short(terms[1][1])} searched one string for more than {limit}"
        ) from None


def _in_time(function: Function, terms: list[TermTuple], seconds_left: float) -> TermTuple | None:
    """Call a function within the remaining time of the evaluation.

    The `regex` module can limit processor time, but the limit of an evaluation is elapsed time. A long search is
    therefore interrupted once, to measure its share of a processor. The search then starts again. Its limit of
    processor time is this share of the remaining time.
    """
    began = monotonic()
    try:
        return function(terms, min(seconds_left, _PROBE_SECONDS))
    except TimeoutError:
        took = monotonic() - began
    share = min(seconds_left, _PROBE_SECONDS) / took
    seconds = (seconds_left - took) * share
    try:
        if seconds > 0:
            return function(terms, min(seconds, MATCH_SECONDS))
    except TimeoutError:
        if seconds >= MATCH_SECONDS:
            raise
    raise LimitError("the evaluation exceeded its time limit")


def _short(text: str) -> str:
    return repr(text if len(text) <= _QUOTED else text[:_QUOTED] + "…")


def _regex(terms: list[TermTuple], seconds: float) -> TermTuple:
    flags = terms[2][1] if len(terms) > 2 else ""
    pattern = compile_pattern(terms[1][1], flags)
    found = pattern.search(terms[0][1], timeout=seconds) is not None
    return _LITERAL, "true" if found else "false", _XSD + "boolean", ""


def _replace(terms: list[TermTuple], seconds: float) -> TermTuple | None:
    flags = terms[3][1] if len(terms) > 3 else ""
    pattern = compile_pattern(terms[1][1], flags)
    if pattern.search("", timeout=seconds) is not None:
        return None  # err:FORX0003: the pattern matches the empty string
    parts = [terms[2][1]] if "q" in flags else _replacement(terms[2][1], pattern.groups)
    return _with_text(terms[0], _substitute(pattern, parts, terms[0][1], seconds))


def _replacement(text: str, groups: int) -> list[str | int]:
    r"""Split a replacement into literal texts and the numbers of groups. A replacement can contain `$3`, `\$` and `\\`
    (F&O section 5.6.3).
    """
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        char = text[at]
        following = text[at + 1 : at + 2]
        at += 1
        if char == "\\":
            if following not in ("\\", "$"):
                raise PatternError("a backslash in a replacement stands before neither $ nor another one")
            parts.append(following)
            at += 1
        elif char == "$":
            number, at = _group_number(text, at, groups)
            parts.append(number)
        else:
            parts.append(char)
    return parts


def _group_number(text: str, at: int, groups: int) -> tuple[int, int]:
    """Read a group number at offset `at`. The number has one digit, and further digits as long as a group with the
    longer number exists. Returns the number, and the offset after the number.
    """
    if not (at < len(text) and "0" <= text[at] <= "9"):
        raise PatternError("a $ in a replacement stands before no digit")
    number = int(text[at])
    at += 1
    while at < len(text) and "0" <= text[at] <= "9" and number * 10 + int(text[at]) <= groups:
        number = number * 10 + int(text[at])
        at += 1
    return number, at


def _substitute(pattern: Pattern, parts: Sequence[str | int], text: str, seconds: float) -> str:
    out: list[str] = []
    size = last = 0
    for match in pattern.finditer(text, timeout=seconds):
        pieces = [text[last : match.start()]]
        pieces += (part if isinstance(part, str) else _group(match, part) for part in parts)
        last = match.end()
        size += sum(map(len, pieces))
        if size > MAX_TEXT:
            raise LimitError(f"REPLACE would give a text of more than {MAX_TEXT} characters")
        out += pieces
    return "".join([*out, text[last:]])


def _group(match: Match, number: int) -> str:
    """Return the text that a group has matched. "" if the group did not participate in the match or does not exist."""
    return (match[number] or "") if number <= match.re.groups else ""


def _with_text(term: TermTuple, text: str) -> TermTuple:
    return _LITERAL, text, term[2], term[3]


def _hash(name: str) -> Callable[[list[TermTuple], float], TermTuple]:
    def digest(terms: list[TermTuple], _seconds: float) -> TermTuple:
        data = terms[0][1].encode("utf-8", "surrogatepass")
        return _LITERAL, hashlib.new(name, data, usedforsecurity=False).hexdigest(), _XSD + "string", ""

    return digest


_FUNCTIONS: dict[str, Function] = {
    "regex": _regex,
    "replace": _replace,
    "ucase": lambda terms, _: _with_text(terms[0], terms[0][1].upper()),
    "lcase": lambda terms, _: _with_text(terms[0], terms[0][1].lower()),
    **{name: _hash(name) for name in ("md5", "sha1", "sha256", "sha384", "sha512")},
}
