"""Errors say what was expected, what was found, and where, in the text as the user wrote it."""

from __future__ import annotations

import pytest

from penstock import LimitError, QueryError, QueryLimitError, parse
from penstock.query.budget import PlanningLimits
from penstock.query.ir import Update
from penstock.query.resolve import as_query


def error(text: str) -> QueryError:
    with pytest.raises(QueryError) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "message", "construct"),
    [
        ("SELECT * { ?s ?p ?o ] }", "expected ',', '.', ';', '}' or a pattern, found ']'", "]"),
        ("SELECT * { ?s ?p }", "expected a term, found '}'", "}"),
        ("SELECT * { ?s ; }", "expected a predicate or a variable, found ';'", ";"),
        ("SELECT * { ?s ?p ?o FILTER ?o }", "expected a condition, found '?o'", "?o"),
        ("SELECT * { FILTER(?a ?b) }", "expected ')' or an operator, found '?b'", "?b"),
        ("SELECT * { FILTER(?a + ) }", "expected an expression, found ')'", ")"),
        ("SELECT { ?s ?p ?o }", "expected '(', '*', DISTINCT, REDUCED or a variable, found '{'", "{"),
        ("SELECT * { BIND(1 AS x) }", "expected a variable, found 'x'", "x"),
        ("SELECT * {} LIMIT ?x", "expected an integer, found '?x'", "?x"),
        ("SELECT * { GRAPH stream {} }", "found 'stream': a keyword cannot be a name", "stream"),
        ("SELECT * { ?s <a b> ?o }", "found '<': an IRI has no spaces", "<"),
        ("SELECT * FROM STREAM <s> {}", "expected '[', found '{'", "{"),
        ("SELECT * FROM STREAM <s> [10s] {}", "expected ALL, ELEMENTS, NOW, RANGE or TRIPLES, found '10'", "10"),
        ("SELECT * FROM STREAM <s> [RANGE 10s EVERY 1s] {}", "expected ']', SLIDE, STEP or TUMBLING", "EVERY"),
        ("SELECT * FROM STREAM <s> [RANGE 10 lightyears] {}", "unknown unit 'lightyears'", "10lightyears"),
        ("SELECT * FROM STREAM <s> [RANGE 1 parsec] {}", "unknown unit 'parsec'", "1parsec"),
        (
            "REGISTER QUERY q SELECT * {}",
            "expected '(', AS, COMPUTED, FROM, REPORT or STARTING, found 'SELECT'",
            "SELECT",
        ),
        ("REGISTER q AS SELECT * {}", "expected DSTREAM, ISTREAM, QUERY, RSTREAM or STREAM, found 'q'", "q"),
        ("SELECT * {} }", "the end of the query, found '}'", "}"),
        ("SELECT * { ?s ?p 'unfinished }", "this string does not end", "'"),
        ("SELECT * { ?s ?p 'bad \\q escape' }", "this string does not end, or has an escape", "'"),
        ("SELECT * { ?s ?p ~ }", "unexpected character '~'", "~"),
        ("SELECT * { ?s ?p \\ }", "a backslash cannot stand here", "\\"),
        ("ASK { ?s ?p '\\uD800' }", "is not a Unicode character", "\\uD800"),
        ("ASK { ?s ?p '\\U00110000' }", "is not a Unicode character", "\\U00110000"),
        ("ASK { ?s ?p '\ud800' }", "lone surrogate", ""),
        ("LOAD ;", "expected an IRI or a name or SILENT, found ';'", ";"),
        ("CLEAR <g>", "expected ALL, DEFAULT, GRAPH, NAMED or SILENT, found '<g>'", "<g>"),
        ("CREATE DEAFULT", "expected GRAPH or SILENT, found 'DEAFULT'", "DEAFULT"),
        ("DROP GRAPHH <g>", "did you mean GRAPH?", "GRAPHH"),
        ("COPY <a> <b>", "expected TO, found '<b>'", "<b>"),
        ("WITH <g> INSERT DATA {}", "expected '{', found 'DATA'", "DATA"),
        ("INSERT WHERE { ?s ?p ?o }", "expected '{' or DATA, found 'WHERE'", "WHERE"),
        ("DELETE { ?s ?p ?o }", "expected INSERT, USING or WHERE, found the end of the query", ""),
        ("CREATE GRAPH <g> LOAD <h>", "expected ';' or the end of the query, found 'LOAD'", "LOAD"),
        ("CREATE GRAPH <g> ;; LOAD <h>", "found ';': one ; stands between two operations", ";"),
    ],
)
def test_messages(text: str, message: str, construct: str) -> None:
    caught = error(text)
    assert message in caught.message
    if construct:
        assert caught.construct == construct
        place = text.splitlines()[caught.line - 1][caught.column - 1 :]
        assert place.replace(" ", "").startswith(construct.replace(" ", ""))


def test_the_caret_stands_below_the_construct() -> None:
    caught = error("PREFIX : <urn:>\nSELECT * {\n\t?s :p ?o ;; .\n  FILTER(?o >> 1)\n}")
    assert (caught.line, caught.column) == (4, 14)
    assert str(caught).splitlines()[1:] == ["    FILTER(?o >> 1)", "               ^"]


@pytest.mark.parametrize("ending", ["", "\n", "  \n\n"])
def test_a_text_that_ends_too_early_points_behind_its_last_character(ending: str) -> None:
    caught = error("SELECT *\n{ ?s ?p" + ending)
    assert (caught.line, caught.column, caught.construct) == (2, 8, "")
    assert "found the end of the query" in caught.message


@pytest.mark.parametrize("text", ["", "# nothing", "PREFIX : <urn:x:>"])
def test_an_empty_text_is_an_update_without_operations(text: str) -> None:
    statement = parse(text)
    assert isinstance(statement, Update)
    assert statement.operations == ()
    with pytest.raises(QueryError, match="expected a query, found the end of the text"):
        as_query(statement)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r", "\u2028"])
def test_lines_are_those_that_python_splits(newline: str) -> None:
    caught = error(
        f"SELECT *{newline}{{{newline} ?s ?p ?o ?q }}" if newline != "\u2028" else f"ASK {{ ?s ?p '{newline}' ?x }}"
    )
    assert caught.text.splitlines()[caught.line - 1][caught.column - 1 :].startswith(("?q", "?x"))


def test_positions_count_escapes_as_they_were_written() -> None:
    text = "ASK { ?s <\\u0061\\U00000062> 'x\\u0041' . ?\\u0061 ?b }"
    caught = error(text)
    assert text[caught.column - 1 :] == "}"
    caught = error("ASK { <\\u0061> nope:x 1 }")
    assert (caught.construct, caught.column) == ("nope:x", 16)


def test_long_constructs_are_shortened_in_the_message() -> None:
    caught = error("SELECT * { " + "x" * 5_000)
    assert len(caught.message) < 200


def limited(text: str, **limits: int) -> QueryLimitError:
    with pytest.raises(QueryLimitError) as caught:
        parse(text, limits=PlanningLimits(**limits))
    return caught.value


def test_a_text_beyond_a_limit_is_refused_with_its_name_and_place() -> None:
    long = limited("ASK {}" + " " * 100, max_text_bytes=100)
    assert long.message == "the text has 106 bytes, of at most 100 (max_text_bytes): split the query"
    many = limited("ASK { ?a ?b ?c .\n ?a ?b ?c . }", max_query_tokens=10)
    assert many.message == "the query has more than 10 words and signs (max_query_tokens): split the query"
    assert (many.line, many.column) == (2, 13)
    assert isinstance(many, LimitError)
    parse("ASK { ?a ?b ?c ; ?b ?c }", limits=PlanningLimits(max_query_tokens=10))


def test_an_update_has_a_limit_of_its_own() -> None:
    text = "INSERT DATA { " + "<urn:a> <urn:b> <urn:c> . " * 300 + "}"
    assert isinstance(parse(text, limits=PlanningLimits(max_query_tokens=10)), Update)
    found = limited(text, max_query_tokens=10, max_update_tokens=1000)
    assert "the update has more than 1,000 words and signs (max_update_tokens)" in found.message


def test_a_long_line_is_shown_around_the_fault() -> None:
    shown = str(error("SELECT * { ?s ?p ?o . " * 1 + "?s ?p ?o . " * 5_000 + "FILTER }"))
    assert len(shown) < 1_000
    _, line, caret = shown.split("\n")
    assert line[caret.index("^")] == "}"
