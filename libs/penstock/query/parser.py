"""The parser: from a query's text to the checked IR (`penstock.query.ir`), or a QueryError with the position of the
error.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from time import thread_time
from typing import TYPE_CHECKING, Any

from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from penstock.query.budget import Budget, PlanningLimits, planning
from penstock.query.syntax.ast_nodes import QueryText
from penstock.query.syntax.grammar import sparql
from penstock.query.syntax.lexis import read_source
from penstock.query.syntax.messages import unexpected_character, unexpected_token
from penstock.query.syntax.plain_triples import PlainReader
from penstock.query.syntax.update_nodes import DataOperation, UpdateText
from penstock.query.translation.statements import Translation
from penstock.query.translation.updates import UpdateTranslation

if TYPE_CHECKING:
    from lark import Token

    from penstock.query.ir import Statement
    from penstock.query.syntax.lexis import Source

_LIMITS = PlanningLimits()
_LOOK_EVERY = 512  # tokens between budget checks; a unit of work covers sixteen tokens


def parse(
    text: str,
    base: str | None = None,
    *,
    any_function: bool = False,
    limits: PlanningLimits = _LIMITS,
    accepted: bool = False,
) -> Statement:
    """Return the checked IR of a text in any dialect: a query or an update.

    Relative IRIs and bare names are resolved against a preceding BASE of the text or, without such a BASE, against
    `base`. An unsupported function is an error, unless `any_function` is set. The IR then contains a call of the
    function's IRI. Such a call cannot be executed. `accepted`: whether the text was accepted before. The parsing of an
    accepted text has no time limit. QueryError for an invalid text, QueryLimitError above `limits`.
    """
    with planning(limits, text, accepted=accepted) as budget:
        syntax = parse_syntax(text, budget)
        statement: Statement
        if isinstance(syntax, UpdateText):
            statement = UpdateTranslation(text, base, budget, any_function=any_function).update(syntax)
        else:
            statement = Translation(text, base, budget, any_function=any_function).query(syntax)
        budget.look()
        return statement


def declared_parameters(text: str, base: str | None = None, limits: PlanningLimits = _LIMITS) -> tuple[str, ...]:
    """Return the names of the parameters that a text declares. A text with declared parameters is the text of a query
    set. The errors are the same as for `parse`.
    """
    statement = parse(text, base, limits=limits)
    return tuple(variable.name for variable in getattr(statement, "parameters", ()))


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
    plain = PlainReader(source.parsed, budget)
    place = parsing.lexer_thread.state.line_ctr
    try:
        for token in parsing.lexer_thread.lex(state):
            if source.ends:
                token.start_pos = source.offset(token.start_pos)
            if fed >= look:
                look = _look(budget, fed, token, plain)
            state.feed_token(token)
            fed += 1
            if plain.starts(token, fed) and not source.ends:
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
    """Add the triples of INSERT DATA and DELETE DATA, which the reader `plain` has read, to a syntax tree."""
    runs = iter(plain.operations)
    return UpdateText(
        tuple(
            (
                prologue,
                replace(operation, plain=tuple(next(runs))) if isinstance(operation, DataOperation) else operation,
            )
            for prologue, operation in syntax.operations
        )
    )


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


def _look(budget: Budget, fed: int, token: Token, plain: PlainReader) -> int:
    """Check the budget after the first `fed` tokens. Returns the number of tokens at which the next check is due. The
    triples of INSERT DATA and DELETE DATA have a separate limit of tokens and no time limit.
    """
    limits, at = budget.limits, token.start_pos or 0
    outside = plain.outside(fed)
    if outside >= limits.max_query_tokens and not plain.in_data:
        what = "update" if plain.operations else "query"
        budget.exceeded("max_query_tokens", f"the {what} has more than {limits.max_query_tokens:,} words and signs", at)
    if plain.operations and fed >= limits.max_update_tokens:
        most = limits.max_update_tokens
        budget.exceeded("max_update_tokens", f"the update has more than {most:,} words and signs", at)
    budget.spend(at, _LOOK_EVERY // 16)
    most = limits.max_update_tokens - fed if plain.operations else _LOOK_EVERY
    return fed + min(_LOOK_EVERY, limits.max_query_tokens - outside, most)


def _accepted_after(source: Source, count: int) -> set[str]:
    """Return the types of tokens that the grammar accepts after the first `count` tokens.

    The parser that stopped at the error does not have this information. An LALR parser can apply reductions before it
    notices a wrong token. These reductions are perhaps right only in another context. This function therefore parses
    the tokens again.
    """
    parsing: Any = sparql().parse_interactive(source.parsed)
    state = parsing.parser_state
    for token in islice(parsing.lexer_thread.lex(state), count):
        state.feed_token(token)
    accepted: set[str] = parsing.accepts()
    return accepted
