"""The grammar (sparql.lark) and the parser made from it. What the tree looks like is in ast_nodes.py, not here."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from lark import Lark

from penstock.query.syntax.builder import TreeBuilder
from penstock.query.syntax.lexis import keyword


@cache
def sparql() -> Lark:
    """The parser, which builds the syntax tree as it goes. Made at first use (docs/adr/0005-grammar.md)."""
    return Lark(
        files(__name__).joinpath("sparql.lark").read_text("utf-8"),
        parser="lalr",
        lexer="basic",
        start="statement",
        maybe_placeholders=True,
        transformer=TreeBuilder(),
        lexer_callbacks={"NAME": keyword},
    )
