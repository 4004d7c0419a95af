r"""Translation of XPath regular expressions to patterns of the `regex` module.

XQuery and XPath Functions and Operators, section 5.6.1, defines the language. The language consists of XML Schema's
regular expressions (with `\i \c \d \s \w`, `\p{Lu}`, `\p{IsGreek}`, and subtraction of classes, such as
`[a-z-[aeiou]]`), and of anchors, reluctant quantifiers and back-references. Syntax that has another meaning in the
`regex` module is refused or rewritten: look-around, possessive quantifiers, `$` before a final newline, and `\w` and
`\s`, which match more characters than in XML Schema.

A search can take exponential time: with back-references, matching is NP-hard. Every search therefore has a time limit.
The `regex` module compiles a part that is repeated n times n times. The size of a pattern with its repeated parts
written out therefore has a limit, too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import regex

from penstock.errors import LimitError

__all__ = ["MATCH_SECONDS", "MAX_PATTERN", "Match", "Pattern", "PatternError", "compile_pattern"]

Pattern = regex.Pattern[str]
Match = regex.Match[str]

MATCH_SECONDS = 1.0
MAX_PATTERN = 10_000  # characters
_MAX_NESTING = 64  # groups and classes
_MAX_REPEAT = 100_000
_MAX_SIZE = 100_000  # atoms, with repeated parts written out

_SPACE = r"\x20\t\n\r"
_NAME_START = (
    r":A-Z_a-z\xC0-\xD6\xD8-\xF6\xF8-\u02FF\u0370-\u037D\u037F-\u1FFF\u200C-\u200D\u2070-\u218F\u2C00-\u2FEF"
    r"\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD\U00010000-\U000EFFFF"
)
_NAME = _NAME_START + r"\-.0-9\xB7\u0300-\u036F\u203F-\u2040"
_NO_WORD = r"\p{P}\p{Z}\p{C}"
_CLASSES = {
    "s": f"[{_SPACE}]",
    "S": f"[^{_SPACE}]",
    "d": r"\p{Nd}",
    "D": r"\P{Nd}",
    "w": f"[^{_NO_WORD}]",
    "W": f"[{_NO_WORD}]",
    "i": f"[{_NAME_START}]",
    "I": f"[^{_NAME_START}]",
    "c": f"[{_NAME}]",
    "C": f"[^{_NAME}]",
}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}
_ESCAPABLE = frozenset("\\|.?*+(){}[]-^$")
_PROPERTY = regex.compile(r"[CLMNPSZ][a-z]?|Is[A-Za-z0-9-]+")
_REPEAT = regex.compile(r"\{([0-9]+)(?:(,)([0-9]+)?)?\}")
_WHITE = frozenset(" \t\n\r")


class PatternError(ValueError):
    """A regular expression, its flags or a replacement is invalid in XPath (err:FORX0002, FORX0001, FORX0004)."""


def _literal(char: str) -> str:
    if char.isalnum():
        return char
    return f"\\U{ord(char):08x}"


class _Part(NamedTuple):
    """The translation of a part of a pattern. `size`: the number of atoms, if a part that must occur n times is written
    n times. `empty`: whether the part can only match the empty string.
    """

    text: str
    size: int = 1
    empty: bool = False


class _Translator:
    """Parses a pattern by recursive descent. Each parsing method reads a part of the pattern and returns the
    translation of this part.
    """

    def __init__(self, pattern: str, flags: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._depth = 0
        self._opened = 0
        self._closed: set[int] = set()
        self._dot = r"(?s:.)" if "s" in flags else r"[^\n]"
        self._start, self._end = r"\A", r"\Z"
        if "m" in flags:  # a newline at the very end does not start a line
            self._start, self._end = r"(?:\A|(?<=\n)(?!\Z))", r"(?:(?=\n)|\Z)"
        self._ignore_space = "x" in flags
        self._ignore_case = "i" in flags

    def translate(self) -> str:
        out = self._alternatives()
        if self._at < len(self._pattern):
            raise self._error("unbalanced ')'")
        return out.text

    def _error(self, problem: str) -> PatternError:
        return PatternError(f"{problem} at character {self._at + 1} of the regular expression")

    def _peek(self) -> str:
        return self._pattern[self._at] if self._at < len(self._pattern) else ""

    def _take(self) -> str:
        char = self._peek()
        if not char:
            raise self._error("unexpected end")
        self._at += 1
        return char

    def _skip_space(self) -> None:
        while self._ignore_space and self._peek() in _WHITE and self._peek():
            self._at += 1

    def _nest(self) -> None:
        self._depth += 1
        if self._depth > _MAX_NESTING:
            raise LimitError(f"a regular expression is nested more than {_MAX_NESTING} levels deep")

    def _alternatives(self) -> _Part:
        branches = [self._branch()]
        while self._peek() == "|":
            self._at += 1
            branches.append(self._branch())
        return self._joined("|", branches)

    def _branch(self) -> _Part:
        pieces: list[_Part] = []
        self._skip_space()
        while self._peek() not in ("", "|", ")"):
            pieces.append(self._piece())
            self._skip_space()
        return self._joined("", pieces)

    def _joined(self, separator: str, parts: list[_Part]) -> _Part:
        text = separator.join(part.text for part in parts)
        return self._sized(text, sum(part.size for part in parts), all(part.empty for part in parts))

    def _sized(self, text: str, size: int, empty: bool) -> _Part:
        if size > _MAX_SIZE:
            raise LimitError(
                f"a regular expression with its repeated parts written out has more than {_MAX_SIZE} parts"
            )
        return _Part(text, size, empty)

    def _piece(self) -> _Part:
        atom = self._atom()
        self._skip_space()
        quantifier, least = self._quantifier()
        if not quantifier:
            return atom
        self._skip_space()
        if self._peek() == "?":
            self._at += 1
            quantifier += "?"
            self._skip_space()
        if self._peek() and self._peek() in "?*+{":
            raise self._error("a quantifier of a quantifier")
        if atom.empty and least:
            return atom  # a second occurrence matches wherever the first one has matched
        return self._sized(f"(?:{atom.text}){quantifier}", atom.size * max(least, 1), atom.empty)

    def _quantifier(self) -> tuple[str, int]:
        """Return the next quantifier and its minimum. Without a quantifier, the result is an empty string and 1."""
        if self._peek() and self._peek() in "?*+":
            found = self._take()
            return found, int(found == "+")
        if self._peek() != "{":
            return "", 1
        bounds = _REPEAT.match(self._pattern, self._at)
        if bounds is None:
            raise self._error("malformed quantifier")
        least = int(bounds[1])
        most = least if not bounds[2] else int(bounds[3]) if bounds[3] else None
        if max(least, most or 0) > _MAX_REPEAT:
            raise LimitError(f"a regular expression repeats a part more than {_MAX_REPEAT} times")
        if most is not None and most < least:
            raise self._error("quantifier with its bounds the wrong way round")
        self._at = bounds.end()
        return bounds[0], least

    def _atom(self) -> _Part:
        char = self._take()
        if char == "(":
            return self._group()
        if char == "[":
            return _Part(self._class())
        if char == "\\":
            return _Part(self._escape())
        if char in "?*+{}]":
            self._at -= 1
            raise self._error(f"unexpected '{char}'")
        if char in "^$":
            return _Part(self._start if char == "^" else self._end, empty=True)
        return _Part(self._dot if char == "." else _literal(char))

    def _group(self) -> _Part:
        self._nest()
        capturing = self._peek() != "?"
        if not capturing:
            if self._pattern[self._at : self._at + 2] != "?:":
                raise self._error("unknown kind of group")
            self._at += 2
        else:
            self._opened += 1
        number = self._opened
        inside = self._alternatives()
        if self._peek() != ")":
            raise self._error("missing ')'")
        self._at += 1
        self._depth -= 1
        if capturing:
            self._closed.add(number)
        opening = "(" if capturing else "(?:"
        return inside._replace(text=f"{opening}{inside.text})", size=inside.size + 1)

    def _escape(self) -> str:
        char = self._take()
        if "1" <= char <= "9":
            return self._back_reference(char)
        if char in "pP":
            found = self._property(char)
            return f"(?-i:{found})" if self._ignore_case else found
        return _CLASSES.get(char) or self._escaped_character(char)

    def _escaped_character(self, char: str) -> str:
        if char in _CONTROLS:
            return _literal(_CONTROLS[char])
        if char not in _ESCAPABLE:
            raise self._error(f"unknown escape '\\{char}'")
        return _literal(char)

    def _back_reference(self, first: str) -> str:
        """Translate a back-reference. The number of the reference is the longest sequence of digits that is the number
        of a group. The group must end before the reference. If the group did not participate in the match, the
        reference matches the empty string.
        """
        digits = first
        while self._peek().isdigit() and int(digits + self._peek()) <= self._opened:
            digits += self._take()
        if int(digits) not in self._closed:
            raise self._error(f"group {digits} is not complete")
        return f"(?({digits})\\{digits}|)"

    def _property(self, letter: str) -> str:
        close = self._pattern.find("}", self._at)
        name = self._pattern[self._at + 1 : close]
        if self._peek() != "{" or close < 0 or _PROPERTY.fullmatch(name) is None:
            raise self._error("malformed property")
        self._at = close + 1
        return f"\\{letter}{{{'In' + name[2:] if name.startswith('Is') else name}}}"

    def _class(self) -> str:
        """Translate the rest of a class after '[': a positive or negative group of characters, and optionally a class
        that is subtracted from the group.
        """
        self._nest()
        negative = self._peek() == "^"
        self._at += negative
        items: list[str] = []
        removed = ""
        while True:
            if self._peek() == "]" and items:
                break
            if self._pattern.startswith("-[", self._at) and items:
                self._at += 2
                removed = self._class()
                if self._peek() != "]":
                    raise self._error("missing ']' after a subtracted class")
                break
            items.append(self._class_item())
        self._at += 1
        self._depth -= 1
        group = f"[{'^' if negative else ''}{''.join(items)}]"
        return f"[{group}--{removed}]" if removed else group

    def _class_item(self) -> str:
        char = self._take()
        if char in ("[", "]"):
            raise self._error(f"unescaped '{char}' in a class")
        if char == "\\":
            char = self._take()
            if char in "pP":
                return self._property(char)
            if char in _CLASSES:
                return _CLASSES[char]
            low = self._escaped_character(char)
            first = _CONTROLS.get(char, char)
        else:
            low, first = _literal(char), char
        if self._peek() != "-" or self._pattern[self._at + 1 : self._at + 2] in ("]", "[", ""):
            return low
        self._at += 1
        last = self._take()
        if last == "\\":
            last = self._take()
            self._escaped_character(last)
            last = _CONTROLS.get(last, last)
        if last < first:
            raise self._error("range with its ends the wrong way round")
        return f"{low}-{_literal(last)}"


@lru_cache(maxsize=256)
def compile_pattern(pattern: str, flags: str) -> Pattern:
    """Translate and compile a pattern. The latest 256 patterns are cached.

    PatternError if the pattern or a flag is invalid in XPath, LimitError if the pattern is too large.
    """
    if set(flags) - set("smixq"):
        raise PatternError(f"unknown flags in '{flags}'")
    if len(pattern) > MAX_PATTERN:
        raise LimitError(f"a regular expression has more than {MAX_PATTERN} characters")
    text = "".join(map(_literal, pattern)) if "q" in flags else _Translator(pattern, flags).translate()
    options = regex.VERSION1 | (regex.IGNORECASE if "i" in flags else regex.VERSION1)
    try:
        return regex.compile("(?-f)" + text, options)  # simple case folding: one character matches one character
    except regex.error as error:
        raise PatternError(str(error)) from error
