"""Mistakes of newcomers: each error points at the token at fault and says what was probably meant."""

from __future__ import annotations

import pytest

from penstock import QueryError, parse

SOURCE = "FROM STREAM <urn:s>"
MISTAKES = [
    # (text, the construct, where it begins (-1: at the end), a part of the message)
    (f"SELECT * {SOURCE} [RANGE 10 STEP 5] {{ ?s ?p ?o }}", "10", "10 STEP", "a duration needs a unit: write 10s or 10ms"),
    (f"SELECT * {SOURCE} [RANGE 10s STEP 5] {{ ?s ?p ?o }}", "5", "5]", "a duration needs a unit: write 5s or 5ms"),
    (f"SELECT * {SOURCE} [10s] {{ ?s ?p ?o }}", "10", "10s", "write [RANGE 10s STEP 1s]"),
    (f"SELECT * {SOURCE} {{ ?s ?p ?o }}", "{", "{", "a stream needs a window"),
    (f"SELECT * {SOURCE} RANGE 10s {{ ?s ?p ?o }}", "RANGE", "RANGE", "a stream needs a window"),
    (f"SELECT * {SOURCE} [RANGE 10sec] {{ ?s ?p ?o }}", "10sec", "10sec", "unknown unit 'sec'"),
    (f"SELECT * {SOURCE} [RANGE 10s SLIDE BY 5s] {{ ?s ?p ?o }}", "BY", "BY", "leave BY out"),
    ("SELECT * { ?s ?p ?o FILTR(?o > 3) }", "FILTR", "FILTR", "did you mean FILTER?"),
    ("SELECT * { ?s ?p ?o . FILTR(?o > 3) }", "FILTR", "FILTR", "did you mean FILTER?"),
    ("SELECT * { ?s ?p ?o . OPTINAL { ?s ?q ?r } }", "OPTINAL", "OPTINAL", "did you mean OPTIONAL?"),
    ("SELECT * { { ?s ?p ?o } UNOIN { ?s ?p ?o } }", "UNOIN", "UNOIN", "did you mean UNION?"),
    ("SELECT ?s WHER { ?s ?p ?o }", "WHER", "WHER", "did you mean WHERE?"),
    ("SELCT ?s { ?s ?p ?o }", "SELCT", "SELCT", "did you mean SELECT?"),
    ("SELECT * { ?s ?p ?o } ODER BY ?s", "ODER", "ODER", "did you mean ORDER?"),
    (f"REGISTER QUERY count AS SELECT * {SOURCE} [RANGE 1s] {{ ?s ?p ?o }}", "count", "count", "a keyword cannot be a name"),
    (f"REGISTER QUERY max AS SELECT * {SOURCE} [RANGE 1s] {{ ?s ?p ?o }}", "max", "max", "a keyword cannot be a name"),
    ("SELECT * FROM STREAM data [RANGE 1s] { ?s ?p ?o }", "data", "data", "a keyword cannot be a name"),
    ("SELECT * { ?s ?p ?o ?a ?b ?c }", "?a", "?a", "is a '.' missing before it?"),
    ("SELECT * { ?s ?p ?o", "", -1, "a '}' is missing"),
    ("SELECT * { ?s ?p ?o } }", "}", 22, "there is no '{' that it closes"),
    ('SELECT * { ?s ?p ?o FILTER(str(?o) = "a" }', "}", "}", "a ')' is missing"),
    ("SELECT ?s WHERE ?s ?p ?o", "?s", 16, "a pattern stands between { and }"),
    ("SELECT ?s { ?s ?p ?o };", ";", ";", "no ; follows a query"),
    ("SELECT * { ?s ex:p ?o }", "ex:p", "ex:p", "add PREFIX ex: <…> at the beginning"),
    ("SELECT * { ?s rdf:type ?o }", "rdf:type", "rdf:type", "add PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>"),
    ("PREFIX ex <http://ex.org/> SELECT * { ?s ?p ?o }", "ex", "ex <", "write PREFIX ex: <…>"),
    ("PREFIX ex: http://ex.org/ SELECT * { ?s ?p ?o }", "http:", "http:", "write an IRI between < and >"),
    ("PREFIX ex: <http://ex.org/> . SELECT * { ?s ?p ?o }", ".", ". S", "no full stop follows PREFIX"),
    ("@prefix ex: <http://ex.org/> . SELECT * { ?s ?p ?o }", "@prefix", "@prefix", "write PREFIX, without @"),
    ("SELECT * { ?s http://ex.org/p ?o }", "http:/", "http:", "write an IRI between < and >"),
    ("SELECT * { <http://a b> ?p ?o }", "<", "<", "an IRI has no spaces"),
    ("SELECT * { ?s ?p ?o } GROUP BY ?s", "SELECT", "SELECT", "name the variables"),
    ("SELECT * { ?s ?p ?o FILTER(Regexp(?o, 'a')) }", "Regexp", "Regexp", "did you mean REGEX?"),
    ("SELECT * { ?s ?p ?o FILTER(starts_with(?o, 'a')) }", "starts_with", "starts_with", "did you mean STRSTARTS?"),
    ("SELECT * { ?s ?p ?o FILTER(CONTAIN(?o, 'a')) }", "CONTAIN", "CONTAIN", "did you mean CONTAINS?"),
    ("SELECT * { ?s ?p ?o FILTER(<http://www.w3.org/2001/XMLSchema#Integer>(?o)) }", "<http://www.w3.org/2001/XMLSchema#Integer>", "<http", "did you mean <http://www.w3.org/2001/XMLSchema#integer>?"),
    ("SELECT * { ?s ?p \u201ca\u201d }", "\u201c", "\u201c", "a string stands between"),
    ("SELECT * { ?s ?p \u2018a\u2019 }", "\u2018", "\u2018", "a string stands between"),
    ('SELECT * { ?s ?p "a\nb" }', '"', '"', 'one over several lines stands between """'),
    ("SELECT * { ?s ?p ?o FILTER(?o == 3) }", "==", "==", "compare with a single ="),
    ("SELECT * { ?s ?p ?o FILTER(not ?o = 3) }", "not", "not", "write !(…)"),
    ("SELECT * { ?s ?p ?o FILTER(?o = 3 and ?s = 4) }", "and", "and", "write && for 'and'"),
    ("SELECT * { ?s ?p ?o FILTER(?o = 3 OR ?s = 4) }", "OR", "OR", "write || for 'or'"),
    ("SELECT * { ?s ?p ?o FILTER(?o <> 3) }", "<>", "<>", "write != for 'not equal'"),
    ("SELECT * { ?s ?p ?o FILTER(?o LIKE 'a%') }", "LIKE", "LIKE", "use CONTAINS, STRSTARTS or REGEX"),
    ("SELECT * { ?s ?p ?o FILTER(?o IS NULL) }", "IS", "IS", "use BOUND(?x)"),
    ("SELECT * { ?s ?p ?o FILTER(?o BETWEEN 1 AND 3) }", "BETWEEN", "BETWEEN", "write ?x >= low && ?x <= high"),
    ("SELECT * { ?s ?p ?o FILTER ?o > 3 }", "?o", 27, "put the condition into brackets"),
    ("SELECT * { ?s ?p ?o BIND ?o AS ?x }", "?o", 25, "write BIND(… AS ?name)"),
    ("SELECT * { ?s ?p ?o BIND(?o + 1) }", ")", ")", "name the value: (… AS ?name)"),
    ("SELECT * { ?s ?p ?o } ORDER BY DESC ?s", "?s", 36, "write DESC(…)"),
    ("SELECT COUNT(?s) AS ?n { ?s ?p ?o }", "COUNT", "COUNT", "write (COUNT(…) AS ?name)"),
    ("SELECT (COUNT(?s)) { ?s ?p ?o }", ")", 17, "name the value: (… AS ?name)"),
    ("SELECT ?s, ?p { ?s ?p ?o }", ",", ",", "without commas"),
    ("SELECT TOP 5 * { ?s ?p ?o }", "TOP", "TOP", "use LIMIT"),
    ("SELECT * { ?s ?p ?o } -- all", "-", "-", "a comment begins with #"),
    ("SELECT * { ?s ?p ?o // all\n }", "/", "/", "a comment begins with #"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "construct", "place", "message"), MISTAKES, ids=[m[0][:60] for m in MISTAKES])
def test_a_mistake_is_explained_where_it_stands(text, construct, place, message):
    with pytest.raises(QueryError) as caught:
        parse(text)
    error = caught.value
    assert message in error.message
    assert error.construct == construct
    at = len(text) if place == -1 else place if isinstance(place, int) else text.index(place)
    assert (error.line, error.column) == (1, at + 1)


def test_escapes_before_a_mistake_do_not_move_it():
    with pytest.raises(QueryError, match="did you mean FILTER") as caught:
        parse('SELECT * { ?s ?p "\\u0041" . FILTR(?o > 3) }')
    assert caught.value.column == 29
