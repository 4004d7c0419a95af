"""Hints for syntax errors: misspelt keywords, SQL, Turtle, operators of other languages.

A hint is a short text. If the mistake is before the token at which the parser stopped, the hint also has the position
of the mistake.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from penstock.query.functions.signatures import BUILT_INS
from penstock.query.syntax.lexis import KEYWORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_PATTERN_WORDS = (
    "BIND",
    "FILTER",
    "GRAPH",
    "MINUS",
    "OPTIONAL",
    "SERVICE",
    "STREAM",
    "UNION",
    "VALUES",
    "WHERE",
    "WINDOW",
)
_AGGREGATES = ("COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT")
_CALLABLE = (*BUILT_INS, *_AGGREGATES)
_OTHER_LANGUAGES = {
    "STARTS_WITH": "STRSTARTS", "STARTSWITH": "STRSTARTS", "ENDS_WITH": "STRENDS", "ENDSWITH": "STRENDS",
    "LENGTH": "STRLEN", "LEN": "STRLEN", "UPPER": "UCASE", "LOWER": "LCASE", "TOUPPER": "UCASE", "TOLOWER": "LCASE",
    "SUBSTRING": "SUBSTR", "NVL": "COALESCE", "IFNULL": "COALESCE", "AVERAGE": "AVG", "MEAN": "AVG",
    "ISNULL": "!BOUND", "NOT": "!", "MATCH": "REGEX", "MATCHES": "REGEX", "LIKE": "REGEX", "CAST": "xsd:integer",
    "CURRENT_TIMESTAMP": "NOW", "CEILING": "CEIL", "REGEXP": "REGEX",
}  # fmt: skip
_OPERATORS = {
    "AND": "write && for 'and'",
    "OR": "write || for 'or'",
    "<>": "write != for 'not equal'",
    "LIKE": "use CONTAINS, STRSTARTS or REGEX",
    "IS": "use BOUND(?x), or !BOUND(?x) for what has no value",
    "BETWEEN": "write ?x >= low && ?x <= high",
    "MOD": "there is no remainder: compute it with FLOOR",
    "%": "there is no remainder: compute it with FLOOR",
}
_SEEN = 200  # characters before the error that rules inspect


@dataclass(frozen=True, slots=True)
class Stop:
    """The point where the parser stopped: the text before this point, the token's text and type, and the token types
    that the grammar accepts.
    """

    before: str
    text: str
    kind: str
    accepted: frozenset[str]


@dataclass(frozen=True, slots=True)
class Hint:
    """A hint for an error message. `back`: number of characters from the mistake to the point where the parser stopped.
    `word`: the text of the mistake.
    """

    text: str
    back: int = 0
    word: str = ""


def hint(stop: Stop) -> Hint | None:
    """Return the hint of the first rule that applies, or None."""
    for rule in _RULES:
        found = rule(stop)
        if found is not None:
            return found
    return None


def known_function(name: str) -> str:
    """Return ": did you mean NAME?" with the name of the most similar known function. "" if no known function is
    similar.
    """
    upper = name.upper()
    meant = _OTHER_LANGUAGES.get(upper) or next(iter(get_close_matches(upper, _CALLABLE, 1, 0.75)), "")
    return f": did you mean {meant}?" if meant else ""


def _like(word: str, words: Iterable[str]) -> str:
    return next(iter(get_close_matches(word.upper(), list(words), 1, 0.7)), "") if len(word) < 20 else ""


def _back(before: str, start: int) -> int:
    return len(before) - start


# ---- rules, in order of certainty
def _no_unit(stop: Stop) -> Hint | None:
    match = re.search(r"\b(?:RANGE|STEP|SLIDE|EVERY)\s+([0-9.]+)\s*$", stop.before, re.IGNORECASE)
    if match is None or "NAME" not in stop.accepted:
        return None
    number = match[1]
    return Hint(f"a duration needs a unit: write {number}s or {number}ms", _back(stop.before, match.start(1)), number)


def _misspelt(stop: Stop) -> Hint | None:
    if stop.kind != "NAME":
        return None
    words = stop.accepted & KEYWORDS
    if {"RBRACE", "FILTER"} <= stop.accepted:
        words |= {"UNION"}
    meant = _like(stop.text, words)
    return Hint(f"did you mean {meant}?") if meant else None


def _misspelt_before(stop: Stop) -> Hint | None:
    """Find a misspelt keyword before the token at which the parser stopped. The lexer has read the keyword as a
    name.
    """
    match = re.search(r"(?<![\w:?$<])([A-Za-z_]+)\s*\(?\s*$", stop.before)
    if match is None or match[1].upper() in KEYWORDS or "AS" in stop.accepted or "STEP" in stop.accepted:
        return None
    meant = _like(match[1], _PATTERN_WORDS)
    return Hint(f"did you mean {meant}?", _back(stop.before, match.start(1)), match[1]) if meant else None


def _comment(stop: Stop) -> Hint | None:
    if stop.text in ("/", "-", "*") and (stop.before.endswith("/") or stop.text != "*"):
        return Hint("a comment begins with #") if "SLASH" not in stop.accepted else None
    return None


def _equals(stop: Stop) -> Hint | None:
    if stop.text == "=" and stop.before.endswith("="):
        return Hint("compare with a single =", 1, "==")
    return None


def _negation(stop: Stop) -> Hint | None:
    match = re.search(r"\bNOT\s*$", stop.before, re.IGNORECASE)
    if match is None or not stop.accepted <= {"EXISTS", "IN"}:
        return None
    return Hint("NOT stands before EXISTS and IN only: write !(…)", _back(stop.before, match.start()), match[0].strip())


def _operator(stop: Stop) -> Hint | None:
    text = _OPERATORS.get(stop.text.upper())
    return Hint(text) if text is not None and stop.accepted & {"EQUAL", "LOGICAL_AND", "STAR"} else None


def _unnamed(stop: Stop) -> Hint | None:
    if stop.kind in _AGGREGATES and "VAR" in stop.accepted and "LPAR" in stop.accepted:
        return Hint(f"write ({stop.text}(…) AS ?name)")
    if "AS" in stop.accepted and stop.kind in ("RPAR", "VAR") and "RPAR" not in stop.accepted:
        return Hint("name the value: (… AS ?name)")
    return None


def _select_list(stop: Stop) -> Hint | None:
    if stop.text == "," and "FROM" in stop.accepted:
        return Hint("variables stand beside one another, without commas")
    if stop.text.upper() == "TOP":
        return Hint("use LIMIT, at the end of the query")
    return None


def _bracketless(stop: Stop) -> Hint | None:
    if (
        re.search(r"\b(?:ASC|DESC|BIND|COUNT|SUM|MIN|MAX|AVG)\s*$", stop.before, re.IGNORECASE)
        and "LPAR" in stop.accepted
    ):
        word = stop.before.split()[-1]
        return Hint(f"write {word}({'… AS ?name' if word.upper() == 'BIND' else '…'})")
    if re.search(r"\b(?:FILTER|HAVING)\s*$", stop.before, re.IGNORECASE):
        return Hint("put the condition into brackets")
    return None


def _full_iri(stop: Stop) -> Hint | None:
    if stop.text in ("http:", "https:", "urn:"):
        return Hint("write an IRI between < and >")
    match = re.search(r"\bhttps?:/?$", stop.before)
    if match is not None and stop.text.startswith("/"):
        return Hint("write an IRI between < and >", _back(stop.before, match.start()), match[0])
    return None


def _prologue(stop: Stop) -> Hint | None:
    if stop.text.lower() in ("@prefix", "@base"):
        return Hint(f"write {stop.text[1:].upper()}, without @ and full stop")
    if stop.text == "." and "PREFIX" in stop.accepted:
        return Hint("no full stop follows PREFIX and BASE")
    if stop.accepted == {"PNAME_NS"}:
        return Hint(f"write PREFIX {stop.text}: <…>")
    return None


def _window(stop: Stop) -> Hint | None:
    if stop.accepted == {"LSQB"}:
        return Hint("a stream needs a window, such as [RANGE 10s STEP 1s]")
    if {"RANGE", "TRIPLES"} <= stop.accepted:
        return Hint("write [RANGE 10s STEP 1s]")
    if stop.text.upper() == "BY" and re.search(r"\b(?:SLIDE|STEP)\s*$", stop.before, re.IGNORECASE):
        return Hint("leave BY out")
    return None


def _braces(stop: Stop) -> Hint | None:
    if stop.kind == "$END" and "RBRACE" in stop.accepted:
        return Hint("a '}' is missing")
    if stop.text == "}" and "RBRACE" not in stop.accepted and "$END" in stop.accepted:
        return Hint("there is no '{' that it closes")
    if stop.text == "}" and "RPAR" in stop.accepted:
        return Hint("a ')' is missing")
    if stop.accepted == {"LBRACE"}:
        return Hint("a pattern stands between { and }")
    if stop.text == ";" and "$END" in stop.accepted:
        return Hint("one ; stands between two operations" if "INSERT" in stop.accepted else "no ; follows a query")
    return None


def _full_stop(stop: Stop) -> Hint | None:
    begins = stop.kind in ("VAR", "IRIREF", "PNAME_LN", "BLANK_NODE_LABEL")
    return Hint("is a '.' missing before it?") if begins and {"DOT", "COMMA", "SEMICOLON"} <= stop.accepted else None


_RULES: tuple[Callable[[Stop], Hint | None], ...] = (
    _no_unit, _prologue, _full_iri, _operator, _equals, _negation, _misspelt, _unnamed, _select_list, _window,
    _bracketless, _misspelt_before, _comment, _braces, _full_stop,
)  # fmt: skip


def stop_at(parsed: str, offset: int, text: str, kind: str, accepted: Iterable[str]) -> Stop:
    """Return the `Stop` at a token of the parsed text, with its offset, text and type, and the accepted token types."""
    return Stop(parsed[max(0, offset - _SEEN) : offset], text, kind, frozenset(accepted))
