"""Fast reading of the *plain* triples of INSERT DATA and DELETE DATA. Plain triples consist of names, numbers and
strings without escapes.

The grammar's parser reads all other triples. A pattern in this module matches a text only if the lexer would read the
same tokens.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from lark import Token

    from penstock.query.budget import Budget

_WS = r"[ \t\r\n]"
_IRI = r"""<[^<>"{}|^`\\\x00-\x20]*>|(?:[A-Za-z][A-Za-z0-9_-]*)?:[A-Za-z0-9_][A-Za-z0-9_-]*"""
_NODE = rf"{_IRI}|_:[A-Za-z0-9]+"
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+)"
_STRING = rf"""("[^"\\\n\r]*"|'[^'\\\n\r]*')(?:@([a-zA-Z]+(?:-[a-zA-Z0-9]+)*)|\^\^({_IRI}))?"""
_OBJECT = rf"{_WS}*(?:({_NODE})|({_NUMBER})|{_STRING})(?:{_WS}*([;,])|{_WS}+\.|\.(?={_WS}))"
_SUBJECT = re.compile(rf"{_WS}*({_NODE})(?={_WS})")
_VERB_OBJECT = re.compile(rf"{_WS}*({_IRI}|a)(?={_WS}){_OBJECT}")
_NEXT_OBJECT = re.compile(rf"(){_OBJECT}")

VERB, NODE, NUMBER, STRING, LANG, DATATYPE, _SEPARATOR = range(1, 8)
"""Groups of a match: the verb (empty after a comma), then the object. An object matches the group of an IRI or blank
node label, the group of a number, or the group of a quoted string. A string can also have a language tag or the name of
a datatype.
"""

PlainTriple: TypeAlias = tuple[str, int, str, int, "re.Match[str]"]
"""The subject, its offset in the text, the verb, its offset, and the regular expression's match for the object."""

PlainRun: TypeAlias = tuple["Token | None", tuple[PlainTriple, ...]]
"""The name of a graph (None: the default graph), and triples of this graph."""


class PlainReader:
    """Reads the plain triples of an update, so that the parser gets only the other tokens. `operations`: one list for
    each INSERT DATA or DELETE DATA. Each element of such a list contains consecutive triples in one graph. `in_data`:
    whether the last token belongs to an INSERT DATA or DELETE DATA. `data_tokens`: number of tokens in these
    operations, counted when an operation is complete. The budget's clock stops during data.
    """

    def __init__(self, text: str, budget: Budget) -> None:
        self.operations: list[list[PlainRun]] = []
        self.in_data = False
        self.data_tokens = 0
        self._text = text
        self._budget = budget
        self._began = 0
        self._previous: Token | None = None
        self._names_graph = False
        self._graph: Token | None = None
        self._depth = 0

    def starts(self, token: Token, fed: int) -> bool:
        """Process a token that the parser has accepted. `fed`: the number of tokens up to and including this token.
        Returns whether a triple can start after the token.
        """
        kind = token.type
        if not self.in_data:
            if kind == "DATA":
                self.operations.append([])
                self.in_data, self._began = True, fed
                self._budget.time(False)
            return False
        previous, self._previous = self._previous, token
        if kind == "GRAPH":
            self._names_graph = True
        elif kind == "LBRACE":
            self._depth += 1
            self._graph = previous if self._names_graph else None
            self._names_graph = False
        elif kind == "RBRACE":
            self._depth -= 1
            self._graph = None
            if not self._depth:
                self.in_data = False
                self.data_tokens += fed - self._began
                self._budget.time(True)
        return kind in ("LBRACE", "DOT")

    def outside(self, fed: int) -> int:
        """Return how many of the `fed` tokens of the text are not data."""
        return (self._began if self.in_data else fed) - self.data_tokens

    def read(self, at: int, most: int) -> tuple[int, int]:
        """Read triples from the offset `at` on, until at most `most` tokens are read. Returns the offset after the
        triples, and the number of tokens in all triples.
        """
        triples: list[PlainTriple] = []
        tokens = 0
        while (statement := _statement(self._text, at, most - tokens)) is not None:
            at, read, more = statement
            tokens += read
            triples += more
        if triples:
            self.operations[-1].append((self._graph, tuple(triples)))
        return at, tokens


def _statement(text: str, at: int, most: int) -> tuple[int, int, list[PlainTriple]] | None:
    """Read the triples of one subject, up to the full stop. Returns the offset after the full stop, the number of
    tokens, and the triples. None if one of the triples is not plain, or if the triples have more than `most` tokens in
    total.
    """
    start = _SUBJECT.match(text, at)
    if start is None:
        return None
    subject, subject_at = start[1], start.start(1)
    verb, verb_at, tokens = "", -1, 1
    triples: list[PlainTriple] = []
    match = _VERB_OBJECT.match(text, start.end())
    while match is not None:
        if match[VERB]:
            verb, verb_at = match[VERB], match.start(VERB)
            tokens += 1
        triples.append((subject, subject_at, verb, verb_at, match))
        tokens += 2 + (match[LANG] is not None) + 2 * (match[DATATYPE] is not None)
        if tokens > most:
            return None
        separator = match[_SEPARATOR]
        if separator is None:
            return match.end(), tokens, triples
        match = (_NEXT_OBJECT if separator == "," else _VERB_OBJECT).match(text, match.end())
    return None
