"""Messages of syntax errors: which tokens the grammar accepts, and which token the text has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.query.syntax.hints import hint, stop_at
from penstock.query.text_faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lark import Token

    from penstock.query.syntax.lexis import Source

_IRIS = frozenset({"IRIREF", "PNAME_LN", "PNAME_NS", "NAME"})
_STRINGS = frozenset({"STRING_LITERAL1", "STRING_LITERAL2", "STRING_LITERAL_LONG1", "STRING_LITERAL_LONG2"})
_UNSIGNED = frozenset({"INTEGER", "DECIMAL", "DOUBLE"})
_SIGNED = frozenset(f"{kind}_{sign}" for kind in _UNSIGNED for sign in ("POSITIVE", "NEGATIVE"))
_NUMBERS = _UNSIGNED | _SIGNED
_TERMS = _IRIS | _STRINGS | _NUMBERS | {"VAR", "BOOLEAN", "BLANK_NODE_LABEL", "LPAR", "LSQB"}
_PATTERNS = frozenset(
    {"LBRACE", "OPTIONAL", "GRAPH", "MINUS", "FILTER", "BIND", "VALUES", "SERVICE", "WINDOW", "STREAM"}
)
_CALLS = _IRIS | {"NOW", "COUNT", "SUM", "MIN", "MAX", "AVG", "SAMPLE", "GROUP_CONCAT", "EXISTS", "NOT"}
_EXPRESSION = _CALLS | _STRINGS | _NUMBERS | {"VAR", "BOOLEAN", "LPAR", "BANG", "PLUS", "MINUS_SIGN"}
_OPERATORS = _SIGNED | {
    "PLUS", "MINUS_SIGN", "STAR", "SLASH", "EQUAL", "COMPARISON", "IN", "NOT", "LOGICAL_AND", "LOGICAL_OR",
}  # fmt: skip

_UPDATES = frozenset({"INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH"})

# Sets of tokens with one common name, largest first. A message uses the name if all tokens of its set are accepted.
_FAMILIES: tuple[tuple[str, frozenset[str]], ...] = (
    ("an expression", _EXPRESSION),
    ("a pattern", _PATTERNS),
    ("an update", _UPDATES),
    ("a condition", _CALLS | {"LPAR"}),
    ("a term", _TERMS),
    ("a predicate", _IRIS | {"A", "BANG", "CARET", "LPAR"}),
    ("a value", _IRIS | _STRINGS | _NUMBERS | {"BOOLEAN"}),
    ("an operator", _OPERATORS),
    ("a number", _NUMBERS),
    ("a signed number", _SIGNED),
    ("a string", _STRINGS),
    ("an IRI or a name", _IRIS),
    ("an IRI", _IRIS - {"NAME"}),
)
_WORDS = {
    "$END": "the end of the query",
    "VAR": "a variable",
    "INTEGER": "an integer",
    "NAME": "a name",
    "IRIREF": "an IRI in <>",
    "PNAME_NS": "a prefix ending in ':'",
    "LANGTAG": "a language tag",
    "BLANK_NODE_LABEL": "a blank node",
    "A": "'a'",
    "COMPARISON": "a comparison",
}
_SIGNS = {
    "LBRACE": "{", "RBRACE": "}", "LPAR": "(", "RPAR": ")", "LSQB": "[", "RSQB": "]", "DOT": ".", "COMMA": ",",
    "SEMICOLON": ";", "STAR": "*", "PLUS": "+", "MINUS_SIGN": "-", "SLASH": "/", "BANG": "!", "QMARK": "?",
    "CARET": "^", "EQUAL": "=", "VBAR": "|", "DATATYPE": "^^", "LOGICAL_OR": "||", "LOGICAL_AND": "&&",
}  # fmt: skip
_QUOTES = "\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb"  # quotation marks of word processors
_SHOWN = 40


def unexpected_character(source: Source, offset: int) -> Fault:
    """Return the error for an offset of the parsed text at which no token begins."""
    rest = source.parsed[offset:]
    at = source.offset(offset)
    if rest[0] in _QUOTES:
        return Fault(f"unexpected character {rest[0]!r}: a string stands between \" or ' as on a keyboard", at, rest[0])
    if rest[0] in "\"'" and rest[0] not in rest[1:].partition("\n")[0]:
        message = f"this string does not end on its line: one over several lines stands between {rest[0] * 3}"
        return Fault(message, at, rest[0])
    if rest[0] in "\"'":
        return Fault("this string does not end, or has an escape that SPARQL does not know", at, rest[0])
    if rest[0] == "\\":
        return Fault("a backslash cannot stand here", at, "\\")
    return Fault(f"unexpected character {rest[0]!r}", at, rest[0])


def unexpected_token(source: Source, token: Token, accepted: set[str]) -> Fault:
    """Return the error for a token that the grammar does not accept."""
    if token.type == "$END":
        message = f"expected {_alternatives(accepted)}, found the end of the query"
        found = hint(stop_at(source.parsed, len(source.parsed), "", "$END", accepted))
        if found is not None and found.word:
            return Fault(f"'{found.word}': {found.text}", source.offset(len(source.parsed) - found.back), found.word)
        return Fault(message if found is None else f"{message}: {found.text}", len(source.written.rstrip()))
    at, text = token.start_pos or 0, str(token)
    found = hint(stop_at(source.parsed, (token.end_pos or 0) - len(text), text, token.type, accepted))
    if found is not None and found.word:
        return Fault(f"'{found.word}': {found.text}", at - found.back, found.word)
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    message = f"expected {_alternatives(accepted)}, found '{shown}'"
    if found is not None:
        message = f"{message}: {found.text}"
    elif "NAME" in accepted and text.isalpha() and token.type == text.upper():
        message = f"{message}: a keyword cannot be a name"
    elif "IRIREF" in accepted and text.startswith("<"):
        message = f'{message}: an IRI has no spaces and none of < > " {{ }} | ^ ` \\'
    return Fault(message, at, text)


def _alternatives(accepted: Iterable[str]) -> str:
    """Return the accepted token types as text. Punctuation comes first, then the names of token families that are
    accepted completely, then other tokens.
    """
    left = set(accepted)
    named: list[str] = []
    for name, family in _FAMILIES:
        if family <= left:
            left -= family
            named.append(name)
    punctuation = sorted(repr(_SIGNS[token]) for token in left if token in _SIGNS)
    words = sorted(_WORDS.get(token, token) for token in left if token not in _SIGNS)
    return _listed([*punctuation, *named, *words])


def _listed(items: list[str]) -> str:
    if len(items) == 1:
        return items[0]
    return f"{', '.join(items[:-1])} or {items[-1]}"
