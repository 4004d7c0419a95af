"""The W3C's result formats, character by character where it matters."""

from __future__ import annotations

import csv
import io
import json
from xml.etree import ElementTree as ET

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import DataError
from penstock.core import _native as native
from penstock.engine.answers.answer_values import Solutions, Triples
from penstock.engine.answers.pairs import Pairs
from penstock.rdf.terms import RDF_LANG_STRING, XSD_STRING
from support import answer_texts as reference

XSD = "http://www.w3.org/2001/XMLSchema#"
IRI = (1, "http://ex.org/a?b=1&c", "", "")
BLANK = (2, "b0", "", "")
PLAIN = (3, 'say "hi",\r\n\tnow\\ <&>', XSD_STRING, "")
TAGGED = (3, "chat", RDF_LANG_STRING, "fr-ca")
NUMBER = (3, "054", XSD + "integer", "")
ODD = (3, "abc", XSD + "integer", "")
ROWS = [(IRI, BLANK), (PLAIN, TAGGED), (NUMBER, None), (ODD, (3, "", XSD_STRING, ""))]
NAMES = ("x", "y")
FORMATS = ("json", "xml", "csv", "tsv")

_TEXT = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.text(st.sampled_from("\"\\\r\n\t\x00\x01\x1f\x7f\x85\u2028\u2029\ufffe\ufffd,<>&'aé€😀"), max_size=24),
    st.integers().map(str),
    st.from_regex(r"[+-]?[0-9]{0,3}\.?[0-9]{0,3}([eE][+-]?[0-9]{0,2})?", fullmatch=True),
)
_TYPES = ("string", "integer", "decimal", "double", "float", "boolean", "dateTime", "date", "byte", "anyURI")
TERMS = st.one_of(
    st.none(),
    st.builds(lambda rest: (1, "http://ex.org/" + rest.replace("\n", "%0A"), "", ""), _TEXT),  # one line in N-Triples
    st.just(BLANK),
    st.builds(lambda text, name: (3, text, XSD + name, ""), _TEXT, st.sampled_from(_TYPES)),
    st.builds(lambda text, tag: (3, text, RDF_LANG_STRING, tag), _TEXT, st.sampled_from(["en", "fr-ca"])),
    st.sampled_from([(3, "2026-01-31T00:00:00Z", XSD + "dateTime", ""), (3, "x", "urn:it's&so", "")]),
)


def ids_of(terms, dictionary):
    """Return the ids of terms. The only blank node is number 0 of the dictionary."""
    dictionary.reserve_blanks(1)
    return np.array([0 if t is None else dictionary.find(*t) or dictionary.intern(*t) for t in terms], np.uint64)


def solutions(names, rows):
    dictionary = native.Dictionary()
    columns = [ids_of([row[i] for row in rows], dictionary) for i in range(len(names))]
    return Solutions(names, columns, len(rows), native.LocalTerms(dictionary))


def written(form, names, rows):
    return getattr(solutions(names, rows), f"to_{form}")()


@given(st.integers(0, 3).flatmap(lambda width: st.lists(st.tuples(*[TERMS] * width), max_size=6)))
def test_every_format_is_that_of_the_reference(rows):
    names = tuple("abc"[: len(rows[0]) if rows else 2])
    answer = solutions(names, rows)
    for form in FORMATS:
        try:
            expected = getattr(reference, f"to_{form}")(names, rows)
        except DataError:
            with pytest.raises(DataError, match=r"U\+"):
                getattr(answer, f"to_{form}")()
            with pytest.raises(DataError, match=r"U\+"):
                next(answer.parts(form, 1))
            continue
        assert getattr(answer, f"to_{form}")() == expected
        for part_bytes in (1, 100, 1 << 20):
            assert b"".join(answer.parts(form, part_bytes)).decode() == expected
    head = {"query": "q", "time": 7}
    opening = json.dumps(head)[:-1]
    assert native.solutions_line(opening, *answer.written()).decode() == reference.solutions_line(head, names, rows)


@given(st.lists(st.tuples(TERMS, TERMS, TERMS), max_size=6))
def test_ntriples_are_those_of_the_reference(rows):
    rows = [tuple(term or IRI for term in row) for row in rows]
    dictionary = native.Dictionary()
    triples = Triples(
        [ids_of([row[i] for row in rows], dictionary) for i in range(3)], len(rows), native.LocalTerms(dictionary)
    )
    assert triples.to_ntriples() == reference.to_ntriples(rows)
    head = {"query": "q"}
    line = native.triples_line(json.dumps(head)[:-1], *triples.written()).decode()
    assert line == reference.triples_line(head, rows)
    assert line.splitlines() == [line]


@given(st.lists(st.tuples(TERMS, TERMS), max_size=4), st.lists(st.tuples(TERMS), max_size=4), st.integers(0, 3))
def test_pairs_are_written_as_all_their_rows(left, right, others):
    dictionary = native.Dictionary()
    parts = (
        tuple(ids_of([row[i] for row in left], dictionary) for i in range(2)),
        (),
        (ids_of([row[0] for row in right], dictionary),),
    )
    pairs = Pairs(parts, (len(left), others, len(right)), ((2, 0), (0, 1), (0, 0)))
    answer = Solutions(("a", "b", "c"), pairs, len(pairs), native.LocalTerms(dictionary))
    rows = [(r[0], le[1], le[0]) for le in left for _ in range(others) for r in right]
    assert answer.to_tsv() == reference.to_tsv(("a", "b", "c"), rows)
    assert b"".join(answer.parts("json", 40)).decode() == reference.to_json(("a", "b", "c"), rows)


def test_forged_ids_of_strings_become_valid_text():
    forged = 10 << 60 | 0xFF << 52 | 1
    answer = Solutions(("x",), [np.array([forged], np.uint64)], 1, native.LocalTerms(native.Dictionary()))
    assert json.loads(answer.to_json())["results"]["bindings"][0]["x"]["value"] == "\ufffd"
    assert b"".join(answer.parts("csv", 1 << 20)).decode() == "x\r\n\ufffd\r\n"


def test_columns_of_other_lengths_are_refused():
    terms = native.LocalTerms(native.Dictionary())
    one = np.array([0], np.uint64)
    with pytest.raises(ValueError, match="one value for each row"):
        native.answer_text("json", ("x", "y"), [one, one[:0]], (), 1, terms)
    with pytest.raises(ValueError, match="one column for each variable"):
        native.answer_text("json", ("x", "y"), [one], (), 1, terms)
    with pytest.raises(ValueError, match="no format"):
        native.answer_text("yaml", ("x",), [one], (), 1, terms)


def test_ids_that_name_nothing_are_errors():
    answer = Solutions(("x",), [np.array([77], np.uint64)], 1, native.LocalTerms(native.Dictionary()))
    with pytest.raises(DataError, match="names nothing"):
        answer.to_json()


def test_json_has_the_types_of_the_recommendation():
    document = json.loads(written("json", NAMES, ROWS))
    assert document["head"] == {"vars": ["x", "y"]}
    bindings = document["results"]["bindings"]
    assert bindings[0] == {"x": {"type": "uri", "value": IRI[1]}, "y": {"type": "bnode", "value": "b0"}}
    assert bindings[1]["y"] == {"type": "literal", "value": "chat", "xml:lang": "fr-ca"}
    assert bindings[1]["x"] == {"type": "literal", "value": PLAIN[1]}
    assert bindings[2] == {"x": {"type": "literal", "value": "054", "datatype": XSD + "integer"}}


@pytest.mark.parametrize("name", ["json", "xml", "tsv"])
def test_another_reader_finds_the_same_terms(name):
    parsed = ox.parse_query_results(
        written(name, NAMES, ROWS).encode(), format=ox.QueryResultsFormat.from_extension(name)
    )
    found = [[row[v] for v in NAMES] for row in parsed]
    assert found[0] == [ox.NamedNode(IRI[1]), ox.BlankNode("b0")]
    assert found[1] == [ox.Literal(PLAIN[1]), ox.Literal("chat", language="fr-ca")]
    assert found[2] == [ox.Literal("054", datatype=ox.NamedNode(XSD + "integer")), None]
    assert found[3] == [ox.Literal("abc", datatype=ox.NamedNode(XSD + "integer")), ox.Literal("")]


def test_xml_is_well_formed_and_names_every_variable():
    root = ET.fromstring(written("xml", ("a", "b"), []))
    assert [v.get("name") for v in root.iter("{http://www.w3.org/2005/sparql-results#}variable")] == ["a", "b"]


def test_xml_refuses_characters_that_it_cannot_write():
    with pytest.raises(DataError, match=r"U\+0001"):
        written("xml", ("x",), [((3, "\x01", XSD_STRING, ""),)])


def test_csv_has_plain_values_and_lines_ended_by_cr_lf():
    text = written("csv", NAMES, ROWS)
    assert text.startswith("x,y\r\nhttp://ex.org/a?b=1&c,_:b0\r\n")
    assert list(csv.reader(io.StringIO(text, newline="")))[2] == [PLAIN[1], "chat"]
    assert text.endswith("054,\r\nabc,\r\n")


def test_tsv_writes_numbers_bare_only_where_turtle_does():
    lines = written("tsv", NAMES, ROWS).split("\n")
    assert lines[0] == "?x\t?y"
    assert lines[3] == "054\t"
    assert lines[4].startswith('"abc"^^<')


def test_ntriples_of_awkward_strings_parse_back():
    dictionary = native.Dictionary()
    columns = [ids_of([term], dictionary) for term in (IRI, (1, "http://ex.org/p", "", ""), PLAIN)]
    (quad,) = ox.parse(Triples(columns, 1, native.LocalTerms(dictionary)).to_ntriples(), ox.RdfFormat.N_TRIPLES)
    assert quad.object == ox.Literal(PLAIN[1])
