from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import flight

from penstock.errors import DataError, LimitError
from penstock.log import MemoryLog, Partition, TransientError
from penstock.log.clock import VirtualClock
from penstock.log.faults import Point
from penstock.log.topics import TopicNames
from penstock.log.view import CompactedView
from penstock.rdf.terms import MAX_TERM_BYTES
from penstock.replication.cluster_topics import ClusterTopics
from penstock.services.dictionary import flight_requests
from penstock.services.dictionary.dictionary import MAX_REQUEST_BYTES
from penstock.services.dictionary.dictionary_instance import DictionaryNode
from penstock.services.dictionary.flight_requests import Requests
from penstock.term_ids import flight_terms as rpc
from penstock.term_ids.flight_terms import FlightTerms
from penstock.term_ids.term_tables import IDS, MAX_TERMS, terms_table
from penstock.term_ids.term_tables import TERMS as SCHEMA

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


class _Unavailable:
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
    faults = _Unavailable()
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


# ---- requests that nobody should make
@pytest.fixture
def door(nodes):
    """A raw Flight client of an active dictionary, and its node."""
    nodes[0].step()
    client = flight.connect(f"grpc://127.0.0.1:{nodes[0].port}")
    yield client, nodes[0]
    client.close()


def ask(client, verb, batches, schema):
    """Write batches until the server answers or refuses."""
    writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(verb), flight.FlightCallOptions(30))
    try:
        writer.begin(schema)
        for batch in batches:
            writer.write_batch(batch)
        writer.done_writing()
    except pa.ArrowException:
        pass  # the server has refused meanwhile: the reader says why
    try:
        return reader.read_all()
    finally:
        writer.close()


def ends_well(client, node):
    """What honest callers ask is answered all the same."""
    assert node._server.broken is None
    assert node._server._requests.held_bytes == 0
    found = ask(client, b"encode", terms_table(TERMS).to_batches(), SCHEMA)
    assert ask(client, b"decode", found.to_batches(), IDS).equals(terms_table(TERMS))


def test_an_endless_request_is_refused_as_it_is_read(door):
    client, node = door
    part = terms_table([(3, "x" * (1 << 20), "urn:x:type", "")]).to_batches()[0]
    given = []

    def endless():
        while len(given) < 100_000:
            given.append(1)
            yield part

    with pytest.raises(flight.FlightServerError, match=r"LimitError.*MAX_REQUEST_BYTES"):
        ask(client, b"encode", endless(), SCHEMA)
    assert len(given) < 4 * (MAX_REQUEST_BYTES >> 20)
    empty = terms_table([]).to_batches() or [pa.RecordBatch.from_pylist([], SCHEMA)]
    with pytest.raises(flight.FlightServerError, match="MAX_REQUEST_BYTES"):
        ask(client, b"encode", (empty[0] for _ in range(50_000)), SCHEMA)
    rows = pa.table([pa.array(np.zeros(60_000, np.uint64))], schema=IDS).to_batches()[0]
    with pytest.raises(flight.FlightServerError, match=r"LimitError.*MAX_TERMS"):
        ask(client, b"decode", (rows for _ in range(10_000)), IDS)
    ends_well(client, node)


@pytest.mark.parametrize("verb", [b"", b"drop", b"\xff\xfe", b"encode" * 100_000])
def test_unknown_verbs_are_refused(door, verb):
    client, node = door
    with pytest.raises(flight.FlightServerError, match="unknown verb"):
        ask(client, verb, terms_table(TERMS).to_batches(), SCHEMA)
    ends_well(client, node)


def broken_texts() -> pa.RecordBatch:
    """Offsets that lie outside of the text."""
    offsets = pa.py_buffer(np.array([0, 1 << 30, 1], np.int32).tobytes())
    text = pa.Array.from_buffers(pa.utf8(), 2, [None, offsets, pa.py_buffer(b"x")])
    return pa.RecordBatch.from_arrays(
        [pa.array([1, 1], pa.uint8()), text, pa.array(["", ""]), pa.array(["", ""])], schema=SCHEMA
    )


@pytest.mark.parametrize(
    ("verb", "batch"),
    [
        (b"encode", pa.RecordBatch.from_pydict({"id": pa.array([1], pa.uint64())})),
        (b"decode", terms_table(TERMS).to_batches()[0]),
        (b"find", pa.RecordBatch.from_pydict({"kind": [None], "lexical": [None], "datatype": [None], "lang": [None]}, SCHEMA)),
        (b"encode", terms_table([(9, "x", "", "")]).to_batches()[0]),
        (b"encode", terms_table([(1, "urn:x:" + "y" * MAX_TERM_BYTES, "", "")]).to_batches()[0]),
        (b"encode", pa.RecordBatch.from_arrays([
            pa.array([3], pa.uint8()),
            pa.Array.from_buffers(pa.utf8(), 1, [None, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"\xff\xfe")]),
            pa.array([""]), pa.array([""]),
        ], schema=SCHEMA)),
        (b"encode", broken_texts()),
    ],
)  # fmt: skip
def test_garbage_is_refused_and_ends_nothing(door, verb, batch):
    client, node = door
    with pytest.raises(pa.ArrowException):
        ask(client, verb, [batch], batch.schema)
    ends_well(client, node)


def test_requests_that_stand_still_are_counted_and_those_beyond_try_again(door, monkeypatch):
    client, node = door
    node._server._requests = Requests(max_calls=3)
    stalled = []
    descriptor = flight.FlightDescriptor.for_command(b"encode")
    for _ in range(3):
        writer, reader = client.do_exchange(descriptor)
        writer.begin(SCHEMA)
        stalled.append((writer, reader))
    deadline = threading.Event()
    for _ in range(500):
        if node._server._requests._calls == 3:
            break
        deadline.wait(0.02)
    with pytest.raises(flight.FlightUnavailableError, match="MAX_CALLS"):
        ask(client, b"encode", terms_table(TERMS).to_batches(), SCHEMA)
    for writer, reader in stalled:
        writer.done_writing()
        reader.read_all()
        writer.close()
    ends_well(client, node)


def test_all_requests_together_are_bounded(door):
    client, node = door
    node._server._requests = Requests(max_held_bytes=3_000_000)
    half = terms_table([(3, "x" * 2_000_000, "urn:x:type", "")]).to_batches()
    writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(b"find"))
    writer.begin(SCHEMA)
    writer.write_batch(half[0])
    waiting = threading.Event()
    for _ in range(500):
        if node._server._requests.held_bytes:
            break
        waiting.wait(0.02)
    with pytest.raises(flight.FlightUnavailableError, match="MAX_HELD_BYTES"):
        ask(client, b"find", half, SCHEMA)
    writer.done_writing()
    reader.read_all()
    writer.close()
    ends_well(client, node)


def test_a_client_asks_for_large_terms_in_parts(nodes, monkeypatch):
    nodes[0].step()
    monkeypatch.setattr(rpc, "_ASKED_BYTES", 10_000)
    client = FlightTerms([f"grpc://127.0.0.1:{nodes[0].port}"])
    terms = [(3, f"{i}" + "x" * 3_000, "urn:x:type", "") for i in range(20)]
    asked = []
    exchange = client._exchange
    monkeypatch.setattr(client, "_exchange", lambda *given: (asked.append(given[1]), exchange(*given))[1])
    ids = client.encode(terms)
    assert len(asked) == 20, "a character may be four bytes"
    blank = (2, "b", "", "")
    mixed = client.encode([blank, *terms, blank])
    assert mixed[0] == mixed[-1]
    assert np.array_equal(mixed[1:-1], ids)
    assert np.array_equal(client.find(terms), ids)
    columns = terms_table(terms).combine_chunks()
    assert np.array_equal(client.encode_columns(*(column.combine_chunks() for column in columns.columns)), ids)
    client.close()


def test_a_client_asks_for_large_answers_in_halves(nodes, monkeypatch):
    nodes[0].step()
    client = FlightTerms([f"grpc://127.0.0.1:{nodes[0].port}"])
    terms = [(3, f"{i}" + "x" * 3_000, "urn:x:type", "") for i in range(20)]
    ids = client.encode(terms)
    monkeypatch.setattr("penstock.services.dictionary.dictionary.MAX_REQUEST_BYTES", 10_000)
    assert client.decode(ids) == terms
    monkeypatch.setattr("penstock.services.dictionary.dictionary.MAX_REQUEST_BYTES", 1_000)
    with pytest.raises(LimitError):
        client.decode(ids)
    client.close()


def test_the_largest_number_of_terms_goes_in_one_request(nodes):
    assert MAX_TERMS * 8 < MAX_REQUEST_BYTES
    assert flight_requests.MAX_HELD_BYTES >= 2 * MAX_REQUEST_BYTES
