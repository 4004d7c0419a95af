"""Hostile events on a real broker: an adaptor's process writes them as dead letters and goes on, in bounded memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("confluent_kafka")

from e2e.test_ingest_kafka import Cluster, wait
from penstock.log import Record
from penstock.rdf.formats import Format
from penstock.services.dictionary.flight_server import DictionaryServer
from support.hostile import DOCUMENTS, TOKENS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.broker import Broker

pytestmark = pytest.mark.xdist_group("broker")
MEMORY_KB = 600 << 10
HOSTILE = {
    "entities of RDF/XML (A1)": ("xml", DOCUMENTS["entities"][1](0)),
    "a token of 17 MiB (A2)": ("turtle", TOKENS["literal"][1](17 << 20)),
    "namespaces in literals (A7)": ("xml", DOCUMENTS["namespaces in literals"][1](250_000)),
    "nested JSON-LD": ("json-ld", DOCUMENTS["objects in objects"][1](150_000)),
    "nested triple terms": ("turtle", DOCUMENTS["triple terms"][1](3_400_000)),
    "terms by terms": ("json-ld", DOCUMENTS["terms by terms"][1](400_000)),
    "plain JSON": ("json-ld", '{"temperature": 21.5}'),
}


@pytest.fixture
def cluster(broker: Broker, topic_prefix: str) -> Iterator[Cluster]:
    made = Cluster(broker.bootstrap_servers, topic_prefix)
    yield made
    made.end()


def test_hostile_events_are_dead_letters_and_the_adaptor_goes_on(cluster: Cluster) -> None:
    server = DictionaryServer("grpc://127.0.0.1:0", lambda: cluster.terms)
    adaptor = cluster.service("adaptor", PENSTOCK_DICTIONARIES=f"grpc://127.0.0.1:{server.port}")
    events = cluster.names.events("s")
    cluster.produce([1_000])
    for fmt, text in HOSTILE.values():
        headers = (("content-type", Format(fmt).media_type.encode()), ("timestamp", b"1001"))
        cluster.writer.append([Record(events, text.encode(), headers=headers)])
    cluster.produce([2_000])
    last = len(HOSTILE) + 1

    def offsets() -> list[int]:
        return [at for record in cluster.read(cluster.names.tuples("s")) for at in record.offsets.tolist()]

    wait(lambda: last in offsets(), "the event behind the hostile ones becomes a tuple")
    assert offsets() == [0, last]
    letters = cluster.read(cluster.names.dead_letter)
    assert sorted(letter.offset for letter in letters) == list(range(1, last))
    for letter, (_, text) in zip(sorted(letters, key=lambda each: each.offset), HOSTILE.values(), strict=True):
        assert letter.reason
        assert letter.data == text.encode()
    assert adaptor.poll() is None, "the adaptor's first process is still the one that runs"
    status = Path(f"/proc/{adaptor.pid}/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    assert int(peak.split()[1]) < MEMORY_KB, peak
    server.shutdown()
