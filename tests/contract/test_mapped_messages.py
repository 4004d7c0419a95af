"""A mapping makes the same events of the same messages in the plain adaptor, in Spark's tasks, in the embedded engine and
over HTTP.
"""

from __future__ import annotations

import io
import json
from urllib.parse import quote

import fastavro
import pyarrow as pa
import pytest
from google.protobuf import struct_pb2, timestamp_pb2
from starlette.testclient import TestClient

import penstock
from penstock import DataError
from penstock.http.embedded import application
from penstock.log import MemoryLog, Partition, Record, TransientError
from penstock.log.topics import TopicNames
from penstock.mapping.encodings.schema_registry import SchemaRegistry
from penstock.services.adaptor.adaptor import Adaptor
from penstock.spark import stream_task
from penstock.spark.stream_task import READ, TaskSettings, adapt
from penstock.wire import StreamDeclaration, encode
from support import adaptors
from support.schema_registry import registry

NAMES = TopicNames()
IRI, NAME = "http://x/a", "a"
PREFIXES = "@prefix rml: <http://w3id.org/rml/> . @prefix x: <http://x/> ."
JSON = f"""{PREFIXES}
<#r> rml:logicalSource [ rml:iterator "$" ] ; rml:subjectMap [ rml:template "http://x/s/{{$.id}}" ] ;
  rml:predicateObjectMap [ rml:predicate x:v ; rml:objectMap [ rml:reference "$.v[*]" ] ] ,
    [ rml:predicate x:o ; rml:objectMap [ rml:termType rml:BlankNode ] ] .
"""
CSV = f"""{PREFIXES}
<#r> rml:logicalSource [ rml:referenceFormulation rml:CSV ] ; rml:subjectMap [ rml:template "http://x/s/{{id}}" ] ;
  rml:predicateObjectMap [ rml:predicate x:v ; rml:objectMap [ rml:reference "v" ] ] .
"""
AT = {"path": "$.at", "unit": "ms"}
MAPPINGS = {
    "json": {"rml": JSON, "time": AT},
    "context": {"context": {"@vocab": "http://x/", "id": "@id", "at": None}, "base": "http://x/s/", "time": AT},
    "csv": {"rml": CSV, "format": "csv", "time": {"path": "at", "unit": "iso8601"}},
    "construct": {
        "construct": "CONSTRUCT { ?s <http://x/v> $.v[*] ; <http://x/o> [] } "
        'WHERE { BIND(IRI(CONCAT("http://x/s/", ENCODE_FOR_URI($.id))) AS ?s) }',
        "time": AT,
    },
    "no rule for times": {"rml": JSON},
}
AVRO = {"rml": JSON, "time": {"path": "$.at"}, "format": "avro"}
PROTOBUF = AVRO | {"format": "protobuf"}
MESSAGES: list[tuple[bytes, str | None]] = [
    *[(json.dumps({"id": str(n), "v": ["a", n, n / 4, True], "at": 1000 + n}).encode(), None) for n in range(20)],
    (b'{"id": "x y", "v": ["a long text that is not inline"], "at": 1050}', "application/json"),
    (b'{"id": 1, "v": [{}], "at": 1051}', None),
    (b'{"id": 1, "v": [1]}', None),
    (b"{", None),
    (b"\xff", "application/json"),
    (b"id,v,at\n1,a,1970-01-01T00:00:02Z\n", None),
    (b"id,v,at\n1,a,1970-01-01T00:00:02Z\n", "text/csv"),
    (b"id,v,at\n1,a\n", None),
    (adaptors.LINE, "application/n-triples"),
    (adaptors.TURTLE, "text/turtle"),
]


READING = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "id", "type": "string"},
        {
            "name": "v",
            "type": {
                "type": "array",
                "items": ["string", "long", "double", "boolean", {"type": "map", "values": "int"}],
            },
        },
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
    ],
}


def avro(prefix):
    """The messages in Avro, and what is not Avro. `prefix`: the bytes before each datum."""
    made = []
    for number in range(20):
        out = io.BytesIO()
        value = {"id": str(number), "v": ["a", number, number / 4, True], "at": 1000 + number}
        fastavro.schemaless_writer(out, READING, value)
        made.append((prefix + out.getvalue(), None if number % 2 else "application/avro"))
    out = io.BytesIO()
    fastavro.schemaless_writer(out, READING, {"id": "object", "v": [{"a": 1}], "at": None})
    whole = made[0][0]
    return [
        *made,
        (prefix + out.getvalue(), None),
        (whole[:-1], None),
        (whole + b"\0", "avro/binary"),
        (b"", None),
        (b"\1\0\0\0\1" + whole[len(prefix) :], None),
        (b"\0\0\0\0\x63" + whole[len(prefix) :], None),
        (b'{"id": "1", "v": [1], "at": 7}', None),
        (b'{"id": "1", "v": [1], "at": 7}', "application/json"),
        (adaptors.TURTLE, "text/turtle"),
    ]


PROTO = """syntax = "proto3";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
message Reading {
  string id = 1;
  repeated google.protobuf.Value v = 2;
  google.protobuf.Timestamp at = 3;
}
message Readings { repeated Reading all = 1; }
"""


def proto_of(event):
    """An event in Protobuf. Its numbers are doubles, as `google.protobuf.Value` has them."""
    values = [struct_pb2.Value(**{_MEMBER[type(value)]: value}) for value in event["v"]]
    seconds, ms = divmod(event["at"], 1000)
    at = timestamp_pb2.Timestamp(seconds=seconds, nanos=ms * 1_000_000)
    fields = [(b"\x0a", event["id"].encode()), *((b"\x12", value.SerializeToString()) for value in values)]
    return b"".join(tag + bytes([len(data)]) + data for tag, data in [*fields, (b"\x1a", at.SerializeToString())])


_MEMBER = {str: "string_value", int: "number_value", float: "number_value", bool: "bool_value"}


def protobuf(prefix):
    """The messages in Protobuf, and what is not Protobuf. `prefix`: the bytes before each message."""
    events = [{"id": str(n), "v": ["a", n, n / 4, True], "at": 1000 + n} for n in range(20)]
    made = [(prefix + proto_of(e), None if n % 2 else "application/protobuf") for n, e in enumerate(events)]
    whole = made[0][0]
    return [
        *made,
        (prefix + b"\x0a\x01a", None),  # without a time
        (whole[:-1], None),
        (whole + b"\0", "application/x-protobuf"),
        (b"\0\0\0\0\x63\0" + whole[len(prefix) :], None),
        (b'{"id": "1", "v": [1], "at": 7}', None),
        (b'{"id": "1", "v": [1], "at": 7}', "application/json"),
        (adaptors.TURTLE, "text/turtle"),
    ]


@pytest.fixture(scope="module")
def schemas():
    with registry() as running:
        assert running.register(READING) == 1
        assert running.register(PROTO, "protobuf", "PROTOBUF") == 2
        yield running


@pytest.fixture(scope="module")
def dictionary():
    with adaptors.dictionary() as running:
        yield running


def declaration(mapping):
    settings = json.dumps(mapping, sort_keys=True)
    return StreamDeclaration(1, IRI, NAME, 100, 0, True, (), 0, 10_000, 86_400_000, mapping=settings)


def record(number, value, content_type, **more):
    headers = () if content_type is None else (("content-type", content_type.encode()),)
    return Record(NAMES.events(NAME), value, headers=headers, partition=0, timestamp_ms=2000 + number, **more)


def by_plain(dictionary, mapping, records, access=None):
    log = MemoryLog()
    adaptors.create(log, NAMES)
    log.writer().append([Record(NAMES.control, encode(declaration(mapping)), b"stream:a")])
    log.writer().append(records)
    registry = None if access is None else SchemaRegistry(access)
    adaptor = Adaptor(log, NAMES, dictionary.service, NAMES.adaptor_group, registry=registry)
    while adaptor.step():
        pass
    return adaptors.read(log, NAMES, dictionary.terms)


def by_spark(dictionary, mapping, records, monkeypatch, access=None):
    monkeypatch.setattr(stream_task, "_adapting", {})
    n = len(records)
    pairs = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    columns = [
        pa.array([NAMES.events(NAME)] * n),
        pa.array([0] * n, pa.int32()),
        pa.array(range(n), pa.int64()),
        pa.array([each.timestamp_ms for each in records], pa.int64()),
        pa.array([each.key for each in records], pa.binary()),
        pa.array([each.value for each in records], pa.binary()),
        pa.array([[{"key": key, "value": value} for key, value in each.headers] for each in records], pairs),
    ]
    declared = {NAMES.events(NAME): declaration(mapping)}
    given = TaskSettings(NAMES, (dictionary.address,), declared, {}, 0.0, registry=access)
    found = []
    for batch in adapt(given, [pa.RecordBatch.from_arrays(columns, names=list(READ))]):
        for row in batch.to_pylist():
            headers = tuple((pair["key"], pair["value"]) for pair in row["headers"])
            found.append(Record(row["topic"], row["value"], row["key"], row["partition"], headers))
    return adaptors.written(found, dictionary.terms)


def by_engine(mapping, push, messages, access=None):
    """Times and numbers of triples of the accepted messages, and reasons of the others, by number of the message."""
    counts, dead = {}, {}
    for number, (value, content_type) in enumerate(messages):
        with penstock.Engine(schema_registry=access) as engine:
            engine.declare_stream(IRI, timing="all", mapping=mapping)
            reason = push(engine, value, 2000 + number, content_type)
            if reason is None:
                stream = engine.stats()["streams"][IRI]
                assert stream["events"] == 1
                counts[number] = (stream["watermark"] + 1, stream["tuples"])
            else:
                dead[number] = reason
                assert [letter.data for letter in engine.dead_letters()] in ([value], [])  # a wrong format is none
    return counts, dead


def pushed(engine, value, time_ms, content_type):
    try:
        engine.push(IRI, value, time_ms, content_type)
    except DataError as error:
        return str(error)
    return None


def posted(engine, value, time_ms, content_type):
    http = TestClient(application(engine), base_url="http://localhost")
    headers = {} if content_type is None else {"content-type": content_type}
    sent = http.post(f"/streams/{quote(IRI, safe='')}/events?timestamp={time_ms}", content=value, headers=headers)
    return None if sent.status_code == 202 else sent.json()["message"]


@pytest.mark.parametrize("kind", MAPPINGS)
def test_every_way_in_makes_the_same_events_and_the_same_refusals(dictionary, monkeypatch, kind):
    check_all_ways(dictionary, monkeypatch, MAPPINGS[kind], MESSAGES, 3 if kind == "csv" else 21)


@pytest.mark.parametrize("kind", ["schema of the declaration", "schema of the registry"])
def test_every_way_in_decodes_avro_alike(dictionary, monkeypatch, schemas, kind):
    if kind == "schema of the declaration":
        check_all_ways(dictionary, monkeypatch, AVRO | {"schema": READING}, avro(b""), 20)
    else:
        access = penstock.RegistryAccess(schemas.url)
        check_all_ways(dictionary, monkeypatch, AVRO, avro(b"\0\0\0\0\1"), 20, access)


@pytest.mark.parametrize("kind", ["schema of the declaration", "schema of the registry"])
def test_every_way_in_decodes_protobuf_alike(dictionary, monkeypatch, schemas, kind):
    if kind == "schema of the declaration":
        check_all_ways(dictionary, monkeypatch, PROTOBUF | {"schema": PROTO}, protobuf(b""), 20)
    else:
        access = penstock.RegistryAccess(schemas.url)
        check_all_ways(dictionary, monkeypatch, PROTOBUF, protobuf(b"\0\0\0\0\2\0"), 20, access)


def check_all_ways(dictionary, monkeypatch, mapping, messages, least, access=None):
    records = [record(number, *message) for number, message in enumerate(messages)]
    plain = by_plain(dictionary, mapping, records, access)
    assert by_spark(dictionary, mapping, records, monkeypatch, access) == plain
    events = {
        offset: (time, len(terms) // 3) for _, offset, time, terms in plain.events[Partition(NAMES.tuples(NAME), 0)]
    }
    reasons = {offset: letter[0] for (_, _, offset), letter in plain.dead.items()}
    assert len(events) + len(reasons) == len(messages)
    assert len(events) >= least
    assert [letter[1] for _, letter in sorted(plain.dead.items())] == [messages[n][0] for n in sorted(reasons)]
    for push in (pushed, posted):
        counts, dead = by_engine(mapping, push, messages, access)
        assert counts == events
        assert dead == reasons


def test_key_headers_and_timestamp_of_kafka_are_references(dictionary, monkeypatch):
    text = JSON.replace("$.id", "@key").replace('"$.v[*]"', '"@headers.Source"').replace("x:o", "x:t")
    mapping = {"rml": text.replace("rml:termType rml:BlankNode", 'rml:reference "@timestamp"')}
    records = [Record(NAMES.events(NAME), b"{}", b"k 1", 0, (("source", b"web"),), 7)]
    plain = by_plain(dictionary, mapping, records)
    ((_, _, time, terms),) = plain.events[Partition(NAMES.tuples(NAME), 0)]
    assert time == 7
    assert [term[1] for term in terms] == [
        "http://x/s/k%201",
        "http://x/v",
        "web",
        "http://x/s/k%201",
        "http://x/t",
        "7",
    ]
    assert by_spark(dictionary, mapping, records, monkeypatch) == plain


SEVERAL = {
    "ndjson": ({"rml": JSON, "format": "ndjson", "time": AT}, lambda events: b"\n".join(map(json_of, events))),
    "array": (
        {"rml": JSON, "events": "$.all[*]", "time": AT},
        lambda events: b'{"all": [%s]}' % b",".join(map(json_of, events)),
    ),
    "csv": (
        {"rml": CSV, "format": "csv", "time": {"path": "at", "unit": "ms"}},
        lambda events: b"id,v,at\n" + b"".join(b"%s,%d,%d\n" % (e["id"].encode(), e["v"][0], e["at"]) for e in events),
    ),
    "avro": (
        {
            "rml": JSON,
            "format": "avro",
            "schema": {
                "type": "record",
                "name": "M",
                "fields": [{"name": "all", "type": {"type": "array", "items": READING}}],
            },
            "events": "$.all[*]",
            "time": {"path": "$.at"},
        },
        lambda events: avro_of(events),  # noqa: PLW0108 - defined below
    ),
    "protobuf": (
        PROTOBUF | {"schema": PROTO, "message": "Readings", "events": "$.all[*]"},
        lambda events: b"".join(b"\x0a" + bytes([len(data)]) + data for data in map(proto_of, events)),
    ),
}


def json_of(event):
    return json.dumps(event).encode()


def avro_of(events):
    schema = SEVERAL["avro"][0]["schema"]
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {"all": events})
    return out.getvalue()


@pytest.mark.parametrize("kind", SEVERAL)
def test_a_message_may_have_several_events(dictionary, monkeypatch, kind):
    mapping, message = SEVERAL[kind]
    groups = [[{"id": f"{n}-{i}", "v": [n], "at": 1000 + 10 * n + i} for i in range(n)] for n in range(1, 8)]
    groups[5][3]["id"] = " "  # mapped as every other text
    values = [message(group) for group in groups]
    values[3:3] = [message([]), values[0][: len(values[0]) // 2]]
    records = [record(number, value, None) for number, value in enumerate(values)]
    plain = by_plain(dictionary, mapping, records)
    assert by_spark(dictionary, mapping, records, monkeypatch) == plain
    found = plain.events[Partition(NAMES.tuples(NAME), 0)]
    assert [time for _, _, time, _ in found] == [event["at"] for group in groups for event in group]
    assert [offset for _, offset, *_ in found] == [n for n in range(len(values)) for _ in found_of(groups, n)]
    assert {offset for _, _, offset in plain.dead} == {3, 4}
    with penstock.Engine() as engine:
        engine.declare_stream(IRI, timing="all", mapping=mapping)
        report = engine.push_events(IRI, [(None, value) for value in values])
        assert (report.accepted, report.rejected) == (len(found), 2)
        tuples = engine.stats()["streams"][IRI]["tuples"]
        assert tuples == sum(len(terms) // 3 for *_, terms in found)
        assert [letter.reason for letter in engine.dead_letters()] == [
            letter[0] for _, letter in sorted(plain.dead.items())
        ]


def found_of(groups, place):
    """The events of the message at a place, of which 3 and 4 are invalid."""
    return [] if place in (3, 4) else groups[place if place < 3 else place - 2]


def test_one_bad_event_refuses_its_message(dictionary, monkeypatch):
    mapping, message = SEVERAL["array"]
    good, bad = {"id": "1", "v": [1], "at": 1}, {"id": "2", "v": [{}], "at": 2}
    records = [record(0, message([good, bad, good]), None), record(1, message([good]), None)]
    plain = by_plain(dictionary, mapping, records)
    assert by_spark(dictionary, mapping, records, monkeypatch) == plain
    assert [offset for _, offset, *_ in plain.events[Partition(NAMES.tuples(NAME), 0)]] == [1]
    ((reason, *_),) = plain.dead.values()
    assert reason.startswith("event 2 of 3: $.v[*]: an object where ")


def test_an_unavailable_registry_delays_messages_and_refuses_none(dictionary):
    mapping, records = AVRO, [record(n, *message) for n, message in enumerate(avro(b"\0\0\0\0\1")[:20])]
    with registry() as schemas:
        assert schemas.register(READING) == 1
        log = MemoryLog()
        adaptors.create(log, NAMES)
        log.writer().append([Record(NAMES.control, encode(declaration(mapping)), b"stream:a")])
        log.writer().append(records)
        now = [0.0]
        client = SchemaRegistry(penstock.RegistryAccess(schemas.url), now=lambda: now[0])
        adaptor = Adaptor(log, NAMES, dictionary.service, NAMES.adaptor_group, registry=client)
        schemas.down = True
        for _ in range(5):
            with pytest.raises(TransientError, match="answers with status 503"):
                adaptor.step()
        assert len(schemas.requests) == 1  # the others came before the end of the pause
        schemas.down, now[0] = False, 60.0
        while adaptor.step():
            pass
        found = adaptors.read(log, NAMES, dictionary.terms)
        assert len(found.events[Partition(NAMES.tuples(NAME), 0)]) == 20
        assert found.dead == {}


def test_a_push_without_its_schema_has_no_effect():
    with registry() as schemas, penstock.Engine(schema_registry=schemas.url) as engine:
        engine.declare_stream(IRI, timing="all", mapping=AVRO)
        schemas.down = True
        message = avro(b"\0\0\0\0\1")[0][0]
        with pytest.raises(penstock.UnavailableError):
            engine.push(IRI, message)
        assert posted(engine, message, 1, None) == "the schema registry at 127.0.0.1 answers with status 503"
        assert engine.dead_letters() == []
        assert engine.stats()["streams"][IRI]["events"] == 0


def test_a_replay_of_the_write_ahead_log_requests_no_schema(tmp_path):
    good, *_ = avro(b"\0\0\0\0\1")
    bad = b"\0\0\0\0\x63" + good[0][5:]
    with registry() as schemas:
        assert schemas.register(READING) == 1
        with penstock.Engine(tmp_path, durability="commit", schema_registry=schemas.url) as engine:
            engine.declare_stream(IRI, timing="all", mapping=AVRO)
            report = engine.push_events(IRI, [(None, good[0]), (None, bad), (None, b'{"id": 1}')])
            engine.push(IRI, adaptors.LINE, 1, "nt")
            engine.advance(IRI, 1000)
            engine.push_events(IRI, [(None, good[0])])
            stream = engine.stats()["streams"][IRI]
    assert (report.accepted, report.rejected) == (1, 2)
    with penstock.Engine(tmp_path, durability="commit") as engine:
        assert engine.stats()["streams"][IRI] == stream
        assert [letter.data for letter in engine.dead_letters()] == [bad, b'{"id": 1}']
        assert [event.data for event in engine.late(IRI)] == [adaptors.LINE, good[0]]
        with pytest.raises(DataError, match="schema id 1, but no schema registry is set"):
            engine.push(IRI, good[0])
