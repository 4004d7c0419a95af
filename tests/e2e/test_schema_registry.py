"""Messages in Avro and Protobuf on a real broker, with their schemas in a registry: the adaptor as a process, producers of two kinds,
and a registry that is unavailable for a while.

The registry is `tests/support/schema_registry.py`, which speaks the protocol and is no product. With
PENSTOCK_TEST_REGISTRY, the URL of a registry with Confluent's API, the first test uses that one. Confluent's serializer
produces if its libraries are installed; otherwise, the test writes its format.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("confluent_kafka")

import fastavro
from confluent_kafka import Producer
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message_factory import GetMessages

from penstock.broker.ports import free_port
from penstock.log import START, Partition, Record, Topic
from penstock.log.kafka import KafkaLog
from penstock.log.topics import TopicNames
from penstock.wire import StreamDeclaration, Tuples, encode
from support.records import record_of
from support.schema_registry import registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.xdist_group("broker")
ROOT = Path(__file__).parents[2]
BOUND_S = 120.0
IRI = "http://x/s"
READING = {
    "type": "record",
    "name": "Reading",
    "namespace": "org.example",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "v", "type": ["null", "double"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
LATER = READING | {"fields": [*READING["fields"], {"name": "unit", "type": "string", "default": "C"}]}
RML = """@prefix rml: <http://w3id.org/rml/> . @prefix x: <http://x/> .
<#r> rml:logicalSource [ rml:iterator "$" ] ; rml:subjectMap [ rml:template "http://x/s/{$.id}" ] ;
  rml:predicateObjectMap [ rml:predicate x:v ; rml:objectMap [ rml:reference "$.v" ] ] ,
    [ rml:predicate x:unit ; rml:objectMap [ rml:reference "$.unit" ] ] .
"""
MAPPING = {"rml": RML, "time": {"path": "$.at"}}
PROTO = """syntax = "proto3";
package org.example;
import "google/protobuf/timestamp.proto";
message Reading {
  string id = 1;
  double v = 2;
  google.protobuf.Timestamp at = 3;
}
message Outer {
  message Inner {
    string id = 1;
    optional string unit = 4;
    google.protobuf.Timestamp at = 3;
  }
}
"""


class Ingest:
    """A dictionary and an adaptor as processes, and the topics of one stream."""

    def __init__(self, servers: str, prefix: str, registry_url: str, folder: Path, encoding: str) -> None:
        self.names, self.servers, self.folder = TopicNames(prefix), servers, folder
        self.log = KafkaLog(servers)
        names = self.names
        self.log.create([Topic(names.events("s")), Topic(names.tuples("s")), Topic(names.dead_letter)])
        self.log.create([Topic(names.late), Topic(names.control, 1, "compact")])
        settings = json.dumps(MAPPING | {"format": encoding}, sort_keys=True)
        declared = StreamDeclaration(1, IRI, "s", 100, 0, True, (), 0, 3_600_000, 86_400_000, mapping=settings)
        self.writer = self.log.writer()
        self.writer.append([Record(names.control, encode(declared), b"stream:s")])
        port = free_port()
        self.processes = [
            self._service("dictionary", PENSTOCK_LISTEN=f"127.0.0.1:{port}"),
            self._service(
                "adaptor",
                PENSTOCK_DICTIONARIES=f"grpc://127.0.0.1:{port}",
                PENSTOCK_SCHEMA_REGISTRY=registry_url,
            ),
        ]

    def _service(self, module: str, **settings: str) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "libs"),
            "PENSTOCK_BOOTSTRAP_SERVERS": self.servers,
            "PENSTOCK_PREFIX": self.names.prefix,
            **settings,
        }
        return subprocess.Popen([sys.executable, "-m", f"penstock.services.{module}"], env=environment)

    def produce(self, values: list[bytes]) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "enable.idempotence": True})
        for value in values:
            producer.produce(self.names.events("s"), value=value)
        assert producer.flush(30) == 0

    def produce_with_kcat(self, value: bytes) -> bool:
        """Produce a message with kcat, which sends a file as it is. Returns whether kcat is installed."""
        if shutil.which("kcat") is None:
            return False
        file = self.folder / "message"
        file.write_bytes(value)
        subprocess.run(["kcat", "-b", self.servers, "-P", "-t", self.names.events("s"), str(file)], check=True)
        return True

    def read(self, topic: str) -> list[Any]:
        reader = self.log.reader({Partition(topic, 0): START})
        found: list[Any] = []
        while True:
            found += reader.poll(1000, 0.1)
            if reader.caught_up():
                reader.close()
                return found

    def times(self) -> list[int]:
        """The times of the events whose tuples are written, each source offset once."""
        times = {}
        for message in self.read(self.names.tuples("s")):
            tuples = record_of(message)
            assert isinstance(tuples, Tuples)
            times |= dict(zip(tuples.offsets.tolist(), tuples.times.tolist(), strict=True))
        return [times[offset] for offset in sorted(times)]

    def dead(self) -> dict[bytes, str]:
        """The reasons of dead letters, by their bytes."""
        return {m.value: dict(m.headers)["reason"].decode() for m in self.read(self.names.dead_letter)}

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self.writer.close()
        self.log.close()


@contextmanager
def ingest(broker: Any, prefix: str, url: str, folder: Path, encoding: str = "avro") -> Iterator[Ingest]:
    made = Ingest(broker.bootstrap_servers, prefix, url, folder, encoding)
    try:
        yield made
    finally:
        made.close()


def wait(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {BOUND_S} s: {what}"
        time.sleep(0.1)


def registered(url: str, schema: dict[str, Any] | str, subject: str) -> int:
    """The id of a schema in Avro, or of the text of a schema in Protobuf."""
    document = {"schema": json.dumps(schema)}
    if isinstance(schema, str):
        document = {"schema": schema, "schemaType": "PROTOBUF"}
    request = urllib.request.Request(
        f"{url}/subjects/{subject}/versions",
        json.dumps(document).encode(),
        {"content-type": "application/vnd.schemaregistry.v1+json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return int(json.load(answer)["id"])


def serializer(url: str, schema: dict[str, Any], subject: str) -> Callable[[dict[str, Any]], bytes]:
    """Confluent's serializer; without its libraries, a function that writes its format."""
    try:
        from confluent_kafka.schema_registry import SchemaRegistryClient  # noqa: PLC0415 - may be missing
        from confluent_kafka.schema_registry.avro import AvroSerializer  # noqa: PLC0415
        from confluent_kafka.serialization import MessageField, SerializationContext  # noqa: PLC0415
    except ImportError:
        number = registered(url, schema, subject)

        def by_hand(value: dict[str, Any]) -> bytes:
            out = io.BytesIO()
            fastavro.schemaless_writer(out, schema, value)
            return b"\0" + number.to_bytes(4, "big") + out.getvalue()

        return by_hand
    client = SchemaRegistryClient({"url": url})
    made = AvroSerializer(client, json.dumps(schema))
    context = SerializationContext(subject.removesuffix("-value"), MessageField.VALUE)
    return lambda value: made(value, context)


def test_messages_with_schema_ids_become_events(broker, topic_prefix, tmp_path):
    with registry() as schemas:
        url = os.environ.get("PENSTOCK_TEST_REGISTRY") or schemas.url
        old = serializer(url, READING, f"{topic_prefix}-value")
        new = serializer(url, LATER, f"{topic_prefix}-later-value")
        with ingest(broker, topic_prefix, url, tmp_path) as running:
            values = [old({"id": f"s{n}", "v": n / 4, "at": 1_000 + n}) for n in range(100)]
            values += [new({"id": f"s{n}", "v": None, "at": 1_000 + n, "unit": "K"}) for n in range(100, 150)]
            unknown = b"\0\x7f\xff\xff\xf0" + values[0][5:]
            bad = [unknown, values[0][:-1], b'{"id": "s1"}', b""]
            running.produce([*values[:70], *bad, *values[70:]])
            with_kcat = running.produce_with_kcat(old({"id": "kcat", "v": 0.5, "at": 2_000}))
            expected = [1_000 + n for n in range(150)] + [2_000] * with_kcat
            wait(lambda: running.times() == expected, "all good messages become events")
            wait(lambda: len(running.dead()) == len(bad), "all bad messages become dead letters")
            reasons = running.dead()
    assert set(reasons) == set(bad)
    assert reasons[unknown].endswith("the registry has no such schema")
    assert reasons[bad[1]].startswith("$.at: the data end within a number")


def message_types(folder: Path) -> tuple[Any, Any]:
    """Python's classes of the messages `Reading` and `Inner`."""
    (folder / "r.proto").write_text(PROTO, encoding="utf-8")
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", "--include_imports"]
    subprocess.run([*command, f"--descriptor_set_out={folder}/set", "r.proto"], check=True)
    found = GetMessages(FileDescriptorSet.FromString((folder / "set").read_bytes()).file)
    return found["org.example.Reading"], found["org.example.Outer"].Inner


def test_messages_in_protobuf_with_schema_ids_become_events(broker, topic_prefix, tmp_path):
    reading, inner = message_types(tmp_path)
    with registry() as schemas:
        url = os.environ.get("PENSTOCK_TEST_REGISTRY") or schemas.url
        number = registered(url, PROTO, f"{topic_prefix}-value").to_bytes(4, "big")
        first, second = b"\0" + number + b"\0", b"\0" + number + b"\4\2\0"  # the types 0, and 0 in 1
        at = [{"seconds": 1, "nanos": n * 1_000_000} for n in range(150)]
        values = [first + reading(id=f"s{n}", v=n / 4, at=at[n]).SerializeToString() for n in range(100)]
        values += [second + inner(id=f"s{n}", unit="K", at=at[n]).SerializeToString() for n in range(100, 150)]
        unknown = b"\0\x7f\xff\xff\xf0\0" + values[0][6:]
        bad = [unknown, values[0][:-1], b"\0" + number + b"\2\x08", b"\0" + number, b'{"id": "s1"}']
        with ingest(broker, topic_prefix, url, tmp_path, "protobuf") as running:
            running.produce([*values[:70], *bad, *values[70:]])
            wait(lambda: running.times() == [1_000 + n for n in range(150)], "all good messages become events")
            wait(lambda: len(running.dead()) == len(bad), "all bad messages become dead letters")
            reasons = running.dead()
    assert set(reasons) == set(bad)
    assert reasons[unknown].endswith("the registry has no such schema")
    assert reasons[bad[1]].startswith("$: ")
    assert reasons[bad[2]].endswith("has no message type at [4]")


def test_a_registry_that_is_down_delays_messages_and_loses_none(broker, topic_prefix, tmp_path):
    with registry() as schemas:
        old = serializer(schemas.url, READING, "a")
        values = [old({"id": f"s{n}", "v": n / 4, "at": 1_000 + n}) for n in range(60)]
        schemas.down = True
        with ingest(broker, topic_prefix, schemas.url, tmp_path) as running:
            running.produce(values[:30])
            wait(lambda: len(schemas.requests) > 6, "the adaptor asks again and again")
            assert running.times() == []
            assert running.dead() == {}
            running.produce(values[30:])
            schemas.down = False
            wait(lambda: running.times() == [1_000 + n for n in range(60)], "the adaptor continues")
            assert running.dead() == {}
            assert all(process.poll() is None for process in running.processes)
