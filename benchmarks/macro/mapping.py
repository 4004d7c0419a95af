"""JSON messages of 6 members to 5 triples each, by RML: mapped, and pushed to a stream with a standing query; and the
same messages in Avro and in Protobuf.

The peer of the first row is morph-kgc where it is installed: it maps the same messages from one file with the same
mapping. The peers of Avro and Protobuf are fastavro and Google's library.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.json_format import MessageToDict
from google.protobuf.message_factory import GetMessageClass

import penstock
from benchmarks.harness import Row, check, median_spent, spent
from penstock.mapping.stream_mapping import StreamMapping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness import Finding

COMMAND = "python -m benchmarks mapping"
TARGET_PER_S, MESSAGES, REPEATS = 300_000, 100_000, 3
IRI = "http://x/s"
MAX_BYTES = 1 << 20
RML = """@prefix rml: <http://w3id.org/rml/> . @prefix x: <http://x/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
<#r> rml:logicalSource [ rml:iterator "$" ; SOURCE ] ;
  rml:subjectMap [ rml:template "http://x/obs/{$.id}" ; rml:class x:Obs ] ;
  rml:predicateObjectMap [ rml:predicate x:by ; rml:objectMap [ rml:template "http://x/sensor/{$.sensor}" ] ] ,
    [ rml:predicate x:v ; rml:objectMap [ rml:reference "$.value" ; rml:datatype xsd:decimal ] ] ,
    [ rml:predicate x:unit ; rml:objectMap [ rml:reference "$.unit" ] ] ,
    [ rml:predicate x:room ; rml:objectMap [ rml:template "http://x/room/{$.room}" ] ] .
"""
AVRO = {
    "type": "record",
    "name": "Observation",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "sensor", "type": "string"},
        {"name": "value", "type": "double"},
        {"name": "unit", "type": ["null", "string"]},
        {"name": "room", "type": "int"},
        {"name": "at", "type": "long"},
    ],
}
PROTOBUF = """syntax = "proto3";
message Observation {
  string id = 1; string sensor = 2; double value = 3;
  string unit = 4; int32 room = 5; int64 at = 6;
}
"""
QUERY = f"""REGISTER QUERY q AS SELECT (COUNT(?s) AS ?n) FROM STREAM <{IRI}> [RANGE 1s STEP 1s]
    WHERE {{ ?s <http://x/v> ?v }}"""


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield the rates of mapping and of pushing."""
    number = 1000 if tiny else MESSAGES
    messages = [(1001 + n // 10, json.dumps(_message(n)).encode()) for n in range(number)]
    mapping = {"rml": RML.replace("; SOURCE", "")}
    compiled = StreamMapping(mapping)
    batch = compiled.batch(messages, MAX_BYTES)
    assert batch is not None
    check(int(batch.counts.sum()), 5 * number, "mapping: triples")
    times = median_spent(lambda: compiled.batch(messages, MAX_BYTES), REPEATS)
    rate = _morph_kgc(number)
    peer = (None, None) if rate is None else ("morph-kgc", rate)
    yield _row("Mapping: JSON of 6 members to 5 triples, by RML", times.wall, times.cpu, number, *peer, tiny=tiny)
    with penstock.Engine() as engine:
        engine.declare_stream(IRI, timing="all", mapping=mapping)
        engine.register(QUERY)
        pushed = spent(lambda: engine.push_events(IRI, messages))
        check(len(engine.dead_letters()), 0, "mapping: dead letters")
    yield _row("Mapping: the same by push_events, with a standing query", pushed.wall, pushed.cpu, number, tiny=tiny)
    yield from _avro(number, tiny=tiny)
    yield from _protobuf(number, tiny=tiny)


def _protobuf(number: int, *, tiny: bool) -> Iterator[Finding]:
    mapping = {"rml": RML.replace("; SOURCE", ""), "format": "protobuf", "schema": PROTOBUF}
    peer = _protobuf_type()
    messages = [(1001 + n // 10, peer(**_message(n)).SerializeToString()) for n in range(number)]
    compiled, data = StreamMapping(mapping), [text for _, text in messages]
    found = median_spent(lambda: compiled.json_texts(data, None), REPEATS)
    python = spent(lambda: [MessageToDict(peer.FromString(text)) for text in data])
    beside = "Python's Protobuf, to dicts", number / python.cpu * 1e6
    yield _row("Mapping: the same messages in Protobuf, to JSON", found.wall, found.cpu, number, *beside, tiny=tiny)
    with penstock.Engine() as engine:
        engine.declare_stream(IRI, timing="all", mapping=mapping)
        engine.register(QUERY)
        pushed = spent(lambda: engine.push_events(IRI, messages))
        check(len(engine.dead_letters()), 0, "mapping: dead letters")
    yield _row("Mapping: Protobuf by push_events, with a standing query", pushed.wall, pushed.cpu, number, tiny=tiny)


def _protobuf_type() -> Any:
    """Return Python's class of the messages."""
    file = FileDescriptorProto(name="o.proto", syntax="proto3")
    message = file.message_type.add(name="Observation")
    kinds = {"id": 9, "sensor": 9, "value": 1, "unit": 9, "room": 5, "at": 3}  # as in PROTOBUF
    for field, (name, kind) in enumerate(kinds.items(), 1):
        message.field.add(name=name, number=field, label=1, type=kind)
    pool = DescriptorPool()
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("Observation"))


def _avro(number: int, *, tiny: bool) -> Iterator[Finding]:
    schema = fastavro.parse_schema(AVRO)
    messages = [(1001 + n // 10, _encoded(schema, _message(n))) for n in range(number)]
    mapping = {"rml": RML.replace("; SOURCE", ""), "format": "avro", "schema": AVRO}
    compiled, data = StreamMapping(mapping), [text for _, text in messages]
    found = median_spent(lambda: compiled.json_texts(data, None), REPEATS)
    python = spent(lambda: [fastavro.schemaless_reader(io.BytesIO(text), schema) for text in data])
    peer = "fastavro, to Python's values", number / python.cpu * 1e6
    yield _row("Mapping: the same messages in Avro, to JSON", found.wall, found.cpu, number, *peer, tiny=tiny)
    with penstock.Engine() as engine:
        engine.declare_stream(IRI, timing="all", mapping=mapping)
        engine.register(QUERY)
        pushed = spent(lambda: engine.push_events(IRI, messages))
        check(len(engine.dead_letters()), 0, "mapping: dead letters")
    yield _row("Mapping: the same in Avro by push_events", pushed.wall, pushed.cpu, number, tiny=tiny)


def _encoded(schema: Any, message: dict[str, object]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, message)
    return out.getvalue()


def _message(number: int) -> dict[str, object]:
    value = 20 + number % 100 / 10
    sensor, room = f"s{number % 500}", number % 40
    return {"id": f"o{number}", "sensor": sensor, "value": value, "unit": "DegC", "room": room, "at": number}


def _row(
    name: str,
    wall: float,
    cpu: float,
    number: int,
    peer: str | None = None,
    peer_rate: float | None = None,
    *,
    tiny: bool,
) -> Row:
    return Row(
        name,
        number / cpu * 1e6,
        "messages/s",
        COMMAND,
        peer,
        peer_rate,
        None if tiny else TARGET_PER_S,
        lower_is_better=False,
        clock="cpu",
        other_clock=number / wall * 1e6,
    )


def _morph_kgc(number: int) -> float | None:
    """Return its messages/s of processor time; None if it is not installed."""
    try:
        morph = importlib.import_module("morph_kgc")
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        data, mapping = Path(folder) / "data.json", Path(folder) / "mapping.ttl"
        data.write_text(json.dumps([_message(n) for n in range(number)]))
        source = f'rml:source "{data}" ; rml:referenceFormulation rml:JSONPath'
        mapping.write_text(RML.replace('"$" ; SOURCE', f'"$[*]" ; {source}').replace("{$.", "{").replace('"$.', '"'))
        before = sum(os.times()[:4])
        triples = morph.materialize_set(f"[CONFIGURATION]\nlogging_level: ERROR\n[D]\nmappings: {mapping}\n")
        cost = sum(os.times()[:4]) - before
    check(len(triples), 5 * number, "mapping: triples of morph-kgc")
    return number / cost
