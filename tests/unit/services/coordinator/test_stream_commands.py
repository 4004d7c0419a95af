"""Streams are declared with their topics, all of a request or none, and dropped."""

from __future__ import annotations

import pytest

from penstock.errors import DataError, LimitError, UnknownStreamError
from penstock.log import Record, Topic
from penstock.services.coordinator import stream_commands
from penstock.services.coordinator.predicate_demand import restricted
from penstock.wire import StreamDeclaration, StreamDrop, StreamPredicates
from support.active_coordinator import SHARDS, ActiveCoordinator

IRI = "http://x/s"


@pytest.fixture
def made() -> ActiveCoordinator:
    return ActiveCoordinator()


def test_a_declaration_creates_its_topics_and_goes_to_every_shard(made):
    [record] = made.active.streams.declare([(IRI, "s", {"batch_ms": 500})])
    assert (record.number, record.name, record.batch_ms) == (1, "s", 500)
    assert [made.commands(shard) for shard in range(SHARDS)] == [[record]] * SHARDS
    names = made.topics.names
    assert {names.events("s"), names.tuples("s")} < made.log.topics().keys()
    assert [key for key, _ in made.control()] == [f"stream:{IRI}".encode(), b"state"]


def test_the_tuples_topic_has_as_many_partitions_as_the_producer_gave_the_events_topic(made):
    names = made.topics.names
    made.log.create([Topic(names.events("s"), 5)])
    made.active.streams.declare([(IRI, "s", {})])
    assert made.log.topics()[names.tuples("s")] == 5


def test_a_repeated_declaration_writes_nothing_and_a_different_one_is_refused(made):
    [first] = made.active.streams.declare([(IRI, "s", {"batch_ms": 500})])
    assert made.active.streams.declare([(IRI, "s", {"batch_ms": 500})]) == [first]
    assert made.active.writer.written == 1
    with pytest.raises(DataError, match="already declared with another name or other settings"):
        made.active.streams.declare([(IRI, "s", {"batch_ms": 700})])
    with pytest.raises(DataError, match="another stream already has the name 's'"):
        made.active.streams.declare([("http://x/t", "s", {})])


def test_streams_of_one_request_are_declared_in_one_transaction_or_not_at_all(made):
    with pytest.raises(DataError):
        made.active.streams.declare([(IRI, "s", {}), ("http://x/t", "t", {"batch_ms": 0})])
    assert (made.commands(), made.active.registrar.streams, made.active.registrar.commands) == ([], {}, 0)
    made.active.streams.declare([(IRI, "s", {}), ("http://x/t", "t", {})])
    assert made.active.writer.written == 1
    assert [record.iri for record in made.commands()] == [IRI, "http://x/t"]


def test_requests_have_limits(made, monkeypatch):
    with pytest.raises(LimitError, match="a stream's name of 1025 bytes"):
        made.active.streams.declare([(IRI, "n" * 1_025, {})])
    monkeypatch.setattr(stream_commands, "MAX_DECLARED", 1)
    with pytest.raises(LimitError, match="2 streams in one request"):
        made.active.streams.declare([(IRI, "s", {}), ("http://x/t", "t", {})])
    assert made.active.writer.written == 0


def test_a_stream_that_is_declared_again_begins_behind_the_earlier_ones_records(made):
    names, writer = made.topics.names, made.log.writer()
    [first] = made.active.streams.declare([(IRI, "s", {})])
    assert (first.events_before, first.tuples_before) == ((), ())
    made.active.streams.drop(IRI)
    writer.append([Record(names.events("s"), b"event"), Record(names.events("s"), b"event")])
    writer.append([Record(names.tuples("s"), b"tuples")])
    [again] = made.active.streams.declare([(IRI, "s", {})])
    assert (again.number, again.events_before, again.tuples_before) == (3, (2,), (1,))
    assert [type(record) for record in made.commands()] == [StreamDeclaration, StreamDrop, StreamDeclaration]


def test_a_stream_that_is_declared_again_starts_with_a_filter_that_passes_everything(made):
    made.active.writer.commit_filters([restricted(IRI, None, frozenset({"http://x/p"}))])
    [record] = made.active.streams.declare([(IRI, "s", {"timing": "all"})])
    current = made.active.state.filters[IRI]
    assert (record.filter_version, current.version, current.all_since) == (2, 2, 2)
    kinds = [type(value) for _, value in made.control()]
    assert kinds.index(StreamDeclaration) > max(i for i, kind in enumerate(kinds) if kind is StreamPredicates)


def test_a_dropped_stream_must_exist(made):
    with pytest.raises(UnknownStreamError):
        made.active.streams.drop(IRI)
    assert made.active.writer.written == 0
