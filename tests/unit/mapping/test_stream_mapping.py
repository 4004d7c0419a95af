"""The mapping of a declaration: events of JSON, NDJSON and CSV messages, errors that name the path, limits."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import DataError
from penstock.core._native import Dictionary, parse_nquads
from penstock.mapping.mapping_limits import MappingLimits
from penstock.mapping.message_records import SourceMessage
from penstock.mapping.stream_mapping import StreamMapping
from penstock.mapping.term_makers import canonical_double

PREFIXES = "@prefix rml: <http://w3id.org/rml/> . @prefix rr: <http://www.w3.org/ns/r2rml#> . @prefix e: <urn:e:> ."
JSON = f"""{PREFIXES}
<#r> rml:logicalSource [ rml:iterator "$" ] ;
  rml:subjectMap [ rml:template "urn:s:{{$.id}}" ] ;
  rml:predicateObjectMap [ rml:predicate e:v ; rml:objectMap [ rml:reference "$.v" ] ] .
"""
CSV = f"""{PREFIXES}
<#r> rml:logicalSource [ rml:referenceFormulation rml:CSV ] ;
  rml:subjectMap [ rml:template "urn:s:{{id}}" ] ;
  rml:predicateObjectMap [ rml:predicate e:v ; rml:objectMap [ rml:reference "v" ] ] .
"""
CONTEXT = {"@vocab": "urn:e:", "id": "@id", "at": None}


def mapped(settings, data, timestamp_ms=5, **message):
    return [
        (event.time_ms, event.triples.decode())
        for event in StreamMapping(settings).events(SourceMessage(data, timestamp_ms, **message))
    ]


def test_a_json_message_is_one_event():
    assert mapped({"rml": JSON}, b'{"id": 1, "v": "a\\n\\"b"}') == [(5, '<urn:s:1> <urn:e:v> "a\\n\\"b" .\n')]


def test_events_are_the_values_at_a_path_and_each_has_its_time():
    settings = {"rml": JSON, "events": "$.list[*]", "time": {"path": "$.at", "unit": "s"}}
    found = mapped(settings, b'{"list": [{"id": 1, "v": 2, "at": 1}, {"id": 2, "v": true, "at": 2.5}]}')
    integer, boolean = "http://www.w3.org/2001/XMLSchema#integer", "http://www.w3.org/2001/XMLSchema#boolean"
    assert found == [
        (1000, f'<urn:s:1> <urn:e:v> "2"^^<{integer}> .\n'),
        (2500, f'<urn:s:2> <urn:e:v> "true"^^<{boolean}> .\n'),
    ]
    with pytest.raises(DataError, match="no event"):
        mapped(settings, b'{"list": []}')


def test_each_line_of_ndjson_and_each_row_of_csv_is_an_event():
    lines = mapped({"rml": JSON, "format": "ndjson"}, b'{"id": 1, "v": "a"}\n\n{"id": 2, "v": "b"}\n')
    rows = mapped({"rml": CSV, "format": "csv"}, b'id,v\r\n1,a\r\n2,"b"\r\n')
    assert lines == rows == [(5, '<urn:s:1> <urn:e:v> "a" .\n'), (5, '<urn:s:2> <urn:e:v> "b" .\n')]


def test_a_context_maps_json_messages():
    (event,) = mapped(
        {"context": CONTEXT, "base": "urn:b/", "time": {"path": "$.at", "unit": "ms"}},
        b'{"id": "x", "v": 1.5, "at": 9}',
    )
    assert event == (9, '<urn:b/x> <urn:e:v> "1.5E0"^^<http://www.w3.org/2001/XMLSchema#double> .\n')


def test_a_message_cannot_leave_its_place_in_the_document():
    with pytest.raises(DataError, match="not JSON"):
        mapped({"context": CONTEXT}, b'{"v": 1}], "@context": {"@vocab": "urn:other:"}, "@graph": [{"v": 2}')


def test_key_headers_and_timestamp_are_references():
    text = JSON.replace("$.v", "@headers.Source").replace("{$.id}", "{@key}/{@timestamp}")
    found = mapped({"rml": text}, b"{}", key=b"k 1", headers={"source": b"web"})
    assert found == [(5, '<urn:s:k%201/5> <urn:e:v> "web" .\n')]


def test_terms_of_r2rml_times_are_accepted():
    old = (
        "@prefix rr: <http://www.w3.org/ns/r2rml#> . @prefix rml: <http://semweb.mmlab.be/ns/rml#> ."
        "@prefix ql: <http://semweb.mmlab.be/ns/ql#> . @prefix e: <urn:e:> ."
        '<#r> rml:logicalSource [ rml:source "in.json" ; rml:referenceFormulation ql:JSONPath ; rml:iterator "$" ] ;'
        ' rr:subjectMap [ rr:template "urn:s:{id}" ; rr:class e:T ] ;'
        ' rr:predicateObjectMap [ rr:predicate e:v ; rr:objectMap [ rml:reference "a.v" ; rr:termType rr:IRI ] ] .'
    )
    found = mapped({"rml": old}, b'{"id": 1, "a": {"v": "urn:x"}}')
    kind = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    assert found == [(5, f"<urn:s:1> {kind} <urn:e:T> .\n<urn:s:1> <urn:e:v> <urn:x> .\n")]


@pytest.mark.parametrize(
    ("settings", "data", "message"),
    [
        ({"rml": JSON}, b'{"id": 1, "v": {"x": 1}}', "$.v: an object where"),
        ({"rml": JSON}, b'{"id": [1], "v": 1}', "$.id: an array where"),
        ({"rml": JSON}, b'{"v": 1}', "no triple"),
        ({"rml": JSON}, b'{"v": 1', "line 1, column 8"),
        ({"rml": JSON}, b'{"v": NaN}', "NaN"),
        ({"rml": JSON}, b'\xff{"v": 1}', "not UTF-8: byte 1"),
        ({"rml": JSON}, b'{"id": "\\ud800", "v": 1}', "not Unicode"),
        ({"rml": JSON}, b'{"id": 1, "v": ' + b"9" * 10_000 + b"}", "cannot be read"),
        ({"rml": JSON}, b"[" * 200 + b"]" * 200, "max_json_depth"),
        (
            {"rml": JSON.replace('"$.v"', '"$.v" ; rml:termType rml:IRI')},
            b'{"id": 1, "v": "a b"}',
            "(<urn:e:v>), object map: 'a b'",
        ),
        (
            {"rml": JSON.replace('"$.v"', '"$.v" ; rml:languageMap [ rml:reference "$.l" ]')},
            b'{"id": 1, "v": "a", "l": "e n"}',
            "language: not a well-formed",
        ),
        ({"rml": JSON, "format": "ndjson"}, b'{"id": 1, "v": 2}\n{', "line 2: the message is not JSON"),
        ({"rml": JSON, "events": "$[*]"}, b'[{"id": 1, "v": 2}, {"id": 2, "v": []}]', "event 2 of 2: $.v: an array"),
        ({"rml": CSV, "format": "csv"}, b"id,w\n1,2\n", "no column 'v'"),
        ({"rml": CSV, "format": "csv"}, b"id,v\n1\n", "line 2: 1 cells"),
        ({"rml": CSV, "format": "csv"}, b"id,id\n1,2\n", "a column twice"),
        ({"rml": CSV, "format": "csv"}, b"", "no header line"),
        ({"context": CONTEXT}, b'"text"', "not a JSON object"),
        ({"context": CONTEXT}, b'{"@context": "http://ex.org/c", "v": 1}', "ontext"),
        ({"context": {"a": "urn:a"}}, b'{"b": 1}', "no triple"),
    ],
)
def test_a_message_that_cannot_be_mapped_is_an_error_that_names_the_place(settings, data, message):
    with pytest.raises(DataError) as error:
        mapped(settings, data)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([], "an object with settings"),
        ({}, "needs one of `rml`, `construct` and `context`"),
        ({"rml": JSON, "context": {}}, "needs one of `rml`, `construct` and `context`"),
        ({"rml": JSON, "colour": 1}, "unknown settings colour"),
        ({"rml": JSON, "format": "xml"}, "`format` is one of"),
        ({"rml": JSON, "format": "csv"}, "another rml:referenceFormulation"),
        ({"context": {}, "format": "csv"}, "CSV needs `rml`"),
        ({"rml": JSON, "base": "x"}, "not an absolute IRI"),
        ({"rml": JSON, "format": "ndjson", "events": "$.a"}, "`events` is for JSON"),
        ({"rml": "<a"}, "line 1"),
        ({"rml": PREFIXES}, "no triples map"),
        ({"rml": JSON + "x" * (1 << 20)}, "max_mapping_bytes"),
        (
            {"rml": JSON.replace("$.v", "$..v")},
            "predicate-object map 1 (<urn:e:v>), object map (line 4): the path '$..v'",
        ),
        (
            {"rml": JSON.replace("{$.id}", "{$.id")},
            "subject map (line 3): template 'urn:s:{$.id': a brace is not closed",
        ),
        ({"rml": JSON.replace("rml:reference", "rml:graph")}, "object map: it needs rml:constant"),
        ({"rml": JSON.replace('"urn:s:{$.id}"', '"urn:s:{$.id}" ; rml:graph e:g')}, "cannot name graphs"),
        ({"rml": JSON.replace("urn:s:", "urn:s /")}, "subject map (line 3): template 'urn:s /{$.id}': "),
        ({"context": "http://ex.org/context"}, "not fetched"),
        ({"context": ["http://ex.org/context"]}, "not fetched"),
        ({"context": {"@import": "http://ex.org/context"}}, "not fetched"),
        ({"context": {"a": {"@id": "urn:a", "@context": "http://ex.org/c"}}}, "not fetched"),
        ({"context": {"a": {"@type": 5}}}, "the context: "),
        ({"context": 5}, "an object or a list"),
    ],
)
def test_an_invalid_mapping_is_an_error_that_names_the_place(settings, message):
    with pytest.raises(DataError) as error:
        StreamMapping(settings)
    assert message in str(error.value)


def test_cycles_of_parent_triples_maps_are_no_cycles_of_the_program():
    text = f"""{PREFIXES}
    <#a> rml:logicalSource [ rml:iterator "$.a[*]" ] ; rml:subjectMap [ rml:template "urn:a:{{$.k}}" ] ;
      rml:predicateObjectMap [ rml:predicate e:b ; rml:objectMap [ rml:parentTriplesMap <#b> ;
        rml:joinCondition [ rml:child "$.k" ; rml:parent "$.k" ] ] ] .
    <#b> rml:logicalSource [ rml:iterator "$.b[*]" ] ; rml:subjectMap [ rml:template "urn:b:{{$.k}}" ] ;
      rml:predicateObjectMap [ rml:predicate e:a ; rml:objectMap [ rml:parentTriplesMap <#a> ;
        rml:joinCondition [ rml:child "$.k" ; rml:parent "$.k" ] ] ] ."""
    ((_, found),) = mapped({"rml": text}, b'{"a": [{"k": 1}, {"k": 2}], "b": [{"k": 2}, {"k": 3}]}')
    assert found == "<urn:a:2> <urn:e:b> <urn:b:2> .\n<urn:b:2> <urn:e:a> <urn:a:2> .\n"


class TestLimits:
    def test_joins_are_limited(self):
        text = f"""{PREFIXES}
        <#a> rml:logicalSource [ rml:iterator "$.a[*]" ] ; rml:subjectMap [ rml:template "urn:a:{{$.k}}" ] ;
          rml:predicateObjectMap [ rml:predicateMap [ rml:reference "$.none" ] ; rml:objectMap [
            rml:parentTriplesMap <#a> ; rml:joinCondition [ rml:child "$.j" ; rml:parent "$.j" ] ] ] ."""
        message = b'{"a": [' + b",".join(b'{"j":1}' for _ in range(2000)) + b"]}"
        with pytest.raises(DataError, match="max_joined"):
            mapped({"rml": text.replace("urn:a:{$.k}", "urn:a")}, message)

    def test_joins_with_several_conditions_find_the_records_that_fulfil_all(self):
        text = f"""{PREFIXES}
        <#a> rml:logicalSource [ rml:iterator "$.a[*]" ] ; rml:subjectMap [ rml:template "urn:a:{{$.k}}" ] ;
          rml:predicateObjectMap [ rml:predicate e:p ; rml:objectMap [ rml:parentTriplesMap <#b> ;
            rml:joinCondition [ rml:child "$.x[*]" ; rml:parent "$.x[*]" ] , [ rml:child "$.y" ; rml:parent "$.y" ] ] ] .
        <#b> rml:logicalSource [ rml:iterator "$.b[*]" ] ; rml:subjectMap [ rml:template "urn:b:{{$.k}}" ] ."""
        message = (
            b'{"a": [{"k":1,"x":[1,2],"y":5},{"k":2,"x":[3],"y":6},{"k":3,"x":[1]}], "b": [{"k":1,"x":[2,1],"y":5},'
        )
        message += b'{"k":2,"x":[1],"y":6},{"k":3,"x":[3,4],"y":6}]}'
        [(_, triples)] = mapped({"rml": text}, message)
        assert triples == "<urn:a:1> <urn:e:p> <urn:b:1> .\n<urn:a:2> <urn:e:p> <urn:b:3> .\n"

    def test_combinations_of_values_of_joins_are_limited(self):
        text = f"""{PREFIXES}
        <#a> rml:logicalSource [ ] ; rml:subjectMap [ rml:constant e:a ] ; rml:predicateObjectMap [ rml:predicate e:p ;
          rml:objectMap [ rml:parentTriplesMap <#b> ; rml:joinCondition [ rml:child "$.x[*]" ; rml:parent "$.x[*]" ] ,
            [ rml:child "$.x[*]" ; rml:parent "$.x[*]" ] ] ] .
        <#b> rml:logicalSource [ ] ; rml:subjectMap [ rml:constant e:b ] ."""
        with pytest.raises(DataError, match="max_joined"):
            mapped({"rml": text}, json.dumps({"x": list(range(1_001))}).encode())

    def test_combinations_of_values_are_limited(self):
        text = JSON.replace('reference "$.v"', 'template "{$.v[*]}{$.v[*]}{$.v[*]}"')
        with pytest.raises(DataError, match="max_values"):
            mapped({"rml": text}, b'{"id": 1, "v": [' + b"1," * 99 + b"1]}")

    def test_the_size_of_the_triples_is_limited(self):
        text = JSON.replace("urn:s:{$.id}", "urn:s:{$.id}/{$.v[*]}").replace('"$.v"', '"$.v[*]"')
        mapping = StreamMapping({"rml": text}, MappingLimits(expansion_mib=1))
        message = b'{"id": 1, "v": [' + b"1," * 1999 + b"1]}"
        with pytest.raises(DataError, match="expansion_mib"):
            mapping.events(SourceMessage(message, 0))

    def test_the_number_of_term_maps_is_limited(self):
        with pytest.raises(DataError, match="max_terms"):
            StreamMapping({"rml": JSON}, MappingLimits(max_terms=2))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(st.text() | st.integers(), VALUES)
def test_any_value_becomes_triples_that_the_engine_parses_or_an_error(identifier, value):
    text = json.dumps({"id": identifier, "v": value}).encode()
    for template in ("urn:s:{$.id}", "{$.id}"):
        try:
            events = StreamMapping({"rml": JSON.replace("urn:s:{$.id}", template), "base": "http://b/"}).events(
                SourceMessage(text, 0)
            )
        except DataError:
            continue
        for event in events:
            assert len(parse_nquads(Dictionary(), event.triples, quads=False).subjects) >= 1


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_canonical_double_has_the_value_of_the_number(number):
    text = canonical_double(repr(number))
    assert float(text) == number
    mantissa, _, exponent = text.partition("E")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    assert len(whole) == 1
    assert fraction == "0" or not fraction.endswith("0")
    assert str(int(exponent)) == exponent
