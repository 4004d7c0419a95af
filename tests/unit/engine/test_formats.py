"""The W3C's result formats, character by character where it matters."""

from __future__ import annotations

import csv
import io
import json
from xml.etree import ElementTree as ET

import pyoxigraph as ox
import pytest

from penstock import DataError
from penstock.engine.answers import result_formats as formats
from penstock.rdf.terms import RDF_LANG_STRING, XSD_STRING

XSD = "http://www.w3.org/2001/XMLSchema#"
IRI = (1, "http://ex.org/a?b=1&c", "", "")
BLANK = (2, "b7", "", "")
PLAIN = (3, 'say "hi",\r\n\tnow\\ <&>', XSD_STRING, "")
TAGGED = (3, "chat", RDF_LANG_STRING, "fr-CA")
NUMBER = (3, "054", XSD + "integer", "")
ODD = (3, "abc", XSD + "integer", "")
ROWS = [(IRI, BLANK), (PLAIN, TAGGED), (NUMBER, None), (ODD, (3, "", XSD_STRING, ""))]
NAMES = ("x", "y")


def test_json_has_the_types_of_the_recommendation():
    document = json.loads(formats.to_json(NAMES, ROWS))
    assert document["head"] == {"vars": ["x", "y"]}
    bindings = document["results"]["bindings"]
    assert bindings[0] == {"x": {"type": "uri", "value": IRI[1]}, "y": {"type": "bnode", "value": "b7"}}
    assert bindings[1]["y"] == {"type": "literal", "value": "chat", "xml:lang": "fr-CA"}
    assert bindings[1]["x"] == {"type": "literal", "value": PLAIN[1]}
    assert bindings[2] == {"x": {"type": "literal", "value": "054", "datatype": XSD + "integer"}}


@pytest.mark.parametrize("name", ["json", "xml", "tsv"])
def test_another_reader_finds_the_same_terms(name):
    text = getattr(formats, f"to_{name}")(NAMES, ROWS)
    solutions = ox.parse_query_results(text.encode(), format=ox.QueryResultsFormat.from_extension(name))
    found = [[row[v] for v in NAMES] for row in solutions]
    assert found[0] == [ox.NamedNode(IRI[1]), ox.BlankNode("b7")]
    assert found[1] == [ox.Literal(PLAIN[1]), ox.Literal("chat", language="fr-CA")]
    assert found[2] == [ox.Literal("054", datatype=ox.NamedNode(XSD + "integer")), None]
    assert found[3] == [ox.Literal("abc", datatype=ox.NamedNode(XSD + "integer")), ox.Literal("")]


def test_xml_is_well_formed_and_names_every_variable():
    root = ET.fromstring(formats.to_xml(("a", "b"), []))
    assert [v.get("name") for v in root.iter("{http://www.w3.org/2005/sparql-results#}variable")] == ["a", "b"]


def test_xml_refuses_characters_that_it_cannot_write():
    with pytest.raises(DataError, match=r"U\+0001"):
        formats.to_xml(("x",), [((3, "\x01", XSD_STRING, ""),)])


def test_csv_has_plain_values_and_lines_ended_by_cr_lf():
    text = formats.to_csv(NAMES, ROWS)
    assert text.startswith("x,y\r\nhttp://ex.org/a?b=1&c,_:b7\r\n")
    assert list(csv.reader(io.StringIO(text, newline="")))[2] == [PLAIN[1], "chat"]
    assert text.endswith("054,\r\nabc,\r\n")


def test_tsv_writes_numbers_bare_only_where_turtle_does():
    lines = formats.to_tsv(NAMES, ROWS).split("\n")
    assert lines[0] == "?x\t?y"
    assert lines[3] == "054\t"
    assert lines[4].startswith('"abc"^^<')


def test_ntriples_of_awkward_strings_parse_back():
    triple = (IRI, (1, "http://ex.org/p", "", ""), PLAIN)
    (quad,) = ox.parse(formats.to_ntriples([triple]), ox.RdfFormat.N_TRIPLES)
    assert quad.object == ox.Literal(PLAIN[1])
