"""What the grammar allows and the language does not (docs/semantics.md §4, §5; notes of the SPARQL grammar)."""

from __future__ import annotations

import pytest

from penstock import QueryError, parse

PREFIX = "PREFIX : <http://ex.org/> "


def refusal(text: str, base: str | None = None) -> QueryError:
    with pytest.raises(QueryError) as caught:
        parse(PREFIX + text, base)
    assert caught.value.text == PREFIX + text
    return caught.value


@pytest.mark.parametrize(
    ("text", "complaint", "construct"),
    [
        # scopes
        ("SELECT * { ?s :p ?o BIND(1 AS ?o) }", "already bound", "?o"),
        ("SELECT * { VALUES ?o { 1 } BIND(1 AS ?o) }", "already bound", "?o"),
        ("SELECT * { { ?s :p ?o } BIND(1 AS ?o) }", "already bound", "?o"),
        ("SELECT * { { SELECT (1 AS ?o) {} } BIND(1 AS ?o) }", "already bound", "?o"),
        ("SELECT (1 AS ?o) { ?s :p ?o }", "already in use", "?o"),
        ("SELECT (1 AS ?z) (2 AS ?z) {}", "gives it twice", "?z"),
        ("SELECT (?s AS ?k) { ?s :p ?o } GROUP BY (?o AS ?s)", "already in use", "?s"),
        ("SELECT * { VALUES (?x $x) {} }", "stands twice", "$x"),
        ("SELECT * { VALUES (?x ?y) { (1 2) (3) } }", "1 values for 2 variables", "3"),
        ("SELECT * { VALUES () { (1) } }", "1 values for 0 variables", "1"),
        # blank nodes
        ("SELECT * { _:a :p 1 OPTIONAL { _:a :q 2 } }", "two basic graph patterns", "_:a"),
        ("SELECT * { _:a :p 1 {} _:a :q 2 }", "two basic graph patterns", "_:a"),
        ("SELECT * { _:a :p 1 FILTER EXISTS { _:a :q 2 } }", "two basic graph patterns", "_:a"),
        ("INSERT DATA { _:a :p 1 } ; INSERT DATA { _:a :p 1 }", "two INSERT DATA", "_:a"),
        # grouping
        ("SELECT * { ?s :p ?o } GROUP BY ?s", "SELECT *", "SELECT"),
        ("SELECT * { ?s :p ?o } HAVING(COUNT(*) > 1)", "SELECT *", "SELECT"),
        ("SELECT ?o { ?s :p ?o } GROUP BY ?s", "neither in GROUP BY", "?o"),
        ("SELECT (?o + 1 AS ?z) { ?s :p ?o } GROUP BY ?s", "neither in GROUP BY", "?o"),
        ("SELECT ?s (COUNT(*) AS ?n) { ?s :p ?o }", "neither in GROUP BY", "?s"),
        ("SELECT (?s + COUNT(*) AS ?n) { ?s :p ?o }", "neither in GROUP BY", "?s"),
        ("SELECT (SUM(COUNT(?o)) AS ?n) { ?s :p ?o }", "not inside one another", "COUNT"),
        ("SELECT * { ?s :p ?o FILTER(COUNT(?o) > 1) }", "belong in SELECT", "COUNT"),
        ("SELECT ?s { ?s :p ?o } GROUP BY (MAX(?o) AS ?m)", "belong in SELECT", "MAX"),
        ("SELECT (COUNT(?o) AS ?n) { ?s :p ?o FILTER EXISTS { FILTER(SUM(?o) > 1) } }", "belong in SELECT", "SUM"),
        # functions
        ("SELECT * { FILTER(strlen()) }", "strlen takes 1 argument, not 0", "strlen"),
        ("SELECT * { FILTER(SUBSTR('a')) }", "SUBSTR takes 2 to 3 arguments, not 1", "SUBSTR"),
        ("SELECT * { FILTER(IF(1, 2)) }", "IF takes 3 arguments, not 2", "IF"),
        ("SELECT * { FILTER(NOW(1)) }", "expected '\\)'", "1"),
        ("SELECT * { FILTER(BOUND(1)) }", "BOUND takes a variable", "1"),
        ("SELECT * { FILTER(:f(1)) }", "no function <http://ex.org/f>", ":f"),
        ("SELECT * { FILTER(frob(1)) }", "no function 'frob'", "frob"),
        ("SELECT * { FILTER(str(DISTINCT ?x)) }", "DISTINCT is for aggregates", "str"),
        ("SELECT * { FILTER(<http://www.w3.org/2001/XMLSchema#integer>(1, 2)) }", "takes 1 argument", "<http://"),
        ("SELECT * { BIND(<urn:x-penstock:fn/timestamp>(?s, ?p, ?o) AS ?t) }", "needs a window", "<urn:"),
        # templates and data
        ("CONSTRUCT { ?s :p/:q ?o } { ?s :p ?o }", "path cannot stand in a CONSTRUCT template", ":p"),
        ("CONSTRUCT WHERE { ?s :p* ?o }", "path cannot stand in a CONSTRUCT template", ":p"),
        ("INSERT DATA { :s :p ?o }", "variable cannot stand in INSERT DATA", "?o"),
        ("INSERT DATA { GRAPH :g { ?s :p :o } }", "variable cannot stand in INSERT DATA", "?s"),
        ("INSERT DATA { :s :p* :o }", "path cannot stand in INSERT DATA", ":p"),
        ("INSERT DATA { 1 :p :o }", "literal cannot be the subject", "1"),
        # what there is not
        ("SELECT * { SERVICE <urn:s> { ?s ?p ?o } }", "SERVICE is not supported", "SERVICE"),
        ("SELECT * { SERVICE SILENT ?s { ?s ?p ?o } }", "SERVICE is not supported", "SERVICE"),
        ("SELECT * {} LIMIT 99999999999999999999", "too large", "99999999999999999999"),
        # names
        ("SELECT * { ?s ex:p ?o }", "prefix 'ex:' is not declared", "ex:p"),
        ("SELECT * { ?s po ?o }", "bare name 'po'.*base", "po"),
        # windows
        ("SELECT * FROM STREAM :s [NOW] FROM NAMED STREAM :s [NOW] {}", "stands in two clauses", ":s"),
        ("SELECT * FROM NAMED WINDOW :w ON :s [NOW] FROM NAMED WINDOW :w ON :t [NOW] {}", "two windows", ":w"),
        ("SELECT * FROM STREAM :s [RANGE 1s] FROM STREAM :t [TRIPLES 5] {}", "count windows and time windows", ":t"),
        ("SELECT * FROM STREAM :s [ALL] {}", r"\[ALL\] needs a step", "[ALL]"),
        ("SELECT * FROM STREAM :s [RANGE 0s] {}", "greater than zero", "0s"),
        ("SELECT * FROM STREAM :s [RANGE -5 s] {}", "greater than zero", "-5s"),
        ("SELECT * FROM STREAM :s [RANGE -PT5S] {}", "greater than zero", "-PT5S"),
        ("SELECT * FROM STREAM :s [RANGE 10s STEP 0ms] {}", "greater than zero", "0ms"),
        ("SELECT * FROM STREAM :s [RANGE 99999999999999d] {}", "too long", "99999999999999d"),
        ("SELECT * FROM STREAM :s [TRIPLES 0] {}", "1 to", "0"),
        ("SELECT * FROM STREAM :s [TRIPLES 5 STEP -1] {}", "1 to", "-1"),
        ("SELECT * FROM STREAM :s [TRIPLES 99999999999999] {}", "1 to", "99999999999999"),
        ("SELECT * FROM STREAM :s [NOW] { WINDOW :w {} }", "no FROM NAMED WINDOW", ":w"),
        ("SELECT * FROM NAMED STREAM :s [NOW] { WINDOW :s {} }", "write GRAPH :s", ":s"),
        ("SELECT * FROM NAMED WINDOW :w ON :s [NOW] { GRAPH :w {} }", "write WINDOW :w", ":w"),
        # registration
        ("REGISTER QUERY q AS SELECT * {}", "needs a window", "REGISTER"),
        ("REGISTER QUERY q COMPUTED EVERY 0s AS SELECT * FROM STREAM :s [NOW] {}", "greater than zero", "0s"),
        ("REGISTER QUERY q COMPUTED EVERY 1s AS SELECT * FROM STREAM :s [TRIPLES 5] {}", "for time windows", ":s"),
        ("REGISTER QUERY q STARTING AT 'soon' AS SELECT * FROM STREAM :s [NOW] {}", "not an xsd:dateTime", "'soon'"),
        ("REGISTER ISTREAM q AS ASK FROM STREAM :s [NOW] {}", "ISTREAM cannot be used with ASK", "ISTREAM"),
        ("REGISTER DSTREAM q AS SELECT * FROM STREAM :s [NOW] { ?s ?p ?o } ORDER BY ?s", "with ORDER BY", "?s"),
        ("REGISTER ISTREAM q AS SELECT * FROM STREAM :s [NOW] {} LIMIT 1", "with LIMIT", "1"),
        ("REGISTER ISTREAM q AS CONSTRUCT {} FROM STREAM :s [NOW] {} OFFSET 1", "LIMIT or OFFSET", "1"),
    ],
)
def test_refused(text: str, complaint: str, construct: str) -> None:
    error = refusal(text)
    with pytest.raises(QueryError, match=complaint):
        raise error
    assert error.construct.startswith(construct)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { ?s :p ?o { BIND(1 AS ?o) } }",
        "SELECT * { BIND(1 AS ?o) ?s :p ?o }",
        "SELECT * { ?s :p ?x MINUS { ?s :p ?o } BIND(1 AS ?o) }",
        "SELECT * { _:a :p 1 FILTER(true) _:a :q 2 }",
        "CONSTRUCT { _:a :p 1 } { _:a :p 1 }",
        "SELECT ?s ?s { ?s :p ?o }",
        "SELECT (COUNT(?o) AS ?n) (?n + 1 AS ?m) { ?s :p ?o }",
        "SELECT ?s { ?s :p ?o } GROUP BY ?s ORDER BY ?o",
        "SELECT ?k { ?s :p ?o } GROUP BY (str(?s) AS ?k)",
        "SELECT (COUNT(?s) AS ?s2) { { SELECT ?s { ?s :p ?o } } }",
        "REGISTER ISTREAM q AS SELECT * FROM STREAM :s [NOW] { { SELECT * { ?s ?p ?o } ORDER BY ?s LIMIT 1 } }",
        "SELECT * FROM NAMED WINDOW :w ON :s [NOW] FROM NAMED WINDOW :v ON :s [NOW] FROM STREAM :s [NOW] {}",
        "INSERT DATA {}",
        "INSERT DATA { :s :p 1 } ;",
    ],
)
def test_allowed(text: str) -> None:
    parse(PREFIX + text)


def test_having_that_reads_a_select_alias_is_warned_about() -> None:
    statement = parse("SELECT ?s (COUNT(?o) AS ?n) { ?s <urn:p> ?o } GROUP BY ?s HAVING(?n > 1)")
    assert any("HAVING is decided before SELECT" in warning for warning in statement.warnings)  # type: ignore[union-attr]


def test_a_template_variable_that_nothing_binds_is_warned_about() -> None:
    statement = parse("CONSTRUCT { ?s <urn:p> ?nothing } { ?s ?p ?o }")
    assert statement.warnings == ("the template uses ?nothing, which the pattern never binds",)  # type: ignore[union-attr]


def test_functions_unknown_here_can_be_let_through() -> None:
    parse("ASK { FILTER <urn:f>(1, DISTINCT) }".replace(", DISTINCT", ""), any_function=True)


@pytest.mark.parametrize(
    "shape",
    [
        lambda n: "ASK " + "{" * n + "}" * n,
        lambda n: "ASK { FILTER(" + "!(" * n + "1" + ")" * n + ") }",
        lambda n: "ASK { FILTER(" + "+".join(["?o"] * n) + ") }",
        lambda n: "ASK { ?s ?p " + "[ ?p " * n + "1" + "]" * n + "}",
        lambda n: "ASK { ?s ?p " + "(" * n + "1" + ")" * n + "}",
        lambda n: "ASK { ?s " + "(" * n + "<p>" + ")*" * n + " ?o }",
        lambda n: "ASK " + "{ SELECT * " * n + "{}" + "}" * n,
        lambda n: "ASK { " + "OPTIONAL { ?s ?p ?o } " * n + "}",
        lambda n: "ASK { " + "FILTER EXISTS { " * n + "}" * n + "}",
    ],
)
def test_depth_is_bounded(shape) -> None:
    parse(shape(20))
    with pytest.raises(QueryError, match="nested too deeply"):
        parse(shape(3_000))
