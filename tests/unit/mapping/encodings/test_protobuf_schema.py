"""Protobuf schemas, and the decoding of messages: reasons with paths, limits, hostile input."""

from __future__ import annotations

import json
import time

import httpx
import pytest

from penstock import DataError, RegistryAccess, UnavailableError
from penstock.mapping.encodings import protobuf_schema
from penstock.mapping.encodings.protobuf_messages import ProtobufMessages
from penstock.mapping.encodings.protobuf_schema import compile_protobuf
from penstock.mapping.encodings.schema_registry import SchemaRegistry
from penstock.mapping.mapping_limits import MAPPING_LIMITS, MappingLimits
from penstock.mapping.message_records import SourceMessage
from penstock.mapping.stream_mapping import StreamMapping

READING = """syntax = "proto3";
package example;
message Reading { string id = 1; repeated Value values = 2; message Value { map<string, int32> by_name = 1; } }
message Other { int32 n = 1; }
"""
LIST = 'syntax = "proto3"; message L { L next = 1; repeated L more = 2; map<int32, L> by = 3; }'
RML = """@prefix rml: <http://w3id.org/rml/> . @prefix e: <urn:e:> .
<#r> rml:logicalSource [ rml:iterator "$" ] ; rml:subjectMap [ rml:template "urn:s:{$.id}" ] ;
  rml:predicateObjectMap [ rml:predicate e:v ; rml:objectMap [ rml:reference "$.values[*].by_name.a" ] ] .
"""


def decode(schema, data, depth=128, size=1 << 16, root=0):
    (text,) = compile_protobuf(schema, MAPPING_LIMITS).schema.decode(root, [data], 0, depth, size, 256)
    return text


def proto(fields):
    return f'syntax = "proto3"; message M {{ {fields} }}'


CHAIN = 'syntax = "proto3"; ' + " ".join(f"message M{i} {{ M{i + 1} a = 1; }}" for i in range(3_000))
MANY = proto(" ".join(f"message M{i} {{}}" for i in range(MAPPING_LIMITS.max_schema_types)))


def test_the_types_of_a_file_have_places_and_names():
    file = compile_protobuf(READING, MAPPING_LIMITS)
    assert sorted(file.by_index) == [(0,), (0, 0), (0, 0, 0), (1,)]
    assert list(file.by_name)[:2] == ["example.Reading", "example.Reading.Value"]
    assert file.by_index[1,] == file.by_name["example.Other"]


def test_types_can_refer_to_one_another_in_a_long_chain():
    assert len(compile_protobuf(CHAIN + " message M3000 {}", MAPPING_LIMITS).by_name) == 3_001


def test_fields_without_presence_have_default_values_and_others_are_left_out():
    schema = proto(
        "int32 a = 1; optional int32 b = 2; string c = 3; repeated int32 d = 4; M e = 5; oneof o { bool f = 6; }"
    )
    assert decode(schema, b"") == b'{"a":0,"c":""}'
    assert decode(schema, b"\x10\x00\x30\x00") == b'{"a":0,"b":0,"c":"","f":false}'


def test_a_list_or_a_map_without_elements_is_left_out():
    enum = 'syntax = "proto2"; enum E { ZERO = 0; }'
    schema = enum + " message M { repeated E a = 1 [packed = true]; map<int32, E> b = 2; optional int32 c = 3; }"
    assert decode(schema, b"\x0a\x00\x18\x05") == b'{"c":5}'
    assert decode(schema, b"\x0a\x01\x52\x12\x04\x08\x01\x10\x52\x18\x05") == b'{"c":5}'
    assert decode(schema, b"\x0a\x02\x52\x00") == b'{"a":["ZERO"]}'


def test_the_last_value_and_the_last_member_of_a_oneof_count():
    schema = proto("oneof o { int32 a = 1; string b = 2; } int32 c = 3;")
    assert decode(schema, b"\x08\x01\x12\x01x\x18\x05\x18\x06") == b'{"b":"x","c":6}'
    assert decode(schema, b"\x12\x01x\x08\x01") == b'{"a":1,"c":0}'


@pytest.mark.parametrize(
    ("schema", "data", "reason"),
    [
        (proto("string a = 1;"), b"\x0a\x05ab", r"$: 5 bytes are expected, 2 are left (byte 2)"),
        (proto("string a = 1;"), b"\x0a\x01\xff", "$.a: a string is not UTF-8"),
        (proto("M a = 1;"), b"\x0a\x02\x08", "$: 2 bytes are expected, 1 are left"),
        (proto("M a = 1;"), b"\x0a\x01\x08", "$.a: the data end within a number"),
        (proto("M a = 1;"), b"\x00", "$: there is no field number 0"),
        (proto("M a = 1;"), b"\x0f", "$: there is no wire type 7"),
        (proto("M a = 1;"), b"\x0c", "$: the end of a group that has not begun"),
        (proto("M a = 1;"), b"\x13\x1c", "$: the end of another group"),
        (proto("M a = 1;"), b"\x08" + b"\xff" * 10, "$: a number has more than 64 bits"),
        (proto("repeated fixed32 a = 1;"), b"\x0a\x03abc", "$.a[0]: 4 bytes are expected, 3 are left"),
        (proto("map<string, M> a = 1;"), b"\x0a\x06\x0a\x01k\x12\x01\x08", "$.a.k: the data end within a number"),
    ],
)
def test_a_reason_has_the_path_and_the_byte(schema, data, reason):
    text = decode(schema, data)
    assert isinstance(text, str)
    assert text.startswith(reason), text
    assert "(byte " in text


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("message M { int32 a = 1 }", "the Protobuf schema is invalid: 1:13: "),
        ('syntax = "proto3"; message M { Unknown a = 1; }', '"Unknown" is not defined'),
        ('import "other.proto"; message M {}', "other.proto: File not found"),
        ('syntax = "proto3";', "has no message type"),
        ("{", "the Protobuf schema is invalid"),
        ("\ud800", "not UTF-8"),
        ("x" * 2_000_000, "max_schema_bytes"),
        ('edition = "2023"; message M {}', "uses editions; `syntax` is proto2 or proto3"),
        (MANY, "max_schema_types"),
    ],
    ids=lambda value: value[:20],
)
def test_an_invalid_schema_is_refused(schema, reason):
    with pytest.raises(DataError) as refused:
        compile_protobuf(schema, MAPPING_LIMITS)
    assert reason in str(refused.value)


@pytest.mark.parametrize("name", ["/etc/x.proto", "../x.proto", "a/../../x.proto", "", "a\0b", "x" * 201])
def test_a_reference_cannot_leave_its_folder(name):
    with pytest.raises(DataError, match="cannot be imported as"):
        compile_protobuf(READING, MAPPING_LIMITS, [(name, READING)])


def test_references_are_imported_by_their_names():
    text = 'syntax = "proto3"; import "a/b.proto"; import "google/protobuf/timestamp.proto"; message M { example.Other o = 1; google.protobuf.Timestamp t = 2; }'
    file = compile_protobuf(text, MAPPING_LIMITS, [("a/b.proto", READING)])
    assert list(file.by_name) == ["M"]
    (made,) = file.schema.decode(0, [b"\x0a\x02\x08\x07\x12\x02\x08\x01"], 0, 9, 99, 9)
    assert made == b'{"o":{"n":7},"t":"1970-01-01T00:00:01Z"}'


def test_a_schema_that_takes_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(protobuf_schema, "_PARSING_S", 0.0)
    with pytest.raises(DataError, match="within 0 s"):
        compile_protobuf(READING, MAPPING_LIMITS)


def test_a_process_that_cannot_be_started_is_a_delay(monkeypatch, tmp_path):
    monkeypatch.setattr(protobuf_schema.tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(UnavailableError, match="protoc"):
        compile_protobuf(READING, MAPPING_LIMITS)


def test_the_package_that_is_needed_is_named(monkeypatch):
    monkeypatch.setattr(protobuf_schema.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(DataError, match=r"pip install 'penstock\[protobuf\]'"):
        compile_protobuf(READING, MAPPING_LIMITS)


def nested(depth, tag):
    data = b""
    for _ in range(depth):
        size = bytearray()
        n = len(data)
        while n > 127:
            size.append(n & 127 | 128)
            n >>= 7
        data = bytes([tag, *size, n]) + data
    return data


@pytest.mark.parametrize("tag", [0x0A, 0x12])
def test_depth_is_limited(tag):
    assert "max_json_depth" in decode(LIST, nested(5_000, tag))
    assert isinstance(decode(LIST, nested(60, tag)), bytes)


def test_groups_of_unknown_fields_are_limited():
    assert "max_json_depth" in decode(LIST, b"\x23" * 100_000)


def test_size_is_limited_and_hostile_messages_take_linear_time():
    small, large = b"\x12\x00" * 20_000, b"\x12\x00" * 200_000
    times = []
    for data in (small, large):
        began = time.process_time()
        assert isinstance(decode(LIST, data, size=1 << 24), bytes)
        times.append(time.process_time() - began)
    assert times[1] < 60 * max(times[0], 1e-3)
    assert "decoded_kib" in compile_protobuf(LIST, MAPPING_LIMITS).schema.decode(0, [large], 0, 128, 1 << 10, 1)[0]


def test_a_map_keeps_the_last_value_of_a_key():
    schema = proto("map<int64, string> a = 1; map<bool, M> b = 2;")
    data = b"\x0a\x05\x08\x07\x12\x01x\x0a\x05\x08\x07\x12\x01y\x12\x02\x08\x01\x12\x00"
    assert json.loads(decode(schema, data)) == {
        "a": {"7": "y"},
        "b": {"true": {}, "false": {}},
    }


# ---- streams
def mapping(**settings):
    return StreamMapping({"rml": RML, "format": "protobuf", **settings})


def test_a_stream_reads_messages_of_its_type():
    made = mapping(schema=READING)
    message = SourceMessage(b"\x0a\x01a\x12\x07\x0a\x05\x0a\x01a\x10\x07", 5, None, {})
    (event,) = made.events(made.decoded(message, None))
    assert event.triples == b'<urn:s:a> <urn:e:v> "7"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    assert mapping(schema=READING, message="example.Reading").is_encoded


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"schema": READING, "message": "Reading"}, "no message type 'Reading'; it has example.Reading"),
        ({"schema": {}}, "are texts"),
        ({"schema": READING, "message": 1}, "are texts"),
        ({"message": "M"}, "`message` names a message type"),
        ({"format": "json", "message": "M"}, "`message` names a message type"),
        ({"schema": "message"}, "mapping: `schema`: the Protobuf schema is invalid"),
    ],
)
def test_invalid_settings_are_refused(settings, reason):
    with pytest.raises(DataError) as refused:
        mapping(**settings)
    assert reason in str(refused.value)


# ---- registries
ANSWERS = {
    "/schemas/ids/1": {"schemaType": "PROTOBUF", "schema": READING},
    "/schemas/ids/2": {
        "schemaType": "PROTOBUF",
        "schema": 'syntax = "proto3"; import "r.proto"; message M { example.Other o = 1; }',
        "references": [{"name": "r.proto", "subject": "r", "version": 1}],
    },
    "/subjects/r/versions/1": {"schemaType": "PROTOBUF", "schema": READING},
    "/schemas/ids/3": {"schema": '"int"'},
    "/schemas/ids/4": {"schemaType": "JSON", "schema": "{}"},
}


def answer(request):
    found = ANSWERS.get(request.url.raw_path.decode())
    return httpx.Response(404, json={"error_code": 40403}) if found is None else httpx.Response(200, json=found)


@pytest.fixture
def registry():
    client = SchemaRegistry(RegistryAccess("http://r"), MappingLimits(), transport=httpx.MockTransport(answer))
    yield client
    client.close()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\0\0\0\0\1\0", b'{"id":""}'),
        (b"\0\0\0\0\1\x02\x00", b'{"id":""}'),
        (b"\0\0\0\0\1\x02\x02\x08\x05", b'{"n":5}'),
        (b"\0\0\0\0\1\x04\x00\x00", b"{}"),
        (b"\0\0\0\0\2\0\x0a\x02\x08\x05", b'{"o":{"n":5}}'),
        (b"\0\0\0\0\1\x02\x04", "schema id 1 has no message type at [2]"),
        (b"\0\0\0\0\1\x02\x01", "schema id 1 has no message type at [-1]"),
        (b"\0\0\0\0\1\x02", "the place of the message type is not complete"),
        (b"\0\0\0\0\1\xff\xff\xff\xff\xff\xff", "the place of the message type is not complete"),
        (b"\0\0\0\0\1\x03", "the place of the message type has -2 elements; it has 1 to 100"),
        (b"\0\0\0\0\1", "the message does not begin with a zero byte, a schema id and the place of a type"),
        (b"\1\0\0\0\1\0", "the message does not begin with a zero byte, a schema id and the place of a type"),
        (b"\0\0\0\0\3\0", "schema id 3 of the schema registry at r: its type is AVRO, not PROTOBUF"),
        (b"\0\0\0\0\4\0", "schema id 4 of the schema registry at r: its type is 'JSON', not AVRO or PROTOBUF"),
        (b"\0\0\0\0\5\0", "schema id 5 of the schema registry at r: the registry has no such schema"),
        (b"\0\xff\0\0\1\0", "schema ids are at most 2147483647, not 4278190081"),
    ],
)
def test_the_wire_format_of_registries_is_read(registry, data, text):
    messages = ProtobufMessages(None, None, MAPPING_LIMITS)
    assert messages.json_texts([data, data], registry) == [text, text]


def test_a_stream_without_a_registry_says_so():
    (text,) = ProtobufMessages(None, None, MAPPING_LIMITS).json_texts([b"\0\0\0\0\1\0"], None)
    assert text == "the message has schema id 1, but no schema registry is set"


def test_a_schema_in_protobuf_is_not_read_as_avro(registry):
    with pytest.raises(DataError, match="its type is PROTOBUF, not AVRO"):
        registry.avro(1)
