"""Random trees printed and read again are the same trees; no text makes the front end raise anything but QueryError."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock import QueryError, parse
from penstock.query.algebra.walk import nodes
from penstock.query.ir import ContinuousQuery
from penstock.query.parser import parse_syntax
from penstock.query.syntax.lexis import KEYWORDS
from support.syntax_printing import printed
from support.syntax_trees import TreeMaker

RELAXED = settings(max_examples=300)
TREES = st.randoms(use_true_random=True).map(lambda rng: TreeMaker(rng).text())

PIECES = [
    *sorted(KEYWORDS), *"{}()[].;,*+-/|!?^=<>&:#\\", "&&", "||", "^^", "<urn:x>", "?x", "$y", "_:b", "a", "ex:p", ":", "1",
    "-1", "+2.5", "1e9", "'s'", '"t"@en', "'''", '"""', "true", "10s", "PT1S", "strlen", "name", "\n", " ", "\\u0041",
    "\\U0001F600", "\\uD800", "\x00", "\ufeff", "é", "\U0001f600", "\ud800",
]  # fmt: skip


@RELAXED
@given(TREES)
def test_a_printed_tree_is_read_back(tree) -> None:
    assert parse_syntax(printed(tree)) == tree


@RELAXED
@given(TREES)
def test_a_tree_is_translated_or_refused_with_a_place(tree) -> None:
    text = printed(tree)
    error = _refusal(text)
    if error is not None:
        lines = text.splitlines()
        assert 1 <= error.line <= len(lines)
        assert lines[error.line - 1][error.column - 1 :].startswith(error.construct[:1])
    else:
        statement = parse(text, "http://base.org/")
        assert isinstance(statement, ContinuousQuery)
        assert all(node.at < len(text) for node in nodes(statement.algebra))


@RELAXED
@given(st.lists(st.sampled_from(PIECES), max_size=30), st.sampled_from(["", " "]))
@example(["\x85"], "")
@example(["ASK", "{", "\\uD800"], "")
def test_garbage_of_tokens_is_refused_clearly(pieces: list[str], between: str) -> None:
    _harmless(between.join(pieces))


@RELAXED
@given(st.text(max_size=80))
def test_garbage_of_characters_is_refused_clearly(text: str) -> None:
    _harmless(text)


@RELAXED
@given(TREES, st.data())
def test_damaged_texts_are_refused_clearly(tree, data) -> None:
    text = printed(tree)
    at = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 5))
    _harmless(text[:at] + data.draw(st.sampled_from(PIECES)) + text[at + length :])


def _refusal(text: str) -> QueryError | None:
    try:
        parse(text, "http://base.org/")
    except QueryError as error:
        return error
    return None


def _harmless(text: str) -> None:
    error = _refusal(text)
    if error is not None:
        assert error.message
        assert 1 <= error.line <= max(1, len(text.splitlines()) + 1)
        assert error.column >= 1
        assert str(error)
