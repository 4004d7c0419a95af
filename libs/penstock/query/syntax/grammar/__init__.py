"""The grammar (sparql.lark) and its parser. ast_nodes.py defines the syntax tree."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from lark import Lark

from penstock.query.syntax.builder import TreeBuilder
from penstock.query.syntax.lexis import keyword


@cache
def sparql() -> Lark:
    """Return the parser, which builds the syntax tree during the parse. Created on first use
    (docs/adr/0005-grammar.md).
    """
    return Lark(
        files(__name__).joinpath("sparql.lark").read_text("utf-8"),
        parser="lalr",
        lexer="basic",
        start="statement",
        maybe_placeholders=True,
        transformer=TreeBuilder(),
        lexer_callbacks={"NAME": keyword},
    )
