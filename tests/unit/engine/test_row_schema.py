"""The Avro schemas of result records: names and types of fields, from the text of the query."""

from __future__ import annotations

import json

import fastavro
import pytest

import penstock
from penstock.engine.answers.avro.row_schema import record_name, row_schema
from penstock.errors import DataError
from penstock.query.resolve import as_query

HEAD = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> REGISTER QUERY q AS "
WHERE = "FROM STREAM <http://x/s> [RANGE 2s STEP 1s] WHERE { ?s <urn:p> ?o }"


def fields(select: str, where: str = WHERE, head: str = HEAD) -> dict[str, object]:
    schema = json.loads(row_schema(as_query(penstock.parse(f"{head}{select} {where}"))).text())
    fastavro.parse_schema(schema)
    assert (schema["namespace"], schema["name"]) == ("penstock", "Answer")
    return {field["name"]: field["type"] for field in schema["fields"]}


TIME = {"type": "long", "logicalType": "timestamp-millis"}
COMMON = {"_query": "string", "_time": TIME, "_snapshot": "long", "_error": ["null", "string"]}


def test_a_row_has_a_nullable_field_for_each_variable():
    expected = COMMON | {"_rows": "long", "_row": "long", "s": ["null", "string"], "o": ["null", "string"]}
    assert fields("SELECT ?s ?o") == expected
    assert list(fields("SELECT ?s ?o")) == list(expected)


def test_other_forms_have_one_field_with_the_answer():
    assert fields("ASK") == COMMON | {"boolean": ["null", "boolean"]}
    assert fields("CONSTRUCT { ?s <urn:q> ?o }") == COMMON | {"graph": ["null", "string"]}


def test_records_of_a_query_set_have_the_key_of_the_member():
    head = "REGISTER QUERY q (?s) AS "
    assert list(fields("SELECT ?o", head=head))[:3] == ["_query", "_member", "_time"]


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("COUNT(*)", "long"),
        ("COUNT(DISTINCT ?o)", "long"),
        ("STRLEN(STR(SAMPLE(?o)))", "long"),
        ("xsd:long(MAX(?o))", "long"),
        ("xsd:integer(MAX(?o))", "string"),  # integers of any size
        ("COUNT(*) + 1", "string"),
        ("SUM(?o)", "string"),
        ("AVG(?o)", "string"),
        ("xsd:double(AVG(?o))", "double"),
        ("xsd:float(AVG(?o))", "string"),
        ("MAX(?o) > 3", "boolean"),
        ("BOUND(?s) && COUNT(*) = 1", "boolean"),
        ("MAX(?o) IN (1, 2)", "boolean"),
        ("MAX(?o) NOT IN (1, 2)", "boolean"),
        ("!BOUND(?s)", "boolean"),
        ('CONTAINS(STR(?s), "a")', "boolean"),
        ("IF(BOUND(?s), 1, 2)", "string"),
    ],
)
def test_a_type_is_primitive_if_the_text_determines_it(expression, kind):
    assert fields(f"SELECT ?s ({expression} AS ?x)", f"{WHERE} GROUP BY ?s")["x"] == ["null", kind]


def test_types_hold_below_modifiers_and_end_at_patterns_and_subqueries():
    grouped = f"{WHERE} GROUP BY ?s HAVING (COUNT(*) > 1) ORDER BY ?n LIMIT 3"
    assert fields("SELECT DISTINCT ?s (COUNT(*) AS ?n) (?n AS ?m)", grouped)["m"] == ["null", "long"]
    inner = "FROM STREAM <http://x/s> [RANGE 2s STEP 1s] WHERE { { SELECT ?s (COUNT(*) AS ?n) { ?s <urn:p> ?o } GROUP BY ?s } }"
    assert fields("SELECT ?n", inner)["n"] == ["null", "long"]
    joined = inner[:-1] + "?s <urn:p> ?n }"
    assert fields("SELECT ?n", joined)["n"] == ["null", "string"]


@pytest.mark.parametrize("name", ["_query", "_row", "_error", "é", "1x"])
def test_a_variable_that_cannot_be_a_field_is_refused(name):
    with pytest.raises(DataError, match="rename it"):
        fields(f"SELECT (?o AS ?{name})")


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("near", "penstock.results.near"),
        ("http://x/q 1", "penstock.results.http___x_q_1"),
        ("7", "penstock.results._7"),
    ],
)
def test_the_schema_of_a_shared_topic_is_named_after_the_query(query, name):
    assert record_name(query) == name
