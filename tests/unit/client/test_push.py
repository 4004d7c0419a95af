"""Producing by a `Client`."""

from __future__ import annotations

import sys

import pytest
from rdflib import URIRef

from penstock import Client, DataError
from penstock.log import START, MemoryLog, Partition, Topic, TransientError
from penstock.log.faults import NoFaults, Point
from penstock.log.topics import TopicNames

LINE = "<http://x/a> <http://x/p> <http://x/b> ."
EVENTS = TopicNames().events("s")


class BrokersUnavailable(NoFaults):
    """Brokers do not answer after so many records, until they are back."""

    def __init__(self, after: int) -> None:
        self.after = after

    def at(self, point: Point, owner: str) -> None:
        if point is Point.APPEND:
            self.after -= 1
            if self.after < 0:
                raise TransientError("the brokers do not answer")


def test_a_client_without_the_cluster_extra_names_it(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("penstock.log.kafka")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs `pip install 'penstock\[cluster\]'`"):
        Client("localhost:9092")


def test_messages_for_a_mapping_have_its_media_type_and_perhaps_no_time():
    log = MemoryLog()
    log.create([Topic(EVENTS)])
    client = Client(log=log)
    client.push("s", '{"a": 1}', format="json")
    client.push("s", "a\n1\n", 1_700_000_000_000, format="text/csv")
    first, second = log.reader({Partition(EVENTS): START}).poll()
    assert dict(first.headers) == {"content-type": b"application/json"}
    assert dict(second.headers) == {"content-type": b"text/csv", "timestamp": b"1700000000000"}
    with pytest.raises(DataError, match="timestamp"):
        client.push("s", LINE)


@pytest.mark.parametrize("durable", range(3))
def test_events_that_are_pushed_again_after_a_transient_error_are_written_once(durable):
    faults = BrokersUnavailable(durable)
    log = MemoryLog(faults=faults)
    log.create([Topic(EVENTS)])
    client = Client(log=log)
    events = [(time_ms, LINE) for time_ms in (1_000, 2_000, 3_000)]
    for _ in range(2):
        with pytest.raises(TransientError):
            client.push_events("s", events)
    faults.after = 100
    client.push_events("s", events)
    client.push("s", LINE, 3_000)
    found = log.reader({Partition(EVENTS): START}).poll()
    assert [int(dict(m.headers)["timestamp"]) for m in found] == [1_000, 2_000, 3_000, 3_000]


def test_the_default_format_is_that_of_the_streams_mapping(monkeypatch):
    log = MemoryLog()
    log.create([Topic(EVENTS)])
    client = Client(log=log, url="http://localhost:1")
    asked = []

    def streams(*_):
        asked.append(True)
        return b'{"http://x/s": {"name": "s", "mapping": {}}, "http://x/t": {"name": "t", "mapping": null}}'

    monkeypatch.setattr(client, "_coordinator", streams)
    client.push("s", LINE, 1_000)
    assert not asked, "events with a time need no request"
    client.push("s", '{"a": 1}')
    client.push_events("s", [(None, '{"a": 2}'), (2_000, '{"a": 3}')])
    assert len(asked) == 1
    client.push("s", [(URIRef("http://x/a"), URIRef("http://x/p"), URIRef("http://x/b"))], 3_000)
    found = [dict(m.headers) for m in log.reader({Partition(EVENTS): START}).poll()]
    assert found == [
        {"timestamp": b"1000"},
        {},
        {},
        {"timestamp": b"2000"},
        {"content-type": b"application/n-triples", "timestamp": b"3000"},
    ]
    log.create([Topic(TopicNames().events("t"))])
    with pytest.raises(DataError, match="timestamp"):
        client.push("t", LINE)
