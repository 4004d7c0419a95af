from __future__ import annotations

import numpy as np
import pytest

from penstock.cluster.dictionary_node import DictionaryNode
from penstock.cluster.rpc import FlightTerms
from penstock.cluster.topics import ClusterTopics
from penstock.errors import DataError
from penstock.log import MemoryLog, Partition, TransientError
from penstock.log.clock import VirtualClock
from penstock.log.faults import Point
from penstock.log.topics import TopicNames
from penstock.log.view import CompactedView

TERMS = [(1, "urn:x:1", "", ""), (3, "grün grün grün", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString", "de")]


@pytest.fixture
def nodes():
    log, topics = MemoryLog(VirtualClock()), ClusterTopics(TopicNames())
    log.create(topics.all())
    made = [DictionaryNode(log, topics, f"d{i}", "grpc://127.0.0.1:0", VirtualClock()) for i in range(2)]
    yield made
    for node in made:
        node.close()


def test_terms_and_ids_go_to_and_fro(nodes):
    nodes[0].step()
    client = FlightTerms([f"grpc://127.0.0.1:{node.port}" for node in nodes])
    ids = client.encode(TERMS)
    assert client.decode(ids) == TERMS
    assert np.array_equal(client.encode(TERMS[::-1]), ids[::-1])
    with pytest.raises(DataError, match="names nothing"):
        client.decode(np.array([99], np.uint64))
    with pytest.raises(DataError):
        client.encode([(1, "not absolute", "", "")])
    assert client.encode([(2, "b", "", "")])[0] != client.encode([(2, "b", "", "")])[0]
    client.close()


def test_the_standby_goes_on_with_the_same_ids(nodes):
    nodes[0].step()
    client = FlightTerms([f"grpc://127.0.0.1:{node.port}" for node in nodes])
    ids = client.encode(TERMS)
    nodes[0].close()
    with pytest.raises(TransientError):
        client.decode(ids)
    nodes[1].step()
    assert nodes[1].active
    assert client.decode(ids) == TERMS
    client.close()


class _Away:
    """The log takes no transactions while `on`."""

    def __init__(self):
        self.on = False

    def at(self, point, owner):
        if self.on and point is Point.COMMIT:
            raise TransientError(f"{point.name} {owner}")

    def delay_ms(self, _):
        return 0


def test_an_instance_that_cannot_write_its_log_gives_out_no_ids_any_more():
    """The term is interned by then, and its id not durable: the next instance must find neither."""
    faults = _Away()
    log, topics = MemoryLog(VirtualClock(), faults), ClusterTopics(TopicNames())
    log.create(topics.all())
    node = DictionaryNode(log, topics, "d", "grpc://127.0.0.1:0", VirtualClock())
    node.step()
    client = FlightTerms([f"grpc://127.0.0.1:{node.port}"])
    faults.on = True
    for _ in range(2):
        with pytest.raises(TransientError):
            client.encode(TERMS)
    faults.on = False
    with pytest.raises(TransientError):
        client.encode(TERMS)
    node.step()
    ids = client.encode(TERMS)
    assert len(CompactedView(log, [Partition(topics.names.dictionary)]).catch_up()) == len(TERMS)
    assert client.decode(ids) == TERMS
    client.close()
    node.close()
