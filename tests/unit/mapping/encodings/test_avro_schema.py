"""Avro schemas, and the decoding of messages: reasons with paths, limits, hostile input."""

from __future__ import annotations

import json
import re
import time

import pytest

from penstock import DataError
from penstock.mapping.encodings.avro_schema import compile_avro
from penstock.mapping.mapping_limits import MAPPING_LIMITS, MappingLimits
from penstock.mapping.message_records import SourceMessage
from penstock.mapping.stream_mapping import StreamMapping

READING = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "values", "type": {"type": "array", "items": {"type": "map", "values": ["null", "int"]}}},
    ],
}
LIST = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}
ENDLESS = {"type": "record", "name": "E", "fields": [{"name": "self", "type": "E"}]}
RML = """@prefix rml: <http://w3id.org/rml/> . @prefix e: <urn:e:> .
<#r> rml:logicalSource [ rml:iterator "$" ] ; rml:subjectMap [ rml:template "urn:s:{$.id}" ] ;
  rml:predicateObjectMap [ rml:predicate e:v ; rml:objectMap [ rml:reference "$.values[*].a" ] ] .
"""


def field(kind):
    return {"type": "record", "name": "R", "fields": [{"name": "v", "type": kind}]}


def decode(schema, data, depth=128, size=1 << 16):
    (text,) = compile_avro(schema, MAPPING_LIMITS).decode([data], 0, depth, size, 256)
    return text


@pytest.mark.parametrize(
    ("schema", "data", "reason"),
    [
        (READING, b"", r"\$\.id: the data end within a number \(byte 0\)"),
        (READING, b"\x04a", r"\$\.id: 2 bytes are expected, 1 are left \(byte 1\)"),
        (READING, b"\x01", r"\$\.id: a negative length: -1"),
        (READING, b"\x02\xff", r"\$\.id: a string is not UTF-8"),
        (READING, b"\x02a\x02\x02\x02k\x04", r"\$\.values\[0\]\.k: there is no branch number 2; the schema has 2"),
        (READING, b"\x02a\x02\x02\x02k\x02\xff\xff\xff\xff\x1f", r"\.k: -?\d+ is not an int of 32 bits"),
        (READING, b"\x02a\x00x", r"\$: 1 bytes follow the record \(byte 3\)"),
        (field("long"), b"\xff" * 9 + b"\x02", r"\$\.v: a number has more than 64 bits"),
        (field("boolean"), b"\x02", r"\$\.v: a boolean is 0 or 1"),
        (field({"type": "int", "logicalType": "date"}), b"\xfe\xff\xff\xff\x0f", r"\$\.v: a date outside of the years"),
        (field({"type": "int", "logicalType": "time-millis"}), b"\x01", r"\$\.v: a time outside of the day"),
        (field({"type": "array", "items": "null"}), b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "too many items"),
        (field({"type": "bytes", "logicalType": "decimal", "scale": 1}), b"\x82\x10" + b"\1" * 1025, "512 bytes"),
    ],
)
def test_a_reason_names_the_path_and_the_byte(schema, data, reason):
    text = decode(schema, data)
    assert isinstance(text, str)
    assert re.search(reason, text), text


@pytest.mark.parametrize(
    ("schema", "data", "limit"),
    [
        (field({"type": "array", "items": "null"}), b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "decoded_kib"),
        (field({"type": "array", "items": field("null") | {"name": "Q"}}), b"\xfe\xff\xff\xff\x7f", "decoded_kib"),
        (LIST, b"\x02" * 1_000_000, "max_json_depth"),
        (ENDLESS, b"", "max_json_depth"),
    ],
)
def test_what_a_message_expands_to_is_limited(schema, data, limit):
    began = time.process_time()
    assert limit in decode(schema, data)
    assert time.process_time() - began < 2


def test_blocks_of_known_size_and_empty_containers_are_read():
    text = decode(READING, b"\x02a" + b"\x01\x0a\x02\x02a\x02\x04\x00" + b"\x00")
    assert json.loads(text) == {"id": "a", "values": [{"a": 2}]}
    assert decode(READING, b"\x02a\x00") == b'{"id":"a","values":[]}'


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("{", "not JSON"),
        ("\ud800", "not JSON"),
        ('{"type": "record"}', "invalid"),
        ({"type": "unknown"}, "invalid"),
        ({"__fastavro_parsed": True, **field("Nowhere")}, "invalid"),
        (field([["null"]]), "a union contains a union"),
        (field({"type": "fixed", "name": "F", "size": -1}), "size of F"),
        (field({"type": "fixed", "name": "F", "size": "12"}), "size of F"),
        (field({"type": "bytes", "logicalType": "decimal", "scale": 1001, "precision": 2000}), "scale of a decimal"),
        ('{"a":' * 200 + "1" + "}" * 200, "nested"),
        ({"type": "record", "name": "R", "fields": [], "doc": "x" * (1 << 20)}, "max_schema_bytes"),
        (7, "invalid"),
        (None, "invalid"),
    ],
)
def test_an_unusable_schema_is_an_error(schema, reason):
    with pytest.raises(DataError, match=reason):
        compile_avro(schema, MAPPING_LIMITS)


def test_the_number_of_types_is_limited():
    with pytest.raises(DataError, match="max_schema_types"):
        compile_avro(READING, MappingLimits(max_schema_types=4))
    compile_avro(READING, MappingLimits(max_schema_types=7))


def test_a_mapping_reads_the_decoded_message_and_its_native_program_maps_it():
    mapping = StreamMapping({"rml": RML, "format": "avro", "schema": READING})
    decoded = mapping.decoded(SourceMessage(b"\x02a\x04\x02\x02a\x02\x04\x00\x02\x02a\x02\x06\x00\x00", 5), None)
    (event,) = mapping.events(decoded)
    assert event.triples.decode().splitlines() == [
        f'<urn:s:a> <urn:e:v> "{n}"^^<http://www.w3.org/2001/XMLSchema#integer> .' for n in (2, 3)
    ]
    batch = mapping.batch([(5, decoded.value)], 1 << 20)
    assert batch is not None
    assert len(batch) == 1


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"schema": READING}, "`schema` is for messages in Avro"),
        ({"format": "avro", "schema": "{"}, "`schema`: the Avro schema is not JSON"),
        ({"format": "avro", "schema": {"type": "R"}}, "`schema`: the Avro schema is invalid"),
    ],
)
def test_invalid_settings_are_an_error(settings, reason):
    with pytest.raises(DataError, match=reason):
        StreamMapping({"rml": RML, **settings})


def test_without_schema_and_registry_a_message_is_refused_with_a_reason():
    mapping = StreamMapping({"rml": RML, "format": "avro"})
    reasons = mapping.json_texts([b"", b"\x01\x00\x00\x00\x07", b"\x00\x00\x00\x00\x07", b"\x00\xff\xff\xff\xff"], None)
    assert reasons == [
        "the message does not begin with a zero byte and a schema id",
        "the message does not begin with a zero byte and a schema id",
        "the message has schema id 7, but no schema registry is set",
        "schema ids are at most 2147483647, not 4294967295",
    ]
