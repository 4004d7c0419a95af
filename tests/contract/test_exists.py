"""EXISTS substitutes each solution into its pattern (SPARQL 1.1 §18.6): what a row gives is its own affair."""

from __future__ import annotations

from typing import Any

import pytest

import penstock

PREFIX = "PREFIX : <urn:> "
STORED = b"""
<urn:z> <urn:alarm> <urn:9> .
<urn:a> <urn:q> <urn:b> .
<urn:b> <urn:q> <urn:c> .
<urn:c> <urn:n> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
<urn:a> <urn:q> <urn:b> <urn:g1> .
<urn:b> <urn:q> <urn:c> <urn:g2> .
"""


@pytest.fixture(scope="module")
def engine() -> Any:
    with penstock.Engine() as made:
        made.load(STORED, format="nquads")
        yield made


def ask(engine: Any, values: str, pattern: str) -> list[str]:
    """Return the ?s of the rows whose EXISTS holds."""
    answer = engine.query(f"{PREFIX}SELECT ?s {{ VALUES {values} FILTER EXISTS {{ {pattern} }} }}")
    return sorted(str(row["s"])[-1] for row in answer)


def test_a_variable_bound_in_some_rows_is_substituted_in_those(engine: Any) -> None:
    pattern = "OPTIONAL { ?l :alarm ?z } OPTIONAL { ?s :none ?z }"
    assert ask(engine, "(?s ?l) { (:a :9) (:b UNDEF) }", pattern) == ["a", "b"]


def test_a_path_of_length_zero_begins_at_a_term_that_some_rows_bind(engine: Any) -> None:
    values = "(?s ?x) { (:k :notanode) (:l UNDEF) }"
    assert ask(engine, values, "?x :q* ?w") == ["k", "l"]
    assert ask(engine, values, "?w :q* ?x") == ["k", "l"]
    assert ask(engine, values, "?x (:q|:r?) ?w") == ["k", "l"]
    assert ask(engine, values, "?x :q+ ?w") == ["l"]
    assert ask(engine, values, "?a :q ?b OPTIONAL { ?a :none ?w } ?x :q? ?w") == ["k", "l"]


def test_a_filter_in_a_nested_group_sees_what_the_row_binds(engine: Any) -> None:
    values = "(?s ?x) { (:k 1) (:l 2) (:m UNDEF) }"
    assert ask(engine, values, "?a :q ?b { ?c :q ?d FILTER(?x = 1) }") == ["k"]
    assert ask(engine, values, "{ ?c :q ?d FILTER(BOUND(?x)) } ?c :n ?x") == []
    assert ask(engine, values, "?c :n ?x { ?d :q ?c FILTER(BOUND(?x)) }") == ["k"]
    assert ask(engine, values, "?c :n ?x { ?d :q ?c FILTER(!BOUND(?x)) }") == ["m"]
    assert ask(engine, values, "{ FILTER(?x = 1) } UNION { ?c :n ?x FILTER(?x = 2) }") == ["k"]
    assert ask(engine, values, "?a :q ?b OPTIONAL { ?b :q ?c { ?c :n ?k FILTER(?x = 1) } } FILTER(BOUND(?k))") == ["k"]


def test_bind_values_and_sub_selects_are_joined_with_the_row(engine: Any) -> None:
    values = "(?s ?x) { (:k 1) (:l 2) (:m UNDEF) }"
    assert ask(engine, values, "BIND(1 AS ?x)") == ["k", "m"]
    assert ask(engine, values, "VALUES ?x { 1 3 }") == ["k", "m"]
    assert ask(engine, values, "{ SELECT ?x { ?c :n ?x } }") == ["k", "m"]
    assert ask(engine, values, "{ SELECT (COUNT(*) AS ?x) { ?c :n ?k } }") == ["k", "m"]
    assert ask(engine, values, "BIND(?x + 1 AS ?y) FILTER(?y = 2)") == ["k"]


def test_what_is_substituted_is_no_variable_that_minus_shares(engine: Any) -> None:
    values = "(?s ?x) { (:k :a) (:l UNDEF) }"
    assert ask(engine, values, "?x :q ?y MINUS { ?x :q ?z }") == ["k"]  # in the other row ?x is shared
    assert ask(engine, values, "?x :q ?y MINUS { ?x :q ?y }") == []
    assert ask(engine, values, "?x :q ?y MINUS { ?y :q ?z FILTER(?x = :a) }") == ["l"]


def test_the_name_of_a_graph_is_substituted_inside_and_outside(engine: Any) -> None:
    values = "(?s ?g) { (:k :g1) (:l :g2) (:m UNDEF) (:n :g3) }"
    assert ask(engine, values, "GRAPH ?g { ?a :q :b }") == ["k", "m"]
    assert ask(engine, values, "GRAPH ?g { ?a :q ?b FILTER(?g = :g1) }") == ["k"]
    assert ask(engine, values, "GRAPH ?g { OPTIONAL { ?g :q ?b } FILTER(!BOUND(?b)) }") == ["k", "l"]


def test_exists_within_exists_sees_both_rows(engine: Any) -> None:
    values = "(?s ?x) { (:k :a) (:l :b) (:m UNDEF) }"
    assert ask(engine, values, "?x :q ?y FILTER EXISTS { ?y :q ?z FILTER(?x = :a) }") == ["k", "m"]
    assert ask(engine, values, "?y :q :c FILTER NOT EXISTS { ?x :q ?y }") == ["l"]
    assert ask(engine, values, "?c :n ?k FILTER EXISTS { { ?a :q ?b FILTER(?x = :a) } }") == ["k"]


def test_exists_in_expressions_and_in_the_condition_of_an_optional(engine: Any) -> None:
    query = """SELECT ?s ?has { VALUES (?s ?x) { (:k :notanode) (:l UNDEF) (:m 1) }
               BIND(EXISTS { { ?a :q ?b FILTER(?x = 1) } UNION { ?x :none? ?w FILTER(?w = :notanode) } } AS ?has) }"""
    found = {str(row["s"])[-1]: str(row["has"]) for row in engine.query(PREFIX + query)}
    assert found == {"k": "true", "l": "false", "m": "true"}
    query = """SELECT ?s ?b { VALUES (?s ?x) { (:k 1) (:l UNDEF) (:m 2) }
               OPTIONAL { :a :q ?b FILTER EXISTS { ?c :n ?k { ?d :q ?c FILTER(?x = 1) } } } }"""
    found = {str(row["s"])[-1]: str(row.get("b")) for row in engine.query(PREFIX + query)}
    assert found == {"k": "urn:b", "l": "None", "m": "None"}


def test_many_variables_that_may_be_unbound_are_refused_by_name(engine: Any) -> None:
    def query(n: int) -> str:
        optionals = " ".join(f"OPTIONAL {{ ?s :none ?v{k} }}" for k in range(n))
        paths = " ".join(f"?v{k} :q* ?w ." for k in range(n))
        return f"{PREFIX}SELECT ?s {{ ?s :q ?o {optionals} FILTER EXISTS {{ {paths} }} }}"

    assert len(engine.query(query(3))) == 2
    with pytest.raises(penstock.QueryLimitError, match=r"the limit is 6 \(MAX_EXISTS_OPTIONALS\)") as caught:
        engine.query(query(7))
    line = query(7).splitlines()[caught.value.line - 1]
    assert line[caught.value.column - 1 :].startswith("EXISTS")
