"""The way in: from a query's text to the checked IR, or a QueryError that points at what is wrong."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from penstock.query.ast_nodes import QueryText, UpdateText
from penstock.query.faults import Fault, query_error
from penstock.query.grammar import sparql
from penstock.query.lexis import read_source
from penstock.query.messages import unexpected_character, unexpected_token
from penstock.query.translate import Translation

if TYPE_CHECKING:
    from penstock.query.ir import Statement
    from penstock.query.lexis import Source

MAX_TEXT = 10_000_000
"""Characters of a query's text."""
MAX_TOKENS = 1_000_000
"""Tokens of a query's text: each takes about half a kilobyte and some microseconds."""


def parse(text: str, base: str | None = None, *, any_function: bool = False) -> Statement:
    """The checked IR of a text in any dialect of the language: a query, or INSERT DATA.

    `base` is what relative IRIs and bare names are read against until the text says BASE. Functions that Penstock does
    not have are an error, unless `any_function` asks for the grammar's view alone: then they are calls named by their
    IRI, which nothing can run. Raises QueryError.
    """
    try:
        syntax = parse_syntax(text)
        translation = Translation(text, base, any_function=any_function)
        if isinstance(syntax, UpdateText):
            return translation.insert_data(syntax)
        return translation.query(syntax)
    except Fault as fault:
        raise query_error(fault, text) from None


def parse_syntax(text: str) -> QueryText | UpdateText:
    """The syntax tree of a text; Fault where the grammar does not have it."""
    if len(text) > MAX_TEXT:
        raise Fault(f"the text is longer than {MAX_TEXT:,} characters", 0)
    source = read_source(text)
    parsing: Any = sparql().parse_interactive(source.parsed)  # lark leaves parts of it untyped
    state = parsing.parser_state
    fed = 0
    try:
        for token in parsing.lexer_thread.lex(state):
            if source.ends:
                token.start_pos = source.offset(token.start_pos)
            if fed == MAX_TOKENS:
                raise Fault(f"the text has more than {MAX_TOKENS:,} words and signs", token.start_pos)
            state.feed_token(token)
            fed += 1
        syntax: QueryText | UpdateText = parsing.feed_eof()
    except UnexpectedCharacters as error:
        raise unexpected_character(source, error.pos_in_stream or 0) from None
    except UnexpectedToken as error:
        raise unexpected_token(source, error.token, _accepted_after(source, fed)) from None
    return syntax


def _accepted_after(source: Source, count: int) -> set[str]:
    """What the grammar accepts after the first `count` tokens.

    The parser that met the error cannot say: it may have reduced on a lookahead that another context allows (LALR).
    """
    parsing: Any = sparql().parse_interactive(source.parsed)
    state = parsing.parser_state
    for token in islice(parsing.lexer_thread.lex(state), count):
        state.feed_token(token)
    accepted: set[str] = parsing.accepts()
    return accepted
