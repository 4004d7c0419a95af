"""The parser: from a query's text to the checked IR, or a QueryError that locates the error."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from time import thread_time
from typing import TYPE_CHECKING, Any

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from penstock.query.budget import Budget, PlanningLimits, planning
from penstock.query.syntax.ast_nodes import InsertDataSyntax, QueryText, UpdateText
from penstock.query.syntax.grammar import sparql
from penstock.query.syntax.lexis import read_source
from penstock.query.syntax.messages import unexpected_character, unexpected_token
from penstock.query.syntax.plain_triples import PlainReader
from penstock.query.translation.statements import Translation

if TYPE_CHECKING:
    from penstock.query.ir import Statement
    from penstock.query.syntax.lexis import Source

_LIMITS = PlanningLimits()
_STATEMENT = 4  # number of stack values that identify the kind of statement
_LOOK_EVERY = 512  # tokens between budget checks; a unit of work covers sixteen tokens


def parse(
    text: str,
    base: str | None = None,
    *,
    any_function: bool = False,
    limits: PlanningLimits = _LIMITS,
    accepted: bool = False,
) -> Statement:
    """Return the checked IR of a text in any dialect: a query, or INSERT DATA.

    `base` resolves relative IRIs and bare names until the text has BASE. Unsupported functions are an error, unless
    `any_function` is set: then they become calls of their IRI, which cannot be executed. QueryError for an invalid
    text, QueryLimitError above `limits`. A text that was `accepted` before is not timed.
    """
    with planning(limits, text, accepted=accepted) as budget:
        syntax = parse_syntax(text, budget)
        translation = Translation(text, base, budget, any_function=any_function)
        if isinstance(syntax, UpdateText):
            return translation.insert_data(syntax)
        query = translation.query(syntax)
        budget.look()
        return query


def parse_syntax(text: str, budget: Budget | None = None) -> QueryText | UpdateText:
    """Return the syntax tree of a text. Fault for a syntax error, or if the text exceeds the budget."""
    budget = budget or Budget(_LIMITS, text)
    _check_size(text, budget)
    began = thread_time()
    sparql()  # created on first use
    budget.defer(thread_time() - began)
    source = read_source(text)
    parsing: Any = sparql().parse_interactive(source.parsed)  # parts of lark are untyped
    state = parsing.parser_state
    fed, look = 0, min(_LOOK_EVERY, budget.limits.max_query_tokens)
    plain = PlainReader(source.parsed)
    place = parsing.lexer_thread.state.line_ctr
    try:
        for token in parsing.lexer_thread.lex(state):
            if source.ends:
                token.start_pos = source.offset(token.start_pos)
            if fed >= look:
                look = _look(budget, fed, token, state)
            state.feed_token(token)
            fed += 1
            if plain.starts(token) and not source.ends:
                place.char_pos, tokens = plain.read(place.char_pos, budget.limits.max_update_tokens - fed)
                fed += tokens
        syntax: QueryText | UpdateText = parsing.feed_eof()
        budget.look()
    except UnexpectedCharacters as error:
        raise unexpected_character(source, error.pos_in_stream or 0) from None
    except UnexpectedToken as error:
        raise unexpected_token(source, error.token, _accepted_after(source, fed)) from None
    return syntax if isinstance(syntax, QueryText) else _with_plain(syntax, plain)


def _with_plain(syntax: UpdateText, plain: PlainReader) -> UpdateText:
    """Return an update with the triples that `plain` has read in place of the grammar."""
    pairs = zip(syntax.operations, plain.operations, strict=True)
    return UpdateText(tuple((prologue, replace(insert, plain=tuple(runs))) for (prologue, insert), runs in pairs))


def _check_size(text: str, budget: Budget) -> None:
    most = budget.limits.max_text_bytes
    if len(text) <= most // 4:
        return
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return  # the lexer reports the surrogate's position
    if size > most:
        budget.exceeded("max_text_bytes", f"the text has {size:,} bytes, of at most {most:,}", 0)


def _look(budget: Budget, fed: int, token: Token, state: Any) -> int:
    """Check the budget after the tokens so far. Returns the token count of the next check."""
    name, what, most = "max_query_tokens", "query", budget.limits.max_query_tokens
    if any(_of_update(part) for part in state.value_stack[:_STATEMENT]):
        name, what, most = "max_update_tokens", "update", budget.limits.max_update_tokens
        budget.untimed()
    at = token.start_pos or 0
    if fed >= most:
        budget.exceeded(name, f"the {what} has more than {most:,} words and signs", at)
    budget.spend(at, _LOOK_EVERY // 16)
    return min(fed + _LOOK_EVERY, most)


def _of_update(part: object) -> bool:
    """Return whether a value on the parser's stack belongs to an INSERT DATA text."""
    return isinstance(part, InsertDataSyntax) or (isinstance(part, Token) and part.type == "INSERT")


def _accepted_after(source: Source, count: int) -> set[str]:
    """Return what the grammar accepts after the first `count` tokens.

    The parser with the error cannot tell: it may have reduced on a lookahead that is valid in another context (LALR).
    """
    parsing: Any = sparql().parse_interactive(source.parsed)
    state = parsing.parser_state
    for token in islice(parsing.lexer_thread.lex(state), count):
        state.feed_token(token)
    accepted: set[str] = parsing.accepts()
    return accepted
