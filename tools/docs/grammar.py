"""Renders the lark grammar of the query language as EBNF in the notation of the W3C."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_RULE = re.compile(r"^[?!]?([a-z][a-z_0-9]*):(.*)$", re.DOTALL)
_SECTION = re.compile(r"^// ---- (.*)$")
_TOKEN = re.compile(r'^([A-Z_0-9]+)(?:\.\d+)?: "([^"]+)"$')
_PIECE = re.compile(r'"[^"]*"|[A-Za-z_][A-Za-z_0-9]*|\S')


def sections(grammar: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each section of rules: its title, and its productions in EBNF. Token definitions are left out."""
    words = _words(grammar)
    title, rules = "Start", list[str]()
    for line in _joined(grammar):
        if section := _SECTION.match(line):
            if rules:
                yield title, rules
            title, rules = section[1], []
        elif rule := _RULE.match(line):
            name = _camel(rule[1])
            alternatives = [_body(each, words) for each in rule[2].splitlines()]
            rules.append(f"{name} ::= " + ("\n" + " " * (len(name) + 3)).join(alternatives))
    if rules:
        yield title, rules


def _words(grammar: str) -> dict[str, str]:
    """Return the text of each token in the EBNF: the keyword or the sign, in quotes."""
    keywords = " ".join(re.findall(r"^%declare (.*)$", grammar, re.MULTILINE)).split()
    signs = (match for line in grammar.splitlines() if (match := _TOKEN.match(line)))
    return {name: f"'{name}'" for name in keywords if name != "A"} | {"A": "'a'"} | {m[1]: f"'{m[2]}'" for m in signs}


def _joined(grammar: str) -> Iterator[str]:
    """Yield the grammar's lines without comments and aliases. A rule is one text, with its alternatives."""
    whole = ""
    for line in grammar.splitlines():
        text = re.sub(r"\s+// .*$", "", line)
        text = re.sub(r"\s+-> \w+", "", text).rstrip()
        if text.startswith(" "):
            whole += "\n" + text.strip()
            continue
        if whole:
            yield whole
        whole = text
    yield whole


def _body(text: str, words: dict[str, str]) -> str:
    pieces = []
    for piece in _PIECE.findall(text):
        if piece.startswith('"'):
            pieces.append(f"'{piece[1:-1]}'")
        elif piece == "[":
            pieces.append("(")
        elif piece == "]":
            pieces.append(")?")
        elif re.fullmatch(r"[a-z_0-9]+", piece):
            pieces.append(_camel(piece))
        else:
            pieces.append(words.get(piece, piece))
    joined = " ".join(pieces)
    joined = re.sub(r" ([?*+])(?= |$|\))", r"\1", joined)
    joined = re.sub(r"\( (\S+) \)\?", r"\1?", joined)
    return re.sub(r"\( ", "(", re.sub(r" \)", ")", joined))


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
